//! Accepted and refused Parquet files.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal32Array, Decimal64Array, Decimal128Array, Decimal256Array,
    DictionaryArray, Float32Array, Float64Array, Int8Array, LargeStringArray, NullArray, RecordBatch,
    StringArray, StringViewArray, UInt64Array,
};
use arrow::datatypes::{Int16Type, i256};
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;
use prsl_data::{Cell, TableReader};

fn file(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    compressed(columns, Compression::UNCOMPRESSED)
}

fn compressed(columns: Vec<(&str, ArrayRef)>, compression: Compression) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap();
    let mut bytes = Vec::new();
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn every_supported_type_is_a_number_or_text() {
    let dictionary: DictionaryArray<Int16Type> =
        vec![Some("high"), None, Some(" high ")].into_iter().collect();
    let bytes = file(vec![
        ("int", Arc::new(Int8Array::from(vec![Some(-3), None, Some(4)]))),
        ("unsigned", Arc::new(UInt64Array::from(vec![Some(3), None, Some(1 << 40)]))),
        ("float", Arc::new(Float32Array::from(vec![Some(0.5), None, Some(f32::INFINITY)]))),
        ("boolean", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]))),
        ("text", Arc::new(StringArray::from(vec![Some("a"), None, Some("  ")]))),
        ("large", Arc::new(LargeStringArray::from(vec![Some("b"), None, Some("c")]))),
        ("view", Arc::new(StringViewArray::from(vec![Some("d"), None, Some("a long text, not inlined")]))),
        ("dictionary", Arc::new(dictionary)),
        ("null", Arc::new(NullArray::new(3))),
    ]);
    let mut table = TableReader::parquet(bytes, "t.parquet").unwrap();
    assert_eq!(table.rows_hint(), Some(3));
    let first = table.read_chunk(2).unwrap().unwrap();
    let second = table.read_chunk(2).unwrap().unwrap();
    assert!(table.read_chunk(2).unwrap().is_none());
    assert_eq!((second.n_rows(), second.first_row(), table.progress()), (1, 3, Some(1.0)));
    use Cell::{Missing, Number, Text};
    let row: Vec<_> = (0..9).map(|column| first.cell(0, column)).collect();
    let numbers = [Number(-3.0), Number(3.0), Number(0.5), Number(1.0)];
    assert_eq!(row[..4], numbers);
    assert_eq!(row[4..], [Text("a"), Text("b"), Text("d"), Text("high"), Missing]);
    assert!((0..9).all(|column| first.cell(1, column) == Missing));
    let row: Vec<_> = (0..9).map(|column| second.cell(0, column)).collect();
    assert_eq!(row[..4], [Number(4.0), Number(1_099_511_627_776.0), Number(f64::INFINITY), Number(0.0)]);
    assert_eq!(row[4..], [Missing, Text("c"), Text("a long text, not inlined"), Text("high"), Missing]);
}

#[test]
fn unsupported_columns_only_matter_when_they_are_used() {
    let bytes = file(vec![
        ("day", Arc::new(Date32Array::from(vec![1]))),
        ("rain", Arc::new(Float32Array::from(vec![0.5]))),
    ]);
    let open = || TableReader::parquet(bytes.clone(), "t.parquet").unwrap();
    let expected = "`t.parquet`, column `day`: values of type Date32 are not supported, \
                    expected numbers, booleans or text";
    assert_eq!(open().read_chunk(10).unwrap_err().to_string(), expected);
    assert_eq!(open().select(&[0]).unwrap_err().to_string(), expected);
    let mut table = open();
    table.select(&[1]).unwrap();
    let chunk = table.read_chunk(10).unwrap().unwrap();
    assert_eq!((chunk.cell(0, 0), chunk.cell(0, 1)), (Cell::Missing, Cell::Number(0.5)));
    assert!(table.select(&[1]).is_err());
    let mut table = open();
    table.select(&[]).unwrap();
    assert_eq!(table.read_chunk(10).unwrap().map(|chunk| chunk.n_rows()), Some(1));
}

#[test]
fn cut_off_files_are_refused() {
    let bytes = file(vec![("rain", Arc::new(Float32Array::from(vec![0.5; 100])))]);
    for length in 0..bytes.len() {
        let error = TableReader::parquet(&bytes[..length], "t.parquet").unwrap_err().to_string();
        assert!(error.starts_with("`t.parquet` cannot be read as parquet: "), "{error}");
    }
}

#[test]
fn gzip_lz4_and_brotli_were_not_read() {
    let numbers: Vec<f64> = (0..1000).map(|row| f64::from(row % 7) / 7.0).collect();
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ] {
        let bytes = compressed(vec![("rain", Arc::new(Float64Array::from(numbers.clone())))], compression);
        let mut table = TableReader::parquet(bytes, "t.parquet").unwrap();
        let chunk = table.read_chunk(1000).unwrap().unwrap();
        let found: Vec<_> = (0..1000).map(|row| chunk.cell(row, 0).number().unwrap().unwrap()).collect();
        assert_eq!(found, numbers, "{compression}");
    }
}

#[test]
fn decimals_were_not_read() {
    let bytes = file(vec![
        ("a", Arc::new(Decimal32Array::from(vec![Some(85), None]).with_precision_and_scale(9, 2).unwrap())),
        ("b", Arc::new(Decimal64Array::from(vec![Some(-1), None]).with_precision_and_scale(18, 18).unwrap())),
        (
            "c",
            Arc::new(
                Decimal128Array::from(vec![Some(10_i128.pow(37) / 3), None])
                    .with_precision_and_scale(38, 37)
                    .unwrap(),
            ),
        ),
        (
            "d",
            Arc::new(
                Decimal256Array::from(vec![Some(i256::from_i128(7)), None])
                    .with_precision_and_scale(76, 1)
                    .unwrap(),
            ),
        ),
    ]);
    let mut table = TableReader::parquet(bytes, "t.parquet").unwrap();
    let chunk = table.read_chunk(10).unwrap().unwrap();
    let row: Vec<_> = (0..4).map(|column| chunk.cell(0, column)).collect();
    assert_eq!(row, [0.85, -1e-18, 1.0 / 3.0, 0.7].map(Cell::Number));
    assert!((0..4).all(|column| chunk.cell(1, column) == Cell::Missing));
}
