//! The rows to learn from, and the labels of a new model.

use std::path::Path;

use anyhow::{Context, Result, bail};
use prsl::learn::Examples;
use prsl::{Label, Model};
use prsl_data::{ColumnsProblem, Key, RowColumns};

use super::Arguments;
use super::settings::{Recipe, VALID_FRACTION};
use crate::arguments::TableOptions;
use crate::labeled;

impl Arguments {
    /// The training set and the validation set. The paper's recipe always has the latter.
    pub(super) fn examples(&self, base: &Model) -> Result<(Examples, Option<Examples>)> {
        let all = self.read(base, &self.beliefs, &self.truth)?;
        match (&self.valid_beliefs, &self.valid_truth) {
            (Some(beliefs), Some(truth)) => Ok((all, Some(self.read(base, beliefs, truth)?))),
            _ if self.recipe == Recipe::Paper => {
                let (train, valid) =
                    all.split(self.paper.valid_fraction.unwrap_or(VALID_FRACTION), self.seed);
                Ok((train, Some(valid)))
            }
            _ => Ok((all, None)),
        }
    }

    fn read(&self, base: &Model, beliefs: &Path, truth: &Path) -> Result<Examples> {
        let columns = RowColumns::new(self.weights.as_deref(), self.key.as_deref());
        let rows = labeled::read_raw(base, [beliefs, truth], &self.tables, columns)?;
        let in_truth = || format!("`{}`", truth.display());
        let mut examples = rows.examples;
        if let Some(weights) = rows.weights {
            examples = examples.with_weights(weights).with_context(in_truth)?;
        }
        match rows.keys {
            Some(keys) => {
                check_keys(&keys, &rows.skipped).with_context(in_truth)?;
                examples.by_keys(&keys).with_context(in_truth)
            }
            None => Ok(examples),
        }
    }
}

/// Returns an error that names the rows of the table if two of them have the same key.
fn check_keys(keys: &[Key], skipped: &[u64]) -> Result<()> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|&a, &b| keys[a].cmp(&keys[b]));
    match order.windows(2).find(|pair| keys[pair[0]] == keys[pair[1]]) {
        Some(&[first, second]) => bail!(
            "rows {} and {} have the key `{}`; each row needs a key of its own",
            labeled::number(skipped, first),
            labeled::number(skipped, second),
            keys[first]
        ),
        _ => Ok(()),
    }
}

/// The labels named by the columns of a table of beliefs.
pub(super) fn new_model(beliefs: &Path, tables: &TableOptions) -> Result<Model> {
    if beliefs == Path::new("-") {
        bail!(
            "a new model takes its labels from BELIEFS, which then has to be a file, not `-`; or name a model with --base"
        );
    }
    let table = tables.open(beliefs)?;
    if let Some(delimiter) = table.other_delimiter() {
        let problem = ColumnsProblem::OtherDelimiter { delimiter };
        return Err(prsl_data::Error::Columns { file: table.name().to_owned(), problem }.into());
    }
    let mut labels: Vec<(String, Vec<String>)> = Vec::new();
    let is_label = |column: &&String| !table.index_columns().contains(column) && !tables.id.contains(column);
    for column in table.columns().iter().filter(is_label) {
        let (name, category) = match column.split_once('=') {
            Some((name, category)) => (name.trim(), Some(category.trim().to_owned())),
            None => (column.trim(), None),
        };
        let at = labels.iter().position(|(label, _)| label == name).unwrap_or_else(|| {
            labels.push((name.to_owned(), Vec::new()));
            labels.len() - 1
        });
        labels[at].1.extend(category);
    }
    let label = |(name, categories): (String, Vec<String>)| match &categories[..] {
        [] => Label::binary(name),
        [yes] if yes == prsl::model::YES => Label::binary(name),
        _ => Label::new(name, categories),
    };
    let builder =
        labels.into_iter().map(label).fold(Model::builder(), |builder, label| builder.add_label(label));
    builder.build().with_context(|| format!("the columns of `{}` are no labels", beliefs.display()))
}
