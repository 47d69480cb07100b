//! The paper's numbers, which the authors' models must reproduce.

use super::{Measure, Measured, Method, Setting, Source};
use crate::median;
use crate::statistics::mean;

/// A number over all models of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The mean correlation of exact and loopy marginals.
    Correlation,
    /// The largest error of a single loopy marginal.
    WorstError,
    /// The number of rows whose loopy marginals did not converge.
    NotConverged,
    /// The median share of most probable assignments that loopy max-product found.
    Loopy,
    /// The median share guessed by the best category of each loopy marginal.
    Marginals,
    /// The number of models of the side experiment in which exact marginals give another share than the authors stored.
    SideExperiment,
}

impl Figure {
    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Correlation => "mean correlation of exact and loopy marginals",
            Figure::WorstError => "largest error of a loopy marginal",
            Figure::NotConverged => "rows whose loopy marginals did not converge",
            Figure::Loopy => "median share of most probable assignments found by loopy max-product",
            Figure::Marginals => "median share found by the best category of each loopy marginal",
            Figure::SideExperiment => "models that differ from the authors' side experiment",
        }
    }

    /// Its value over these models.
    pub fn of(self, models: &[&Measured]) -> Option<f64> {
        let all = |measure: Measure| -> Vec<f64> {
            models.iter().filter_map(|model| model.values.get(&measure).copied()).collect()
        };
        match self {
            Figure::Correlation => mean(&all(Measure::Correlation(Setting::Authors))),
            Figure::WorstError => all(Measure::WorstError(Setting::Authors)).into_iter().reduce(f64::max),
            Figure::NotConverged => {
                let rows = |model: &&Measured| {
                    Some(
                        (1.0 - model.values.get(&Measure::Converged(Setting::Authors))?)
                            * model.n_rows as f64,
                    )
                };
                models.iter().map(rows).sum()
            }
            Figure::Loopy => median(all(Measure::Match(Method::AuthorsTies))),
            Figure::Marginals => median(all(Measure::Match(Method::Marginals))),
            Figure::SideExperiment => {
                let (ours, stored) = (all(Measure::Side(false)), all(Measure::SideStored(false)));
                Some(ours.iter().zip(stored).filter(|(ours, stored)| (*ours - stored).abs() > 1e-9).count()
                    as f64)
            }
        }
    }

    /// Its value as text.
    pub fn shown(self, value: f64) -> String {
        match self {
            Figure::Correlation => format!("{value:.4}"),
            Figure::WorstError => format!("{value:.3}"),
            Figure::NotConverged | Figure::SideExperiment => format!("{value:.0}"),
            Figure::Loopy | Figure::Marginals => format!("{:.1} %", 100.0 * value),
        }
    }
}

/// The number printed in the paper, the same from the authors' stored answers with more digits, and the measured one.
#[derive(Clone, Debug)]
pub struct Headline {
    /// The number of labels of the models.
    pub n_labels: usize,
    /// The kind of number.
    pub figure: Figure,
    /// The number printed in the paper, if any.
    pub paper: Option<&'static str>,
    /// The number computed from the authors' stored answers, if possible.
    pub expected: Option<&'static str>,
    /// The measured number.
    pub measured: String,
}

impl Headline {
    /// Whether the measured number equals the expected one; true if nothing is expected.
    pub fn holds(&self) -> bool {
        self.expected.is_none_or(|expected| expected == self.measured)
    }
}

/// Labels, number, paper, stored answers.
type Row = (usize, Figure, Option<&'static str>, Option<&'static str>);

const EXPECTED: [Row; 16] = [
    (5, Figure::Correlation, Some("0.995"), Some("0.9949")),
    (10, Figure::Correlation, Some("0.996"), Some("0.9956")),
    (30, Figure::Correlation, Some("0.995"), Some("0.9951")),
    (5, Figure::Loopy, Some("96.5 %"), Some("96.5 %")),
    (10, Figure::Loopy, Some("94 %"), Some("94.0 %")),
    (30, Figure::Loopy, None, None),
    (5, Figure::Marginals, Some("68 %"), Some("68.0 %")),
    (10, Figure::Marginals, Some("42 %"), Some("42.0 %")),
    (30, Figure::Marginals, None, None),
    (5, Figure::WorstError, None, Some("0.376")),
    (10, Figure::WorstError, None, Some("0.448")),
    (30, Figure::WorstError, None, Some("0.974")),
    (5, Figure::NotConverged, None, Some("45")),
    (10, Figure::NotConverged, None, Some("94")),
    (30, Figure::NotConverged, None, Some("270")),
    (10, Figure::SideExperiment, None, Some("0")),
];

/// The paper's numbers at the sizes of the authors' models that were measured.
pub fn headlines(measured: &[Measured]) -> Vec<Headline> {
    EXPECTED.iter().filter_map(|row| headline(measured, row)).collect()
}

fn headline(measured: &[Measured], &(n_labels, figure, paper, expected): &Row) -> Option<Headline> {
    let is_asked = |model: &&Measured| model.source == Source::Golden && model.n_labels == n_labels;
    let models: Vec<&Measured> = measured.iter().filter(is_asked).collect();
    if models.is_empty() {
        return None;
    }
    let measured = figure.of(&models).map_or("none".to_owned(), |value| figure.shown(value));
    Some(Headline { n_labels, figure, paper, expected, measured })
}
