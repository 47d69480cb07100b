//! `--on-bad-row`: rows that are not valid stop the run, are left out, or are marked.

use prsl_data::{Cell, TableReader};

use crate::runner::{Folder, Run, WAREHOUSE, cell};

const HEADER: &str = "id,feet=gait,feet=standing,hands\n";
/// Valid rows.
const GOOD: [&str; 4] = ["a,0.05,0.95,high\n", "b,0.5,,\n", "c,,,low\n", "\"d,\n\",1,0,centered\n"];
/// Rows that are not valid, each for another reason.
const BAD: [&[u8]; 7] = [
    b"x,0.5\n",
    b"x,0.5,0.5,high,low\n",
    b"x,0.5,0.5,h\xefgh\n",
    b"x,often,0.5,high\n",
    b"x,0.7,0.6,high\n",
    b"x,0.5,0.5,hihg\n",
    b"x,\"0.5\"5,0.5,high\r\n",
];

fn folder(rows: &[&[u8]]) -> Folder {
    let folder = Folder::new(&[("warehouse.prsl", WAREHOUSE)]);
    let table: Vec<u8> = [HEADER.as_bytes()].iter().chain(rows).flat_map(|row| row.iter().copied()).collect();
    std::fs::write(folder.path("beliefs.csv"), table).expect("a file");
    folder
}

/// All good rows, with all bad ones between the first and the second.
fn mixed() -> Vec<&'static [u8]> {
    let good = GOOD.map(str::as_bytes);
    [&good[..1], &BAD[..], &good[1..]].concat()
}

fn predict(folder: &Folder, options: &str) -> Run {
    folder.prsl(&format!("predict warehouse.prsl beliefs.csv --id id --digits 3 {options}"))
}

#[test]
fn an_error_names_file_and_row() {
    for bad in BAD {
        let rows: Vec<&[u8]> = vec![GOOD[0].as_bytes(), GOOD[1].as_bytes(), bad, GOOD[2].as_bytes()];
        let folder = folder(&rows);
        let run = predict(&folder, "-o out.csv");
        assert_eq!(run.code, 3, "{run}");
        assert!(run.stderr.contains("`beliefs.csv`") && run.stderr.contains("row 3"), "{run}");
        assert!(!folder.path("out.csv").exists());
    }
}

#[test]
fn messages_of_all_modes() {
    let folder = folder(&mixed());
    insta::assert_snapshot!(predict(&folder, "--format csv"));
    insta::assert_snapshot!(predict(&folder, "--format csv --on-bad-row error"));
    insta::assert_snapshot!(predict(&folder, "--format csv --on-bad-row skip"));
    insta::assert_snapshot!(predict(&folder, "--format csv --on-bad-row mark"));
    insta::assert_snapshot!(predict(&folder, "--format table --on-bad-row mark --fail-on invalid"));
    insta::assert_snapshot!(predict(&folder, "--fail-on invalid"));
    insta::assert_snapshot!(folder.prsl("evaluate warehouse.prsl beliefs.csv beliefs.csv --on-bad-row mark"));
}

#[test]
fn every_format_marks_the_same_rows() {
    let folder = folder(&mixed());
    let csv = predict(&folder, "--format csv --on-bad-row mark").stdout;
    for name in ["out.csv", "out.jsonl", "out.parquet"] {
        assert_eq!(predict(&folder, &format!("--on-bad-row mark -o {name}")).code, 0);
    }
    assert_eq!(folder.read("out.csv"), csv);
    let mut parquet = TableReader::open(&folder.path("out.parquet")).expect("a table");
    let names = parquet.columns().to_vec();
    assert_eq!(names.last().map(String::as_str), Some("problem"));
    let chunk = parquet.read_chunk(100).expect("readable").expect("rows");
    assert_eq!(chunk.n_rows(), GOOD.len() + BAD.len());
    for (row, line) in folder.read("out.jsonl").lines().enumerate() {
        let object: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let is_bad = (1..=BAD.len()).contains(&row);
        for (column, name) in names.iter().enumerate() {
            let in_parquet = chunk.cell(row, column);
            assert_eq!(object[name].is_null(), in_parquet == Cell::Missing, "{row} {name}");
            match name.as_str() {
                "status" if is_bad => assert_eq!(in_parquet, Cell::Text("invalid")),
                "status" => assert_eq!(in_parquet, Cell::Text("ok")),
                "problem" => assert_eq!(in_parquet != Cell::Missing, is_bad),
                "id" => {}
                _ => assert_eq!(in_parquet == Cell::Missing, is_bad, "{row} {name}"),
            }
        }
    }
}

/// The lines of a CSV file without its header, as sets of cells; quoted line ends are the test's own.
fn lines(csv: &str) -> Vec<String> {
    csv.replace("\"d,\n\"", "d").lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn good_rows_have_the_same_answers_among_bad_ones() {
    let good: Vec<&[u8]> = GOOD.iter().map(|row| row.as_bytes()).collect();
    // A small generator of numbers decides what stands where.
    let mut state: u32 = 7;
    let mut draw = |n: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as usize % n
    };
    for case in 0..6 {
        let wanted: Vec<&[u8]> = (0..20 + draw(30)).map(|_| good[draw(good.len())]).collect();
        let mut rows: Vec<&[u8]> = Vec::new();
        for &row in &wanted {
            (0..draw(3)).for_each(|_| rows.push(BAD[draw(BAD.len())]));
            rows.push(row);
        }
        let n_bad = rows.len() - wanted.len();
        let (clean, dirty) = (folder(&wanted), folder(&rows));
        for query in
            ["--query marginals", "--query both", "--query samples --samples 2", "--query mpe --top 2"]
        {
            let options = format!("{query} --format csv");
            let expected = lines(&predict(&clean, &options).stdout);
            let skipped = predict(&dirty, &format!("{options} --on-bad-row skip"));
            let marked = predict(&dirty, &format!("{options} --on-bad-row mark"));
            let heading = format!("{n_bad} of {} rows were skipped", rows.len());
            assert!(n_bad < 2 || skipped.stderr.contains(&heading), "{skipped}");
            let without_numbers = |line: &String| match query.contains("sample") || query.contains("top") {
                true => line.splitn(3, ',').enumerate().filter(|(at, _)| *at != 1).map(|it| it.1).collect(),
                false => line.clone(),
            };
            let expected: Vec<String> = expected.iter().map(without_numbers).collect();
            let found: Vec<String> = lines(&skipped.stdout).iter().map(without_numbers).collect();
            assert_eq!(found, expected, "{case} {query}");
            let is_valid = |line: &&String| !line.contains(",invalid,");
            let of_marked = lines(&marked.stdout);
            assert_eq!(of_marked.iter().filter(|line| !is_valid(line)).count(), n_bad, "{case} {query}");
            let found: Vec<String> =
                of_marked.iter().filter(is_valid).map(|line| line.trim_end_matches(',').to_owned()).collect();
            let found: Vec<String> = found.iter().map(without_numbers).collect();
            assert_eq!(found, expected, "{case} {query}");
        }
    }
}

#[test]
fn row_numbers_are_those_of_the_file() {
    let folder = folder(&mixed());
    for mode in ["skip", "mark"] {
        let run = predict(&folder, &format!("--query mpe --top 1 --format csv --on-bad-row {mode}"));
        let at = if mode == "mark" { 2 + BAD.len() } else { 2 };
        assert_eq!(cell(&run.stdout, at, "row"), (BAD.len() + 2).to_string(), "{run}");
    }
    let explain = format!("explain warehouse.prsl beliefs.csv --id id --row {}", BAD.len() + 2);
    let run = folder.prsl(&explain);
    assert_eq!(run.code, 3, "{run}");
    let run = folder.prsl(&format!("{explain} --on-bad-row skip")).done();
    assert!(run.stdout.starts_with("id b\n"), "{run}");
    let run = folder.prsl("explain warehouse.prsl beliefs.csv --id id --row 3 --on-bad-row skip");
    assert!(run.code == 3 && run.stderr.contains("`beliefs.csv`, line 4 (row 3)"), "{run}");
}

#[test]
fn damaged_files_are_errors_in_every_mode() {
    let rows: Vec<&[u8]> = GOOD.iter().map(|row| row.as_bytes()).collect();
    let folder = folder(&rows);
    folder.prsl("predict warehouse.prsl beliefs.csv --ignore-extra -o whole.parquet").done();
    let whole = std::fs::read(folder.path("whole.parquet")).expect("a file");
    std::fs::write(folder.path("cut.parquet"), &whole[..whole.len() - 20]).expect("a file");
    std::fs::write(folder.path("open.csv"), format!("{HEADER}a,\"0.5,0.5,high\nb,0.5,0.5,low\n"))
        .expect("a file");
    for mode in ["error", "skip", "mark"] {
        let run = folder.prsl(&format!("predict warehouse.prsl cut.parquet --on-bad-row {mode}"));
        assert!(run.code == 3 && run.stderr.contains("`cut.parquet` cannot be read as parquet"), "{run}");
        let run = folder.prsl(&format!("predict warehouse.prsl open.csv --id id --on-bad-row {mode}"));
        assert!(run.code == 3 && run.stderr.contains("not closed before the end of the file"), "{run}");
    }
}

#[test]
fn commands_with_truths_leave_out_pairs_of_rows() {
    let model = "label alarm\nlabel smoke\nrule 0.9: smoke -> alarm\n";
    let beliefs = "key,alarm,smoke\n1,0.9,0.8\n2,often,0.2\n3,0.2,0.3\n4,0.4,0.1\n5,0.7,0.6\n6,0.1,0.4\n";
    let truth =
        "key,alarm,smoke,w\n1,yes,yes,1\n2,no,no,1\n3,no,maybe,2\n4,no,no,3\n5,yes,perhaps,x\n6,no,no,5\n";
    let kept = ["1", "4", "6"];
    let only = |table: &str| -> String {
        let is_kept = |line: &&str| kept.iter().any(|key| line.starts_with(&format!("{key},")));
        let rows: String = table.lines().skip(1).filter(is_kept).map(|line| format!("{line}\n")).collect();
        format!("{}\n{rows}", table.lines().next().expect("a header"))
    };
    let folder = Folder::new(&[
        ("m.prsl", model),
        ("b.csv", beliefs),
        ("t.csv", truth),
        ("b_clean.csv", &only(beliefs)),
        ("t_clean.csv", &only(truth)),
    ]);
    let same = |command: &str, tables: &str, outputs: &[&str]| {
        let dirty = folder.prsl(&format!("{command} b.csv t.csv {tables} --id key --on-bad-row skip"));
        let found: Vec<String> = outputs.iter().map(|name| folder.read(name)).collect();
        let clean = folder.prsl(&format!("{command} b_clean.csv t_clean.csv {tables} --id key"));
        let expected: Vec<String> = outputs.iter().map(|name| folder.read(name)).collect();
        assert_eq!((dirty.code, clean.code), (0, 0), "{dirty}\n{clean}");
        assert_eq!(found, expected, "{command}");
        if outputs.is_empty() {
            assert_eq!(dirty.stdout, clean.stdout, "{command}");
        }
        assert!(dirty.stderr.contains("3 of 6 rows were skipped, because they are not valid"), "{dirty}");
        assert!(dirty.stderr.contains("the first: `b.csv`, row 2, column `alarm`"), "{dirty}");
        let refused = folder.prsl(&format!("{command} b.csv t.csv {tables} --id key"));
        assert_eq!(refused.code, 3, "{refused}");
    };
    same("evaluate m.prsl", "--weights w --ignore-extra", &[]);
    same("calibrate m.prsl", "--ignore-extra -o out.prsl", &["out.prsl"]);
    same("learn", "--weights w --cv 0 -o out.prsl", &["out.prsl"]);
    let compared =
        folder.prsl("compare m.prsl m.prsl b.csv t.csv --id key --weights w --on-bad-row skip --format json");
    assert!(compared.stdout.contains("\"row\": 6,\n      \"id\": {\n        \"key\": \"6\""), "{compared}");
}
