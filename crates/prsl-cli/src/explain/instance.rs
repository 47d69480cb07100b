//! What is explained: a row of a table, or evidence of the command line.

use anyhow::Result;
use prsl::{Evidence, Explainer, Explanation};
use prsl_data::{BeliefReader, Column};

use super::explain;

/// What is explained.
pub enum Instance {
    /// A row of a table of raw beliefs, counted from 1.
    Row(Box<BeliefReader>, u64),
    /// Evidence of the command line.
    Given(Evidence),
}

/// The columns that identify a row, and their values.
pub type Ids = Vec<(String, String)>;

impl Instance {
    /// The explanation, and what identifies the row.
    pub fn explain(self, explainer: &Explainer) -> Result<(Explanation, Ids)> {
        match self {
            Instance::Row(mut beliefs, row) => {
                let explanation = explain(explainer, &mut beliefs, row)?;
                // The row is the last one that was read.
                let value = |column: &Column| column.text(column.len() - 1).unwrap_or_default();
                let ids = beliefs.id_columns().iter().zip(beliefs.ids());
                let ids = ids.map(|(spec, column)| (spec.name.clone(), value(column))).collect();
                Ok((explanation, ids))
            }
            Instance::Given(evidence) => Ok((explainer.explain(&evidence)?, Vec::new())),
        }
    }
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
