//! Figures about a model and its answers, as SVG.

use anyhow::Result;
use prsl::learn::Addition;
use prsl::learn::paper::Evaluation as StepEvaluation;
use prsl::metrics::{Average, Evaluation, Reliability, RuleEffects};
use prsl::{BeliefMatrix, Limits, Model, RuleId, Truth};
use prsl_plot::{Bar, BarChart, LearningCurve, ReliabilityDiagram, RuleGraph, Series};

/// Maximum number of rows for the influence of rules. Each row takes a run of inference per four rules.
pub const INFLUENCE_ROWS: usize = 1000;
/// Number of bins of reliability diagrams.
const RELIABILITY_BINS: usize = 15;

/// The graph of rules and labels.
pub fn graph(model: &Model) -> String {
    RuleGraph { title: "Labels and rules".to_owned(), model }.to_svg()
}

/// The reliability of predictions, for [`reliability_diagram`].
pub fn reliability(evaluation: &Evaluation) -> Reliability {
    evaluation.reliability(RELIABILITY_BINS)
}

/// The reliability diagram of several predictions with their names.
pub fn reliability_diagram(series: Vec<(&str, Reliability)>) -> String {
    let series = series.into_iter().map(|(name, reliability)| (name.to_owned(), reliability)).collect();
    ReliabilityDiagram { title: "Reliability of the probabilities".to_owned(), series }.to_svg()
}

/// The log-likelihood of the training set after each addition of rules.
pub fn additions(base_alone: f64, path: &[Addition]) -> String {
    let mut n_rules = 0;
    let after = path.iter().map(|addition| {
        n_rules += addition.rules.len();
        (n_rules as f64, addition.log_likelihood)
    });
    LearningCurve {
        title: "Learning".to_owned(),
        x_label: "learned rules".to_owned(),
        y_label: "mean joint log-likelihood".to_owned(),
        series: vec![Series {
            name: "training rows".to_owned(),
            points: [(0.0, base_alone)].into_iter().chain(after).collect(),
        }],
        best: None,
    }
    .to_svg()
}

/// The log-likelihood at each evaluation of the paper's recipe.
pub fn steps(curve: &[StepEvaluation]) -> String {
    let training = curve.iter().filter_map(|at| Some((at.step as f64, at.training?)));
    let validation = curve.iter().map(|at| (at.step as f64, at.validation));
    let best = curve.iter().max_by(|a, b| a.validation.total_cmp(&b.validation).then(b.step.cmp(&a.step)));
    LearningCurve {
        title: "Learning".to_owned(),
        x_label: "step".to_owned(),
        y_label: "mean joint log-likelihood".to_owned(),
        series: vec![
            Series { name: "training rows".to_owned(), points: training.collect() },
            Series { name: "validation rows".to_owned(), points: validation.collect() },
        ],
        best: best.map(|at| at.step as f64),
    }
    .to_svg()
}

/// The mean effect of each rule over the rows so far.
pub struct Effects {
    effects: RuleEffects,
    n_rows: usize,
    influences: Vec<Average>,
    gains: Vec<Average>,
}

impl Effects {
    /// No rows yet.
    pub fn compile(model: &Model, limits: Limits) -> prsl::Result<Effects> {
        let none = vec![Average::default(); model.rules().len()];
        let effects = RuleEffects::compile(model, limits)?;
        Ok(Effects { effects, n_rows: 0, influences: none.clone(), gains: none })
    }

    /// Adds rows to the influence; rows beyond the first [`INFLUENCE_ROWS`] are ignored.
    pub fn add_influences(&mut self, rows: &BeliefMatrix) -> Result<()> {
        let wanted = rows.n_rows().min(INFLUENCE_ROWS.saturating_sub(self.n_rows));
        self.n_rows += wanted;
        merge(&mut self.influences, self.effects.influences(&rows.slice(0..wanted))?);
        Ok(())
    }

    /// Adds rows to the gain.
    pub fn add_gains(&mut self, rows: &BeliefMatrix, truths: &[Truth]) -> Result<()> {
        merge(&mut self.gains, self.effects.gains(rows, truths)?);
        Ok(())
    }

    /// The chart of the influence of each rule.
    pub fn influence(&self) -> String {
        let title = "Influence of each rule";
        self.chart(
            title,
            "largest change of a probability against the answer without the rule, mean",
            &self.influences,
        )
    }

    /// The chart of the gain of each rule.
    pub fn weights(&self) -> String {
        let title = "What each rule gains";
        self.chart(title, "joint log-likelihood with the rule minus without it, mean", &self.gains)
    }

    fn chart(&self, title: &str, x_label: &str, averages: &[Average]) -> String {
        let model = self.effects.model();
        let bar = |(rule, average): (RuleId, &Average)| {
            let name = model.rule(rule).name().map_or(String::new(), |name| format!("{name}: "));
            Bar {
                name: format!("{}. {name}{}", rule.index() + 1, model.rule_sentence(rule)),
                value: average.mean(),
            }
        };
        let bars = model.rule_ids().zip(averages).map(bar).collect();
        BarChart { title: title.to_owned(), x_label: x_label.to_owned(), bars }.to_svg()
    }
}

fn merge(averages: &mut [Average], more: Vec<Average>) {
    for (average, more) in averages.iter_mut().zip(more) {
        average.merge(more);
    }
}
