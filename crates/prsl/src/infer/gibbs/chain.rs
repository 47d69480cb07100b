//! One Markov chain: an assignment whose labels are drawn one by one and in blocks.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::Gibbs;
use crate::infer::samples::{draw, draw_category, exponentiate};
use crate::infer::semiring::SumProduct;
use crate::label::LabelId;
use crate::outcome::{Outcome, Tally};

/// Number of labels per block of a sweep. Drawing a block takes as long as drawing several labels.
const LABELS_PER_BLOCK: usize = 4;
/// Number of attempts to add a label to a block.
const GROWTHS: usize = 12;

/// A rule about labels of a block, with the product over its labels outside the block.
struct Touched {
    rule: usize,
    others: Tally,
    /// For each label, its position in the block and its position in the rule.
    inside: Vec<(usize, usize)>,
}

/// The state of a chain.
pub(super) struct Chain<'g> {
    pub(super) gibbs: &'g Gibbs,
    pub(super) beliefs: &'g [Vec<f64>],
    /// The additional weight of each typical combination.
    combinations: &'g [f64],
    pub(super) rng: ChaCha8Rng,
    pub(super) start: Vec<usize>,
    pub(super) states: Vec<usize>,
    /// The first category of each label's state. Formulas are evaluated on it.
    pub(super) categories: Vec<usize>,
    pub(super) tallies: Vec<Tally>,
    n_drawn: usize,
}

impl<'g> Chain<'g> {
    pub(super) fn new(
        gibbs: &'g Gibbs,
        beliefs: &'g [Vec<f64>],
        combinations: &'g [f64],
        rng: ChaCha8Rng,
    ) -> Self {
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

    /// Draws the next sample.
    pub(super) fn next(&mut self, row: &[f64]) -> Vec<usize> {
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

    pub(super) fn sweep(&mut self) {
        // Recomputes the products, so that rounding errors do not accumulate over sweeps.
        self.move_to(self.states.clone());
        for label in 0..self.states.len() {
            if self.beliefs[label].len() > 1 {
                self.resample(&[label]);
            }
        }
        // Drawing a block takes as long as drawing several labels.
        for _ in 0..self.gibbs.strong.len().min(self.states.len()).div_ceil(LABELS_PER_BLOCK) {
            let block = self.block();
            if block.len() > 1 {
                self.resample(&block);
            }
        }
        self.exchange_combination();
    }

    /// At a combination s of weight w, the share w / (1 + w) of the weight belongs to the combination itself. With
    /// this probability, another combination is drawn in proportion to the combinations' weights.
    fn exchange_combination(&mut self) {
        let typical = self.gibbs.model.typical();
        if let Some(place) = self.gibbs.model.find_typical_at(&self.categories) {
            let weight = typical[place].weight();
            if self.rng.random::<f64>() * (1.0 + weight) < weight {
                self.move_to_combination();
            }
        }
    }

    /// Moves to a combination drawn in proportion to the combinations' weights. Returns whether any is possible.
    pub(super) fn move_to_combination(&mut self) -> bool {
        // Models without combinations must not consume random numbers here.
        if self.combinations.is_empty() {
            return false;
        }
        let drawn = draw(self.combinations, &mut self.rng);
        if let Some(place) = drawn {
            self.move_to(self.gibbs.model.typical()[place].categories().to_vec());
        }
        drawn.is_some()
    }

    /// Draws a set of labels that strong rules connect. The choice does not depend on their states.
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

    /// ln of the product of all beliefs and rule weights that depend on the block, for these states.
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

    /// Changes the state of a label.
    pub(super) fn change(&mut self, label: usize, state: usize) {
        for &(rule, place) in &self.gibbs.of_label[label] {
            if let Some(q) = &self.gibbs.rules[rule].q {
                self.tallies[rule].remove(q[place][self.states[label]]);
                self.tallies[rule].add(q[place][state]);
            }
        }
        self.states[label] = state;
        self.place(label, state);
    }

    /// Updates only the category on which formulas are evaluated.
    fn place(&mut self, label: usize, state: usize) {
        self.categories[label] = self.gibbs.states.representatives[label][state].index();
    }

    /// Sets the states of all labels.
    pub(super) fn move_to(&mut self, states: Vec<usize>) {
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

/// A product of probabilities that does not underflow. It takes a logarithm only for products below 1e-100.
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

/// Decodes the index of a combination into the states of a block's labels, the first label fastest.
fn digits(mut combination: usize, sizes: &[usize], states: &mut [usize]) {
    for (state, size) in states.iter_mut().zip(sizes) {
        *state = combination % size;
        combination /= size;
    }
}
