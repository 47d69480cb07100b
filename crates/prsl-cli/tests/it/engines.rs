//! `prsl predict` with other engines and queries than the default.

use prsl::infer::Sampling;
use prsl::{BeliefMatrix, CategoryId, Engines, Evidence, JunctionTree, Model};
use prsl_testkit::nearly_silent;

use crate::predict::rounded;
use crate::runner::{Folder, Run, WAREHOUSE};

/// Two rules that form a cycle.
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
fn a_cycle_is_exact_by_default() {
    let run = circle().prsl("predict circle.prsl b.csv").done();
    assert_eq!(format!("{:.4}", run.number(1, "a=yes")), "0.6923");
}

#[test]
fn verification_finds_the_error_of_loopy_propagation() {
    let run = circle().prsl("predict circle.prsl b.csv --engine loopy --no-merge --verify 1");
    assert!(run.number(1, "a=yes") > 0.99, "{run}");
    assert!(run.stderr.contains("verified 1 row of 1"), "{run}");
    assert!(run.stderr.contains("off by 0.3077 on average, by 0.3077 at worst (row 1, "), "{run}");
    assert!(run.stderr.contains("instead of 0.6923)") || run.stderr.contains("instead of 0.3077)"), "{run}");
}

#[test]
fn verification_of_exact_answers() {
    told("verified_both", &mixed().prsl("predict warehouse.prsl b.csv --query both --verify 2 -o out.csv"));
    let loopy = "predict warehouse.prsl b.csv --query mpe --engine loopy --verify 2 --seed 3 -o out.csv";
    told("verified_loopy_mpe", &mixed().prsl(loopy));
}

/// A chain of labels with too many assignments for enumeration. It has no cycle, so loopy propagation is exact too.
fn chain() -> Folder {
    let labels: String = (0..20).map(|label| format!("label l{label}\n")).collect();
    let rules: String = (1..20).map(|label| format!("rule 0.8: l{} -> l{label}\n", label - 1)).collect();
    Folder::new(&[("chain.prsl", &(labels + &rules)), ("b.csv", "l0,l7\n0.9,0.2\n0.3,0.6\n")])
}

/// The mean error of the marginals.
fn average_error(run: &Run) -> f64 {
    let (_, rest) = run.stderr.split_once("a marginal is off by ").expect("an error");
    rest.split_once(" on average").expect("on average").0.parse().expect("a number")
}

#[test]
fn verification_by_samples_if_no_exact_engine_is_affordable() {
    let folder = chain();
    for options in ["--engine loopy --memory 1", "--engine exact"] {
        let run = folder.prsl(&format!("predict chain.prsl b.csv --verify 2 -o out.csv {options}"));
        assert_eq!(run.code, 0, "{run}");
        assert!(
            run.stderr.contains("verified 2 rows of 2: against Gibbs sampling (itself an estimate"),
            "{run}"
        );
        assert!((1e-6..0.02).contains(&average_error(&run)), "{run}");
    }
}

#[test]
fn verification_by_branch_and_bound() {
    let folder = chain();
    for options in ["--engine loopy --memory 1", "--engine exact"] {
        let run =
            folder.prsl(&format!("predict chain.prsl b.csv --query mpe --verify 2 -o out.csv {options}"));
        assert_eq!(run.code, 0, "{run}");
        let told =
            "verified 2 rows of 2: against branch and bound, the assignment has a smaller weight in 0 rows\n";
        assert!(run.stderr.ends_with(told), "{run}");
    }
}

#[test]
fn verification_tells_where_its_budget_was_not_enough() {
    let mut pairs: String = (0..20).map(|label| format!("label l{label}\n")).collect();
    for b in 0..20 {
        (0..b).for_each(|a| pairs.push_str(&format!("rule 0.9: l{a} xor l{b}\n")));
    }
    let folder = Folder::new(&[("pairs.prsl", &pairs), ("b.csv", "l0,l7\n0.9,0.2\n")]);
    let run =
        folder.prsl("predict pairs.prsl b.csv --query mpe --memory 1 --time-limit 0 --verify 1 -o out.csv");
    assert_eq!(run.code, 0, "{run}");
    let told = "; its budget of 0 units of work was not enough for a proof in 1 row\n";
    assert!(run.stderr.ends_with(told), "{run}");
}

/// Every two labels should differ, so even the best assignment violates some rules. Only a search can prove this.
#[test]
fn assignments_without_a_search_have_a_gap() {
    let mut pairs: String = (0..12).map(|label| format!("label l{label}\n")).collect();
    for b in 0..12 {
        (0..b).for_each(|a| pairs.push_str(&format!("rule 0.9: l{a} xor l{b}\n")));
    }
    let folder = Folder::new(&[("pairs.prsl", &pairs), ("b.csv", "l0,l1\n0.6,0.7\n")]);
    let run = folder.prsl("predict pairs.prsl b.csv --query mpe --memory 1 --time-limit 0");
    assert_eq!(run.code, 0, "{run}");
    let told = ["optimal", "engine", "status"].map(|column| run.cell(1, column));
    assert_eq!(told, ["false", "branch_and_bound", "not_proven"]);
    let told = "1 of 1 row got an assignment that is not proven to be the best; `--time-limit 60`, for example, lets the \
                search go on\n1 row answered: 1 not_proven\n";
    assert_eq!(run.stderr, told);
    let best = folder.prsl("predict pairs.prsl b.csv --query mpe --memory 1").done();
    assert_eq!((best.cell(1, "optimal").as_str(), best.number(1, "gap")), ("true", 0.0));
    assert!(run.number(1, "log_weight") <= best.number(1, "log_weight"));
    assert!(run.number(1, "log_weight") + run.number(1, "gap") >= best.number(1, "log_weight"));
}

/// Ten pigeons in nine holes: impossible, but the SAT solver has too few steps for a proof.
fn pigeons() -> String {
    let mut text: String = (0..10).flat_map(|p| (0..9).map(move |h| format!("label p{p}_{h}\n"))).collect();
    for pigeon in 0..10 {
        let holes: Vec<String> = (0..9).map(|hole| format!("p{pigeon}_{hole}")).collect();
        text += &format!("rule 1: {}\n", holes.join(" | "));
    }
    for hole in 0..9 {
        for b in 0..10 {
            (0..b).for_each(|a| text += &format!("rule 1: !p{a}_{hole} | !p{b}_{hole}\n"));
        }
    }
    text
}

#[test]
fn an_undecided_row_has_no_assignment() {
    let folder = Folder::new(&[("pigeons.prsl", &pigeons()), ("b.csv", "p0_0\n0.6\n")]);
    for engine in ["--memory 1 --time-limit 0", "--engine loopy"] {
        let run = folder.prsl(&format!("predict pigeons.prsl b.csv --query mpe {engine}"));
        assert_eq!(run.code, 0, "{run}");
        let told = ["p0_0", "log_weight", "optimal", "gap", "status"].map(|column| run.cell(1, column));
        assert_eq!(told, ["", "", "", "", "not_found"], "{run}");
        let told = "1 of 1 row got no assignment: neither a possible one nor a proof that there is none was found\n\
                    1 row answered: 1 not_found\n";
        assert_eq!(run.stderr, told);
    }
}

#[test]
fn an_assignment_at_the_time_limit_has_its_own_status() {
    let mut pairs: String = (0..24).map(|label| format!("label l{label}\n")).collect();
    for b in 0..24 {
        (0..b).for_each(|a| pairs.push_str(&format!("rule 0.9: l{a} xor l{b}\n")));
    }
    let folder = Folder::new(&[("pairs.prsl", &pairs), ("b.csv", "l0,l1\n0.6,0.7\n")]);
    let run = folder.prsl("predict pairs.prsl b.csv --query mpe --memory 1 --time-limit 1e-9");
    assert_eq!((run.code, run.cell(1, "status").as_str()), (0, "time_limit"), "{run}");
    assert!(
        run.stderr.contains("since the time limit ended the search: another run may find another"),
        "{run}"
    );
}

/// A model, rows, and a memory limit that only the plan with signs fits, which loses digits.
fn silent() -> (Folder, u64) {
    let with_memory = |seed: u64| {
        let (model, rows) = nearly_silent(seed, 5);
        let memory = JunctionTree::compile(&model).expect("a small model").cost().bytes as u64;
        (model, rows, memory)
    };
    let loses_digits = |(model, _, memory): &(Model, BeliefMatrix, u64)| {
        let tree = JunctionTree::compile_within(model, prsl::Limits { memory: *memory });
        !tree.expect("it fits exactly").is_careful()
    };
    let mut candidates = (0..100).map(with_memory);
    let (model, rows, memory) = candidates.find(loses_digits).expect("some plan without signs is larger");
    (Folder::new(&[("silent.prsl", &model.to_string()), ("b.csv", &csv(&model, &rows))]), memory)
}

#[test]
fn exact_samples_are_refused_if_the_tree_does_not_fit() {
    let (folder, memory) = silent();
    let run =
        folder.prsl(&format!("predict silent.prsl b.csv --query samples --engine exact --memory {memory}"));
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stderr.starts_with("error: exact inference needs "), "{run}");
    assert!(run.stderr.contains("help: `--engine auto` draws approximate samples"), "{run}");
    let run = folder.prsl(&format!("predict silent.prsl b.csv --query samples --memory {memory}")).done();
    assert_eq!(run.cell(1, "engine"), "gibbs");
}

#[test]
fn imprecise_rows_have_their_own_status() {
    let (folder, memory) = silent();
    let run =
        folder.prsl(&format!("predict silent.prsl b.csv --query both --engine exact --memory {memory}"));
    assert_eq!(run.code, 0, "{run}");
    let imprecise: Vec<usize> = (1..=9).filter(|&row| run.cell(row, "status") == "imprecise").collect();
    assert!(!imprecise.is_empty(), "{run}");
    assert!(imprecise.iter().all(|&row| run.cell(row, "log_probability").is_empty()), "{run}");
    let told =
        format!("{} of 9 rows lost digits to rounding; a larger `--memory` avoids that\n", imprecise.len());
    assert!(run.stderr.starts_with(&told), "{run}");
    let enough = folder.prsl("predict silent.prsl b.csv --query both --engine exact").done();
    assert!((1..=9).all(|row| enough.cell(row, "status") == "ok"), "{enough}");
}

/// Rows as a table, with the first category of every label.
fn csv(model: &Model, rows: &BeliefMatrix) -> String {
    let header: Vec<&str> = model.labels().iter().map(prsl::Label::name).collect();
    let cells = |row: usize| -> Vec<String> {
        model.label_ids().map(|label| rows.row(row)[model.block(label).start].to_string()).collect()
    };
    let lines = (0..rows.n_rows()).map(|row| cells(row).join(",") + "\n");
    header.join(",") + "\n" + &lines.collect::<String>()
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
    plan("plan_mpe", "--query mpe");
    plan("plan_mpe_without_memory", "--query mpe --memory 1");
    plan("plan_samples", "--query samples");
    let without_beliefs = folder.prsl("predict warehouse.prsl --explain-plan --query both").done();
    let with_beliefs = folder.prsl("predict warehouse.prsl b.csv --explain-plan --query both").done();
    assert_eq!(without_beliefs.stdout, with_beliefs.stdout);
}

/// A table of more than two chunks. A chunk has at most 8192 rows.
#[test]
fn samples_do_not_depend_on_chunks() {
    const ROWS: usize = 20_000;
    let model = Model::parse(WAREHOUSE).expect("a model");
    let (mut beliefs, mut rows) = ("feet=gait\n".to_owned(), BeliefMatrix::new(&model));
    for row in 0..ROWS {
        let gait = (row % 997) as f64 / 1000.0;
        beliefs.push_str(&format!("{gait}\n"));
        rows.push_evidence(&Evidence::new().belief("feet", [gait, 1.0 - gait])).expect("a row");
    }
    let sampler = Engines::new(&model).sampler().expect("a small model");
    let sampling = Sampling { n_samples: 1, seed: 7, first_row: 0 };
    let folder = Folder::new(&[("warehouse.prsl", WAREHOUSE), ("b.csv", &beliefs)]);
    let run = folder.prsl("predict warehouse.prsl b.csv --query samples --seed 7").done();
    let name = |(label, category): (&prsl::Label, CategoryId)| label.category(category).to_owned();
    let lines = (1..).zip(sampler.sample_batch(&rows, &sampling).unwrap()).map(|(row, samples)| {
        let sample = samples.expect("drawn").expect("possible").remove(0);
        let names: Vec<String> = model.labels().iter().zip(sample.categories()).map(name).collect();
        format!("{row},1,{},junction_tree,ok", names.join(","))
    });
    assert!(
        run.stdout.lines().skip(1).eq(lines.collect::<Vec<_>>()),
        "other samples than those of the whole table"
    );
}

#[test]
fn the_first_samples_do_not_depend_on_their_number() {
    let folder = mixed();
    let samples = |options: &str| {
        folder.prsl(&format!("predict warehouse.prsl b.csv --query samples {options}")).done().stdout
    };
    let three = samples("--samples 3 --seed 7");
    assert_eq!(three.lines().count(), 1 + 3 * 3);
    assert_eq!(three.lines().next(), Some("row,sample,activity,feet,hands,engine,status"));
    let firsts: Vec<_> = three.lines().skip(1).step_by(3).collect();
    assert_eq!(firsts, samples("--samples 1 --seed 7").lines().skip(1).collect::<Vec<_>>());
    assert_ne!(three, samples("--samples 3 --seed 8"));
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
