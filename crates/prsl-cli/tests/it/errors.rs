//! Error messages of all kinds.

use crate::runner::{Folder, WAREHOUSE};

fn told(name: &str, run: &crate::runner::Run, code: i32) {
    assert_eq!(run.code, code, "{run}");
    assert_eq!(run.stdout, "", "{run}");
    insta::assert_snapshot!(name, run);
}

fn with_beliefs(beliefs: &str) -> Folder {
    Folder::new(&[("warehouse.prsl", WAREHOUSE), ("beliefs.csv", beliefs)])
}

#[test]
fn files_that_cannot_be_read() {
    let folder = Folder::warehouse();
    std::fs::write(folder.path("latin1.prsl"), b"label a\nlabel caf\xe9\n").expect("a file");
    std::fs::create_dir(folder.path("folder.prsl")).expect("a folder");
    told("missing_model", &folder.prsl("check warehose.prsl"), 3);
    told("missing_beliefs", &folder.prsl("predict warehouse.prsl belief.csv"), 3);
    told("not_utf8", &folder.prsl("check latin1.prsl"), 3);
    told("folder_as_model", &folder.prsl("check folder.prsl"), 3);
    told("unknown_table", &folder.prsl("predict warehouse.prsl warehouse.prsl"), 3);
}

#[test]
fn texts_with_errors_tell_all_of_them() {
    let text =
        "label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rian\nrule 1.5: sun -> dry\n";
    let json = "{\"format\": \"prsl\", \"version\": 1, \"labels\": [}";
    let folder = Folder::new(&[("weather.prsl", text), ("weather.json", json), ("b.csv", "sun\n")]);
    told("invalid_text", &folder.prsl("check weather.prsl"), 3);
    told("invalid_json", &folder.prsl("check weather.json"), 3);
    told("invalid_text_on_standard_input", &folder.prsl_with_input("predict - b.csv", b"rule 1: a\n"), 3);
}

#[test]
fn tables_that_do_not_fit() {
    let folder = |beliefs| with_beliefs(beliefs).prsl("predict warehouse.prsl beliefs.csv");
    told("unknown_column", &folder("activity=wlaking,feet=gait\n0.5,0.5\n"), 3);
    told("not_a_number", &folder("feet=gait\n0.5\n0.5\noften\n"), 3);
    told("negative", &folder("feet=gait\n-0.5\n"), 3);
    told("sum", &folder("feet=gait,feet=standing\n0.5,0.5\n0.5,0.6\n"), 3);
    told("unknown_category", &folder("feet\nstandin\n"), 3);
    told("short_row", &folder("feet=gait,feet=standing\n0.5\n"), 3);
    told("empty_file", &folder(""), 3);
    told("column_twice", &folder("gait,feet=gait\n0.5,0.5\n"), 3);
}

#[test]
fn plans_that_are_refused() {
    let folder = Folder::warehouse();
    let exact = "predict warehouse.prsl beliefs.csv --memory 1 --engine exact";
    told("refused_marginals", &folder.prsl(exact), 3);
    told("refused_samples", &folder.prsl(&format!("{exact} --query samples")), 3);
    told(
        "refused_explanation",
        &folder.prsl("explain warehouse.prsl beliefs.csv --row 1 --memory 1 --engine exact"),
        3,
    );
    let labels: String = (0..40).map(|label| format!("label l{label}\n")).collect();
    let folder = Folder::new(&[("large.prsl", &labels), ("b.csv", "l1\n0.5\n")]);
    told("refused_enumeration", &folder.prsl("predict large.prsl b.csv --engine enumeration"), 3);
}

#[test]
fn wrong_usage() {
    let folder = Folder::warehouse();
    told("no_subcommand", &folder.prsl(""), 2);
    told("unknown_subcommand", &folder.prsl("predcit warehouse.prsl beliefs.csv"), 2);
    told("unknown_option", &folder.prsl("predict warehouse.prsl beliefs.csv --normalise"), 2);
    told("no_beliefs", &folder.prsl("predict warehouse.prsl"), 2);
    told("standard_input_twice", &folder.prsl("predict - -"), 2);
    told("standard_input_twice_explained", &folder.prsl("explain - - --row 1"), 2);
    told("wrong_memory", &folder.prsl("predict warehouse.prsl beliefs.csv --memory lots"), 2);
    told("no_threads", &folder.prsl("predict warehouse.prsl beliefs.csv --threads 0"), 2);
    told("two_formats", &folder.prsl("predict warehouse.prsl beliefs.csv --format csv -o out.parquet"), 2);
    told("unknown_format", &folder.prsl("predict warehouse.prsl beliefs.csv -o out.xls"), 2);
    told(
        "parquet_to_standard_output",
        &folder.prsl("predict warehouse.prsl beliefs.csv --format parquet"),
        2,
    );
}

#[test]
fn options_that_would_have_no_effect() {
    let folder = Folder::warehouse();
    let refused = |name: &str, options: &str| {
        told(name, &folder.prsl(&format!("predict warehouse.prsl beliefs.csv {options}")), 2);
    };
    refused("top_of_marginals", "--top 3");
    refused("top_of_loopy", "--query mpe --engine loopy --top 3");
    refused("samples_of_marginals", "--samples 3");
    refused("seed_of_marginals", "--seed 3");
    refused("sweeps_of_exact", "--engine exact --max-sweeps 3");
    refused("damping_of_mpe", "--query mpe --damping 0.5");
    refused("damping_too_large", "--damping 1.5");
    refused("time_limit_of_marginals", "--time-limit 1");
    refused("negative_time", "--query mpe --time-limit=-1");
    refused("samples_by_loopy", "--query samples --engine loopy");
    refused("verified_samples", "--query samples --verify 3");
}

#[test]
fn outputs_that_cannot_be_written() {
    let folder = Folder::warehouse();
    told("no_folder", &folder.prsl("predict warehouse.prsl beliefs.csv -o nowhere/out.csv"), 3);
    assert_eq!(folder.files(), ["beliefs.csv", "warehouse.prsl"]);
}
