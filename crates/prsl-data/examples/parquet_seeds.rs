//! Writes small Parquet files of every kind that is read, for the fuzz target `parquet` to begin with:
//! `cargo run -p prsl-data --example parquet_seeds -- fuzz/seeds/parquet`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, Float32Array, Float64Array, Int8Array,
    RecordBatch, StringArray, UInt64Array,
};
use arrow::datatypes::Int16Type;
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};

/// A table's name, and its columns.
type Table = (&'static str, Vec<(&'static str, ArrayRef)>);

/// Columns as the target's model has them: the labels `a` (yes or no), `b` (x, y or z) and `c,d` (1 or 2).
fn tables() -> Result<Vec<Table>, Box<dyn Error>> {
    let kinds: DictionaryArray<Int16Type> = vec![Some("x"), None, Some("z")].into_iter().collect();
    let decimals = Decimal128Array::from(vec![Some(25), None, Some(100)]).with_precision_and_scale(10, 2)?;
    Ok(vec![
        (
            "numbers",
            vec![
                ("a", Arc::new(Float64Array::from(vec![Some(0.25), None, Some(1.0)])) as ArrayRef),
                ("b=x", Arc::new(Float32Array::from(vec![Some(0.5), None, Some(0.0)]))),
            ],
        ),
        ("decimals", vec![("a", Arc::new(decimals)), ("id", Arc::new(UInt64Array::from(vec![1, 2, 3])))]),
        ("names", vec![("b", Arc::new(kinds)), ("c,d", Arc::new(StringArray::from(vec!["1", "2", ""])))]),
        (
            "others",
            vec![
                ("a", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]))),
                ("b=y", Arc::new(Int8Array::from(vec![Some(0), None, Some(1)]))),
            ],
        ),
    ])
}

fn properties(compression: Compression, version: WriterVersion) -> WriterProperties {
    WriterProperties::builder()
        .set_compression(compression)
        .set_writer_version(version)
        .set_max_row_group_row_count(Some(2))
        .build()
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder: PathBuf = std::env::args_os().nth(1).ok_or("name a folder for the seeds")?.into();
    std::fs::create_dir_all(&folder)?;
    let compressions = [
        ("plain", Compression::UNCOMPRESSED),
        ("snappy", Compression::SNAPPY),
        ("gzip", Compression::GZIP(GzipLevel::default())),
        ("brotli", Compression::BROTLI(BrotliLevel::default())),
        ("lz4", Compression::LZ4),
        ("lz4-raw", Compression::LZ4_RAW),
        ("zstd", Compression::ZSTD(ZstdLevel::default())),
    ];
    for (kind, columns) in tables()? {
        let batch = RecordBatch::try_from_iter(columns)?;
        for (name, compression) in compressions {
            for (number, version) in [(1, WriterVersion::PARQUET_1_0), (2, WriterVersion::PARQUET_2_0)] {
                let path = folder.join(format!("{kind}-{name}-{number}.parquet"));
                write(&path, &batch, properties(compression, version))?;
            }
        }
    }
    Ok(())
}

fn write(path: &Path, batch: &RecordBatch, properties: WriterProperties) -> Result<(), Box<dyn Error>> {
    let mut writer = ArrowWriter::try_new(std::fs::File::create(path)?, batch.schema(), Some(properties))?;
    writer.write(batch)?;
    writer.close()?;
    Ok(())
}
