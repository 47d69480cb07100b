//! Answers of inference.

use std::fmt;

use crate::assignment::Assignment;
use crate::error::{Error, Result};
use crate::label::LabelId;
use crate::logic::impossible;
use crate::model::Model;

/// The engine that gave an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// The sum over all assignments.
    Enumeration,
    /// Exact inference on a junction tree.
    JunctionTree,
    /// Exact inference by a circuit.
    Circuit,
    /// Approximate inference by loopy belief propagation.
    Loopy,
    /// A search for most probable assignments, with a proof of optimality.
    BranchAndBound,
    /// Gibbs sampling: one label at a time, given all others.
    Gibbs,
}

impl Engine {
    /// The name in tables, such as `junction_tree`.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Enumeration => "enumeration",
            Engine::JunctionTree => "junction_tree",
            Engine::Circuit => "circuit",
            Engine::Loopy => "loopy",
            Engine::BranchAndBound => "branch_and_bound",
            Engine::Gibbs => "gibbs",
        }
    }
}

/// How inference ended.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Stopped {
    /// The answer is exact up to rounding.
    Exact,
    /// Exact inference that lost digits to rounding. Repeating it without this loss would exceed the limits.
    Imprecise {
        /// The largest relative difference between sums that should be equal.
        error: f64,
    },
    /// Messages converged.
    Converged {
        /// Number of sweeps. Every rule sends its messages once per sweep.
        sweeps: usize,
        /// The largest change of a marginal in the last sweep.
        residual: f64,
    },
    /// Messages still changed when the sweep limit was reached.
    NotConverged {
        /// Number of sweeps. Every rule sends its messages once per sweep.
        sweeps: usize,
        /// The largest change of a marginal in the last sweep.
        residual: f64,
    },
}

impl Stopped {
    /// Whether inference finished, instead of stopping at a limit or losing digits.
    pub fn is_final(self) -> bool {
        !matches!(self, Stopped::NotConverged { .. } | Stopped::Imprecise { .. })
    }

    /// The largest change of a marginal in the last sweep; 0 if the answer is exact.
    pub fn residual(self) -> f64 {
        match self {
            Stopped::Exact | Stopped::Imprecise { .. } => 0.0,
            Stopped::Converged { residual, .. } | Stopped::NotConverged { residual, .. } => residual,
        }
    }

    /// Number of sweeps; 0 if the answer is exact.
    pub fn sweeps(self) -> usize {
        match self {
            Stopped::Exact | Stopped::Imprecise { .. } => 0,
            Stopped::Converged { sweeps, .. } | Stopped::NotConverged { sweeps, .. } => sweeps,
        }
    }
}

/// The status of a row's answer, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Status {
    /// The answer is complete.
    Ok,
    /// The assignment is not proven to be the most probable one.
    NotProven,
    /// The assignment is not proven, because the time limit ended the search. Another run may find another one.
    TimeLimit,
    /// Loopy propagation did not converge.
    NotConverged,
    /// The answer has lost digits to rounding.
    Imprecise,
    /// The search found no possible assignment, and no proof that none exists.
    NotFound,
    /// Rules and evidence exclude every assignment.
    Impossible,
}

impl Status {
    /// All statuses, worst last.
    pub const ALL: [Status; 7] = [
        Status::Ok,
        Status::NotProven,
        Status::TimeLimit,
        Status::NotConverged,
        Status::Imprecise,
        Status::NotFound,
        Status::Impossible,
    ];

    /// The name in tables, such as `not_proven`.
    pub fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::NotProven => "not_proven",
            Status::TimeLimit => "time_limit",
            Status::NotConverged => "not_converged",
            Status::Imprecise => "imprecise",
            Status::NotFound => "not_found",
            Status::Impossible => "impossible",
        }
    }
}

/// The posterior distribution of every label for one instance.
///
/// ```
/// use prsl::{Evidence, Model};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let posterior = model.infer(&Evidence::new().belief("weather", [0.1, 0.9]).belief("ground", [0.7, 0.3]))?;
/// let weather = model.find_label("weather")?;
/// assert!((posterior.marginal(weather)[1] - 0.752).abs() < 5e-4);
/// assert_eq!(posterior.to_string(), "\
/// weather  sun 0.248  rain 0.752
/// ground   dry 0.256  wet 0.744
/// ");
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Posterior {
    pub(crate) model: Model,
    pub(crate) marginals: Vec<f64>,
    pub(crate) log_evidence: f64,
    pub(crate) engine: Engine,
    pub(crate) stopped: Stopped,
}

impl Posterior {
    /// P(label = category | rules, evidence) for every category of a label.
    pub fn marginal(&self, label: LabelId) -> &[f64] {
        &self.marginals[self.model.block(label)]
    }

    /// All marginals in one slice, in the model's order.
    pub fn marginals(&self) -> &[f64] {
        &self.marginals
    }

    /// ln Z: the log probability that all rules hold, given the beliefs. Typical combinations of weight w count 1 + w
    /// times. Loopy propagation returns the Bethe approximation, which may be too small or too large.
    pub fn log_evidence(&self) -> f64 {
        self.log_evidence
    }

    /// The engine that gave the answer.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// How inference ended.
    pub fn stopped(&self) -> Stopped {
        self.stopped
    }
}

impl fmt::Display for Posterior {
    /// One line per label: its categories with their probabilities.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use unicode_width::UnicodeWidthStr;
        let widest = self.model.labels().iter().map(|label| label.name().width()).max().unwrap_or(0);
        for (id, label) in self.model.label_ids().zip(self.model.labels()) {
            write!(f, "{}{}", label.name(), " ".repeat(widest - label.name().width()))?;
            for (category, probability) in label.categories().iter().zip(self.marginal(id)) {
                write!(f, "  {category} {probability:.3}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// The posteriors of many rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Posteriors {
    pub(crate) model: Model,
    pub(crate) marginals: Vec<f64>,
    pub(crate) log_evidence: Vec<f64>,
    pub(crate) engine: Engine,
    /// How inference ended for each row; empty if all rows are exact.
    pub(crate) stopped: Vec<Stopped>,
}

impl Posteriors {
    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.log_evidence.len()
    }

    /// Whether rules and evidence allow any assignment of the row.
    pub fn is_possible(&self, row: usize) -> bool {
        self.log_evidence[row] > f64::NEG_INFINITY
    }

    /// The marginals of a row, one number per category in the model's order; `None` if the row is impossible.
    pub fn marginals(&self, row: usize) -> Option<&[f64]> {
        let width = self.model.n_categories();
        self.is_possible(row).then(|| &self.marginals[row * width..(row + 1) * width])
    }

    /// ln Z of a row; −∞ if it is impossible.
    pub fn log_evidence(&self, row: usize) -> f64 {
        self.log_evidence[row]
    }

    /// The engine that gave the answers.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// How inference ended for a row.
    pub fn stopped(&self, row: usize) -> Stopped {
        self.stopped.get(row).copied().unwrap_or(Stopped::Exact)
    }

    /// The status of a row.
    pub fn status(&self, row: usize) -> Status {
        match self.stopped(row) {
            _ if !self.is_possible(row) => Status::Impossible,
            Stopped::Imprecise { .. } => Status::Imprecise,
            Stopped::NotConverged { .. } => Status::NotConverged,
            _ => Status::Ok,
        }
    }
}

/// A complete assignment found by an engine, with its weight.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MostProbable {
    /// The category of every label.
    pub assignment: Assignment,
    /// ln of the product of its beliefs and rule weights, and of the factor of typical combinations.
    pub log_weight: f64,
    /// Upper bound on how much the `log_weight` of any other assignment is larger. It is 0 if the assignment is
    /// proven optimal, and `None` if there is no bound. For the n best assignments, those listed earlier are
    /// excepted.
    pub gap: Option<f64>,
    /// The engine that found it.
    pub engine: Engine,
}

impl MostProbable {
    /// An assignment that is proven to be the best, or the best after those listed before it.
    pub(crate) fn proven(assignment: Vec<usize>, log_weight: f64, engine: Engine) -> Self {
        let assignment = Assignment::from_indices(assignment);
        Self { assignment, log_weight, gap: Some(0.0), engine }
    }

    /// Whether it is proven that no other assignment is more probable.
    pub fn is_optimal(&self) -> bool {
        self.gap == Some(0.0)
    }
}

/// How the search for the assignments of a row ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SearchEnd {
    /// The search explored everything.
    Complete,
    /// The work limit was reached. Work is counted, so the same model and row stop here on every machine.
    WorkLimit,
    /// The time limit was reached. Another run may stop elsewhere.
    TimeLimit,
    /// The engine does not search. Loopy propagation proposes an assignment without proof.
    Proposed,
}

/// The most probable assignments of one row, best first, and how the search for them ended.
///
/// All of them are possible: none has weight 0. It dereferences to a slice of [`MostProbable`].
///
/// ```
/// use prsl::infer::SearchEnd;
/// use prsl::{BranchAndBound, Evidence, Model, Status};
///
/// let model = Model::parse("label a\nlabel b\nrule 1: a -> b")?;
/// let evidence = Evidence::new().belief("a", [0.8, 0.2]).belief("b", [0.3, 0.7]);
/// let found = BranchAndBound::compile(&model)?.top(&evidence, 5)?;
/// assert_eq!(found.len(), 3); // only three are possible
/// assert_eq!((found.end(), found.status(0)), (SearchEnd::Complete, Status::Ok));
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RankedAssignments {
    list: Vec<MostProbable>,
    end: SearchEnd,
}

impl RankedAssignments {
    /// Removes assignments of weight 0.
    pub(crate) fn new(mut list: Vec<MostProbable>, end: SearchEnd) -> Self {
        list.retain(|best| best.log_weight > f64::NEG_INFINITY);
        Self { list, end }
    }

    /// A complete list: all possible assignments, or the requested number.
    pub(crate) fn complete(list: Vec<MostProbable>) -> Self {
        Self::new(list, SearchEnd::Complete)
    }

    /// How the search ended.
    pub fn end(&self) -> SearchEnd {
        self.end
    }

    /// The status of the assignment at a rank, counted from 0. If the list is shorter, the reason why.
    pub fn status(&self, rank: usize) -> Status {
        match (self.list.get(rank), self.end) {
            (Some(best), _) if best.is_optimal() => Status::Ok,
            (Some(_), SearchEnd::TimeLimit) => Status::TimeLimit,
            (Some(_), _) => Status::NotProven,
            (None, SearchEnd::Complete) => Status::Impossible,
            (None, _) => Status::NotFound,
        }
    }

    /// The best assignment, or an error with the reason why there is none.
    pub(crate) fn best_or_error(self, model: &Model, row: &[f64]) -> Result<MostProbable> {
        let end = self.end;
        self.into_best().ok_or_else(|| match end {
            SearchEnd::Complete => impossible(model, row),
            _ => Error::NoAssignment,
        })
    }

    /// The best assignment, if there is any.
    pub fn into_best(self) -> Option<MostProbable> {
        self.list.into_iter().next()
    }
}

impl std::ops::Deref for RankedAssignments {
    type Target = [MostProbable];

    fn deref(&self) -> &[MostProbable] {
        &self.list
    }
}

impl<'a> IntoIterator for &'a RankedAssignments {
    type Item = &'a MostProbable;
    type IntoIter = std::slice::Iter<'a, MostProbable>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl IntoIterator for RankedAssignments {
    type Item = MostProbable;
    type IntoIter = std::vec::IntoIter<MostProbable>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}
