//! The joint log-likelihood of rows, and its gradient in everything that can be learned.
//!
//! # Derivation
//!
//! A row with the known labels l′ has the log-likelihood
//!
//! ```text
//! ln Z(x, L′ = l′) − ln Z(x)        Z = Σ_l S(l) ∏ⱼ πⱼ(lⱼ) ∏ₖ fₖ(l)        S(l) = 1 + wₛ for a combination s = l, else 1
//! ```
//!
//! The tree gives Z₀ = Σ_l ∏ π ∏ f; the combinations add Σₛ wₛ score(s), score(s) = ∏ π(s) ∏ f(s). Let rₛ = wₛ score(s) / Z.
//! Then, for the second term,
//!
//! ```text
//! ∂ ln Z / ∂ ln πⱼ(m) = (Z₀ / Z) P₀(Lⱼ = m) + Σ_{s: sⱼ = m} rₛ       the marginals
//! ∂ ln Z / ∂ ln wₛ    = rₛ
//! ∂ ln Z / ∂ potential(e) = (Z₀ / Z) · (what it multiplies in Z₀) / Z₀ + Σ_{s through e} rₛ / potential(e)
//! ```
//!
//! and the same for the first term with the known labels held fast; where all are known it is a product, whose
//! logarithm is differentiated directly. A clique's potential is the product of its rules: what it multiplies is summed
//! over the rows of a batch, and then every rule takes its part once. Where a potential is divided by, it belongs to
//! one assignment that is possible, and is not 0: a combination that a rule excludes has no part in the rule's gradient.
//!
//! A label that a rule is not connected with has q = 1 there, and still a derivative: that of Z with the rule's factor
//! replaced by its silence Q, one more pass for each rule that reaches out, or none if all labels are in one clique ([`super::mass`]).
//!
//! ```text
//! ∂ ln Z / ∂ qⱼ(m) = (1 − 2p) Z(fₖ → Qₖ, Lⱼ = m) / Z
//! ```

use std::sync::Mutex;

use rayon::prelude::*;

use super::calibration::Calibration;
use super::clique_tree::CliqueTree;
use super::factor::{Home, Probability, RuleShape, Silence, Tables};
use super::loopy::Loopy;
use super::sweep::{LANES, Lane, Sweep, dot};
use super::typical::Typical;
use super::wide::{Split, Wide};
use crate::calibrator::Calibrator;
use crate::metrics::IMPOSSIBLE;

/// Everything that stays as it is while the parameters move.
pub(crate) struct Problem {
    pub(crate) tree: CliqueTree,
    pub(crate) rules: Vec<RuleShape>,
    /// For each clique its rules.
    pub(crate) of_clique: Vec<Vec<usize>>,
    /// For each label.
    pub(crate) calibrations: Vec<Calibration>,
    /// For each label, the calibrator to go by where none is learned.
    pub(crate) given: Vec<Calibrator>,
    pub(crate) typical: Option<Typical>,
    /// Rules whose q of labels they are not connected with are asked for, too.
    pub(crate) reaches: Vec<Reach>,
    /// Whether ln Z is Bethe's, by loopy propagation between the rules and the labels: no rule is in a clique then.
    pub(crate) is_loopy: bool,
    pub(crate) n_parameters: usize,
    /// Room that is not in use: to ask for it anew for each batch takes longer than to sweep.
    pub(crate) spare: Mutex<Vec<Sweep>>,
    pub(crate) spare_tables: Mutex<Vec<Tables>>,
}

/// A learned rule, and the labels that it is not connected with: where their q, all 1, are among the parameters.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    pub(crate) rule: usize,
    pub(crate) labels: Vec<(usize, usize)>,
}

/// Rows made ready for a [`Problem`].
#[derive(Clone)]
pub(crate) struct Rows {
    pub(crate) n_rows: usize,
    /// Row by row, per category: ln of the belief, smoothed where it is going to be calibrated.
    pub(crate) log_beliefs: Vec<f64>,
    /// Row by row, per label: whether it is going to be calibrated, as what classifiers say is and priors are not.
    pub(crate) is_learned: Vec<bool>,
    /// Row by row, per label.
    pub(crate) truths: Vec<Option<usize>>,
    /// Per row: the combination that is its truth.
    pub(crate) combination: Vec<Option<usize>>,
    pub(crate) weights: Vec<f64>,
    /// Whether each row is among those that the combinations were counted in: there it is left out.
    pub(crate) counted: bool,
}

/// Rows whose sums are added up in one go: the same whatever the number of threads.
const CHUNK: usize = 3 * LANES;

/// What a batch adds up to.
#[derive(Default)]
struct Sums {
    objective: f64,
    weight: f64,
    /// ∂ objective / ∂ potential of every clique entry; with loopy propagation ∂ objective / ∂ f of every rule entry.
    derivatives: Vec<f64>,
    /// How often ln of the potential, or of f, is in the objective.
    counts: Vec<f64>,
    /// The same for every combination, and ∂ objective / ∂ ln w of it.
    of_combination: Vec<f64>,
    /// Everything that is not had from the derivatives: calibrators, combinations, wide rules and labels out of reach.
    parameters: Vec<f64>,
    /// The log-likelihood of each row of which something is known.
    rows: Vec<f64>,
}

impl Problem {
    fn n_labels(&self) -> usize {
        self.tree.sizes.len()
    }

    /// The mean log-likelihood of some rows.
    pub(crate) fn value(&self, parameters: &[f64], data: &Rows, rows: &[usize]) -> f64 {
        let sums = self.evaluate(parameters, data, rows);
        if sums.weight > 0.0 { sums.objective / sums.weight } else { 0.0 }
    }

    /// The log-likelihood of every row of which something is known.
    pub(crate) fn log_likelihoods(&self, parameters: &[f64], data: &Rows) -> Vec<f64> {
        let rows: Vec<usize> = (0..data.n_rows).collect();
        self.evaluate(parameters, data, &rows).rows
    }

    /// The sums of some rows, without gradients.
    fn evaluate(&self, parameters: &[f64], data: &Rows, rows: &[usize]) -> Sums {
        let tables = self.tables(parameters);
        let sums = self.sums(parameters, &tables, data, rows, false);
        self.put_back(tables);
        sums
    }

    /// The mean log-likelihood of all rows.
    pub(crate) fn mean(&self, parameters: &[f64], data: &Rows) -> f64 {
        self.value(parameters, data, &(0..data.n_rows).collect::<Vec<usize>>())
    }

    /// The mean log-likelihood of some rows; its gradient is added to `gradient`.
    pub(crate) fn gradient(
        &self,
        parameters: &[f64],
        data: &Rows,
        rows: &[usize],
        gradient: &mut [f64],
    ) -> f64 {
        let tables = self.reaching_tables(parameters);
        let mut sums = self.sums(parameters, &tables, data, rows, true);
        if sums.weight == 0.0 {
            self.put_back(tables);
            return 0.0;
        }
        let mut own = sums.parameters;
        if let Some(typical) = &self.typical {
            typical.spread(&sums.of_combination, &mut sums.counts);
            for (combination, &mass) in typical.combinations.iter().zip(&sums.of_combination) {
                let category = |label: usize| combination.categories[label];
                self.wide().for_each(|wide| wide.add_log_factor(parameters, category, mass, &mut own));
                self.add_log_reach(parameters, &tables, category, mass, &mut own);
            }
        }
        let scale = 1.0 / sums.weight;
        if self.is_loopy {
            self.loopy_gradient(parameters, &tables, &sums.derivatives, &sums.counts, &mut own);
        } else {
            self.rule_gradient(parameters, &tables, &sums.derivatives, &sums.counts, &mut own);
        }
        self.put_back(tables);
        gradient.iter_mut().zip(&own).for_each(|(slot, own)| *slot += scale * own);
        sums.objective / sums.weight
    }

    fn sums(
        &self,
        parameters: &[f64],
        tables: &Tables,
        data: &Rows,
        rows: &[usize],
        with_gradient: bool,
    ) -> Sums {
        let weights = self.typical.as_ref().map(|typical| {
            let mut weights = typical.log_weights(parameters, &tables.potentials);
            for wide in self.wide() {
                for (weight, combination) in weights.iter_mut().zip(&typical.combinations) {
                    *weight += wide.factor(parameters, |label| combination.categories[label]).ln();
                }
            }
            weights
        });
        let chunks: Vec<Sums> = rows
            .par_chunks(CHUNK)
            .map(|chunk| {
                let mut pass = Pass::new(self, parameters, tables, weights.as_deref(), data, with_gradient);
                chunk.chunks(LANES).for_each(|group| pass.group(group));
                let Pass { sums, sweep, .. } = pass;
                self.spare.lock().expect("no sweep panics").push(sweep);
                sums
            })
            .collect();
        let mut chunks = chunks.into_iter();
        let first = chunks.next().unwrap_or_default();
        chunks.fold(first, Sums::plus)
    }
}

impl Problem {
    /// Takes up a tree that has been made for the rules, and brings them home.
    pub(crate) fn arrange(&mut self, tree: CliqueTree) {
        self.tree = tree;
        self.spare = Mutex::default();
        self.bring_home();
        if let Some(typical) = &mut self.typical {
            typical.locate(&self.tree);
        }
    }

    /// Brings the rules home: to the cliques that have their labels, or to none.
    pub(crate) fn bring_home(&mut self) {
        self.of_clique = vec![Vec::new(); self.tree.cliques.len()];
        for (index, rule) in self.rules.iter_mut().enumerate() {
            let is_wide = matches!(rule.silence, Silence::Wide { .. });
            rule.home = if is_wide || self.is_loopy { None } else { Home::of(&self.tree, &rule.labels) };
            if let Some(home) = &rule.home {
                self.of_clique[home.clique].push(index);
            }
        }
    }

    /// Whether one clique has all labels, and with them all that is to be known about the rules.
    pub(crate) fn is_joint(&self) -> bool {
        !self.is_loopy && self.tree.cliques.len() == 1
    }

    /// The rules that are over all labels.
    pub(crate) fn wide(&self) -> impl Iterator<Item = Wide<'_>> {
        self.rules.iter().filter_map(|rule| match (&rule.silence, rule.probability) {
            (&Silence::Wide { start, .. }, Probability::Given(probability)) => {
                Some(Wide { start, sizes: &self.tree.sizes, probability })
            }
            _ => None,
        })
    }
}

impl Sums {
    fn plus(mut self, other: Self) -> Self {
        let add =
            |to: &mut Vec<f64>, from: Vec<f64>| to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        self.objective += other.objective;
        self.weight += other.weight;
        add(&mut self.derivatives, other.derivatives);
        add(&mut self.counts, other.counts);
        add(&mut self.of_combination, other.of_combination);
        add(&mut self.parameters, other.parameters);
        self.rows.extend(other.rows);
        self
    }
}

/// Per category: ln π of eight rows, the logarithms of 0 apart, so that they can be added and taken away again.
pub(crate) struct LogBeliefs {
    /// 0 where π is 0.
    pub(crate) finite: Vec<Lane>,
    /// 1 where π is 0; not looked at unless there is one.
    pub(crate) zeros: Vec<Lane>,
    pub(crate) has_zeros: bool,
}

impl LogBeliefs {
    fn new(n_categories: usize) -> Self {
        Self {
            finite: vec![[0.0; LANES]; n_categories],
            zeros: vec![[0.0; LANES]; n_categories],
            has_zeros: false,
        }
    }

    fn set(&mut self, category: usize, lane: usize, log_belief: f64) {
        let is_zero = log_belief == f64::NEG_INFINITY;
        self.finite[category][lane] = if is_zero { 0.0 } else { log_belief };
        self.zeros[category][lane] = f64::from(u8::from(is_zero));
        self.has_zeros |= is_zero;
    }

    fn get(&self, category: usize, lane: usize) -> f64 {
        if self.zeros[category][lane] > 0.0 { f64::NEG_INFINITY } else { self.finite[category][lane] }
    }

    fn beliefs(&self, category: usize) -> Lane {
        std::array::from_fn(|lane| self.get(category, lane).exp())
    }
}

/// How much of a row is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    Some,
    All,
}

/// One pass over a chunk of rows.
struct Pass<'a> {
    problem: &'a Problem,
    parameters: &'a [f64],
    tables: &'a Tables,
    /// ln w + ln ∏ f of every combination.
    combinations: Option<&'a [f64]>,
    data: &'a Rows,
    with_gradient: bool,
    sweep: Sweep,
    loopy: Option<Loopy>,
    split: Option<Split>,
    /// ln Z of the rules alone, as it was last computed.
    log_rules: Lane,
    log_beliefs: LogBeliefs,
    /// Per category: ∂ objective / ∂ ln π.
    slopes: Vec<Lane>,
    scores: Vec<Lane>,
    sums: Sums,
}

impl<'a> Pass<'a> {
    fn new(
        problem: &'a Problem,
        parameters: &'a [f64],
        tables: &'a Tables,
        combinations: Option<&'a [f64]>,
        data: &'a Rows,
        with_gradient: bool,
    ) -> Self {
        let spare = problem.spare.lock().expect("no sweep panics").pop();
        let sweep = spare.unwrap_or_else(|| Sweep::new(&problem.tree));
        let n_categories = sweep.beliefs.len();
        let n_combinations = combinations.map_or(0, <[f64]>::len);
        let room = |n: usize| vec![0.0; if with_gradient { n } else { 0 }];
        let loopy = problem.is_loopy.then(|| Loopy::new(problem));
        let n_entries = loopy.as_ref().map_or(problem.tree.n_entries, |loopy| loopy.n_entries);
        let sums = Sums {
            derivatives: room(n_entries),
            counts: room(n_entries),
            of_combination: room(n_combinations),
            parameters: room(problem.n_parameters),
            ..Sums::default()
        };
        Self {
            problem,
            parameters,
            tables,
            combinations,
            data,
            with_gradient,
            sweep,
            loopy,
            split: Split::new(problem, parameters),
            log_rules: [0.0; LANES],
            log_beliefs: LogBeliefs::new(n_categories),
            slopes: vec![[0.0; LANES]; n_categories],
            scores: vec![[0.0; LANES]; n_combinations],
            sums,
        }
    }

    fn truth(&self, row: usize, label: usize) -> Option<usize> {
        self.data.truths[row * self.problem.n_labels() + label]
    }

    fn known(&self, row: usize) -> Known {
        let n = self.problem.n_labels();
        match self.data.truths[row * n..(row + 1) * n].iter().flatten().count() {
            0 => Known::Nothing,
            known if known == n => Known::All,
            _ => Known::Some,
        }
    }

    /// Adds up to eight rows.
    fn group(&mut self, rows: &[usize]) {
        let known: Vec<Known> = rows.iter().map(|&row| self.known(row)).collect();
        if known.iter().all(|known| *known == Known::Nothing) {
            return;
        }
        let weight = |lane: usize| match known.get(lane) {
            None | Some(Known::Nothing) => 0.0,
            Some(_) => self.data.weights[rows[lane]],
        };
        let mut weights: Lane = std::array::from_fn(weight);
        self.calibrate(rows);
        self.slopes.fill([0.0; LANES]);
        // Both terms of the objective, then their gradients, unless a row turns out to be impossible.
        let given = self.given_truth(rows, &known);
        let everything = self.total(rows, None);
        let log_likelihood: Lane = std::array::from_fn(|l| given[l] - everything[l]);
        for (weight, log_likelihood) in
            weights.iter_mut().zip(log_likelihood).filter(|(weight, _)| **weight > 0.0)
        {
            let is_possible = log_likelihood.is_finite();
            let log_likelihood = if is_possible { log_likelihood } else { IMPOSSIBLE };
            self.sums.objective += *weight * log_likelihood;
            self.sums.rows.push(log_likelihood);
            self.sums.weight += *weight;
            *weight = if is_possible { *weight } else { 0.0 };
        }
        if self.with_gradient {
            self.add_total(rows, &everything, &weights.map(|weight| -weight));
            self.add_given(rows, &known, &given, &weights);
            self.add_calibration(rows);
        }
    }

    fn calibration(&self, row: usize, label: usize) -> Calibration {
        if self.data.is_learned[row * self.problem.n_labels() + label] {
            self.problem.calibrations[label]
        } else {
            Calibration::Identity
        }
    }

    /// π of the rows, and its logarithm.
    fn calibrate(&mut self, rows: &[usize]) {
        let n_categories = self.sweep.beliefs.len();
        self.log_beliefs.has_zeros = false;
        let mut start = 0;
        for (label, &size) in self.problem.tree.sizes.iter().enumerate() {
            for lane in 0..LANES {
                // Lanes without a row repeat the last one, at weight 0.
                let row = rows[lane.min(rows.len() - 1)];
                let given = &self.data.log_beliefs[row * n_categories + start..][..size];
                self.calibration(row, label).apply(self.parameters, given, |category, log_belief| {
                    self.log_beliefs.set(start + category, lane, log_belief);
                });
            }
            start += size;
        }
        for (at, belief) in self.sweep.beliefs.iter_mut().enumerate() {
            *belief = self.log_beliefs.beliefs(at);
        }
    }

    /// The first term: ln Z with the known labels held fast.
    fn given_truth(&mut self, rows: &[usize], known: &[Known]) -> Lane {
        let some = known.contains(&Known::Some);
        let mut given =
            if some { self.clamped(rows, |pass| pass.total(rows, Some(rows))) } else { [0.0; LANES] };
        for (lane, &row) in rows.iter().enumerate() {
            if known[lane] == Known::All {
                given[lane] = self.log_weight(lane, row);
            }
        }
        given
    }

    /// Does something while the beliefs are those of the known categories alone.
    fn clamped<T>(&mut self, rows: &[usize], work: impl FnOnce(&mut Self) -> T) -> T {
        let beliefs = self.sweep.beliefs.clone();
        let mut start = 0;
        for (label, &size) in self.problem.tree.sizes.iter().enumerate() {
            for (lane, &row) in rows.iter().enumerate() {
                if let Some(truth) = self.truth(row, label) {
                    let others = (0..size).filter(|&category| category != truth);
                    others.for_each(|category| self.sweep.beliefs[start + category][lane] = 0.0);
                }
            }
            start += size;
        }
        let result = work(self);
        self.sweep.beliefs = beliefs;
        result
    }

    /// ln of the weight of a row's truth, all of which is known.
    fn log_weight(&self, lane: usize, row: usize) -> f64 {
        let mut sum = 0.0;
        let mut start = 0;
        for (label, &size) in self.problem.tree.sizes.iter().enumerate() {
            sum += self.log_beliefs.get(start + self.truth(row, label).expect("all is known"), lane);
            start += size;
        }
        if self.loopy.is_some() {
            for (shape, factors) in self.problem.rules.iter().zip(&self.tables.factors) {
                sum += factors[self.rule_entry(shape, row)].ln();
            }
        } else {
            for clique in 0..self.problem.tree.cliques.len() {
                sum += self.tables.potentials[self.entry(clique, row)].ln();
            }
        }
        for wide in self.problem.wide() {
            sum += wide.factor(self.parameters, |label| self.truth(row, label).expect("all is known")).ln();
        }
        sum + self.log_typical(row).exp().ln_1p()
    }

    fn rule_entry(&self, shape: &RuleShape, row: usize) -> usize {
        shape.entry(&self.problem.tree.sizes, |label| self.truth(row, label).expect("all is known"))
    }

    fn entry(&self, clique: usize, row: usize) -> usize {
        self.problem.tree.entry(clique, |label| self.truth(row, label).expect("all is known"))
    }

    /// ln w of a row's truth, −∞ if it is no combination.
    fn log_typical(&self, row: usize) -> f64 {
        match (&self.problem.typical, self.data.combination[row]) {
            (Some(typical), Some(combination)) => {
                typical.log_weight(self.parameters, combination, self.left_out(row))
            }
            _ => f64::NEG_INFINITY,
        }
    }

    /// How much of the count of its combination is a row's own.
    fn left_out(&self, row: usize) -> f64 {
        if self.data.counted { self.data.weights[row] } else { 0.0 }
    }

    /// ln Z of the rows for the sweep's beliefs, combinations included: all, or those that agree with what is known.
    fn total(&mut self, rows: &[usize], agreeing: Option<&[usize]>) -> Lane {
        self.sum_up();
        let mut total = self.log_rules;
        let (Some(typical), Some(combinations)) = (&self.problem.typical, self.combinations) else {
            return total;
        };
        typical.scores(&self.log_beliefs, combinations, &mut self.scores);
        for (lane, &row) in rows.iter().enumerate() {
            if let Some(own) = self.data.combination[row] {
                let change = typical.log_weight(self.parameters, own, self.left_out(row))
                    - typical.log_weight(self.parameters, own, 0.0);
                self.scores[own][lane] += change;
            }
        }
        if let Some(rows) = agreeing {
            for (combination, score) in typical.combinations.iter().zip(&mut self.scores) {
                for (lane, &row) in rows.iter().enumerate() {
                    let n = self.problem.n_labels();
                    let truths = &self.data.truths[row * n..(row + 1) * n];
                    let agrees = |(category, truth): (&usize, &Option<usize>)| {
                        truth.is_none_or(|truth| truth == *category)
                    };
                    if !combination.categories.iter().zip(truths).all(agrees) {
                        score[lane] = f64::NEG_INFINITY;
                    }
                }
            }
        }
        let mut largest = total;
        for score in &self.scores {
            for l in 0..LANES {
                largest[l] = if score[l] > largest[l] { score[l] } else { largest[l] };
            }
        }
        let mut sum = [0.0; LANES];
        for log in self.scores.iter().chain([&self.log_rules]) {
            for l in 0..LANES {
                sum[l] += (log[l] - largest[l]).exp();
            }
        }
        for l in 0..LANES {
            total[l] =
                if largest[l] == f64::NEG_INFINITY { f64::NEG_INFINITY } else { largest[l] + sum[l].ln() };
        }
        total
    }

    /// ln Z of the rules alone, for the sweep's beliefs.
    fn sum_up(&mut self) {
        let Self { problem, tables, sweep, .. } = self;
        self.log_rules = if let Some(loopy) = &mut self.loopy {
            loopy.propagate(problem, tables, &sweep.beliefs);
            loopy.log_total
        } else if let Some(split) = &mut self.split {
            split.sum_up(sweep, |sweep| sweep.up(&problem.tree, &tables.potentials))
        } else {
            sweep.up(&problem.tree, &tables.potentials);
            sweep.log_total
        };
    }

    /// Adds the gradient of ln Z, as it was just computed, times each row's weight.
    fn add_total(&mut self, rows: &[usize], total: &Lane, weights: &Lane) {
        let share =
            |log: Lane| -> Lane {
                std::array::from_fn(|l| {
                    if weights[l] == 0.0 { 0.0 } else { weights[l] * (log[l] - total[l]).exp() }
                })
            };
        let Self { problem, parameters, tables, sweep, slopes, sums, .. } = self;
        let mut add_slopes = |marginals: &[Lane], share: &Lane| {
            for (slope, marginal) in slopes.iter_mut().zip(marginals) {
                for l in 0..LANES {
                    slope[l] += share[l] * marginal[l];
                }
            }
        };
        if let Some(loopy) = &self.loopy {
            let share = share(self.log_rules);
            loopy.add_gradient(
                problem,
                parameters,
                tables,
                &share,
                [&mut sums.derivatives, &mut sums.parameters],
            );
            add_slopes(&loopy.marginals, &share);
        } else if let Some(split) = &self.split {
            for part in 0..split.n_parts() {
                let share = split.signed(part, share(split.logs[part]));
                split.within(part, sweep, |sweep| {
                    sweep.up(&problem.tree, &tables.potentials);
                    sweep.down(&problem.tree, &tables.potentials, &share, Some(&mut sums.derivatives), true);
                });
                add_slopes(&sweep.marginals, &share);
                split.add_gradient(part, parameters, &sweep.marginals, &share, &mut sums.parameters);
            }
        } else {
            let share = share(self.log_rules);
            let calibrates = problem.calibrations.iter().any(|it| *it != Calibration::Identity);
            let derivatives = Some(&mut sums.derivatives[..]);
            sweep.down(&problem.tree, &tables.potentials, &share, derivatives, calibrates);
            if calibrates {
                add_slopes(&sweep.marginals, &share);
            }
        }
        for (reach, potentials) in problem.reaches.iter().zip(&tables.without) {
            sweep.up(&problem.tree, potentials);
            let share = share(sweep.log_total);
            sweep.down(&problem.tree, potentials, &share, None, true);
            let toward_silence = 1.0 - 2.0 * problem.probability(reach.rule, parameters);
            for &(label, place) in &reach.labels {
                for (slot, marginal) in sums.parameters[place..].iter_mut().zip(sweep.marginals_of(label)) {
                    *slot += toward_silence * dot(marginal, &share);
                }
            }
        }
        let Some(typical) = &self.problem.typical else { return };
        for score in &mut self.scores {
            for l in 0..LANES {
                score[l] = if weights[l] == 0.0 { 0.0 } else { weights[l] * (score[l] - total[l]).exp() };
            }
        }
        typical.add_slopes(&self.scores, &mut self.slopes);
        for (sum, score) in self.sums.of_combination.iter_mut().zip(&self.scores) {
            *sum += score.iter().sum::<f64>();
        }
        typical.add_gradient(&self.scores, &mut self.sums.parameters);
        for (lane, &row) in rows.iter().enumerate() {
            if let Some(own) = self.data.combination[row] {
                let mass = self.scores[own][lane];
                typical.correct_gradient(own, self.left_out(row), mass, &mut self.sums.parameters);
            }
        }
    }

    /// Adds the gradient of the first term.
    fn add_given(&mut self, rows: &[usize], known: &[Known], given: &Lane, weights: &Lane) {
        if known.contains(&Known::Some) {
            let only_some = |l: usize| if known.get(l) == Some(&Known::Some) { weights[l] } else { 0.0 };
            let weights: Lane = std::array::from_fn(only_some);
            self.clamped(rows, |pass| {
                pass.total(rows, Some(rows));
                pass.add_total(rows, given, &weights);
            });
        }
        for (lane, &row) in rows.iter().enumerate() {
            if known[lane] == Known::All && weights[lane] > 0.0 {
                self.add_known(lane, row, weights[lane]);
            }
        }
    }

    fn add_known(&mut self, lane: usize, row: usize, weight: f64) {
        let mut start = 0;
        for (label, &size) in self.problem.tree.sizes.iter().enumerate() {
            let truth = self.truth(row, label).expect("all is known");
            self.slopes[start + truth][lane] += weight;
            start += size;
        }
        if let Some(loopy) = &self.loopy {
            for (shape, start) in self.problem.rules.iter().zip(&loopy.starts) {
                let entry = start + self.rule_entry(shape, row);
                self.sums.counts[entry] += weight;
            }
        } else {
            for clique in 0..self.problem.tree.cliques.len() {
                let entry = self.entry(clique, row);
                self.sums.counts[entry] += weight;
            }
        }
        let truth =
            |label: usize| self.data.truths[row * self.problem.n_labels() + label].expect("all is known");
        for wide in self.problem.wide() {
            wide.add_log_factor(self.parameters, truth, weight, &mut self.sums.parameters);
        }
        self.problem.add_log_reach(self.parameters, self.tables, truth, weight, &mut self.sums.parameters);
        let log_typical = self.log_typical(row);
        if let (Some(typical), Some(own)) = (&self.problem.typical, self.data.combination[row])
            && log_typical > f64::NEG_INFINITY
        {
            // ∂ ln(1 + w) / ∂ ln w
            let mass = weight / (1.0 + (-log_typical).exp());
            typical.add_mass(own, self.left_out(row), mass, &mut self.sums.parameters);
        }
    }

    fn add_calibration(&mut self, rows: &[usize]) {
        let n_categories = self.sweep.beliefs.len();
        let mut start = 0;
        for (label, &size) in self.problem.tree.sizes.iter().enumerate() {
            let block = start..start + size;
            for (lane, &row) in rows.iter().enumerate() {
                let given = &self.data.log_beliefs[row * n_categories + start..][..size];
                self.calibration(row, label).add_gradient(
                    given,
                    |category| {
                        (
                            self.log_beliefs.get(block.start + category, lane),
                            self.slopes[block.start + category][lane],
                        )
                    },
                    &mut self.sums.parameters,
                );
            }
            start += size;
        }
    }
}

#[cfg(test)]
mod tests;
