//! The parts of a model that are scored, and the engines that score them.

use std::time::Instant;

use anyhow::{Result, ensure};
use prsl::calibrate::Calibrator;
use prsl::infer::{AssignmentEngine, EngineSettings, MarginalEngine};
use prsl::learn::Examples;
use prsl::metrics::{Evaluation, Predictions, joint_log_likelihoods, label_log_likelihoods};
use prsl::{BeliefMatrix, Engine, Engines, Error, Limits, Model, Rule, Truth};
use prsl_data::LabeledReader;

use crate::predict::{EngineKind, chunk_rows, next_rows};
use crate::progress::Progress;
use crate::style::{self, styled};
use crate::{labeled, output};

/// A part of a model: what its answers would be if the rest were missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The classifiers' beliefs as they are given, without calibrators and rules.
    Beliefs,
    /// The beliefs with the model's calibrators, without rules.
    Calibrated,
    /// The rules that were not learned, with the beliefs as they are given.
    ExpertRules,
    /// Everything.
    Model,
}

impl Part {
    /// The heading of its column.
    pub fn title(self) -> &'static str {
        match self {
            Part::Beliefs => "beliefs as given",
            Part::Calibrated => "calibrated",
            Part::ExpertRules => "expert rules",
            Part::Model => "whole model",
        }
    }

    /// Its key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Part::Beliefs => "beliefs",
            Part::Calibrated => "calibrated_beliefs",
            Part::ExpertRules => "expert_rules",
            Part::Model => "model",
        }
    }

    /// The parts of a model that differ from each other, the model itself last.
    fn of(model: &Model) -> Result<Vec<(Part, Model)>> {
        let is_expert = |rule: &Rule| rule.learned().is_none();
        let n_expert = model.rules().iter().filter(|rule| is_expert(rule)).count();
        let raw = model.without_calibrators();
        let has_calibrators = model.label_ids().any(|label| *model.calibrator(label) != Calibrator::Identity);
        let has_learned = n_expert < model.rules().len() || !model.typical().is_empty();
        let mut parts = vec![(Part::Beliefs, raw.without_rules()?)];
        if has_calibrators {
            parts.push((Part::Calibrated, model.without_rules()?));
        }
        if n_expert > 0 && (has_calibrators || has_learned) {
            let edited = raw.edit().retain_rules(|rule| is_expert(raw.rule(rule))).remove_typical();
            parts.push((Part::ExpertRules, edited.build()?));
        }
        parts.push((Part::Model, model.clone()));
        Ok(parts)
    }
}

/// A model and its parts, compiled.
pub struct Parts {
    list: Vec<(Part, Scorer)>,
}

impl Parts {
    /// Compiles all parts.
    pub fn compile(model: &Model, engine: EngineKind, settings: &EngineSettings) -> Result<Parts> {
        let compile = |(part, model): (Part, Model)| {
            // Without rules, exact inference costs almost nothing.
            let engine = if model.rules().is_empty() { EngineKind::Exact } else { engine };
            Ok((part, Scorer::compile(&model, engine, settings)?))
        };
        Ok(Parts { list: Part::of(model)?.into_iter().map(compile).collect::<Result<_>>()? })
    }

    /// The whole model.
    pub fn whole(&self) -> &Scorer {
        &self.list.last().expect("the model is the last part").1
    }

    /// Scores all parts, and returns what `reduce` takes from their evaluations.
    ///
    /// The rows are read once for each part, and each evaluation is reduced before the next one begins. So only one is in
    /// memory. Tables that can be read only once are scored by all parts together.
    pub fn score<T>(
        self,
        rows: &mut impl Rows,
        mut observe: impl FnMut(&BeliefMatrix, &[Truth]) -> Result<()>,
        mut reduce: impl FnMut(Part, Evaluation) -> T,
    ) -> Result<Vec<(Part, T)>> {
        let mut left = self.list;
        let mut reduced = Vec::with_capacity(left.len());
        let mut n_rows = None;
        while !left.is_empty() {
            let n_parts = if rows.can_be_read_again() { 1 } else { left.len() };
            let mut parts: Vec<(Part, Scorer)> = left.drain(..n_parts).collect();
            let found = read(&mut parts, rows.open()?, &mut observe)?;
            let expected = *n_rows.get_or_insert(found);
            ensure!(
                found == expected,
                "the tables had {expected} rows when they were read first, and {found} when they were read again"
            );
            let evaluations = parts.into_iter().map(|(part, scorer)| (part, scorer.evaluation));
            reduced.extend(evaluations.map(|(part, evaluation)| (part, reduce(part, evaluation))));
        }
        Ok(reduced)
    }
}

/// Tables of raw beliefs and truths, to be read from the start.
pub trait Rows {
    /// Whether the tables can be read more than once.
    fn can_be_read_again(&self) -> bool;

    /// Opens the tables.
    fn open(&mut self) -> Result<LabeledReader>;
}

/// Predicts all rows with some parts. The whole model calls `observe` with the rows as it calibrates them. Returns the
/// number of rows, skipped ones included.
fn read(
    parts: &mut [(Part, Scorer)],
    mut reader: LabeledReader,
    observe: &mut impl FnMut(&BeliefMatrix, &[Truth]) -> Result<()>,
) -> Result<u64> {
    let mut progress = match parts {
        [(part, _)] => Progress::of(part.title(), true).titled(part.title()),
        _ => Progress::new(true),
    };
    let work = parts.iter().map(|(_, scorer)| scorer.work()).sum();
    let (fewest, most) = chunk_rows(parts[0].1.model(), work);
    let (mut n_rows, mut wanted) = (0, fewest);
    while let Some((raw, truths)) = reader.next_chunk(wanted)? {
        let start = Instant::now();
        let weights = reader.weights().map(|weights| &weights[weights.len() - truths.len()..]);
        for (part, scorer) in &mut *parts {
            let rows = raw.calibrated_by(scorer.model())?;
            scorer.add(&rows, &truths, weights)?;
            if *part == Part::Model {
                observe(&rows, &truths)?;
            }
        }
        n_rows += truths.len() as u64;
        wanted = next_rows(wanted, start.elapsed()).clamp(fewest, most);
        progress.update(n_rows, reader.progress());
    }
    progress.finish();
    labeled::tell_skipped_by(&reader);
    labeled::check_weights(&reader)?;
    Ok(reader.n_rows())
}

/// Predicts rows and accumulates their scores.
pub struct Scorer {
    marginals: MarginalEngine,
    /// `None` if the most probable assignment is too expensive.
    assignments: Option<AssignmentEngine>,
    /// The evaluation so far.
    pub evaluation: Evaluation,
}

impl Scorer {
    /// Predicts all rows, and returns the evaluation. `read` gives the beliefs of some rows for the model.
    pub fn score(
        model: &Model,
        rows: &Examples,
        limits: Limits,
        read: impl Fn(&Examples) -> prsl::Result<BeliefMatrix>,
    ) -> Result<Evaluation> {
        let settings = EngineSettings { limits, ..EngineSettings::default() };
        let mut scorer = Self::compile(model, EngineKind::Auto, &settings)?;
        let (_, most) = chunk_rows(model, scorer.work());
        for start in (0..rows.n_rows()).step_by(most) {
            let chunk: Vec<usize> = (start..rows.n_rows().min(start + most)).collect();
            let chunk = rows.select(&chunk);
            scorer.add(&read(&chunk)?, &chunk.to_truths(), Some(chunk.weights()))?;
        }
        Ok(scorer.evaluation)
    }

    /// Compiles the engines of a model.
    pub fn compile(model: &Model, engine: EngineKind, settings: &EngineSettings) -> Result<Scorer> {
        let engines = Engines::new(model).with_choice(engine.into()).with_settings(*settings);
        let marginals = engines.marginals()?;
        let assignments = match engines.assignments() {
            Err(Error::TooCostly { .. }) if engine == EngineKind::Auto => None,
            assignments => Some(assignments?),
        };
        let evaluation = Evaluation::new(model, marginals.engine());
        Ok(Scorer { marginals, assignments, evaluation })
    }

    /// The model.
    pub fn model(&self) -> &Model {
        self.marginals.model()
    }

    /// Number of multiply-adds per row.
    pub fn work(&self) -> f64 {
        self.marginals.work() + self.assignments.as_ref().map_or(0.0, AssignmentEngine::work)
    }

    /// Predicts rows of the model, and adds their scores. Without weights, all rows count the same.
    pub fn add(&mut self, rows: &BeliefMatrix, truths: &[Truth], weights: Option<&[f64]>) -> Result<()> {
        let posteriors = self.marginals.infer_batch(rows)?;
        let best = self.assignments.as_ref().map(|engine| engine.best_batch(rows)).transpose()?;
        let infer = |rows: &BeliefMatrix| self.marginals.infer_batch(rows);
        let joint = joint_log_likelihoods(rows, truths, &posteriors, infer)?;
        let labels = label_log_likelihoods(rows, truths, &posteriors, infer)?;
        let predictions = Predictions {
            posteriors: &posteriors,
            best: best.as_deref(),
            joint: joint.as_deref(),
            labels: Some(&labels),
        };
        match weights {
            Some(weights) => Ok(self.evaluation.add_weighted(predictions, truths, weights)?),
            None => Ok(self.evaluation.add(predictions, truths)?),
        }
    }

    /// Notes that answers are approximate.
    pub fn tell_doubts(&self, engine: EngineKind) {
        let note = styled(style::NOTE, "note");
        if engine == EngineKind::Auto && self.marginals.engine() == Engine::Loopy {
            output::complain(&format!("{note}: marginals are approximate, {}\n", self.marginals.reason()));
        }
        if self.assignments.is_none() {
            output::complain(&format!(
                "{note}: the most probable assignment is too expensive for this model, so the joint accuracy is missing\n"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use prsl_data::{BeliefOptions, BeliefReader, TableReader, TruthOptions, TruthReader};

    use super::*;

    /// Two rows, and a record of what is done with them.
    struct Recorded {
        model: Model,
        can_be_read_again: bool,
        events: Rc<RefCell<Vec<&'static str>>>,
    }

    impl Rows for Recorded {
        fn can_be_read_again(&self) -> bool {
            self.can_be_read_again
        }

        fn open(&mut self) -> Result<LabeledReader> {
            self.events.borrow_mut().push("read");
            let [beliefs, truths] = ["a,b\n0.9,0.2\n0.3,0.4\n", "a,b\nyes,no\nno,yes\n"];
            let [beliefs, truths] = [beliefs, truths].map(|it| TableReader::csv(it.as_bytes(), "rows"));
            Ok(LabeledReader::new(
                BeliefReader::new(&self.model, beliefs?, BeliefOptions::default())?,
                TruthReader::new(&self.model, truths?, TruthOptions::default())?,
            ))
        }
    }

    fn events(can_be_read_again: bool) -> Vec<&'static str> {
        let model = Model::builder()
            .label("a", ["yes", "no"])
            .label("b", ["yes", "no"])
            .calibrator("a", Calibrator::Platt { slope: 2.0, intercept: 0.0 })
            .rule("a -> b", 0.9)
            .build()
            .expect("a model");
        let events = Rc::default();
        let model_of_rows = model.without_calibrators();
        let mut rows = Recorded { model: model_of_rows, can_be_read_again, events: Rc::clone(&events) };
        let parts = Parts::compile(&model, EngineKind::Auto, &EngineSettings::default()).expect("small");
        let reduce = |part: Part, evaluation: Evaluation| {
            assert_eq!(evaluation.scores().rows, 2, "{part:?}");
            events.borrow_mut().push(part.key());
        };
        parts.score(&mut rows, |_, _| Ok(()), reduce).expect("scores");
        events.take()
    }

    #[test]
    fn a_part_is_reduced_before_the_rows_of_the_next_are_read() {
        let expected =
            ["read", "beliefs", "read", "calibrated_beliefs", "read", "expert_rules", "read", "model"];
        assert_eq!(events(true), expected);
    }

    #[test]
    fn tables_that_can_be_read_once_are_read_once() {
        assert_eq!(events(false), ["read", "beliefs", "calibrated_beliefs", "expert_rules", "model"]);
    }
}
