//! Options for daily work with tables: ids, digits, dialects of CSV, failing on rows, and a table for people.

use std::io::Read;

use crate::runner::{BELIEFS, Folder, WAREHOUSE, cell};

/// Two possible rows and an impossible one, with two columns that identify them.
const MARKED: &str = "\
image,activity,feet,frame
007.jpg,walking,gait,1
b c.jpg,walking,standing,2
\"x,y\",normal,standing,3
";

fn folder() -> Folder {
    Folder::new(&[("warehouse.prsl", WAREHOUSE), ("marked.csv", MARKED), ("beliefs.csv", BELIEFS)])
}

#[test]
fn ids_are_the_first_columns() {
    let folder = folder();
    for (query, n_lines) in
        [("marginals", 3), ("mpe", 3), ("both", 3), ("mpe --top 2", 5), ("samples --samples 3", 7)]
    {
        let run = folder.prsl(&format!("predict warehouse.prsl marked.csv --id frame,image --query {query}"));
        assert_eq!(run.code, 0, "{run}");
        let lines: Vec<&str> = run.stdout.lines().collect();
        assert!(lines[0].starts_with("frame,image,"), "{run}");
        assert_eq!(lines.len(), n_lines + 1, "{run}");
        assert!(lines[1].starts_with("1,007.jpg,"), "{run}");
        assert!(lines[n_lines].starts_with("3,\"x,y\","), "{run}");
        assert!(
            lines.iter().any(|line| line.starts_with("2,b c.jpg,") && line.ends_with("impossible")),
            "{run}"
        );
    }
    let run = folder.prsl("predict warehouse.prsl marked.csv --id frame,image --format jsonl");
    assert!(run.stdout.starts_with("{\"frame\":\"1\",\"image\":\"007.jpg\","), "{run}");
    folder.prsl("predict warehouse.prsl marked.csv --id frame,image -o out.parquet");
    let again = folder.prsl("predict warehouse.prsl out.parquet --id image --ignore-extra");
    assert_eq!(cell(&again.stdout, 1, "image"), "007.jpg");
}

#[test]
fn ids_are_the_same_on_any_number_of_threads() {
    let mut text = "image,feet=gait\n".to_owned();
    (0..5000).for_each(|row| text.push_str(&format!("i{row},0.5\n")));
    let folder = Folder::new(&[("warehouse.prsl", WAREHOUSE), ("many.csv", &text)]);
    let run = folder.prsl("predict warehouse.prsl many.csv --id image --threads 2").done();
    for (row, line) in run.stdout.lines().skip(1).enumerate() {
        assert!(line.starts_with(&format!("i{row},")), "{line}");
    }
}

#[test]
fn names_of_ids_are_kept() {
    let text = "status,feet=gait\nnew,0.5\n";
    let folder = Folder::new(&[("warehouse.prsl", WAREHOUSE), ("b.csv", text)]);
    let run = folder.prsl("predict warehouse.prsl b.csv --id status").done();
    assert!(run.stdout.lines().next().expect("a header").ends_with(",engine,prsl_status"), "{run}");
    let run = folder.prsl("predict warehouse.prsl b.csv --id stauts");
    assert_eq!(run.code, 3);
    assert!(run.stderr.contains("did you mean `status`?"), "{run}");
    let run = folder.prsl("predict warehouse.prsl b.csv --id status,feet=gait");
    assert!(run.stderr.contains("column `feet=gait` has beliefs of the model"), "{run}");
}

#[test]
fn numbers_are_rounded_in_every_format() {
    let folder = folder();
    let run = folder.prsl("predict warehouse.prsl beliefs.csv --digits 3").done();
    let columns = ["activity=walking", "activity=normal", "activity=overhead", "log_evidence"];
    assert_eq!(columns.map(|column| run.cell(1, column)), ["0.007", "0.289", "0.703", "-0.721"]);
    let run = folder.prsl("predict warehouse.prsl beliefs.csv --digits 0 --format jsonl").done();
    assert!(
        run.stdout
            .starts_with("{\"activity=walking\":0.0,\"activity=normal\":0.0,\"activity=overhead\":1.0,")
    );
    let run = folder.prsl("predict warehouse.prsl beliefs.csv --digits 18");
    assert_eq!(run.code, 2, "{run}");
}

#[test]
fn compressed_answers_are_those_of_the_plain_file() {
    let folder = folder();
    folder.prsl("predict warehouse.prsl beliefs.csv -o out.csv").done();
    folder.prsl("predict warehouse.prsl beliefs.csv -o out.csv.gz").done();
    let packed = std::fs::read(folder.path("out.csv.gz")).expect("a file");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).expect("a compressed text");
    assert_eq!(text, folder.read("out.csv"));
    let again = folder.prsl("predict warehouse.prsl out.csv.gz --ignore-extra").done();
    assert_eq!(again.stdout, folder.prsl("predict warehouse.prsl out.csv --ignore-extra").done().stdout);
}

#[test]
fn semicolons_and_decimal_commas() {
    let folder = folder();
    let german = BELIEFS.replace(',', ";").replace('.', ",");
    std::fs::write(folder.path("german.csv"), &german).expect("a file");
    let expected = folder.prsl("predict warehouse.prsl beliefs.csv").done().stdout;
    for options in ["--delimiter ; --decimal ,", "--decimal ,"] {
        assert_eq!(
            folder.prsl(&format!("predict warehouse.prsl german.csv {options}")).done().stdout,
            expected
        );
    }
    std::fs::write(folder.path("tabs.csv"), BELIEFS.replace(',', "\t")).expect("a file");
    assert_eq!(folder.prsl("predict warehouse.prsl tabs.csv --delimiter tab").done().stdout, expected);
    for (name, arguments) in [
        ("semicolons_without_the_option", "predict warehouse.prsl german.csv"),
        ("tabs_without_the_option", "predict warehouse.prsl tabs.csv"),
        ("decimal_comma_without_the_option", "predict warehouse.prsl german.csv --delimiter ;"),
        ("decimal_point_with_the_option", "predict warehouse.prsl beliefs.csv --delimiter , --decimal ;"),
        ("delimiter_and_decimal_alike", "predict warehouse.prsl german.csv --delimiter , --decimal ,"),
        ("delimiter_of_two", "predict warehouse.prsl german.csv --delimiter ;;"),
    ] {
        insta::assert_snapshot!(name, folder.prsl(arguments));
    }
    // A new model would have one label with a very long name.
    std::fs::write(folder.path("truth.csv"), "activity;feet;hands\noverhead;standing;high\n")
        .expect("a file");
    let run = folder.prsl("learn german.csv truth.csv -o m.prsl");
    assert!(run.stderr.contains("seem to be separated by `;`"), "{run}");
}

#[test]
fn the_index_of_a_data_frame_is_ignored_with_a_note() {
    let folder = folder();
    let expected = folder.prsl("predict warehouse.prsl beliefs.csv").done().stdout;
    for name in ["", "Unnamed: 0"] {
        let (header, row) = BELIEFS.split_once('\n').expect("two lines");
        std::fs::write(folder.path("frame.csv"), format!("{name},{header}\n17,{row}")).expect("a file");
        let run = folder.prsl("predict warehouse.prsl frame.csv");
        assert_eq!((run.code, &run.stdout), (0, &expected), "{run}");
        let note = "note: the first column of `frame.csv` has no name; it is ignored, as the index of a data frame\n";
        assert!(run.stderr.starts_with(note), "{run}");
        let run = folder.prsl_with(&["predict", "warehouse.prsl", "frame.csv", "--id", "Unnamed: 0"]).done();
        assert!(run.stdout.starts_with("Unnamed: 0,activity=walking,"), "{run}");
    }
    // Both models read the same file, which is told once.
    std::fs::write(folder.path("truth.csv"), "activity,feet,hands\noverhead,standing,high\n")
        .expect("a file");
    let run = folder.prsl("compare warehouse.prsl warehouse.prsl frame.csv truth.csv");
    assert_eq!(run.stderr.matches("note: ").count(), 1, "{run}");
}

#[test]
fn impossible_rows_fail_if_asked_for() {
    let folder = folder();
    let arguments = "predict warehouse.prsl marked.csv --id image,frame -o out.csv";
    assert_eq!(folder.prsl(arguments).code, 0);
    let written = folder.read("out.csv");
    let run = folder.prsl(&format!("{arguments} --fail-on impossible"));
    assert_eq!(run.code, 4, "{run}");
    insta::assert_snapshot!(run);
    assert_eq!(folder.read("out.csv"), written);
    assert_eq!(folder.prsl(&format!("{arguments} --fail-on not_converged,imprecise")).code, 0);
    assert_eq!(folder.prsl(&format!("{arguments} --fail-on not_converged,impossible")).code, 4);
    assert_eq!(folder.prsl("predict warehouse.prsl beliefs.csv --fail-on impossible").code, 0);
    assert_eq!(folder.prsl(&format!("{arguments} --fail-on unlikely")).code, 2);
}

#[test]
fn a_summary_in_one_line_goes_to_standard_error() {
    let folder = folder();
    assert_eq!(folder.prsl("predict warehouse.prsl beliefs.csv").stderr, "1 row answered\n");
    assert_eq!(folder.prsl("predict warehouse.prsl beliefs.csv -o o.csv").stderr, "1 row written to o.csv\n");
    let run = folder.prsl("predict warehouse.prsl marked.csv --id image,frame -o o.csv");
    assert_eq!(run.stderr.lines().last(), Some("3 rows written to o.csv: 2 ok, 1 impossible"));
}

#[test]
fn people_get_a_table() {
    let folder = folder();
    for (name, arguments) in [
        ("table_of_marginals", "predict warehouse.prsl beliefs.csv --format table"),
        ("table_with_ids", "predict warehouse.prsl marked.csv --id image,frame --format table --digits 2"),
        ("table_of_assignments", "predict warehouse.prsl beliefs.csv --query mpe --top 2 --format table"),
        ("table_of_both", "predict warehouse.prsl beliefs.csv --query both --format table"),
        ("table_of_samples", "predict warehouse.prsl beliefs.csv --query samples --samples 2 --format table"),
        ("table_by_loopy_propagation", "predict warehouse.prsl beliefs.csv --engine loopy --format table"),
        ("table_in_a_file", "predict warehouse.prsl beliefs.csv --format table -o out.txt"),
    ] {
        insta::assert_snapshot!(name, folder.prsl(arguments));
    }
}

#[test]
fn the_table_for_people_has_every_id() {
    let text = "engine,gap,feet=gait\ndiesel,7,0.5\n";
    let folder = Folder::new(&[("warehouse.prsl", WAREHOUSE), ("b.csv", text)]);
    let run = folder.prsl("predict warehouse.prsl b.csv --id engine,gap --format table").done();
    assert!(run.stdout.starts_with("engine  gap  activity "), "{run}");
    // Logarithms are not rounded before they are shown as probabilities.
    let folder = Folder::new(&[("m.prsl", "label a\n"), ("b.csv", "a\n0.86\n")]);
    let run = folder.prsl("predict m.prsl b.csv --query mpe --digits 1 --format table").done();
    assert!(run.stdout.contains(" 0.9  ok"), "{run}");
}

#[test]
fn ids_and_weights_are_for_learning_too() {
    let mut beliefs = "image,a,b\n".to_owned();
    let mut truths = "a,image,b\n".to_owned();
    for row in 0..40 {
        beliefs += &format!("{row}.jpg,0.{},0.{}\n", 1 + row % 9, 1 + (row + 3) % 9);
        truths += &format!("{},{row}.jpg,{}\n", row % 2, (row / 2) % 2);
    }
    let folder = Folder::new(&[("b.csv", &beliefs), ("t.csv", &truths)]);
    let run = folder.prsl("learn b.csv t.csv --id image --cv 0 -o m.prsl");
    assert_eq!(run.code, 0, "{run}");
    assert!(!folder.read("m.prsl").contains("image"));
    assert_eq!(folder.prsl("calibrate m.prsl b.csv t.csv --id image -o c.prsl").code, 0);
    assert_eq!(folder.prsl("evaluate m.prsl b.csv t.csv --id image --no-intervals").code, 0);
}
