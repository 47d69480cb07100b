//! Parquet files, read batch by batch.

use std::cell::Cell;
use std::fmt::Display;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::ChunkReader;

use crate::arrays::{ArrowChunk, check_kind};
use crate::error::{Error, Result};
use crate::table::check_columns;

/// Number of rows decoded at once. Larger batches are not faster.
const BATCH_ROWS: usize = 8192;

/// A Parquet file that is read batch by batch.
pub(crate) struct ParquetTable {
    n_rows: u64,
    kinds: Vec<(String, DataType)>,
    selected: Vec<usize>,
    /// Columns that identify rows, of any type.
    ids: Vec<usize>,
    stage: Stage,
}

impl ParquetTable {
    /// Reads the metadata at the end of the file. Returns the names of the columns and the table.
    pub(crate) fn open_file(file: File, name: &str) -> Result<(Vec<String>, ParquetTable)> {
        ParquetTable::open(file, name, Opened::File)
    }

    /// The same for a file in memory.
    pub(crate) fn open_bytes(bytes: Vec<u8>, name: &str) -> Result<(Vec<String>, ParquetTable)> {
        ParquetTable::open(Bytes::from(bytes), name, Opened::Bytes)
    }

    /// Keeps only these columns, and those that identify rows.
    pub(crate) fn select(&mut self, columns: &[usize], ids: &[usize], file: &str) -> Result<()> {
        if matches!(self.stage, Stage::Reading { .. }) {
            let cause = "columns are to be selected before the first row is read".to_owned();
            return Err(Error::Parquet { file: file.to_owned(), cause });
        }
        self.check_kinds(columns, file)?;
        self.selected = columns.to_vec();
        self.ids = ids.to_vec();
        Ok(())
    }

    /// The type of a column.
    pub(crate) fn kind(&self, column: usize) -> &DataType {
        &self.kinds[column].1
    }

    /// The next rows, at most `max_rows` of them, after `rows_read` rows.
    pub(crate) fn read_chunk(
        &mut self,
        max_rows: usize,
        file: &str,
        rows_read: u64,
    ) -> Result<Option<ArrowChunk>> {
        self.start(file)?;
        let Stage::Reading { reader, batch } = &mut self.stage else {
            return Err(damaged(file, "reading it has failed before"));
        };
        while batch.num_rows() == 0 {
            match guarded(file, || reader.next().transpose()) {
                Ok(Some(next)) => *batch = next,
                Ok(None) => return Ok(None),
                Err(error) => {
                    self.stage = Stage::Failed;
                    return Err(after_rows(error, rows_read));
                }
            }
        }
        let n_rows = max_rows.min(batch.num_rows());
        let rows = batch.slice(0, n_rows);
        *batch = batch.slice(n_rows, batch.num_rows() - n_rows);
        let names = self.kinds.iter().map(|(name, _)| name.as_str());
        ArrowChunk::new(&rows, names).map(Some).map_err(|cause| damaged(file, cause))
    }

    /// The number of rows in the file.
    pub(crate) fn n_rows(&self) -> u64 {
        self.n_rows
    }

    fn open<T: ChunkReader + 'static>(
        input: T,
        file: &str,
        opened: impl FnOnce(ParquetRecordBatchReaderBuilder<T>) -> Opened,
    ) -> Result<(Vec<String>, ParquetTable)> {
        let builder = guarded(file, || ParquetRecordBatchReaderBuilder::try_new(input))?;
        if has_negative_sizes(builder.metadata()) {
            return Err(damaged(file, "a negative size or place; it seems to be damaged"));
        }
        let n_rows = builder.metadata().file_metadata().num_rows().try_into().unwrap_or(0);
        let kinds: Vec<_> = builder
            .schema()
            .fields()
            .iter()
            .map(|field| (field.name().clone(), field.data_type().clone()))
            .collect();
        let columns: Vec<_> = kinds.iter().map(|(name, _)| name.clone()).collect();
        check_columns(file, &columns)?;
        let selected = (0..columns.len()).collect();
        Ok((
            columns,
            ParquetTable { n_rows, kinds, selected, ids: Vec::new(), stage: Stage::Opened(opened(builder)) },
        ))
    }

    /// Starts reading, unless already started.
    fn start(&mut self, file: &str) -> Result<()> {
        if let Stage::Opened(_) = self.stage {
            self.check_kinds(&self.selected, file)?;
            if let Stage::Opened(opened) = std::mem::replace(&mut self.stage, Stage::Failed) {
                let reader = guarded(file, || opened.build(&[&self.selected[..], &self.ids].concat()))?;
                let batch = RecordBatch::new_empty(arrow::record_batch::RecordBatchReader::schema(&reader));
                self.stage = Stage::Reading { reader: Box::new(reader), batch };
            }
        }
        Ok(())
    }

    fn check_kinds(&self, columns: &[usize], file: &str) -> Result<()> {
        columns.iter().try_for_each(|&column| {
            let (name, kind) = &self.kinds[column];
            check_kind(file, name, kind)
        })
    }
}

enum Stage {
    Opened(Opened),
    Reading { reader: Box<ParquetRecordBatchReader>, batch: RecordBatch },
    Failed,
}

enum Opened {
    File(ParquetRecordBatchReaderBuilder<File>),
    Bytes(ParquetRecordBatchReaderBuilder<Bytes>),
}

impl Opened {
    fn build(self, columns: &[usize]) -> parquet::errors::Result<ParquetRecordBatchReader> {
        match self {
            Opened::File(builder) => build(builder, columns),
            Opened::Bytes(builder) => build(builder, columns),
        }
    }
}

fn build<T: ChunkReader + 'static>(
    builder: ParquetRecordBatchReaderBuilder<T>,
    columns: &[usize],
) -> parquet::errors::Result<ParquetRecordBatchReader> {
    let mask = ProjectionMask::roots(builder.parquet_schema(), columns.iter().copied());
    builder.with_projection(mask).with_batch_size(BATCH_ROWS).build()
}

/// Turns a panic of the parquet library into an error. Some damaged files cause one.
fn guarded<T, E: Display>(file: &str, read: impl FnOnce() -> std::result::Result<T, E>) -> Result<T> {
    keep_panics_quiet();
    let was_guarded = GUARDED.replace(true);
    // Everything that `read` changes is dropped after an error, so no inconsistent state is visible.
    let result = catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(was_guarded);
    match result {
        Ok(result) => result.map_err(|error| damaged(file, error)),
        Err(_) => Err(damaged(file, "its parts do not fit together; it seems to be damaged")),
    }
}

thread_local! {
    /// Whether a panic of this thread becomes an error.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Silences the message of panics that become errors; all others are printed as usual.
fn keep_panics_quiet() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let hook = take_hook();
        set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                hook(panic);
            }
        }));
    });
}

/// Adds how many rows could be read.
fn after_rows(error: Error, rows_read: u64) -> Error {
    match error {
        Error::Parquet { file, cause } if rows_read > 0 => {
            Error::Parquet { file, cause: format!("{cause}, after row {rows_read}") }
        }
        error => error,
    }
}

fn damaged(file: &str, error: impl Display) -> Error {
    let cause = error.to_string();
    let cause = cause.strip_prefix("Parquet error: ").unwrap_or(&cause).trim_end_matches('.').to_owned();
    Error::Parquet { file: file.to_owned(), cause }
}

/// Checks sizes on which the parquet library would panic.
fn has_negative_sizes(metadata: &ParquetMetaData) -> bool {
    let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    let sizes = columns.flat_map(|column| {
        let start = column.dictionary_page_offset().unwrap_or(0);
        [column.data_page_offset(), column.compressed_size(), column.num_values(), start]
    });
    let rows = metadata.row_groups().iter().map(|group| group.num_rows());
    sizes.chain(rows).any(|size| size < 0)
}
