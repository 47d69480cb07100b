//! Columns that identify rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use prsl::Model;
use prsl_data::{
    BeliefOptions, BeliefReader, Column, ColumnKind, LabeledReader, RowColumns, TableReader, TruthOptions,
    TruthReader,
};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn model() -> Model {
    Model::parse("label alarm").expect("a model")
}

fn texts(values: &[&str]) -> Column {
    Column::Text(values.iter().map(|&value| Some(value.to_owned()).filter(|it| !it.is_empty())).collect())
}

#[test]
fn ids_of_csv_are_kept_as_they_are_written() {
    let text = "image,alarm,when\n007,0.5,\" x, y \"\nNA,0.25,\n1e3,1,2026-11-18\n";
    let table = TableReader::csv(text.as_bytes(), "b.csv").unwrap().with_missing(["NA"]);
    let ids = names(&["when", "image", "when"]);
    let mut reader = BeliefReader::with_ids(&model(), table, BeliefOptions::default(), &ids).unwrap();
    let columns: Vec<&str> = reader.id_columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(columns, ["when", "image"]);
    assert_eq!(reader.next_chunk(2).unwrap().unwrap().n_rows(), 2);
    assert_eq!(reader.ids(), [texts(&[" x, y ", ""]), texts(&["007", "NA"])]);
    reader.next_chunk(2).unwrap();
    assert_eq!(reader.ids(), [texts(&["2026-11-18"]), texts(&["1e3"])]);
}

#[test]
fn ids_of_frames_and_parquet_keep_their_types_and_digits() {
    let large = 9_007_199_254_740_993_i64; // 2^53 + 1, which no f64 is
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("key", Arc::new(Int64Array::from(vec![Some(large), None]))),
        ("hash", Arc::new(UInt64Array::from(vec![u64::MAX, 1]))),
        ("day", Arc::new(Date32Array::from(vec![0, 1]))),
        ("score", Arc::new(Float64Array::from(vec![0.5, f64::NAN]))),
        ("name", Arc::new(StringArray::from(vec![Some("a"), None]))),
        ("alarm", Arc::new(Float64Array::from(vec![0.5, 0.25]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut file = Vec::new();
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let ids = names(&["key", "hash", "day", "score", "name"]);
    let tables = [
        TableReader::arrow(&batch.schema(), [batch.clone()], "the frame").unwrap(),
        TableReader::parquet(file, "b.parquet").unwrap(),
    ];
    for table in tables {
        let mut reader = BeliefReader::with_ids(&model(), table, BeliefOptions::default(), &ids).unwrap();
        let kinds: Vec<ColumnKind> = reader.id_columns().iter().map(|column| column.kind).collect();
        use ColumnKind::{Integer, Number, Text};
        assert_eq!(kinds, [Integer, Text, Text, Number, Text]);
        reader.next_chunk(10).unwrap();
        let expected = [
            Column::Integer(vec![Some(large), None]),
            texts(&["18446744073709551615", "1"]),
            texts(&["1970-01-01", "1970-01-02"]),
            Column::Number(vec![Some(0.5), None]),
            texts(&["a", ""]),
        ];
        assert_eq!(reader.ids(), expected);
    }
}

#[test]
fn ids_that_are_missing_or_beliefs_are_refused() {
    let message = |ids: &[&str]| {
        let table = TableReader::csv("image,alarm\na,0.5\n".as_bytes(), "b.csv").unwrap();
        let reader = BeliefReader::with_ids(&model(), table, BeliefOptions::default(), &names(ids));
        reader.expect_err("refused").to_string()
    };
    assert_eq!(
        message(&["imgae"]),
        "`b.csv`: there is no column `imgae` to identify the rows; did you mean `image`?"
    );
    assert_eq!(
        message(&["image", "alarm"]),
        "`b.csv`: column `alarm` has beliefs of the model, so it cannot identify the rows; name another column"
    );
}

#[test]
fn rows_of_beliefs_and_truths_have_the_same_ids() {
    let read = |truths: &str| -> prsl_data::Result<u64> {
        let ids = names(&["image"]);
        let beliefs = TableReader::csv("image,alarm\na,0.5\nb,0.5\nc,0.5\n".as_bytes(), "b.csv")?;
        let truths = TableReader::csv(std::io::Cursor::new(truths.to_owned()), "t.csv")?;
        let columns = RowColumns::default().with_ids(&ids);
        let mut reader = LabeledReader::new(
            BeliefReader::with_ids(&model(), beliefs, BeliefOptions::default(), &ids)?,
            TruthReader::with_columns(&model(), truths, TruthOptions::default(), columns)?,
        );
        let mut n_rows = 0;
        while let Some((rows, _)) = reader.next_chunk(2)? {
            n_rows += rows.n_rows() as u64;
        }
        Ok(n_rows)
    };
    assert_eq!(read("alarm,image\nyes,a\nno,b\n1,c\n").unwrap(), 3);
    assert_eq!(read("alarm\nyes\nno\n1\n").unwrap(), 3);
    assert_eq!(
        read("alarm,image\nyes,a\nno,b\n1,d\n").unwrap_err().to_string(),
        "row 3: column `image` is `c` in `b.csv` and `d` in `t.csv`; \
         each row of beliefs needs its row of truths, in the same order"
    );
}
