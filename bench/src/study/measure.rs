//! Runs every engine on one model.

use std::time::Duration;

use prsl::infer::{LoopySettings, MaxProductTree, SearchLimits, Stopped};
use prsl::{
    Assignment, BeliefMatrix, BranchAndBound, CategoryId, JunctionTree, Limits, Loopy, Model, MostProbable,
    Posteriors,
};

use super::{Case, EXACT_UP_TO, Measure, Measured, Method, SLOW_TREE, Setting, Task};
use crate::statistics::{correlation, mean};
use crate::thread_cpu_time;

const LIMITS: Limits = Limits { memory: 4 << 30 };
const SEARCH: SearchLimits = SearchLimits { work: u64::MAX, time: Some(Duration::from_secs(60)) };
/// Maximum error of exact marginals that are used as a reference.
const IMPRECISE: f64 = 1e-6;
/// Relative difference up to which two weights are equal.
const TIE: f64 = 1e-9;

/// Runs every engine that can answer.
pub(super) fn measure(case: &Case, floor: Duration) -> Measured {
    let mut study = Study {
        case,
        floor,
        measured: Measured {
            source: case.source,
            name: case.name.clone(),
            n_labels: case.model.labels().len(),
            n_rows: case.rows.n_rows(),
            n_exact_rows: 0,
            refused: Vec::new(),
            n_imprecise: 0,
            n_unproven: 0,
            values: Default::default(),
        },
    };
    let exact = study.exact_marginals();
    let best = study.exact_best();
    for setting in Setting::ALL {
        study.loopy(setting, exact.as_ref(), &best);
    }
    study.side_experiment();
    study.measured
}

/// One assignment per row, or `None` if none is proven.
type Assignments = Vec<Option<Assignment>>;

struct Study<'a> {
    case: &'a Case,
    floor: Duration,
    measured: Measured,
}

impl Study<'_> {
    fn set(&mut self, measure: Measure, value: Option<f64>) {
        self.measured.values.extend(value.map(|value| (measure, value)));
    }

    /// The result of a call on some rows. Its time is recorded.
    fn timed<T>(&mut self, task: Task, n_rows: usize, mut call: impl FnMut() -> T) -> T {
        let start = thread_cpu_time();
        let answer = call();
        let mut seconds = (thread_cpu_time() - start).as_secs_f64();
        if seconds < self.floor.as_secs_f64() {
            let (start, mut calls) = (thread_cpu_time(), 0);
            while thread_cpu_time() - start < self.floor {
                call();
                calls += 1;
            }
            seconds = (thread_cpu_time() - start).as_secs_f64() / f64::from(calls);
        }
        self.set(Measure::Seconds(task), Some(seconds / n_rows as f64));
        answer
    }

    /// A compiled engine. If there is none, the reason is recorded.
    fn compiled<T>(&mut self, what: &str, engine: prsl::Result<T>) -> Option<T> {
        engine.map_err(|error| self.measured.refused.push(format!("no {what}: {error}"))).ok()
    }

    fn exact_marginals(&mut self) -> Option<Posteriors> {
        if self.measured.n_labels > EXACT_UP_TO {
            return None;
        }
        let engine = JunctionTree::compile_within(&self.case.model, LIMITS);
        let engine = self.compiled("exact marginals", engine)?;
        let rows = &self.case.rows;
        let n_rows = rows.n_rows();
        self.measured.n_exact_rows = n_rows;
        let exact =
            self.timed(Task::Marginals, n_rows, || engine.infer_batch(rows).expect("rows of the model"));
        self.measured.n_imprecise = (0..n_rows).filter(|&row| !is_precise(&exact, row)).count();
        Some(exact)
    }

    /// The most probable assignments, by branch and bound with proof or by the tree. If both have one, they must agree.
    fn exact_best(&mut self) -> Assignments {
        let found = self.branch_and_bound();
        let tree = self.tree();
        let model = &self.case.model;
        if !tree.is_empty() {
            let found: Assignments =
                found.iter().map(|best| best.as_ref().map(|best| best.assignment.clone())).collect();
            let share = share_matched(model, &self.case.rows, &tree, &found);
            self.set(Measure::Match(Method::BranchAndBound), share);
        }
        let mut best: Assignments = found
            .into_iter()
            .map(|best| best.filter(MostProbable::is_optimal).map(|best| best.assignment))
            .collect();
        best.iter_mut().zip(tree).for_each(|(best, tree)| *best = tree);
        self.measured.n_unproven = best.iter().filter(|best| best.is_none()).count();
        best
    }

    fn branch_and_bound(&mut self) -> Vec<Option<MostProbable>> {
        let case = self.case;
        let engine = BranchAndBound::compile_with(&case.model, SEARCH);
        let Some(engine) = self.compiled("branch and bound", engine) else {
            return vec![None; case.rows.n_rows()];
        };
        let best = self.timed(Task::BranchAndBound, case.rows.n_rows(), || {
            engine.best_batch(&case.rows).expect("rows of the model")
        });
        let proven =
            |best: &Option<MostProbable>| f64::from(best.as_ref().is_some_and(MostProbable::is_optimal));
        self.set(Measure::Proven, mean(&best.iter().map(proven).collect::<Vec<_>>()));
        best
    }

    /// The tree's assignments of the measured rows; `None` if the tree does not fit.
    fn tree(&mut self) -> Assignments {
        if self.measured.n_labels > EXACT_UP_TO {
            return Vec::new();
        }
        let engine = MaxProductTree::compile_within(&self.case.model, LIMITS);
        let Some(engine) = self.compiled("max-product tree", engine) else { return Vec::new() };
        let most = if engine.cost().multiply_adds > SLOW_TREE.0 { SLOW_TREE.1 } else { usize::MAX };
        let rows = self.case.rows.slice(0..self.case.rows.n_rows().min(most));
        let best =
            self.timed(Task::Tree, rows.n_rows(), || engine.best_batch(&rows).expect("rows of the model"));
        best.into_iter().map(|best| best.map(|best| best.assignment)).collect()
    }

    fn loopy(&mut self, setting: Setting, exact: Option<&Posteriors>, best: &Assignments) {
        let case = self.case;
        let settings = settings(setting);
        let engine =
            Loopy::compile_with(&case.model, settings).expect("noisy-ors are never too large for loopy");
        let n_rows = case.rows.n_rows();
        let marginals = self.timed(Task::LoopyMarginals(setting), n_rows, || {
            engine.infer_batch(&case.rows).expect("rows of the model")
        });
        let converged = |row| f64::from(marginals.stopped(row).is_final());
        self.set(Measure::Converged(setting), mean(&(0..n_rows).map(converged).collect::<Vec<_>>()));
        if let Some(exact) = exact {
            self.compare(setting, exact, &marginals);
        }
        let decoded = self.timed(Task::LoopyBest(setting), n_rows, || {
            engine.decode_batch(&case.rows).expect("rows of the model")
        });
        let guessed = decoded
            .into_iter()
            .map(|decoded| decoded.and_then(|decoded| decoded.best).map(|best| best.assignment))
            .collect();
        self.matched(Method::Loopy(setting), best, &guessed);
        if setting == Setting::Authors {
            self.matched(Method::AuthorsTies, best, &with_ties(case, guessed));
            self.matched(Method::Marginals, best, &best_categories(&case.model, &marginals));
        }
    }

    fn compare(&mut self, setting: Setting, exact: &Posteriors, loopy: &Posteriors) {
        let rows = (0..exact.n_rows()).filter(|&row| is_precise(exact, row));
        let pairs: Vec<(f64, f64)> = rows
            .filter_map(|row| Some((exact.marginals(row)?, loopy.marginals(row)?)))
            .flat_map(|(exact, loopy)| exact.iter().copied().zip(loopy.iter().copied()))
            .collect();
        let errors: Vec<f64> = pairs.iter().map(|(exact, loopy)| (exact - loopy).abs()).collect();
        self.set(Measure::Correlation(setting), correlation(&pairs));
        self.set(Measure::MeanError(setting), mean(&errors));
        self.set(Measure::WorstError(setting), errors.into_iter().reduce(f64::max));
    }

    fn matched(&mut self, method: Method, best: &Assignments, guessed: &Assignments) {
        let share = share_matched(&self.case.model, &self.case.rows, best, guessed);
        self.set(Measure::Match(method), share);
    }

    /// The authors' side experiment: how often exact marginals and loopy max-product find the most probable
    /// assignment of other rows.
    fn side_experiment(&mut self) {
        let (model, Some(side)) = (&self.case.model, &self.case.side) else { return };
        let Ok(tree) = MaxProductTree::compile_within(model, LIMITS) else { return };
        let Ok(exact) = JunctionTree::compile_within(model, LIMITS) else { return };
        let Ok(loopy) = Loopy::compile_with(model, LoopySettings::authors()) else { return };
        let best: Assignments = tree
            .best_batch(&side.rows)
            .expect("rows of the model")
            .into_iter()
            .map(|best| best.map(|best| best.assignment))
            .collect();
        let by_marginals = best_categories(model, &exact.infer_batch(&side.rows).expect("rows of the model"));
        let by_loopy: Assignments = loopy
            .decode_batch(&side.rows)
            .expect("rows of the model")
            .into_iter()
            .map(|decoded| decoded.and_then(|decoded| decoded.best).map(|best| best.assignment))
            .collect();
        self.set(Measure::Side(false), share_matched(model, &side.rows, &best, &by_marginals));
        self.set(Measure::Side(true), share_matched(model, &side.rows, &best, &by_loopy));
        self.set(Measure::SideStored(false), Some(side.by_exact_marginals));
        self.set(Measure::SideStored(true), Some(side.by_loopy));
    }
}

fn settings(setting: Setting) -> LoopySettings {
    match setting {
        Setting::Authors => LoopySettings::authors(),
        Setting::Default => LoopySettings::default(),
    }
}

fn is_precise(exact: &Posteriors, row: usize) -> bool {
    !matches!(exact.stopped(row), Stopped::Imprecise { error } if error > IMPRECISE)
}

/// The share of rows in which a guess is as probable as the best assignment, among rows whose best assignment is known.
fn share_matched(
    model: &Model,
    rows: &BeliefMatrix,
    best: &Assignments,
    guessed: &Assignments,
) -> Option<f64> {
    let weight = |row: usize, assignment: &Assignment| model.log_weight(&rows.row(row), assignment);
    let is_match = |(row, (best, guess)): (usize, (&Option<Assignment>, &Option<Assignment>))| {
        let best = weight(row, best.as_ref()?);
        let guess = guess.as_ref().map_or(f64::NEG_INFINITY, |guess| weight(row, guess));
        Some(f64::from(guess >= best - TIE * best.abs().max(1.0)))
    };
    mean(&best.iter().zip(guessed).enumerate().filter_map(is_match).collect::<Vec<_>>())
}

fn with_ties(case: &Case, mut guessed: Assignments) -> Assignments {
    for (row, stored) in &case.ties {
        guessed[*row] = Some(Assignment::from_indices(&stored[..]));
    }
    guessed
}

/// The best category of each label's marginal, in every row.
fn best_categories(model: &Model, posteriors: &Posteriors) -> Assignments {
    let best = |marginal: &[f64]| {
        (0..marginal.len()).max_by(|&a, &b| marginal[a].total_cmp(&marginal[b]).then(b.cmp(&a))).unwrap_or(0)
    };
    let row = |row| {
        let marginals: &[f64] = posteriors.marginals(row)?;
        Some(model.label_ids().map(|label| CategoryId::new(best(&marginals[model.block(label)]))).collect())
    };
    (0..posteriors.n_rows()).map(row).collect()
}
