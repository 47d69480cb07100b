//! Beliefs and their truths, read from files.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::error::ErrorKind;
use prsl::Model;
use prsl::learn::Examples;
use prsl_data::{Key, LabeledReader, RowColumns};
use rayon::ThreadPool;

use crate::arguments::{OnBadRow, TableOptions, usage};
use crate::output;
use crate::progress::{Progress, counted, grouped};
use crate::style::{self, styled};

/// Rejects more than one file from standard input.
pub fn check<'a>(subcommand: &str, files: impl IntoIterator<Item = (&'a str, &'a Path)>) -> Result<()> {
    let piped: Vec<&str> =
        files.into_iter().filter(|(_, path)| *path == Path::new("-")).map(|(name, _)| name).collect();
    if piped.len() > 1 {
        let message = format!("only one of {} can be `-`; name files for the others", piped.join(" and "));
        return Err(usage(subcommand, ErrorKind::ArgumentConflict, message));
    }
    Ok(())
}

/// Opens both tables, optionally with a column of weights.
pub fn open(
    model: &Model,
    tables: &TableOptions,
    [beliefs, truth]: [&Path; 2],
    weights: Option<&str>,
) -> Result<LabeledReader> {
    open_with(model, tables, [beliefs, truth], RowColumns::new(weights, None))
}

/// The same, optionally with columns of weights and keys.
fn open_with(
    model: &Model,
    tables: &TableOptions,
    [beliefs, truth]: [&Path; 2],
    columns: RowColumns<'_>,
) -> Result<LabeledReader> {
    let beliefs = tables.open_beliefs(model, beliefs)?;
    let reader = LabeledReader::new(beliefs, tables.open_truths(model, truth, columns)?);
    Ok(if tables.on_bad_row == OnBadRow::Error { reader } else { reader.skip_bad_rows() })
}

/// Notes how many rows were skipped because they are not valid.
pub fn tell_skipped(n_skipped: u64, n_rows: u64, first_problem: Option<&str>) {
    if n_skipped == 0 {
        return;
    }
    let (skipped, were) = (grouped(n_skipped), if n_skipped == 1 { "was" } else { "were" });
    let rows = counted(n_rows, "row");
    let heading = styled(style::WARNING, format_args!("{skipped} of {rows} {were} skipped"));
    let first = first_problem.map_or(String::new(), |problem| format!("; the first: {problem}"));
    let are = if n_skipped == 1 { "it is" } else { "they are" };
    output::complain_once(format!("{heading}, because {are} not valid{first}\n"));
}

/// The number in its table of a row that was not skipped, counted from 1.
pub fn number(skipped: &[u64], row: usize) -> u64 {
    skipped.iter().fold(row as u64 + 1, |number, &skipped| number + u64::from(skipped <= number))
}

/// The same for tables that were read together.
pub fn tell_skipped_by(reader: &LabeledReader) {
    tell_skipped(reader.skipped().len() as u64, reader.n_rows(), reader.first_problem());
}

/// Rejects weights that are all 0, as learning does.
pub fn check_weights(reader: &LabeledReader) -> Result<()> {
    let weights = reader.weights().unwrap_or_default();
    ensure!(
        weights.is_empty() || weights.iter().any(|weight| *weight > 0.0),
        "all rows have weight 0, so that none of them counts; give some a weight above 0"
    );
    Ok(())
}

/// A remark below scores, if rows have weights.
pub fn weights_remark(column: Option<&str>) -> String {
    column.map_or(String::new(), |column| {
        format!("Rows count as much as column `{column}` of the truths says.\n")
    })
}

/// Rows with beliefs and their truths, and with weights and keys if there are such columns.
pub struct Rows {
    pub examples: Examples,
    pub weights: Option<Vec<f64>>,
    pub keys: Option<Vec<Key>>,
    /// The rows that were skipped, counted from 1.
    pub skipped: Vec<u64>,
}

/// All rows of both tables, with raw beliefs.
pub fn read_raw(
    model: &Model,
    files: [&Path; 2],
    options: &TableOptions,
    columns: RowColumns<'_>,
) -> Result<Rows> {
    read(&model.without_calibrators(), files, options, columns)
}

/// The same with calibrated beliefs.
pub fn read(
    model: &Model,
    files: [&Path; 2],
    options: &TableOptions,
    columns: RowColumns<'_>,
) -> Result<Rows> {
    const CHUNK: usize = 4096;
    let mut reader = open_with(model, options, files, columns)?;
    let mut examples = Examples::empty(model);
    let mut progress = Progress::new(true);
    while let Some((beliefs, truths)) = reader.next_chunk(CHUNK)? {
        examples.append(&Examples::new(beliefs, truths)?)?;
        progress.update(examples.n_rows() as u64, reader.progress());
    }
    progress.finish();
    tell_skipped_by(&reader);
    let (weights, keys) = (reader.weights().map(<[f64]>::to_vec), reader.keys().map(<[Key]>::to_vec));
    Ok(Rows { examples, weights, keys, skipped: reader.skipped().to_vec() })
}

/// This number of threads; by default one per core.
pub fn threads(n: Option<u16>) -> Result<ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(n.map_or(0, usize::from)).build();
    pool.context("cannot start the threads")
}
