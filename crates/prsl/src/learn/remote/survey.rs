//! What must be known of all rows before learning starts.

use super::super::chunks::fnv;
use super::super::examples::{Examples, cautious_model};
use super::super::sums::ChunkSums;
use super::{Ask, RemoteRows, Request, Setup, merged};
use crate::error::{Error, Result};
use crate::label::LabelId;
use crate::model::Model;

/// What must be known of all rows before learning starts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Survey {
    /// Number of rows that can be learned from.
    pub(crate) n_used: usize,
    /// For each label, how many categories are true in some row.
    pub(crate) n_seen: Vec<usize>,
    /// For each label, whether a belief is ever 0 or 1, or nearly so.
    pub(crate) is_sure: Vec<bool>,
    /// A hash of all rows, and the chunks that have rows.
    pub(crate) hash: u64,
    pub(crate) chunks: Vec<u32>,
}

impl Survey {
    /// Of rows at hand. The hash is that of their contents.
    pub(crate) fn of(rows: &Examples) -> Self {
        let labels = || rows.model().label_ids();
        Self {
            n_used: rows.used().count(),
            n_seen: labels().map(|label| rows.n_seen(label)).collect(),
            is_sure: labels().map(|label| rows.is_sure(label)).collect(),
            hash: rows.hash(),
            chunks: rows.chunks().iter().map(|chunk| chunk.number).collect(),
        }
    }

    /// A model about the same labels in which classifiers that are ever sure are kept from 0 and 1.
    pub(crate) fn cautious(&self, model: &Model) -> Result<Model> {
        cautious_model(model, |label| self.is_sure[label.index()])
    }

    /// Of rows that are elsewhere.
    pub(crate) fn ask(model: &Model, rows: &mut dyn RemoteRows) -> Result<Self> {
        let setup = Setup { model: model.to_string(), fitted: Vec::new(), free_rules: Vec::new(), memory: 0 };
        let sums = merged(&rows.ask(&Request { setup, ask: Ask::Survey }.to_bytes())?)?;
        let total = sums.total();
        let sizes: Vec<usize> = model.labels().iter().map(|label| label.n_categories()).collect();
        if sums.chunks().next().is_none() {
            return Err(Error::Examples {
                problem: "there are no rows; there is nothing to learn from".to_owned(),
            });
        }
        if total.len() != width(&sizes) {
            return Err(Error::Sums { problem: "the survey is about other labels than the base".to_owned() });
        }
        let (sure, mut counts) = total[3..].split_at(sizes.len());
        let mut n_seen = Vec::new();
        for &size in &sizes {
            let (own, rest) = counts.split_at(size);
            n_seen.push(own.iter().filter(|count| **count > 0.0).count());
            counts = rest;
        }
        Ok(Self {
            n_used: total[0] as usize,
            n_seen,
            is_sure: sure.iter().map(|count| *count > 0.0).collect(),
            hash: fnv(sums.to_bytes().into_iter()),
            chunks: sums.chunks().collect(),
        })
    }
}

fn width(sizes: &[usize]) -> usize {
    3 + sizes.len() + sizes.iter().sum::<usize>()
}

/// The sums of a chunk: the number of rows that can be used; two halves of the checksum, which tell rows apart; for each label
/// whether a belief is sure; and for each category the number of rows in which it is true.
pub(super) fn of_chunk(rows: &Examples, chunk: u32, checksum: u64) -> ChunkSums {
    let model = rows.model();
    let mut sums = vec![rows.used().count() as f64];
    sums.extend([checksum >> 32, checksum & u64::from(u32::MAX)].map(|half| half as f64));
    sums.extend(model.label_ids().map(|label| f64::from(u8::from(rows.is_sure(label)))));
    let start = sums.len();
    sums.resize(start + model.n_categories(), 0.0);
    for truth in rows.truths() {
        for (label, category) in truth.known() {
            sums[start + model.block(LabelId::new(label.index())).start + category.index()] += 1.0;
        }
    }
    ChunkSums::of(chunk, sums)
}
