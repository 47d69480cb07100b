//! `prsl predict`.

use prsl_data::{Cell, TableReader};

use crate::runner::{BELIEFS, Folder, WAREHOUSE, cell};

/// Rows of every kind: the worked example, missing values, an observed category, a contradiction.
const MIXED: &str = "\
activity,activity=walking,activity=normal,activity=overhead,gait,hands=high,hands=centered
,0.1,0.4,0.5,0.05,0.5,0.3
,,,,,,
overhead,,,,1,0.5,
normal,,,,0,,0.25
";

fn mixed() -> Folder {
    Folder::new(&[("warehouse.prsl", WAREHOUSE), ("mixed.csv", MIXED)])
}

fn four_digits(run: &crate::runner::Run, columns: &[&str]) -> Vec<String> {
    columns.iter().map(|column| format!("{:.4}", run.number(1, column))).collect()
}

/// Rounds numbers to six decimals, because their last digits depend on the engine.
pub fn rounded(text: &str) -> String {
    let round = |piece: &str| match piece.parse::<f64>() {
        Ok(number) if piece.len() > 8 => format!("{number:.6}"),
        _ => piece.to_owned(),
    };
    let pieces = text.split_inclusive([',', ':', '\n']);
    pieces
        .map(|piece| {
            let end = piece.len() - usize::from(piece.ends_with([',', ':', '\n']));
            round(&piece[..end]) + &piece[end..]
        })
        .collect()
}

#[test]
fn the_worked_example_to_four_digits() {
    let folder = Folder::warehouse();
    for engine in ["auto", "exact", "enumeration"] {
        let run = folder.prsl(&format!("predict warehouse.prsl beliefs.csv --engine {engine}")).done();
        let columns = ["activity=walking", "activity=normal", "activity=overhead", "feet=gait"];
        assert_eq!(four_digits(&run, &columns), ["0.0074", "0.2892", "0.7034", "0.0074"]);
        let columns = ["feet=standing", "hands=high", "hands=centered", "hands=low"];
        assert_eq!(four_digits(&run, &columns), ["0.9926", "0.3632", "0.3821", "0.2547"]);
        assert_eq!(format!("{:.4}", run.number(1, "log_evidence").exp()), "0.4862");
        let name = if engine == "enumeration" { engine } else { "junction_tree" };
        assert_eq!(run.cell(1, "engine"), name);
        assert_eq!(run.cell(1, "status"), "ok");
    }
}

#[test]
fn the_most_probable_assignment_of_the_worked_example() {
    let folder = Folder::warehouse();
    for engine in ["exact", "enumeration"] {
        let run =
            folder.prsl(&format!("predict warehouse.prsl beliefs.csv --query mpe --engine {engine}")).done();
        let header = "activity,feet,hands,log_weight,log_probability,optimal,gap,engine,status";
        assert_eq!(run.stdout.lines().next(), Some(header));
        let best = ["activity", "feet", "hands", "optimal", "status"].map(|column| run.cell(1, column));
        assert_eq!(best, ["overhead", "standing", "high", "true", "ok"]);
        assert_eq!(format!("{:.4}", run.number(1, "log_probability").exp()), "0.3517");
        assert_eq!(format!("{:.4}", run.number(1, "log_weight").exp()), "0.1710");
    }
}

#[test]
fn gaps_observations_and_contradictions() {
    let folder = mixed();
    let run = folder.prsl("predict warehouse.prsl mixed.csv");
    insta::assert_snapshot!(rounded(&run.to_string()));
    let run = folder.prsl("predict warehouse.prsl mixed.csv --query mpe --format jsonl");
    insta::assert_snapshot!(rounded(&run.to_string()));
}

#[test]
fn every_format_says_the_same() {
    let folder = mixed();
    for query in ["marginals", "mpe", "both"] {
        for name in ["out.csv", "out.jsonl", "out.parquet"] {
            let run = folder.prsl(&format!("predict warehouse.prsl mixed.csv --query {query} -o {name}"));
            assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run}");
        }
        let csv = folder.read("out.csv");
        assert_eq!(folder.prsl(&format!("predict warehouse.prsl mixed.csv --query {query}")).stdout, csv);
        let lines = folder.read("out.jsonl");
        let objects: Vec<serde_json::Value> =
            lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let mut parquet = TableReader::open(&folder.path("out.parquet")).expect("a table");
        let names = parquet.columns().to_vec();
        assert_eq!(names.join(","), csv.lines().next().expect("a header"));
        let chunk = parquet.read_chunk(100).expect("readable").expect("rows");
        assert_eq!((chunk.n_rows(), objects.len()), (4, 4));
        for row in 0..4 {
            for (column, name) in names.iter().enumerate() {
                let in_csv = cell(&csv, row + 1, name);
                let in_json = match &objects[row][name] {
                    serde_json::Value::Null => String::new(),
                    serde_json::Value::String(text) => text.clone(),
                    serde_json::Value::Number(number) => number.as_f64().expect("a number").to_string(),
                    other => other.to_string(),
                };
                let in_parquet = match chunk.cell(row, column) {
                    Cell::Missing => String::new(),
                    Cell::Text(text) => text.to_owned(),
                    Cell::Number(_) if name == "optimal" => "true".to_owned(),
                    Cell::Number(number) => number.to_string(),
                };
                let in_csv = in_csv.parse::<f64>().map_or(in_csv, |number| number.to_string());
                assert_eq!((&in_json, &in_parquet), (&in_csv, &in_csv), "{query} {row} {name}");
            }
        }
    }
}

#[test]
fn formats_by_option_and_by_name() {
    let folder = Folder::warehouse();
    folder.prsl("predict warehouse.prsl beliefs.csv --format jsonl -o out.txt").done();
    assert!(folder.read("out.txt").starts_with('{'));
    folder.prsl("predict warehouse.prsl beliefs.csv --format csv -o out.csv").done();
    let printed = folder.prsl("predict warehouse.prsl beliefs.csv -o -").done();
    assert_eq!(printed.stdout, folder.read("out.csv"));
}

#[test]
fn parquet_beliefs_are_read_too() {
    let folder = Folder::warehouse();
    folder.prsl("predict warehouse.prsl beliefs.csv -o out.parquet").done();
    let from_csv = folder.prsl("predict warehouse.prsl beliefs.csv").done();
    folder.prsl("predict warehouse.prsl beliefs.csv -o first.csv").done();
    let again = folder.prsl("predict warehouse.prsl out.parquet --ignore-extra").done();
    let again_csv = folder.prsl("predict warehouse.prsl first.csv --ignore-extra").done();
    assert_eq!(again.stdout, again_csv.stdout);
    assert_ne!(again.stdout, from_csv.stdout);
}

#[test]
fn standard_input() {
    let folder = Folder::warehouse();
    let expected = folder.prsl("predict warehouse.prsl beliefs.csv").done().stdout;
    let run = folder.prsl_with_input("predict warehouse.prsl -", BELIEFS.as_bytes()).done();
    assert_eq!(run.stdout, expected);
    let run = folder.prsl_with_input("predict - beliefs.csv", WAREHOUSE.as_bytes()).done();
    assert_eq!(run.stdout, expected);
}

#[test]
fn json_models() {
    let folder = Folder::warehouse();
    folder.prsl("export warehouse.prsl --to json -o warehouse.json").done();
    let text = folder.prsl("predict warehouse.prsl beliefs.csv").done();
    let json = folder.prsl("predict warehouse.json beliefs.csv").done();
    assert_eq!(text.stdout, json.stdout);
}

#[test]
fn normalization_and_extra_columns() {
    let doubled = "id,activity=walking,activity=normal,activity=overhead,feet=gait,feet=standing\n7,0.2,0.8,1,0.1,1.9\n";
    let single =
        "activity=walking,activity=normal,activity=overhead,feet=gait,feet=standing\n0.1,0.4,0.5,0.05,0.95\n";
    let folder =
        Folder::new(&[("warehouse.prsl", WAREHOUSE), ("doubled.csv", doubled), ("single.csv", single)]);
    let run = folder.prsl("predict warehouse.prsl doubled.csv --normalize --ignore-extra").done();
    let expected = folder.prsl("predict warehouse.prsl single.csv").done();
    for column in ["activity=normal", "feet=gait", "hands=low"] {
        assert!((run.number(1, column) - expected.number(1, column)).abs() < 1e-12, "{column}");
    }
}

#[test]
fn yes_no_labels_have_two_columns() {
    let folder = Folder::new(&[
        ("m.prsl", "label alarm prior 0.1\nlabel fire\nrule 0.9: fire -> alarm\n"),
        ("b.csv", "fire\n0.5\nyes\n"),
    ]);
    let run = folder.prsl("predict m.prsl b.csv").done();
    let header = "alarm=yes,alarm=no,fire=yes,fire=no,log_evidence,engine,status";
    assert_eq!(run.stdout.lines().next(), Some(header));
    assert_eq!(run.number(2, "fire=yes"), 1.0);
    assert_eq!(run.number(2, "fire=no"), 0.0);
}

#[test]
fn labels_named_like_our_columns() {
    let folder = Folder::new(&[
        ("m.prsl", "label engine\nlabel status\nrule 0.9: engine -> status\n"),
        ("b.csv", "engine\n0.5\n"),
    ]);
    let run = folder.prsl("predict m.prsl b.csv --query mpe").done();
    let header = "engine,status,log_weight,log_probability,optimal,gap,prsl_engine,prsl_status";
    assert_eq!(run.stdout.lines().next(), Some(header));
}

#[test]
fn a_table_without_rows() {
    let (header, _) = BELIEFS.split_once('\n').expect("a header");
    let folder = Folder::new(&[("warehouse.prsl", WAREHOUSE), ("empty.csv", &format!("{header}\n"))]);
    let run = folder.prsl("predict warehouse.prsl empty.csv").done();
    assert_eq!(run.stdout.lines().count(), 1);
}

#[test]
fn rows_keep_their_order_on_any_number_of_threads() {
    let mut beliefs = "activity=walking,feet=gait,hands=high\n".to_owned();
    for row in 0..20_000 {
        let belief = f64::from(row % 1000 + 1) / 1001.0;
        beliefs.push_str(&format!("{belief},{},0.25\n", 1.0 - belief));
    }
    let folder = Folder::new(&[("warehouse.prsl", WAREHOUSE), ("many.csv", &beliefs)]);
    let one = folder.prsl("predict warehouse.prsl many.csv --threads 1").done().stdout;
    let several = folder.prsl("predict warehouse.prsl many.csv --threads 3").done().stdout;
    assert_eq!(one.lines().count(), 20_001);
    assert!(one == several);
    let rows: Vec<_> = one.lines().skip(1).collect();
    assert!((0..19_000).all(|row| rows[row] == rows[row + 1000]));
    assert_ne!(rows[0], rows[1]);
}

#[test]
fn an_error_in_a_late_row_leaves_no_output() {
    let (header, row) = BELIEFS.split_once('\n').expect("a header");
    let beliefs = format!("{header}\n{}0.1,0.4,0.5,0.05,0.95,0.5,0.3,oops\n", row.repeat(20_000));
    let folder = Folder::new(&[("warehouse.prsl", WAREHOUSE), ("late.csv", &beliefs)]);
    for name in ["out.csv", "out.jsonl", "out.parquet"] {
        let run = folder.prsl(&format!("predict warehouse.prsl late.csv -o {name}"));
        assert_eq!(run.code, 3);
        assert!(run.stderr.contains("row 20001, column `hands=low`"), "{run}");
    }
    assert_eq!(folder.files(), ["late.csv", "warehouse.prsl"]);
}

#[test]
fn inputs_are_not_overwritten() {
    let folder = Folder::warehouse();
    std::fs::write(folder.path("truth.csv"), "activity,feet,hands\noverhead,standing,high\n")
        .expect("a file");
    for (command, file) in [
        ("predict warehouse.prsl beliefs.csv -o", "beliefs.csv"),
        ("calibrate warehouse.prsl beliefs.csv truth.csv -o", "truth.csv"),
    ] {
        let before = folder.read(file);
        let run = folder.prsl(&format!("{command} {file}"));
        assert_eq!(run.code, 3, "{run}");
        let complaint = format!("cannot write `{file}`: it is the same file as `{file}`, which is an input");
        assert!(run.stderr.contains(&complaint), "{run}");
        assert_eq!(folder.read(file), before);
    }
}
