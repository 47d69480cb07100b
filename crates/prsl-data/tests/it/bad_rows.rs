//! Rows that are not valid, kept apart from the others.

use std::io;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use prsl::{BeliefMatrix, Model};
use prsl_data::{
    BeliefOptions, BeliefReader, LabeledReader, RowColumns, TableReader, TruthOptions, TruthReader,
};

const HEADER: &str = "a,b=x,b=y\n";
const GOOD: [&str; 5] = ["0.5,0.2,0.1\n", "yes,,\n", " 1 ,\"0.25\",0.5\r\n", ",,\n", "\"0.1\",0,1\r"];
const BAD: [&[u8]; 9] = [
    b"0.5\n",
    b"0.5,0.2,0.1,\n",
    b"0.5,\xff,\n",
    b"maybe,0.2,0.1\n",
    b"0.5,0.9,0.4\n",
    b"-0.5,,\n",
    b"\"0.5\"x,\"0.2\",0.1\n",
    b"\"0.5\n\"x,0.2,0.1\r\n",
    b"0.5,nan,0.1\n",
];

fn model() -> Model {
    Model::parse("label a\nlabel b: x, y, z").unwrap()
}

fn csv(rows: &[&[u8]]) -> TableReader {
    let bytes = [&[HEADER.as_bytes()], rows].concat().concat();
    TableReader::csv(io::Cursor::new(bytes), "t.csv").unwrap()
}

fn beliefs(table: TableReader) -> BeliefReader {
    BeliefReader::new(&model(), table, BeliefOptions::default()).unwrap()
}

/// All rows, and the numbers and messages of those that are not valid.
fn all(mut reader: BeliefReader, chunk: usize) -> (BeliefMatrix, Vec<(u64, String)>) {
    let (mut rows, mut bad) = (BeliefMatrix::new(&model()), Vec::new());
    let mut n_read = 0;
    while let Some(more) = reader.next_chunk(chunk).unwrap() {
        assert_eq!(more.n_rows() + reader.bad_rows().len(), reader.n_read());
        for it in reader.bad_rows() {
            assert_eq!(it.row(), n_read + it.place() as u64 + 1);
            bad.push((it.row(), it.error().to_string()));
        }
        n_read += reader.n_read() as u64;
        rows.append(&more).unwrap();
    }
    (rows, bad)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..Default::default()
    })]

    #[test]
    fn bad_rows_do_not_change_good_ones(
        rows in vec((vec(select(&BAD[..]), 0..3), select(&GOOD[..])), 0..12),
        chunk in 1..7_usize,
    ) {
        let good: Vec<&[u8]> = rows.iter().map(|(_, good)| good.as_bytes()).collect();
        let mixed: Vec<&[u8]> =
            rows.iter().flat_map(|(bad, good)| bad.iter().copied().chain([good.as_bytes()])).collect();
        let (expected, none) = all(beliefs(csv(&good)), chunk);
        prop_assert!(none.is_empty());
        let (found, bad) = all(beliefs(csv(&mixed)).with_bad_rows_apart(), chunk);
        prop_assert_eq!(found, expected);
        let places = (1..).zip(&mixed).filter(|(_, row)| BAD.contains(row)).map(|(place, _)| place);
        prop_assert_eq!(bad.iter().map(|(row, _)| *row).collect::<Vec<u64>>(), places.collect::<Vec<u64>>());
        let is_named = |(row, message): &(u64, String)| message.contains(&format!("row {row}"));
        prop_assert!(bad.iter().all(is_named));
        // Without the option, one of them is the error. Records are read before their cells.
        let mut reader = beliefs(csv(&mixed));
        let error = loop {
            match reader.next_chunk(chunk) {
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        prop_assert_eq!(error.is_some(), !bad.is_empty());
        prop_assert!(error.is_none_or(|error| bad.iter().any(|(_, message)| *message == error)));
    }

    #[test]
    fn pairs_of_rows_stay_together(
        rows in vec((any::<bool>(), any::<bool>(), any::<bool>()), 0..20),
        chunk in 1..7_usize,
    ) {
        let line = |(row, &(is_yes, believed, known)): (usize, &(bool, bool, bool))| {
            let belief = if believed { format!("{}", row as f64 / 64.0) } else { "often".to_owned() };
            let truth = match (known, is_yes) {
                (false, _) => "maybe",
                (_, true) => "yes",
                (_, false) => "no",
            };
            (format!("r{row},{belief}\n"), format!("r{row},{truth},{row}\n"))
        };
        let lines: Vec<(String, String)> = rows.iter().enumerate().map(line).collect();
        let [mut of_beliefs, mut of_truths] = ["id,a\n".to_owned(), "id,a,w\n".to_owned()];
        lines.iter().for_each(|(belief, truth)| {
            of_beliefs += belief;
            of_truths += truth;
        });
        let model = Model::parse("label a").unwrap();
        let ids = ["id".to_owned()];
        let table = TableReader::csv(io::Cursor::new(of_beliefs.into_bytes()), "b.csv").unwrap();
        let beliefs = BeliefReader::with_ids(&model, table, BeliefOptions::default(), &ids).unwrap();
        let table = TableReader::csv(io::Cursor::new(of_truths.into_bytes()), "t.csv").unwrap();
        let columns = RowColumns::new(Some("w"), None).with_ids(&ids);
        let truths = TruthReader::with_columns(&model, table, TruthOptions::default(), columns).unwrap();
        let mut reader = LabeledReader::new(beliefs, truths).skip_bad_rows();
        let (mut found, mut named) = (Vec::new(), Vec::new());
        while let Some((beliefs, truths)) = reader.next_chunk(chunk).unwrap() {
            prop_assert_eq!(beliefs.n_rows(), truths.len());
            found.extend((0..truths.len()).map(|row| (beliefs.row(row)[0], truths[row].indices()[0])));
            named.extend((0..truths.len()).map(|row| reader.ids()[0].text(row).unwrap()));
        }
        let valid: Vec<usize> = (0..rows.len()).filter(|&row| rows[row].1 && rows[row].2).collect();
        let expected: Vec<(f64, Option<usize>)> =
            valid.iter().map(|&row| (row as f64 / 64.0, Some(usize::from(!rows[row].0)))).collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(named, valid.iter().map(|row| format!("r{row}")).collect::<Vec<_>>());
        let weights: Vec<f64> = valid.iter().map(|&row| row as f64).collect();
        prop_assert_eq!(reader.weights().unwrap(), &weights[..]);
        prop_assert_eq!(reader.skipped().len() + valid.len(), rows.len());
        prop_assert_eq!(reader.n_rows() as usize, rows.len());
    }
}

#[test]
fn lines_are_counted_on_after_bad_rows() {
    let rows: Vec<&[u8]> = vec![BAD[7], b"0.5,0.2\n", BAD[6], b"0.5\n"];
    let (_, bad) = all(beliefs(csv(&rows)).with_bad_rows_apart(), 10);
    let lines = ["line 2 (row 1)", "line 4 (row 2)", "line 5 (row 3)", "line 6 (row 4)"];
    assert!(bad.iter().zip(lines).all(|((_, message), line)| message.contains(line)), "{bad:?}");
}

#[test]
fn problems_without_file_and_row() {
    let mut reader = beliefs(csv(&BAD)).with_bad_rows_apart();
    reader.next_chunk(100).unwrap();
    let problems: Vec<String> = reader.bad_rows().iter().map(prsl_data::BadRow::problem).collect();
    let expected = [
        "line 2: 1 cell, expected 3 as in the header",
        "line 3: 4 cells, expected 3 as in the header",
        "line 4: column `b=x` is not valid UTF-8; save the file in that encoding",
        "column `a`: `maybe` is not a category of label `a`, expected `yes`, `no` or the probability of `yes`",
        "belief for label `b` sums to 1.3, expected 1 within 1e-6; correct it, or ask for normalization",
        "column `a`: a belief of -0.5, expected a number from 0 to 1",
        "line 8: text after the closing quote of column `a`; write a quote within quotes as `\"\"`",
        "line 9: text after the closing quote of column `a`; write a quote within quotes as `\"\"`",
        "column `b=x`: `nan` is not a number; if it stands for a missing value, leave the cell empty or list it as such",
    ];
    assert_eq!(problems, expected);
}

/// A Parquet file whose rows are all in one row group, in pages of few rows.
fn parquet(rows: usize) -> Vec<u8> {
    let numbers = (0..rows).map(|row| if row % 10 == 7 { 1.5 } else { row as f64 / rows as f64 });
    let a: ArrayRef = Arc::new(numbers.collect::<Float64Array>());
    let texts = (0..rows).map(|row| Some(if row % 10 == 3 { "w" } else { "x" }));
    let b: ArrayRef = Arc::new(texts.collect::<StringArray>());
    let batch = RecordBatch::try_from_iter([("a", a), ("b", b)]).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(rows))
        .set_dictionary_enabled(false)
        .set_data_page_row_count_limit(1000)
        .set_write_batch_size(1000)
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn bad_rows_of_parquet() {
    let reader = beliefs(TableReader::parquet(parquet(100), "t.parquet").unwrap());
    let (rows, bad) = all(reader.with_bad_rows_apart(), 7);
    assert_eq!((rows.n_rows(), bad.len()), (80, 20));
    assert_eq!(
        bad[0].1,
        "`t.parquet`, row 4, column `b`: `w` is not a category of label `b`, expected `x`, `y`, `z`"
    );
    assert!(bad[1].1.starts_with("`t.parquet`, row 8: "), "{}", bad[1].1);
}

#[test]
fn damage_in_the_middle_of_parquet_is_an_error_that_says_where() {
    let whole = parquet(40_000);
    let mut damaged = whole.clone();
    // Long enough to contain the headers of several pages: damaged values alone may be valid numbers.
    let (start, end) = (damaged.len() / 3, damaged.len() / 2);
    damaged[start..end].fill(0xff);
    let mut reader = beliefs(TableReader::parquet(damaged, "t.parquet").unwrap()).with_bad_rows_apart();
    let error = loop {
        match reader.next_chunk(5000) {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the damage was not found"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.starts_with("`t.parquet` cannot be read as parquet: "), "{error}");
    assert!(error.contains(", after row "), "{error}");
    let cut = TableReader::parquet(&whole[..whole.len() - 9], "t.parquet").unwrap_err().to_string();
    assert!(cut.starts_with("`t.parquet` cannot be read as parquet: "), "{cut}");
}
