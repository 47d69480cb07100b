//! What is explained: a row of a table, or evidence of the command line.

use anyhow::{Result, bail};
use prsl::{BeliefMatrix, Evidence, Explainer, Explanation};
use prsl_data::{BeliefReader, Column};

use crate::progress::counted;

/// What is explained.
pub enum Instance {
    /// The last one of these rows of raw beliefs.
    Row(BeliefMatrix),
    /// Evidence of the command line.
    Given(Evidence),
}

/// The columns that identify a row, and their values.
pub type Ids = Vec<(String, String)>;

impl Instance {
    /// The explanation.
    pub fn explain(&self, explainer: &Explainer) -> Result<Explanation> {
        Ok(match self {
            Instance::Row(rows) => explainer.explain_raw(rows, rows.n_rows() - 1)?,
            Instance::Given(evidence) => explainer.explain(evidence)?,
        })
    }
}

/// Reads a row, counted from 1. If rows that are not valid are kept apart, it must not be one of them.
pub fn read_row(beliefs: &mut BeliefReader, row: u64) -> Result<Instance> {
    const CHUNK: u64 = 1000;
    let mut before = 0;
    // Does not read beyond the requested row, so that errors there do not matter.
    while let Some(chunk) = beliefs.next_chunk((row - before).min(CHUNK) as usize)? {
        before += beliefs.n_read() as u64;
        if before == row {
            let bad = beliefs.bad_rows().last().filter(|bad| bad.row() == row);
            return match bad {
                Some(bad) => bail!("{}", bad.error()),
                None => Ok(Instance::Row(chunk)),
            };
        }
    }
    bail!("there is no row {row}: `{}` has {}", beliefs.table().name(), counted(before, "row"))
}

/// What identifies the row that was read last.
pub fn ids_of_last_row(beliefs: &BeliefReader) -> Ids {
    let value = |column: &Column| column.text(column.len() - 1).unwrap_or_default();
    let ids = beliefs.id_columns().iter().zip(beliefs.ids());
    ids.map(|(spec, column)| (spec.name.clone(), value(column))).collect()
}

/// An explanation in JSON, with the columns that identify its row as the first field.
pub fn with_ids(json: &str, ids: &Ids) -> Result<String> {
    if ids.is_empty() {
        return Ok(json.to_owned());
    }
    let pair = |(name, value): &(String, String)| {
        Ok(format!("    {}: {}", serde_json::to_string(name)?, serde_json::to_string(value)?))
    };
    let fields = ids.iter().map(pair).collect::<Result<Vec<String>>>()?.join(",\n");
    Ok(json.replacen('{', &format!("{{\n  \"id\": {{\n{fields}\n  }},"), 1))
}
