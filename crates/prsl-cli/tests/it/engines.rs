//! `prsl predict` with other engines and other questions than those by default.

use crate::predict::rounded;
use crate::runner::{Folder, Run, WAREHOUSE};

/// Evidence that goes round in a circle between two rules.
const CIRCLE: &str = "label a\nlabel b\nrule 1: a -> b\nrule 1: b -> a\n";

fn circle() -> Folder {
    Folder::new(&[("circle.prsl", CIRCLE), ("b.csv", "a,b\n0.6,0.6\n")])
}

fn mixed() -> Folder {
    let beliefs = "activity=overhead,feet=gait,hands=high\n0.5,0.05,0.5\n,,\n0.9,0.3,0.1\n";
    Folder::new(&[("warehouse.prsl", WAREHOUSE), ("b.csv", beliefs)])
}

fn told(name: &str, run: &Run) {
    assert_eq!(run.code, 0, "{run}");
    insta::assert_snapshot!(name, rounded(&run.to_string()));
}

#[test]
fn a_circle_is_exact_by_default() {
    let run = circle().prsl("predict circle.prsl b.csv").done();
    assert_eq!(format!("{:.4}", run.number(1, "a=yes")), "0.6923");
}

#[test]
fn verification_finds_the_error_of_loopy_propagation() {
    let run = circle().prsl("predict circle.prsl b.csv --engine loopy --no-merge --verify 1");
    assert!(run.number(1, "a=yes") > 0.99, "{run}");
    assert!(run.stderr.contains("verified 1 row of 1"), "{run}");
    assert!(run.stderr.contains("off by 0.3077 on average, by 0.3077 at worst (row 1, "), "{run}");
    assert!(run.stderr.contains("for 0.6923)") || run.stderr.contains("for 0.3077)"), "{run}");
}

#[test]
fn verification_of_what_is_right() {
    told("verified_both", &mixed().prsl("predict warehouse.prsl b.csv --query both --verify 2 -o out.csv"));
    let loopy = "predict warehouse.prsl b.csv --query mpe --engine loopy --verify 2 --seed 3 -o out.csv";
    told("verified_loopy_mpe", &mixed().prsl(loopy));
}

#[test]
fn columns_of_every_query() {
    let folder = mixed();
    let answers = |name: &str, options: &str| {
        told(name, &folder.prsl(&format!("predict warehouse.prsl b.csv {options}")));
    };
    answers("loopy", "--engine loopy");
    answers("loopy_mpe", "--engine loopy --query mpe");
    answers("both", "--query both");
    answers("both_loopy", "--query both --engine loopy");
    answers("top", "--query mpe --top 2");
    answers("branch_and_bound", "--query mpe --memory 1");
    answers("auto_loopy", "--memory 1");
    answers("flooding", "--engine loopy --schedule flooding --max-sweeps 1 --damping 0.3 --tolerance 0");
}

#[test]
fn plans_are_explained() {
    let folder = mixed();
    let plan = |name: &str, options: &str| {
        told(name, &folder.prsl(&format!("predict warehouse.prsl b.csv --explain-plan {options}")));
    };
    plan("plan_both", "--query both");
    plan("plan_both_without_memory", "--query both --memory 1");
    plan("plan_loopy", "--engine loopy");
    plan("plan_exact", "--engine exact");
    plan("plan_enumeration", "--engine enumeration --query mpe");
    plan("plan_samples", "--query samples");
}

#[test]
fn samples_are_the_same_whatever_the_chunks() {
    let mut beliefs = "activity=overhead\n".to_owned();
    (0..300).for_each(|row| beliefs.push_str(&format!("0.{:03}\n", row + 1)));
    let folder = Folder::new(&[("warehouse.prsl", WAREHOUSE), ("b.csv", &beliefs)]);
    let run = folder.prsl("predict warehouse.prsl b.csv --query samples --samples 3 --seed 7").done();
    assert_eq!(run.stdout.lines().count(), 1 + 3 * 300);
    assert_eq!(run.stdout.lines().next(), Some("row,sample,activity,feet,hands,engine,status"));
    let again = folder.prsl("predict warehouse.prsl b.csv --query samples --samples 1 --seed 7").done();
    let firsts: Vec<_> = run.stdout.lines().skip(1).step_by(3).collect();
    assert_eq!(firsts, again.stdout.lines().skip(1).collect::<Vec<_>>());
    let other = folder.prsl("predict warehouse.prsl b.csv --query samples --samples 3 --seed 8").done();
    assert_ne!(run.stdout, other.stdout);
}

#[test]
fn labels_named_like_the_first_columns() {
    let folder = Folder::new(&[
        ("m.prsl", "label row\nlabel sample\nrule 0.9: row -> sample\n"),
        ("b.csv", "row\n0.5\n"),
    ]);
    let run = folder.prsl("predict m.prsl b.csv --query samples").done();
    assert_eq!(run.stdout.lines().next(), Some("prsl_row,prsl_sample,row,sample,engine,status"));
    let run = folder.prsl("predict m.prsl b.csv --query mpe --top 1").done();
    assert!(run.stdout.starts_with("prsl_row,rank,row,sample,log_weight,"), "{run}");
}
