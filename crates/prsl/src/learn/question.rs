//! What learning asks of all rows. Every answer is a list of sums.

use serde::{Deserialize, Serialize};

use super::feature::Feature;
use super::objective::Layout;
use super::problem::{Problem, Totals};
use crate::infer::weighted::Weighted;

/// Learned rules, and the limit within which their engine was compiled. The same limit gives the same engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rules {
    pub(crate) features: Vec<Feature>,
    /// Maximum number of multiply-adds per row; `None` for no limit.
    pub(crate) max_work: Option<f64>,
}

/// A question about all rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    /// What does not depend on the parameters ([`Totals`]).
    Totals,
    /// The log-likelihood with its derivatives, for learned rules and all parameters.
    Gradient { rules: Rules, parameters: Vec<f64> },
    /// The same without any rules.
    Independent { parameters: Vec<f64> },
    /// How often complete rows violate rules.
    Broken { features: Vec<Feature> },
    /// For each rule: the weight of rows where its condition holds, of those that violate it, and the number of rows, all
    /// among rows in which its labels are known.
    Tallies { features: Vec<Feature> },
    /// The expected violations of one of the learned rules, among rows in which its labels are known.
    Expected { rules: Rules, place: usize, parameters: Vec<f64> },
    /// The weight of the complete rows with each of these label sets.
    LabelSets { sets: Vec<Vec<usize>> },
}

impl Question {
    /// Number of sums in the answer.
    pub(crate) fn width(&self, problem: &Problem) -> usize {
        match self {
            Self::Totals => Totals::WIDTH,
            Self::Gradient { rules, .. } => Layout::new(problem, rules.features.len()).width(),
            Self::Independent { .. } => 1 + 2 * problem.data.n_calibration_parameters,
            Self::Broken { features } => features.len(),
            Self::Tallies { features } => 3 * features.len(),
            Self::Expected { .. } => 1,
            Self::LabelSets { sets } => sets.len(),
        }
    }

    /// The rules of the engine that the answer needs, and its parameters.
    pub(crate) fn engine(&self) -> Option<(&Rules, &[f64])> {
        match self {
            Self::Gradient { rules, parameters } | Self::Expected { rules, parameters, .. } => {
                Some((rules, parameters))
            }
            _ => None,
        }
    }
}

impl Problem {
    /// The answer of one chunk, by its place in the list of chunks. The engine has the parameters of the question.
    pub(crate) fn answer(&self, question: &Question, engine: Option<&Weighted>, place: usize) -> Vec<f64> {
        let (chunk, n_used) = &self.data.chunks[place];
        let (rows, engine) = (chunk.rows.clone(), || engine.expect("the question needs an engine"));
        match question {
            Question::Totals => self.totals_of_chunk(chunk, *n_used),
            Question::Gradient { parameters, .. } => self.gradient_of_chunk(engine(), parameters, rows),
            Question::Independent { parameters } => self.independent_of_chunk(parameters, rows),
            Question::Broken { features } => self.broken_of_chunk(features, rows),
            Question::Tallies { features } => {
                features.iter().flat_map(|feature| self.tally_of_chunk(feature, rows.clone())).collect()
            }
            Question::Expected { rules, place, parameters } => {
                vec![self.expected_of_chunk(engine(), &rules.features[*place], *place, parameters, rows)]
            }
            Question::LabelSets { sets } => self.label_sets_of_chunk(sets, rows),
        }
    }
}
