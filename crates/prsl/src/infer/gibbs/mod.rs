//! Gibbs sampling, for models whose junction tree exceeds the memory limit.

mod chain;
mod start;

use std::fmt;
use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::assignment::Assignment;
use crate::belief::{BeliefMatrix, Instance, check_same_labels};
use crate::error::{Error, Result};
use crate::infer::factor::{Factor, Factors, Shape, States};
use crate::infer::samples::{Samples, Sampling};
use crate::infer::typical::Typical;
use crate::label::LabelId;
use crate::logic::{Possible, STEPS_PER_QUESTION, named};
use crate::model::Model;
use crate::outcome::Outcome;
use crate::rule::RuleId;

use chain::Chain;

/// Settings of Gibbs sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GibbsSettings {
    /// Number of sweeps before the first sample of a chain.
    pub burn_in: usize,
    /// Number of sweeps between two samples of a chain, at least 1.
    pub thin: usize,
    /// Number of chains with separate starts, at least 1. Samples are taken from them in turn.
    pub chains: usize,
    /// Maximum number of combinations of categories in a block. Labels that strong rules connect are also drawn
    /// jointly in blocks. Below 4 there are no blocks.
    pub block: usize,
}

impl Default for GibbsSettings {
    fn default() -> Self {
        Self { burn_in: 100, thin: 4, chains: 4, block: 32 }
    }
}

/// Approximate joint samples. Each label is drawn in turn, given all others.
///
/// A sweep draws every label once, then blocks of labels that nearly hard rules connect. Blocks are necessary: if
/// `a <-> b` is hard, neither label can change alone. Drawing a label evaluates only the rules about it, so treewidth
/// does not matter.
///
/// # Limitations
///
/// Samples of one chain are correlated, and the first samples depend on its start. Hard rules can split the possible
/// assignments into regions that single labels and blocks do not connect. A chain then never leaves the region of its
/// start, and the share of samples per region has no meaning. An example is the chain of rules `a <-> b`, `b <-> c`,
/// and so on over ten labels. Several chains with different starts reveal such regions, but not their weights.
///
/// A typical combination of large weight is such a region too. So every second chain starts at a combination, and
/// chains move directly between combinations.
///
/// [`JunctionTree`](crate::JunctionTree) has none of these limitations. Use it if it fits the memory.
///
/// ```
/// use prsl::infer::{Gibbs, GibbsSettings, Sampling};
/// use prsl::{Evidence, Model};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 1: wet <- rain")?;
/// let gibbs = Gibbs::compile(&model, GibbsSettings::default());
/// let evidence = Evidence::new().belief("weather", [0.1, 0.9]);
/// let samples = gibbs.sample(&evidence, &Sampling { n_samples: 1000, ..Sampling::default() })?;
/// let weather = model.find_label("weather")?;
/// let rain = samples.iter().filter(|sample| sample.category(weather).index() == 1).count();
/// assert!((720..910).contains(&rain)); // the expected share is 0.45 / 0.55
/// # Ok::<(), prsl::Error>(())
/// ```
pub struct Gibbs {
    model: Model,
    states: Arc<States>,
    settings: GibbsSettings,
    rules: Vec<Constraint>,
    typical: Typical,
    /// For each label, the rules about it and its position in each.
    of_label: Vec<Vec<(usize, usize)>>,
    /// Strong rules, for which labels are drawn jointly; below, the strong rules of each label.
    strong: Vec<usize>,
    strong_of_label: Vec<Vec<usize>>,
}

/// A rule in the form that chains use.
struct Constraint {
    rule: RuleId,
    scope: Vec<usize>,
    /// For a rank-one rule, q of each state of each label in its scope.
    q: Option<Vec<Vec<f64>>>,
    /// The rule's weights when it is silent and when it has fired.
    weights: [f64; 2],
}

/// Weight below which a rule is strong. A chain that changes single labels rarely passes a state of so small a
/// weight.
const STRONG: f64 = 0.05;
/// Number of local searches for a start before the SAT solver is used.
const SEARCHES: usize = 3;

impl fmt::Debug for Gibbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gibbs").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Gibbs {
    /// Compiles a model of any size.
    pub fn compile(model: &Model, settings: GibbsSettings) -> Self {
        Self::new(model, &Factors::new(model), settings)
    }

    /// Compiles a model from the factors of its rules.
    pub(crate) fn new(model: &Model, factors: &Factors, settings: GibbsSettings) -> Self {
        // Combinations distinguish all categories, so categories are not merged.
        let of_categories =
            (!model.typical().is_empty()).then(|| Factors::with_states(model, States::of_categories(model)));
        let factors = of_categories.as_ref().unwrap_or(factors);
        let rules: Vec<Constraint> =
            factors.list.iter().map(|factor| Constraint::new(factor, &factors.scope(factor))).collect();
        let mut gibbs = Self {
            model: model.clone(),
            states: Arc::clone(&factors.states),
            settings,
            rules,
            typical: Typical::new(model),
            of_label: vec![Vec::new(); model.labels().len()],
            strong: Vec::new(),
            strong_of_label: vec![Vec::new(); model.labels().len()],
        };
        for (index, rule) in gibbs.rules.iter().enumerate() {
            let strong = rule.scope.len() > 1 && rule.weights.iter().any(|&weight| weight < STRONG);
            gibbs.strong.extend(strong.then_some(index));
            for (place, &label) in rule.scope.iter().enumerate() {
                gibbs.of_label[label].push((index, place));
                gibbs.strong_of_label[label].extend(strong.then_some(index));
            }
        }
        gibbs
    }

    /// The model that it was compiled from.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Samples for one instance. Impossible instances are errors, and so are instances without a first assignment.
    pub fn sample(&self, instance: &impl Instance, sampling: &Sampling) -> Result<Samples> {
        self.draw(&instance.values(&self.model)?, sampling.n_samples, sampling.generator(0))
    }

    /// Samples for every row, `None` if the row is impossible. A row's samples are those that [`Self::sample`] gives
    /// it at its position in the table.
    pub fn sample_batch(
        &self,
        rows: &BeliefMatrix,
        sampling: &Sampling,
    ) -> Result<Vec<Result<Option<Samples>>>> {
        check_same_labels(rows.model(), &self.model)?;
        let sample =
            |row: usize| match self.draw(rows.values_of(row), sampling.n_samples, sampling.generator(row)) {
                Ok(samples) => Ok(Some(samples)),
                Err(Error::Impossible { .. }) => Ok(None),
                Err(error) => Err(error),
            };
        Ok((0..rows.n_rows()).into_par_iter().map(sample).collect())
    }

    fn draw(&self, row: &[f64], n: usize, mut rng: ChaCha8Rng) -> Result<Samples> {
        let (beliefs, combinations) = (self.beliefs(row), self.typical.weights(row));
        let mut chains: Vec<Chain<'_>> = Vec::new();
        for place in 0..self.settings.chains.clamp(1, n.max(1)) {
            let mut chain = Chain::new(self, &beliefs, &combinations, ChaCha8Rng::from_rng(&mut rng));
            match chains.first() {
                None => self.start(&mut chain, row)?,
                Some(_) if place % 2 == 1 && chain.move_to_combination() => {}
                Some(first) if !chain.search(false) => chain.move_to(first.start.clone()),
                Some(_) => {}
            }
            debug_assert!(chain.broken().is_empty(), "a chain starts with something possible");
            chain.start = chain.states.clone();
            (0..self.settings.burn_in).for_each(|_| chain.sweep());
            chains.push(chain);
        }
        let n_chains = chains.len();
        Ok((0..n).map(|sample| Assignment::from_indices(chains[sample % n_chains].next(row))).collect())
    }

    /// Moves the first chain to a possible assignment, found by local search or else by the SAT solver.
    fn start(&self, chain: &mut Chain<'_>, row: &[f64]) -> Result<()> {
        if (0..SEARCHES).any(|search| chain.search(search == 0)) {
            return Ok(());
        }
        match Possible::of(&self.model, row) {
            Possible::Yes(assignment) => {
                let state = |(label, &category): (usize, &usize)| self.states.of_category[label][category];
                chain.move_to(assignment.iter().enumerate().map(state).collect());
            }
            Possible::No(rules) => return Err(named(&self.model, rules)),
            Possible::Unknown => {}
        }
        if chain.broken().is_empty() { Ok(()) } else { Err(Error::NoStart { steps: STEPS_PER_QUESTION }) }
    }

    /// The belief in each state of each label.
    fn beliefs(&self, row: &[f64]) -> Vec<Vec<f64>> {
        let label = |label: LabelId| {
            let mut beliefs = vec![0.0; self.n_states(label.index())];
            for (&belief, &state) in
                row[self.model.block(label)].iter().zip(&self.states.of_category[label.index()])
            {
                beliefs[state] += belief;
            }
            beliefs
        };
        self.model.label_ids().map(label).collect()
    }

    fn n_states(&self, label: usize) -> usize {
        self.states.representatives[label].len()
    }
}

impl Constraint {
    fn new(factor: &Factor, scope: &[LabelId]) -> Self {
        let q = match &factor.shape {
            Shape::RankOne(q) => Some(q.iter().map(|(_, q)| q.clone()).collect()),
            Shape::Logical(_) => None,
        };
        let scope = scope.iter().map(|label| label.index()).collect();
        Self { rule: factor.rule, scope, q, weights: factor.weights }
    }

    /// ln φ of an outcome. It is −∞ only if the rule excludes the outcome.
    fn log_weight(&self, outcome: Outcome) -> f64 {
        outcome.log_weight(self.weights)
    }
}
