//! `--memory`, which every command that creates tables has.

use std::process::Stdio;
use std::time::Duration;

use prsl_testkit::limits;

use crate::runner::{Folder, WAREHOUSE};

#[test]
fn every_command_that_makes_tables_has_it() {
    let folder = Folder::new(&[]);
    let help = |command: &str| {
        let text = folder.prsl(&format!("{command} --help")).done().stdout;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let start = text.find("--memory <SIZE>").unwrap_or_else(|| panic!("no --memory in {text}"));
        let end = text[start..].find("[default: 1GiB]").expect("its default");
        text[start..start + end].to_owned()
    };
    let expected = help("predict");
    for command in ["check", "explain", "evaluate", "export", "simulate", "learn", "plot"] {
        assert_eq!(help(command), expected, "{command}");
    }
}

#[test]
fn exports_and_checks_took_memory_beyond_any_limit() {
    let labels: String = (0..14).map(|label| format!("label l{label}\n")).collect();
    let formula = (1..14).fold("l0".to_owned(), |formula, label| format!("({formula}) <-> l{label}"));
    let text = format!("{labels}rule 0.9: {formula}\nexpect => l1 > 0.9\n");
    let folder = Folder::new(&[("m.prsl", &text), ("warehouse.prsl", WAREHOUSE)]);
    for language in ["uai", "bif"] {
        insta::assert_snapshot!(folder.prsl(&format!("export m.prsl --to {language} --memory 100KiB")));
        folder.prsl(&format!("export m.prsl --to {language} --memory 1MiB")).done();
    }
    for language in ["json", "prsl", "uai-names", "problog", "dot"] {
        folder.prsl(&format!("export m.prsl --to {language} --memory 1")).done();
    }
    let run = folder.prsl("check warehouse.prsl --memory 1");
    assert!(run.stdout.contains("more than the limit of 1 bytes"), "{run}");
    folder.prsl("check warehouse.prsl").done();
}

#[test]
fn simulated_rows_took_memory_beyond_any_limit() {
    let folder = Folder::new(&[]);
    insta::assert_snapshot!(folder.prsl("simulate --labels 100 --rows 100000 --memory 100MiB -o out"));
    assert!(folder.files().is_empty());
}

#[test]
fn learning_took_memory_beyond_any_limit() {
    let names: Vec<String> = (0..40).map(|label| format!("l{label}")).collect();
    let header = names.join(",") + "\n";
    let row = |cell: &str| vec![cell; 40].join(",") + "\n";
    let beliefs = header.clone() + &(row("0.6") + &row("0.4")).repeat(30);
    let truth = header + &(row("yes") + &row("no")).repeat(30);
    let folder = Folder::new(&[("b.csv", &beliefs), ("t.csv", &truth)]);
    let learn = "learn b.csv t.csv --cv 0 -o out.prsl";
    // The paper's recipe refuses what does not fit. Rule induction adds no rule that does not fit.
    let run = folder.prsl(&format!("{learn} --memory 1KiB"));
    assert_eq!(run.code, 0, "{run}");
    insta::assert_snapshot!(
        folder.prsl("learn b.csv t.csv --recipe paper --j0 30 --memory 1KiB -o out.prsl")
    );
}

/// Memory of the command besides its tables: the program, the model and its rows.
const BESIDE_TABLES: u64 = 50_000_000;

/// Models whose tables take 100 to 200 MiB. Some rows need logarithms and others do not. The dense model and the grid
/// have one plan; the noisy-or rules have one with signs and one without.
#[test]
fn workspaces_of_two_plans_and_several_lanes_took_several_times_the_limit() {
    for (name, model) in [
        ("dense", limits::dense(22)),
        ("grid", limits::grid(16)),
        ("noisy-or", limits::wide_noisy_ors(18, 24)),
    ] {
        let n_labels = model.matches("label ").count();
        let tiny = vec!["1e-250"; n_labels].join(",") + "\n";
        let beliefs = limits::beliefs(&model, 4) + &tiny;
        let folder = Folder::new(&[("m.prsl", &model), ("b.csv", &beliefs)]);
        for (threads, options) in
            [("1", "--engine exact"), ("2", "--engine exact --verify 1"), ("2", "--engine loopy --verify 1")]
        {
            let mut command = folder
                .command(&format!("predict m.prsl b.csv --query both --memory 256MiB -o out.csv {options}"));
            let mut child = command
                .env("RAYON_NUM_THREADS", threads)
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the command starts");
            let mut peak = None;
            let status = loop {
                peak = peak.max(prsl_testkit::peak_memory(child.id()));
                if let Some(status) = child.try_wait().expect("the command can be waited for") {
                    break status;
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            assert!(status.success(), "{name}, {options}: {status}");
            let answers = folder.read("out.csv");
            assert_eq!(answers.lines().count(), 6, "{name}: {answers}");
            let Some(peak) = peak else {
                eprintln!("skipped: this system does not tell how much memory a process has held");
                return;
            };
            assert!(peak < (256 << 20) + BESIDE_TABLES, "{name}, {threads} threads, {options}: {peak} bytes");
        }
    }
}
