//! Prints a model as a text that reads back as the same model, floats included.

use std::fmt;

use super::format::{Line, align_comments};
use super::note;
use crate::calibrator::Calibrator;
use crate::label::Label;
use crate::model::Model;
use crate::notation::{name, number, numbers};
use crate::rule::Rule;
use crate::syntax::print::{combination, expectation, rule};

impl fmt::Display for Model {
    /// The model in the text format.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names();
        for declared in self.labels() {
            writeln!(f, "label {}", label(declared))?;
        }
        let gap = |f: &mut fmt::Formatter<'_>, before: bool| if before { writeln!(f) } else { Ok(()) };
        let calibrated = || self.labels().iter().filter(|label| *label.calibrator() != Calibrator::Identity);
        gap(f, calibrated().next().is_some())?;
        for declared in calibrated() {
            writeln!(f, "calibrate {} {}", name(declared.name()), calibrator(declared.calibrator()))?;
        }
        gap(f, !self.labels().is_empty() && !self.rules().is_empty())?;
        let line = |stated: &Rule| Line::new(rule(names, stated), stated.learned().map(note::comment));
        let mut lines: Vec<Line> = self.rules().iter().map(line).collect();
        align_comments(&mut lines);
        lines.iter().try_for_each(|line| write!(f, "{line}"))?;
        gap(f, !(self.labels().is_empty() || self.typical().is_empty()))?;
        for typical in self.typical() {
            let (weight, categories) = (number(typical.weight()), typical.categories());
            writeln!(f, "typical {weight}: {}", combination(names, categories))?;
        }
        gap(f, !(self.labels().is_empty() || self.expectations().is_empty()))?;
        for expected in self.expectations() {
            writeln!(f, "expect {}", expectation(names, expected))?;
        }
        Ok(())
    }
}

impl fmt::Display for Label {
    /// The label as in a model file, without the keyword: `feet: gait, standing`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&label(self))
    }
}

/// A label without its keyword: `feet: gait, standing prior 0.1, 0.9`.
fn label(label: &Label) -> String {
    let short_prior = label.prior().is_none_or(|prior| prior.len() == 2 && prior[1] == 1.0 - prior[0]);
    let mut text = name(label.name());
    if !(label.is_binary() && short_prior) {
        let categories: Vec<_> = label.categories().iter().map(|category| name(category)).collect();
        text.push_str(&format!(": {}", categories.join(", ")));
    }
    match label.classifier() {
        None => text.push_str(" latent"),
        Some(classifier) if classifier.name() != label.name() => {
            text.push_str(&format!(" from {}", name(classifier.name())));
        }
        Some(_) => {}
    }
    if let Some(prior) = label.prior() {
        let shown = if label.is_binary() && short_prior { &prior[..1] } else { prior };
        text.push_str(&format!(" prior {}", numbers(shown)));
    }
    text
}

/// A calibrator as in a model file: `platt 1.2 -0.3`.
fn calibrator(calibrator: &Calibrator) -> String {
    let row = |row: &[f64]| row.iter().map(|&value| number(value)).collect::<Vec<_>>().join(" ");
    let rows = |rows: Vec<String>| format!("[{}]", rows.join("; "));
    let numbers = match calibrator {
        Calibrator::Identity => return calibrator.kind().to_owned(),
        Calibrator::Temperature { temperature } => number(*temperature),
        Calibrator::Platt { slope, intercept } => row(&[*slope, *intercept]),
        Calibrator::Isotonic(isotonic) => rows(isotonic.maps().iter().map(|points| map(points)).collect()),
        Calibrator::Dirichlet(dirichlet) => {
            format!("{} [{}]", rows(dirichlet.weights().map(row).collect()), row(dirichlet.bias()))
        }
        Calibrator::Confusion(confusion) => {
            rows(confusion.matrix().iter().map(|counts| row(counts)).collect())
        }
    };
    format!("{} {numbers}", calibrator.kind())
}

/// A map of isotonic calibration: `0:0.01 0.3:0.2 1:0.9`.
fn map(points: &[(f64, f64)]) -> String {
    let point = |&(belief, value): &(f64, f64)| format!("{}:{}", number(belief), number(value));
    points.iter().map(point).collect::<Vec<_>>().join(" ")
}
