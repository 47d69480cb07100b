//! Beliefs and their truths, read from files.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::error::ErrorKind;
use prsl::{BeliefMatrix, Model, Truth};
use prsl_data::{Key, LabeledReader, RowColumns};
use rayon::ThreadPool;

use crate::arguments::{TableOptions, usage};
use crate::progress::Progress;

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
    let beliefs = tables.open_beliefs(model, beliefs)?;
    let truths = tables.open_truths(model, truth, RowColumns::new(weights, None))?;
    Ok(LabeledReader::new(beliefs, truths))
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
    pub beliefs: BeliefMatrix,
    pub truths: Vec<Truth>,
    pub weights: Option<Vec<f64>>,
    pub keys: Option<Vec<Key>>,
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
    [beliefs, truth]: [&Path; 2],
    options: &TableOptions,
    columns: RowColumns<'_>,
) -> Result<Rows> {
    const CHUNK: usize = 4096;
    let beliefs = options.open_beliefs(model, beliefs)?;
    let mut reader = LabeledReader::new(beliefs, options.open_truths(model, truth, columns)?);
    let (mut rows, mut known) = (BeliefMatrix::new(model), Vec::new());
    let mut progress = Progress::new(true);
    while let Some((beliefs, truths)) = reader.next_chunk(CHUNK)? {
        rows.append(&beliefs)?;
        known.extend(truths);
        progress.update(known.len() as u64, reader.progress());
    }
    progress.finish();
    let (weights, keys) = (reader.weights().map(<[f64]>::to_vec), reader.keys().map(<[Key]>::to_vec));
    Ok(Rows { beliefs: rows, truths: known, weights, keys })
}

/// This number of threads; by default one per core.
pub fn threads(n: Option<u16>) -> Result<ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(n.map_or(0, usize::from)).build();
    pool.context("cannot start the threads")
}
