//! Completes the belief about one label: missing cells are filled, and the sum is checked or made 1.

use super::{BeliefMatrix, BeliefOrigin};
use crate::distribution::SUM_TOLERANCE;
use crate::error::{Error, Result};
use crate::label::Label;

/// The treatment of beliefs that do not sum to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Normalize {
    /// A sum that differs from 1 by more than 1e-6 is an error.
    #[default]
    Never,
    /// Every belief is divided by its sum. A number above 1 is an error if it is the only one given.
    Always,
}

impl BeliefMatrix {
    /// Adds a row of beliefs that are completed and calibrated already.
    pub(crate) fn push_completed(&mut self, values: &[f64], origins: impl Iterator<Item = BeliefOrigin>) {
        self.values.extend_from_slice(values);
        self.origins.extend(origins);
        self.n_rows += 1;
    }
}

/// Appends one label's belief to `out`, completed and divided by its sum.
pub(super) fn complete(
    label: &Label,
    cells: &[Option<f64>],
    normalize: Normalize,
    out: &mut Vec<f64>,
) -> Result<()> {
    for (category, value) in label.categories().iter().zip(cells) {
        if let Some(value) = *value
            && !(value >= 0.0 && value.is_finite())
        {
            return Err(Error::NotAProbability {
                what: "belief",
                label: label.name().to_owned(),
                category: category.clone(),
                value,
            });
        }
    }
    refuse_lone_excess(label, cells)?;
    let start = out.len();
    let n_missing = cells.iter().filter(|cell| cell.is_none()).count();
    if n_missing == cells.len() {
        out.extend(label.prior_or_uniform());
    } else {
        let given: f64 = cells.iter().flatten().sum();
        let rest = 1.0 - given;
        if n_missing > 0 && rest < -SUM_TOLERANCE && normalize == Normalize::Never {
            return Err(Error::Sum { what: "belief", label: label.name().to_owned(), sum: given });
        }
        let share = rest.max(0.0) / n_missing as f64;
        out.extend(cells.iter().map(|cell| cell.unwrap_or(share)));
    }
    let block = &mut out[start..];
    let sum: f64 = block.iter().sum();
    if sum == 0.0 {
        return Err(Error::ZeroBelief { label: label.name().to_owned() });
    }
    if normalize == Normalize::Never && (sum - 1.0).abs() > SUM_TOLERANCE {
        return Err(Error::Sum { what: "belief", label: label.name().to_owned(), sum });
    }
    if !sum.is_finite() {
        let largest = block.iter().copied().fold(0.0, f64::max);
        block.iter_mut().for_each(|value| *value /= largest);
    }
    let sum: f64 = block.iter().sum();
    if sum != 1.0 {
        block.iter_mut().for_each(|value| *value /= sum);
    }
    Ok(())
}

/// Returns an error if the only given number of a belief is above 1. Divided by its sum, it would always become 1.
fn refuse_lone_excess(label: &Label, cells: &[Option<f64>]) -> Result<()> {
    let mut given = label.categories().iter().zip(cells).filter_map(|(name, cell)| Some((name, (*cell)?)));
    match (given.next(), given.next()) {
        (Some((category, value)), None) if value > 1.0 + SUM_TOLERANCE => Err(Error::NotAProbability {
            what: "belief",
            label: label.name().to_owned(),
            category: category.clone(),
            value,
        }),
        _ => Ok(()),
    }
}
