//! Writes a model as JSON.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::ser::Formatter;

use super::entries::{
    CalibratorEntry, CombinationEntry, File, InhibitionEntry, LabelEntry, LearnedEntry, RuleEntry,
};
use super::{FORMAT, VERSION};
use crate::calibrator::Calibrator;
use crate::combination::Combination;
use crate::label::Label;
use crate::model::Model;
use crate::names::Names;
use crate::noisy_or::{Inhibition, NoisyOr};
use crate::rule::{Body, LearnedNote, Rule};
use crate::syntax::print;

/// The model as JSON text.
pub(super) fn json(model: &Model) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Lines::default());
    File::of_model(model).serialize(&mut serializer).expect("writing to memory does not fail");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

impl<'a> File<'a> {
    fn of_model(model: &'a Model) -> Self {
        let names = model.names();
        File {
            format: FORMAT.into(),
            version: VERSION,
            labels: model.labels().iter().map(LabelEntry::of_label).collect(),
            rules: model.rules().iter().map(|rule| RuleEntry::of_rule(model, names, rule)).collect(),
            typical: model.typical().iter().map(|it| CombinationEntry::of_combination(names, it)).collect(),
            expectations: model
                .expectations()
                .iter()
                .map(|expectation| print::expectation(names, expectation))
                .collect(),
        }
    }
}

impl<'a> LabelEntry<'a> {
    fn of_label(label: &'a Label) -> Self {
        let classifier = match label.classifier() {
            None => Some(None),
            Some(classifier) if classifier.name() == label.name() => None,
            Some(classifier) => Some(Some(classifier.name().into())),
        };
        LabelEntry {
            name: label.name().into(),
            categories: label.categories().into(),
            prior: label.prior().map(Cow::from),
            classifier,
            calibrator: CalibratorEntry::of_calibrator(label.calibrator()),
        }
    }
}

impl CalibratorEntry {
    fn of_calibrator(calibrator: &Calibrator) -> Option<Self> {
        Some(match calibrator {
            Calibrator::Identity => return None,
            &Calibrator::Temperature { temperature } => CalibratorEntry::Temperature { temperature },
            &Calibrator::Platt { slope, intercept } => CalibratorEntry::Platt { slope, intercept },
            Calibrator::Isotonic(isotonic) => CalibratorEntry::Isotonic { maps: isotonic.maps().to_vec() },
            Calibrator::Dirichlet(dirichlet) => CalibratorEntry::Dirichlet {
                weights: dirichlet.weights().map(<[f64]>::to_vec).collect(),
                bias: dirichlet.bias().to_vec(),
            },
            Calibrator::Confusion(confusion) => {
                CalibratorEntry::Confusion { matrix: confusion.matrix().to_vec() }
            }
        })
    }
}

impl<'a> RuleEntry<'a> {
    fn of_rule(model: &'a Model, names: &Names, rule: &'a Rule) -> Self {
        let (formula, noisy_or) = match rule.body() {
            Body::Formula(formula) => (Some(print::formula(names, formula)), None),
            Body::NoisyOr(noisy_or) => (None, Some(InhibitionEntry::of_noisy_or(model, noisy_or))),
        };
        RuleEntry {
            name: rule.name().map(Cow::from),
            probability: rule.probability(),
            fixed: rule.is_fixed(),
            formula,
            noisy_or,
            learned: rule.learned().map(LearnedEntry::of_note),
        }
    }
}

impl LearnedEntry {
    fn of_note(&LearnedNote { gain, broken, known, expected, sure }: &LearnedNote) -> Self {
        Self { gain, broken, known, expected, sure }
    }
}

impl CombinationEntry {
    fn of_combination(names: &Names, combination: &Combination) -> Self {
        let categories = print::combination(names, combination.categories());
        Self { weight: combination.weight(), categories }
    }
}

impl<'a> InhibitionEntry<'a> {
    fn of_noisy_or(model: &'a Model, noisy_or: &NoisyOr) -> Vec<Self> {
        let entry = |i: &Inhibition| {
            let label = model.label(i.label);
            let category = label.category(i.category).into();
            InhibitionEntry { label: label.name().into(), category, inhibition: i.probability }
        };
        noisy_or.inhibitions().iter().map(entry).collect()
    }
}

/// The layout of the text. Elements of the two outer levels have their own lines, and deeper ones share a line.
#[derive(Default)]
struct Lines {
    depth: usize,
    empty: bool,
}

impl Lines {
    fn open(&mut self) {
        self.depth += 1;
        self.empty = true;
    }

    fn close<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, bracket: &[u8]) -> std::io::Result<()> {
        let spread = self.depth <= 2 && !self.empty;
        self.depth -= 1;
        self.empty = false;
        if spread {
            self.newline(writer)?;
        }
        writer.write_all(bracket)
    }

    fn newline<W: ?Sized + std::io::Write>(&self, writer: &mut W) -> std::io::Result<()> {
        writer.write_all(b"\n")?;
        writer.write_all("  ".repeat(self.depth).as_bytes())
    }

    fn separate<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, first: bool) -> std::io::Result<()> {
        self.empty = false;
        match (first, self.depth <= 2) {
            (true, true) => self.newline(writer),
            (true, false) => Ok(()),
            (false, true) => writer.write_all(b",").and_then(|()| self.newline(writer)),
            (false, false) => writer.write_all(b", "),
        }
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        self.open();
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        self.close(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        self.separate(writer, first)
    }

    fn begin_object<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        self.open();
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        self.close(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        self.separate(writer, first)
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}
