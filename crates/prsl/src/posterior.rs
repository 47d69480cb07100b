//! What inference answers.

use std::fmt;

use crate::label::LabelId;
use crate::model::Model;
use crate::rule::RuleId;

/// Which engine gave an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// Sum over all assignments.
    Enumeration,
    /// Exact propagation along a tree of small tables.
    JunctionTree,
    /// Approximate propagation along the rules themselves.
    Loopy,
    /// A search for the most probable explanation that proves what it finds.
    BranchAndBound,
    /// Samples of one label at a time, given all others.
    Gibbs,
}

impl Engine {
    /// The name in tables: `junction_tree`.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Enumeration => "enumeration",
            Engine::JunctionTree => "junction_tree",
            Engine::Loopy => "loopy",
            Engine::BranchAndBound => "branch_and_bound",
            Engine::Gibbs => "gibbs",
        }
    }
}

/// How inference came to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Stopped {
    /// The answer is exact up to rounding.
    Exact,
    /// Exact but for digits lost to rounding, and too large to be done again without that loss.
    Imprecise {
        /// The largest relative difference between sums that should be equal.
        error: f64,
    },
    /// Messages came to rest.
    Converged {
        /// How often every rule spoke.
        sweeps: usize,
        /// The largest change of a marginal in the last sweep.
        residual: f64,
    },
    /// Messages still changed when the limit was reached.
    NotConverged {
        /// How often every rule spoke.
        sweeps: usize,
        /// The largest change of a marginal in the last sweep.
        residual: f64,
    },
}

impl Stopped {
    /// Whether the answer is what the engine aims at, rather than what it had when its limit was reached.
    pub fn is_final(self) -> bool {
        !matches!(self, Stopped::NotConverged { .. } | Stopped::Imprecise { .. })
    }

    /// The largest change of a marginal in the last sweep, 0 if the answer is exact.
    pub fn residual(self) -> f64 {
        match self {
            Stopped::Exact | Stopped::Imprecise { .. } => 0.0,
            Stopped::Converged { residual, .. } | Stopped::NotConverged { residual, .. } => residual,
        }
    }

    /// How often every rule spoke, 0 if the answer is exact.
    pub fn sweeps(self) -> usize {
        match self {
            Stopped::Exact | Stopped::Imprecise { .. } => 0,
            Stopped::Converged { sweeps, .. } | Stopped::NotConverged { sweeps, .. } => sweeps,
        }
    }
}

/// How a row came out, worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// What was asked for.
    Ok,
    /// Perhaps not the most probable explanation.
    NotProven,
    /// Perhaps not the most probable explanation, since the time limit ended the search: another run may find another.
    TimeLimit,
    /// Loopy propagation had not come to rest.
    NotConverged,
    /// Digits are lost.
    Imprecise,
    /// No possible explanation was found, nor was it proven that there is none.
    NotFound,
    /// The hard rules exclude the row.
    Impossible,
}

impl Status {
    /// All of them, worst last.
    pub const ALL: [Status; 7] = [
        Status::Ok,
        Status::NotProven,
        Status::TimeLimit,
        Status::NotConverged,
        Status::Imprecise,
        Status::NotFound,
        Status::Impossible,
    ];

    /// The name in tables: `not_proven`.
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

/// The updated belief of every label for one instance.
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
    pub(crate) agreement: Vec<f64>,
    pub(crate) engine: Engine,
    pub(crate) stopped: Stopped,
}

impl Posterior {
    /// P(label = category | rules, evidence) for every category of a label.
    pub fn marginal(&self, label: LabelId) -> &[f64] {
        &self.marginals[self.model.block(label)]
    }

    /// All marginals one after the other, in the model's order.
    pub fn marginals(&self) -> &[f64] {
        &self.marginals
    }

    /// ln Z: how probable it is, given the beliefs, that all rules hold, typical combinations counted 1 + w times. From loopy propagation it is the Bethe value, which
    /// may be too small or too large.
    pub fn log_evidence(&self) -> f64 {
        self.log_evidence
    }

    /// P(rule holds | all other rules hold, evidence): small where everything else speaks against the rule. Typical
    /// combinations have no say in it.
    pub fn agreement(&self, rule: RuleId) -> f64 {
        self.agreement[rule.index()]
    }

    /// Which engine gave the answer.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// How it came to its end.
    pub fn stopped(&self) -> Stopped {
        self.stopped
    }
}

impl fmt::Display for Posterior {
    /// A line per label: its categories with their probabilities.
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
    /// How each row came to its end; empty if all are exact.
    pub(crate) stopped: Vec<Stopped>,
}

impl Posteriors {
    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.log_evidence.len()
    }

    /// Whether the row's evidence leaves any assignment possible; if not, its marginals mean nothing.
    pub fn is_possible(&self, row: usize) -> bool {
        self.log_evidence[row] > f64::NEG_INFINITY
    }

    /// The marginals of a row: a number per category, in the model's order; `None` if it is impossible.
    pub fn marginals(&self, row: usize) -> Option<&[f64]> {
        let width = self.model.n_categories();
        self.is_possible(row).then(|| &self.marginals[row * width..(row + 1) * width])
    }

    /// ln Z of a row, −∞ if it is impossible.
    pub fn log_evidence(&self, row: usize) -> f64 {
        self.log_evidence[row]
    }

    /// Which engine gave the answers.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// How a row came to its end.
    pub fn stopped(&self, row: usize) -> Stopped {
        self.stopped.get(row).copied().unwrap_or(Stopped::Exact)
    }

    /// How a row came out.
    pub fn status(&self, row: usize) -> Status {
        match self.stopped(row) {
            _ if !self.is_possible(row) => Status::Impossible,
            Stopped::Imprecise { .. } => Status::Imprecise,
            Stopped::NotConverged { .. } => Status::NotConverged,
            _ => Status::Ok,
        }
    }
}

/// A joint explanation: one category for every label, and how much weight it has.
#[derive(Clone, Debug, PartialEq)]
pub struct MostProbable {
    /// The category of every label, as positions in the labels' lists.
    pub assignment: Vec<usize>,
    /// ln of the product of its beliefs and rule weights, and of the factor of typical combinations.
    pub log_weight: f64,
    /// No other explanation has a `log_weight` larger by more than this: 0 if that was proven, `None` if nothing is
    /// known about it. Among the n best explanations, those listed before it aside.
    pub gap: Option<f64>,
    /// Which engine found it.
    pub engine: Engine,
}

impl MostProbable {
    /// An explanation that is proven to be the best (or the best after those listed before it).
    pub(crate) fn proven(assignment: Vec<usize>, log_weight: f64, engine: Engine) -> Self {
        Self { assignment, log_weight, gap: Some(0.0), engine }
    }

    /// Whether it is proven that no other explanation is more probable.
    pub fn is_optimal(&self) -> bool {
        self.gap == Some(0.0)
    }
}

/// How the search for the explanations of a row ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SearchEnd {
    /// Nothing was left to look at.
    Complete,
    /// The limit on counted work was reached. The same model and row end here on every machine.
    WorkLimit,
    /// The limit on time was reached. Another run may end elsewhere.
    TimeLimit,
    /// The engine does not search: loopy propagation proposes an explanation and proves nothing.
    Proposed,
}

/// The explanations of one row, best first, and how the search for them ended.
///
/// All of them are possible: none has the weight 0. It reads like a slice of [`MostProbable`].
///
/// ```
/// use prsl::{BranchAndBound, Evidence, Model, SearchEnd, Status};
///
/// let model = Model::parse("label a\nlabel b\nrule 1: a -> b")?;
/// let row = model.row(&Evidence::new().belief("a", [0.8, 0.2]).belief("b", [0.3, 0.7]))?;
/// let found = BranchAndBound::compile(&model)?.top(&row, 5);
/// assert_eq!(found.len(), 3); // no more are possible
/// assert_eq!((found.end(), found.status(0)), (SearchEnd::Complete, Status::Ok));
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RankedExplanations {
    list: Vec<MostProbable>,
    end: SearchEnd,
}

impl RankedExplanations {
    /// Leaves out what has the weight 0.
    pub(crate) fn new(mut list: Vec<MostProbable>, end: SearchEnd) -> Self {
        list.retain(|best| best.log_weight > f64::NEG_INFINITY);
        Self { list, end }
    }

    /// All that are possible, or as many as were asked for.
    pub(crate) fn complete(list: Vec<MostProbable>) -> Self {
        Self::new(list, SearchEnd::Complete)
    }

    /// How the search ended.
    pub fn end(&self) -> SearchEnd {
        self.end
    }

    /// How the explanation of a rank came out, counted from 0; of a rank without one, why there is none.
    pub fn status(&self, rank: usize) -> Status {
        match (self.list.get(rank), self.end) {
            (Some(best), _) if best.is_optimal() => Status::Ok,
            (Some(_), SearchEnd::TimeLimit) => Status::TimeLimit,
            (Some(_), _) => Status::NotProven,
            (None, SearchEnd::Complete) => Status::Impossible,
            (None, _) => Status::NotFound,
        }
    }

    /// The best one, if there is any.
    pub fn into_best(self) -> Option<MostProbable> {
        self.list.into_iter().next()
    }
}

impl std::ops::Deref for RankedExplanations {
    type Target = [MostProbable];

    fn deref(&self) -> &[MostProbable] {
        &self.list
    }
}

impl IntoIterator for RankedExplanations {
    type Item = MostProbable;
    type IntoIter = std::vec::IntoIter<MostProbable>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}
