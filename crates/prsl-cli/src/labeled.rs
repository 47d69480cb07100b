//! Beliefs with the truths that belong to them, read from files.

use std::path::Path;

use anyhow::{Context, Result};
use clap::error::ErrorKind;
use prsl::Model;
use prsl_data::{BeliefReader, LabeledReader, TableReader, TruthOptions, TruthReader};
use rayon::ThreadPool;

use crate::arguments::{Question, usage};

/// Refuses to read more than one file from standard input.
pub fn check<'a>(subcommand: &str, files: impl IntoIterator<Item = (&'a str, &'a Path)>) -> Result<()> {
    let piped: Vec<&str> =
        files.into_iter().filter(|(_, path)| *path == Path::new("-")).map(|(name, _)| name).collect();
    if piped.len() > 1 {
        let message = format!("only one of {} can be `-`; name files for the others", piped.join(" and "));
        return Err(usage(subcommand, ErrorKind::ArgumentConflict, message));
    }
    Ok(())
}

/// Opens both tables.
pub fn open(model: &Model, question: &Question, truth: &Path) -> Result<LabeledReader> {
    let beliefs = BeliefReader::new(model, TableReader::open(question.beliefs())?, question.options())?;
    let options = TruthOptions { ignore_extra: question.ignore_extra };
    let truths = TruthReader::new(model, TableReader::open(truth)?, options)?;
    Ok(LabeledReader::new(beliefs, truths))
}

/// This many threads, or as many as there are cores.
pub fn threads(n: Option<u16>) -> Result<ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(n.map_or(0, usize::from)).build();
    pool.context("cannot start the threads")
}
