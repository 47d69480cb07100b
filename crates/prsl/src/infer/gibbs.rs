//! Gibbs sampling, for models whose junction tree does not fit.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::factor::{Factor, Factors, Shape, States};
use super::outcome::Outcome;
use super::possible::Possible;
use super::sampler::{Samples, Sampling, draw, draw_category, exponentiate};
use super::semiring::SumProduct;
use super::typical::Typical;
use crate::belief::BeliefMatrix;
use crate::error::{Error, Result};
use crate::label::LabelId;
use crate::lint::logic::STEPS_PER_QUESTION;
use crate::model::Model;
use crate::rule::RuleId;

/// How a chain of samples is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GibbsSettings {
    /// Sweeps before the first sample of a chain.
    pub burn_in: usize,
    /// Sweeps from one sample of a chain to its next, at least 1.
    pub thin: usize,
    /// Chains with starts of their own, at least 1; the samples come from each of them in turn.
    pub chains: usize,
    /// Labels that strong rules tie together are also drawn jointly, as many as have this many combinations of
    /// categories; below 4 there are none.
    pub block: usize,
}

impl Default for GibbsSettings {
    fn default() -> Self {
        Self { burn_in: 100, thin: 4, chains: 4, block: 32 }
    }
}

/// Approximate joint samples: one label after the other is drawn anew, given all others.
///
/// A sweep draws every label once, then blocks of a few labels that rules near certainty tie together: where `a <-> b`
/// holds for sure, neither of the two can change alone. Drawing a label looks only at the rules that speak about
/// it, so that the number of labels and rules hardly matters, and neither does how they are tied together.
///
/// # What it cannot do
///
/// Samples of one chain depend on each other, and its first ones on where it started. Rules of probability 0 and 1 can
/// split what is possible into islands between which more labels would have to change at once than a block has: a
/// chain then never leaves the island of its start, and how many samples come from which island says nothing.
/// Several chains with different starts show that there are islands, not how much weight each has. A chain of
/// rules such as `a <-> b`, `b <-> c`, and so on over ten labels is one example. A typical combination of large weight
/// is an island too: every other chain starts from one, and among combinations chains move freely. [`JunctionTree`](crate::JunctionTree)
/// has none of these limits, and is to be preferred wherever it fits.
///
/// ```
/// use prsl::{Evidence, Gibbs, GibbsSettings, Model, Sampling};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 1: wet <- rain")?;
/// let gibbs = Gibbs::compile(&model, GibbsSettings::default());
/// let row = model.row(&Evidence::new().belief("weather", [0.1, 0.9]))?;
/// let samples = gibbs.sample_row(&row, &Sampling { n_samples: 1000, ..Sampling::default() })?;
/// let rain = samples.iter().filter(|sample| sample[0] == 1).count();
/// assert!((720..910).contains(&rain)); // 0.45 / 0.55 of them, give or take
/// # Ok::<(), prsl::Error>(())
/// ```
pub struct Gibbs {
    model: Model,
    states: States,
    settings: GibbsSettings,
    rules: Vec<Constraint>,
    typical: Typical,
    /// For each label the rules that speak about it, and its place in each.
    of_label: Vec<Vec<(usize, usize)>>,
    /// The rules that labels are drawn jointly for, and those of each label.
    strong: Vec<usize>,
    strong_of_label: Vec<Vec<usize>>,
}

/// A rule as a chain sees it.
struct Constraint {
    rule: RuleId,
    scope: Vec<usize>,
    /// For a rank-one rule q of each state of each label in its scope.
    q: Option<Vec<Vec<f64>>>,
    /// What it weighs by when it is silent and when it has fired.
    weights: [f64; 2],
}

/// A rule that weighs by less than this in one of its states is one that single labels may not get across.
const STRONG: f64 = 0.05;
/// A sweep has a block for this many labels.
const LABELS_PER_BLOCK: usize = 4;
/// How often a block tries to grow.
const GROWTHS: usize = 12;
/// How often a start is searched for before the SAT solver is asked, and how many changes a search may take per label.
const SEARCHES: usize = 3;
const CHANGES_PER_LABEL: usize = 20;
/// How often a search takes any change, and not the best.
const RESTLESS: f64 = 0.2;

impl Gibbs {
    /// Prepares a model of any size.
    pub fn compile(model: &Model, settings: GibbsSettings) -> Self {
        // Combinations tell all categories apart.
        let factors = match model.typical() {
            [] => Factors::new(model),
            _ => Factors::with_states(model, States::of_categories(model)),
        };
        let rules: Vec<Constraint> =
            factors.list.iter().map(|factor| Constraint::new(factor, &factors.scope(factor))).collect();
        let mut gibbs = Self {
            model: model.clone(),
            states: factors.states,
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

    /// The model it was compiled from.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Samples for a row of completed beliefs; an error if the row is impossible, or if that could not be found out.
    pub fn sample_row(&self, row: &[f64], sampling: &Sampling) -> Result<Samples> {
        self.sample(row, sampling.n_samples, sampling.generator(0))
    }

    /// The same for many rows: each has the samples that [`Self::sample_row`] would give it at its place.
    pub fn sample_batch(&self, rows: &BeliefMatrix, sampling: &Sampling) -> Vec<Result<Samples>> {
        let sample = |row: usize| self.sample(rows.row(row), sampling.n_samples, sampling.generator(row));
        (0..rows.n_rows()).into_par_iter().map(sample).collect()
    }

    fn sample(&self, row: &[f64], n: usize, mut rng: ChaCha8Rng) -> Result<Samples> {
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
        Ok((0..n).map(|sample| chains[sample % n_chains].next(row)).collect())
    }

    /// Brings the first chain to a possible assignment, by local search from the largest beliefs or else by proof.
    fn start(&self, chain: &mut Chain<'_>, row: &[f64]) -> Result<()> {
        if (0..SEARCHES).any(|search| chain.search(search == 0)) {
            return Ok(());
        }
        match Possible::of(&self.model, row) {
            Possible::Yes(assignment) => {
                let state = |(label, &category): (usize, &usize)| self.states.of_category[label][category];
                chain.move_to(assignment.iter().enumerate().map(state).collect());
            }
            Possible::No(rules) => {
                let rules = rules.into_iter().map(|rule| self.model.rule_name(rule)).collect();
                return Err(Error::Impossible { rules });
            }
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

    /// ln φ of an outcome, −∞ only where the rule excludes it.
    fn log_weight(&self, outcome: Outcome) -> f64 {
        outcome.log_weight(self.weights)
    }
}

/// What the labels of a rank-one rule come to: ∏ q as a sum of logarithms, with the ends counted apart, so that
/// certain stays certain and impossible impossible whatever rounding says.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    n_zero: usize,
    n_between: usize,
    log_q: f64,
}

impl Tally {
    pub(crate) fn add(&mut self, q: f64) {
        self.n_zero += usize::from(q == 0.0);
        if q > 0.0 && q < 1.0 {
            self.n_between += 1;
            self.log_q += q.ln();
        }
    }

    pub(crate) fn remove(&mut self, q: f64) {
        self.n_zero -= usize::from(q == 0.0);
        if q > 0.0 && q < 1.0 {
            self.n_between -= 1;
            self.log_q = if self.n_between == 0 { 0.0 } else { (self.log_q - q.ln()).min(0.0) };
        }
    }

    /// The probabilities that the rule stays silent and that it fires.
    pub(crate) fn outcome(&self) -> [f64; 2] {
        if self.n_zero > 0 { [0.0, 1.0] } else { [self.log_q.exp(), -self.log_q.exp_m1()] }
    }

    /// ln of the probability that it stays silent.
    fn log_silence(&self) -> f64 {
        if self.n_zero > 0 { f64::NEG_INFINITY } else { self.log_q }
    }
}

/// A rule that speaks about a block of labels, with what the labels outside of the block come to.
struct Touched {
    rule: usize,
    others: Tally,
    /// Labels by their place in the block, with their place in the rule.
    inside: Vec<(usize, usize)>,
}

/// One assignment that changes little by little.
struct Chain<'g> {
    gibbs: &'g Gibbs,
    beliefs: &'g [Vec<f64>],
    /// How much each combination weighs beyond what it weighs without.
    combinations: &'g [f64],
    rng: ChaCha8Rng,
    start: Vec<usize>,
    states: Vec<usize>,
    /// The first category of each label's state, for formulas.
    categories: Vec<usize>,
    tallies: Vec<Tally>,
    n_drawn: usize,
}

impl<'g> Chain<'g> {
    fn new(gibbs: &'g Gibbs, beliefs: &'g [Vec<f64>], combinations: &'g [f64], rng: ChaCha8Rng) -> Self {
        let n_labels = beliefs.len();
        let mut chain = Self {
            gibbs,
            beliefs,
            combinations,
            rng,
            start: Vec::new(),
            states: Vec::new(),
            categories: vec![0; n_labels],
            tallies: vec![Tally::default(); gibbs.rules.len()],
            n_drawn: 0,
        };
        chain.move_to(vec![0; n_labels]);
        chain
    }

    /// The next sample.
    fn next(&mut self, row: &[f64]) -> Vec<usize> {
        let n_sweeps = if self.n_drawn == 0 { 0 } else { self.gibbs.settings.thin.max(1) };
        (0..n_sweeps).for_each(|_| self.sweep());
        self.n_drawn += 1;
        let category = |label: LabelId| {
            let of_category = &self.gibbs.states.of_category[label.index()];
            let beliefs = &row[self.gibbs.model.block(label)];
            draw_category(beliefs, of_category, self.states[label.index()], &mut self.rng)
        };
        self.gibbs.model.label_ids().map(category).collect()
    }

    fn sweep(&mut self) {
        // Rounding errors of a sweep's changes are forgotten.
        self.move_to(self.states.clone());
        for label in 0..self.states.len() {
            if self.beliefs[label].len() > 1 {
                self.resample(&[label]);
            }
        }
        // A block costs as much as many labels.
        for _ in 0..self.gibbs.strong.len().min(self.states.len()).div_ceil(LABELS_PER_BLOCK) {
            let block = self.block();
            if block.len() > 1 {
                self.resample(&block);
            }
        }
        self.exchange_combination();
    }

    /// Where the chain is at a combination s of weight w, a share w / (1 + w) of its weight is the combination's own: so often
    /// another one takes its place, in proportion to what they weigh.
    fn exchange_combination(&mut self) {
        let typical = self.gibbs.model.typical();
        if let Some(place) = self.gibbs.model.find_typical(&self.categories) {
            let weight = typical[place].weight();
            if self.rng.random::<f64>() * (1.0 + weight) < weight {
                self.move_to_combination();
            }
        }
    }

    /// Goes to a combination, drawn in proportion to what they weigh; whether any is possible.
    fn move_to_combination(&mut self) -> bool {
        // Models without combinations draw nothing here.
        if self.combinations.is_empty() {
            return false;
        }
        let drawn = draw(self.combinations, &mut self.rng);
        if let Some(place) = drawn {
            self.move_to(self.gibbs.model.typical()[place].categories().to_vec());
        }
        drawn.is_some()
    }

    /// Some labels that strong rules tie together, whatever their states.
    fn block(&mut self) -> Vec<usize> {
        let gibbs = self.gibbs;
        let one_of = |list: &[usize], rng: &mut ChaCha8Rng| list[rng.random_range(0..list.len())];
        let first = one_of(&gibbs.rules[one_of(&gibbs.strong, &mut self.rng)].scope, &mut self.rng);
        let mut block = vec![first];
        let mut n_combinations = gibbs.n_states(first);
        for _ in 0..GROWTHS {
            let from = one_of(&block, &mut self.rng);
            let rule = one_of(&gibbs.strong_of_label[from], &mut self.rng);
            let label = one_of(&gibbs.rules[rule].scope, &mut self.rng);
            let n_more = n_combinations.saturating_mul(gibbs.n_states(label));
            if n_more <= gibbs.settings.block && !block.contains(&label) {
                block.push(label);
                n_combinations = n_more;
            }
        }
        block
    }

    /// Draws the labels of a block jointly, given all others.
    fn resample(&mut self, block: &[usize]) {
        let before: Vec<usize> = block.iter().map(|&label| self.states[label]).collect();
        let touched = self.touched(block);
        let sizes: Vec<usize> = block.iter().map(|&label| self.beliefs[label].len()).collect();
        let mut states = vec![0; block.len()];
        let mut weights = Vec::new();
        for combination in 0..sizes.iter().product() {
            digits(combination, &sizes, &mut states);
            weights.push(self.log_weight(block, &states, &touched));
        }
        exponentiate(&mut weights);
        match draw(&weights, &mut self.rng) {
            Some(drawn) => digits(drawn, &sizes, &mut states),
            None => states.copy_from_slice(&before),
        }
        for (&label, &state) in block.iter().zip(&states) {
            self.change(label, state);
        }
    }

    /// The rules about any label of a block.
    fn touched(&self, block: &[usize]) -> Vec<Touched> {
        let mut touched: Vec<Touched> = Vec::new();
        for (in_block, &label) in block.iter().enumerate() {
            for &(rule, place) in &self.gibbs.of_label[label] {
                match touched.iter_mut().find(|touched| touched.rule == rule) {
                    Some(touched) => touched.inside.push((in_block, place)),
                    None => {
                        let others = Tally::default();
                        touched.push(Touched { rule, others, inside: vec![(in_block, place)] });
                    }
                }
            }
        }
        for touched in &mut touched {
            let Some(q) = &self.gibbs.rules[touched.rule].q else { continue };
            let mut tally = self.tallies[touched.rule];
            for &(in_block, place) in &touched.inside {
                tally.remove(q[place][self.states[block[in_block]]]);
            }
            touched.others = tally;
        }
        touched
    }

    /// ln of the beliefs and rule weights that depend on a block in these states.
    fn log_weight(&mut self, block: &[usize], states: &[usize], touched: &[Touched]) -> f64 {
        let mut product = Product::default();
        for (&label, &state) in block.iter().zip(states) {
            product.multiply(self.beliefs[label][state]);
            self.place(label, state);
        }
        for Touched { rule, others, inside } in touched {
            let rule = &self.gibbs.rules[*rule];
            let outcome = match &rule.q {
                Some(q) => {
                    let inside = inside.iter().map(|&(in_block, place)| q[place][states[in_block]]);
                    let outcome = inside.clone().fold(others.outcome(), |[silent, fired], q| {
                        [silent * q, fired + silent * (1.0 - q)]
                    });
                    Outcome::new(outcome, || others.log_silence() + inside.map(f64::ln).sum::<f64>())
                }
                None => self.gibbs.model.rule(rule.rule).precise_outcome(&self.categories),
            };
            if outcome.is_exact(rule.weights) {
                product.multiply(outcome.weigh::<SumProduct>(rule.weights));
            } else {
                product.log_rest += rule.log_weight(outcome);
            }
        }
        product.ln() + self.gibbs.model.log_typical(&self.categories)
    }

    /// Searches for a possible assignment by changing one label of a broken rule at a time, from the largest beliefs
    /// or from a sample of them.
    fn search(&mut self, from_largest: bool) -> bool {
        let beliefs = self.beliefs;
        let largest =
            |belief: &Vec<f64>| (0..belief.len()).rev().max_by(|&a, &b| belief[a].total_cmp(&belief[b]));
        let start = beliefs.iter().map(|belief| {
            let state = if from_largest { largest(belief) } else { draw(belief, &mut self.rng) };
            state.unwrap_or(0)
        });
        let start = start.collect();
        self.move_to(start);
        for _ in 0..CHANGES_PER_LABEL * (1 + self.states.len()) {
            let broken = self.broken();
            if broken.is_empty() {
                return true;
            }
            let rule = broken[self.rng.random_range(0..broken.len())];
            let Some((label, state)) = self.repair(rule) else { return false };
            self.change(label, state);
        }
        self.broken().is_empty()
    }

    /// A change of one label of a broken rule: mostly one that leaves the fewest rules broken.
    fn repair(&mut self, rule: usize) -> Option<(usize, usize)> {
        let restless = self.rng.random_bool(RESTLESS);
        let mut best = None;
        let mut fewest = (isize::MAX, 0.0);
        for &label in &self.gibbs.rules[rule].scope {
            let now = self.states[label];
            for state in (0..self.beliefs[label].len()).filter(|&state| state != now) {
                if self.beliefs[label][state] == 0.0 {
                    continue;
                }
                let n_broken = if restless { 0 } else { self.broken_by(label, state) };
                // Ties go to chance.
                let price = (n_broken, self.rng.random::<f64>());
                if price < fewest {
                    (best, fewest) = (Some((label, state)), price);
                }
            }
        }
        best
    }

    /// How many rules more would be broken if a label changed.
    fn broken_by(&mut self, label: usize, state: usize) -> isize {
        let before = self.states[label];
        let n_before = self.n_broken_around(label);
        self.change(label, state);
        let n_after = self.n_broken_around(label);
        self.change(label, before);
        n_after - n_before
    }

    fn n_broken_around(&self, label: usize) -> isize {
        self.gibbs.of_label[label].iter().filter(|(rule, _)| self.is_broken(*rule)).count() as isize
    }

    /// The rules that exclude the assignment.
    fn broken(&self) -> Vec<usize> {
        (0..self.gibbs.rules.len()).filter(|&rule| self.is_broken(rule)).collect()
    }

    fn is_broken(&self, rule: usize) -> bool {
        let constraint = &self.gibbs.rules[rule];
        if !constraint.weights.contains(&0.0) {
            return false;
        }
        let tally = &self.tallies[rule];
        let outcome = match &constraint.q {
            Some(_) => Outcome::new(tally.outcome(), || tally.log_silence()),
            None => self.gibbs.model.rule(constraint.rule).precise_outcome(&self.categories),
        };
        constraint.log_weight(outcome) == f64::NEG_INFINITY
    }

    /// Changes the state of a label.
    fn change(&mut self, label: usize, state: usize) {
        for &(rule, place) in &self.gibbs.of_label[label] {
            if let Some(q) = &self.gibbs.rules[rule].q {
                self.tallies[rule].remove(q[place][self.states[label]]);
                self.tallies[rule].add(q[place][state]);
            }
        }
        self.states[label] = state;
        self.place(label, state);
    }

    /// Shows a state of a label to the formulas alone.
    fn place(&mut self, label: usize, state: usize) {
        self.categories[label] = self.gibbs.states.representatives[label][state].index();
    }

    /// Takes all labels to these states.
    fn move_to(&mut self, states: Vec<usize>) {
        for (rule, tally) in self.gibbs.rules.iter().zip(&mut self.tallies) {
            *tally = Tally::default();
            for (&label, q) in rule.scope.iter().zip(rule.q.iter().flatten()) {
                tally.add(q[states[label]]);
            }
        }
        self.states = states;
        for label in 0..self.states.len() {
            self.place(label, self.states[label]);
        }
    }
}

/// A product of probabilities that does not underflow, without a logarithm for each.
struct Product {
    part: f64,
    log_rest: f64,
}

impl Default for Product {
    fn default() -> Self {
        Self { part: 1.0, log_rest: 0.0 }
    }
}

impl Product {
    fn multiply(&mut self, factor: f64) {
        self.part *= factor;
        if self.part < 1e-100 {
            self.log_rest += self.part.ln();
            self.part = 1.0;
        }
    }

    fn ln(&self) -> f64 {
        self.log_rest + self.part.ln()
    }
}

/// The states of a block's labels in a combination, the first label fastest.
fn digits(mut combination: usize, sizes: &[usize], states: &mut [usize]) {
    for (state, size) in states.iter_mut().zip(sizes) {
        *state = combination % size;
        combination /= size;
    }
}
