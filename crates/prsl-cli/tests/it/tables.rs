//! Reading of tables, for every command that reads them.

use prsl::Model;

use crate::runner::{Folder, Run};

const MODEL: &str = "label alarm prior 0.1\nlabel fire\nrule 0.9: fire -> alarm\n";

fn told(name: &str, run: &Run) {
    assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{run}");
    insta::assert_snapshot!(name, run);
}

#[test]
fn percent_values_became_1_with_the_advised_normalize() {
    let folder = Folder::new(&[("m.prsl", MODEL), ("b.csv", "alarm,fire\n85,3\n")]);
    told("percent", &folder.prsl("predict m.prsl b.csv"));
    told("percent_normalized", &folder.prsl("predict m.prsl b.csv --normalize"));
}

#[test]
fn a_table_of_other_columns_was_answered_from_priors_with_the_advised_ignore_extra() {
    let files = [("m.prsl", MODEL), ("b.csv", "id,fires\n85,3\n"), ("good.csv", "alarm\n0.5\n")];
    let folder = Folder::new(&files);
    told("no_known_column", &folder.prsl("predict m.prsl b.csv"));
    told("no_known_column_ignored", &folder.prsl("predict m.prsl b.csv --ignore-extra"));
    told("no_known_truth", &folder.prsl("evaluate m.prsl good.csv b.csv --ignore-extra"));
}

#[test]
fn a_missing_truth_suggested_no() {
    let files =
        [("m.prsl", MODEL), ("b.csv", "alarm\n0.5\n"), ("t.csv", "alarm\nNA\n"), ("n.csv", "alarm\n?\n")];
    let folder = Folder::new(&files);
    told("missing_truth", &folder.prsl("evaluate m.prsl b.csv t.csv"));
    told("missing_belief", &folder.prsl("predict m.prsl n.csv"));
    told("missing_is_category", &folder.prsl("predict m.prsl n.csv --missing ?,no"));
}

/// Listed codes are treated like empty cells in every command that reads tables.
#[test]
fn listed_codes_are_missing_in_every_command() {
    let (mut beliefs, mut truth) = ("alarm,fire\n".to_owned(), "alarm,fire\n".to_owned());
    for row in 0..40 {
        beliefs += ["0.9,NA\n", "0.2,0.3\n", "?,0.6\n", "0.4,0.5\n"][row % 4];
        truth += ["yes,NA\n", "no,no\n", "-,yes\n", "no,yes\n"][row % 4];
    }
    let without = |text: &str| {
        let cell =
            |cell: &str| if ["NA", "?", "-"].contains(&cell) { String::new() } else { cell.to_owned() };
        let line = |line: &str| line.split(',').map(cell).collect::<Vec<_>>().join(",") + "\n";
        text.lines().map(line).collect::<String>()
    };
    let coded = Folder::new(&[("m.prsl", MODEL), ("b.csv", &beliefs), ("t.csv", &truth)]);
    let empty = Folder::new(&[("m.prsl", MODEL), ("b.csv", &without(&beliefs)), ("t.csv", &without(&truth))]);
    for command in [
        "predict m.prsl b.csv",
        "explain m.prsl b.csv --row 3",
        "evaluate m.prsl b.csv t.csv",
        "calibrate m.prsl b.csv t.csv -o out",
        "learn b.csv t.csv --cv 0 -o out",
        "plot m.prsl b.csv t.csv --what reliability -o out",
        "plot m.prsl b.csv --what influence -o out",
    ] {
        let refused = coded.prsl(command);
        assert_eq!(refused.code, 3, "{refused}");
        assert!(refused.stderr.contains("`--missing "), "{refused}");
        let run = coded.prsl(&format!("{command} --missing NA,?,-"));
        let expected = empty.prsl(command);
        assert_eq!((run.code, expected.code), (0, 0), "{run}{expected}");
        if command.ends_with("-o out") {
            assert_eq!(coded.read("out"), empty.read("out"), "{command}");
        } else {
            assert_eq!(run.stdout, expected.stdout, "{command}");
        }
    }
}

#[test]
fn huge_weights_gave_nan_and_zero_weights_were_accepted() {
    let row = "0.7,0.4\n";
    let beliefs = format!("left,right\n{}", row.repeat(40));
    let truth = |weight: &str| format!("left,right,w\n{}", format!("yes,no,{weight}\nno,yes,1\n").repeat(20));
    let folder = Folder::new(&[
        ("b.csv", &beliefs),
        ("huge.csv", &truth("1e308")),
        ("zero.csv", &truth("0").replace(",1\n", ",0\n")),
        ("large.csv", &truth("1e15")),
    ]);
    let learn = |truth: &str| folder.prsl(&format!("learn b.csv {truth} --weights w --cv 0 -o out.prsl"));
    told("huge_weights", &learn("huge.csv"));
    told("zero_weights", &learn("zero.csv"));
    let run = learn("large.csv");
    assert!(run.code == 0 && !run.stdout.contains("NaN"), "{run}");
    assert!(Model::parse(&folder.read("out.prsl")).is_ok());
}

#[test]
fn a_damaged_parquet_file_printed_a_panic() {
    let folder = Folder::new(&[("m.prsl", MODEL), ("b.csv", "alarm,fire\n0.5,0.5\n")]);
    folder.prsl("predict m.prsl b.csv -o b.parquet").done();
    let bytes = std::fs::read(folder.path("b.parquet")).expect("a file");
    // Unknown column types in the metadata make the parquet library panic.
    let key = b"ARROW:schema";
    let start = bytes.windows(key.len()).position(|part| part == key).expect("its description") + key.len();
    let mut n_damaged = 0;
    for place in start + 120..start + 320 {
        let mut damaged = bytes.clone();
        damaged[place] = b'/';
        std::fs::write(folder.path("damaged.parquet"), damaged).expect("a file");
        let run = folder.prsl("predict m.prsl damaged.parquet --ignore-extra");
        assert!(run.code == 0 || run.code == 3, "{run}");
        assert!(run.stderr == "1 row answered\n" || run.stderr.starts_with("error: "), "{run}");
        n_damaged += usize::from(run.stderr.contains("its parts do not fit together"));
    }
    assert!(n_damaged > 0);
}
