//! Joint samples: the plan runs forward once, and each sample is a walk backward through its steps.
//!
//! An entry of a table is a sum of products of entries of the step's inputs. Given the entry of the result, one summand
//! is drawn in proportion to its value. This gives the entries of the inputs. The walk starts at the roots, which have
//! one entry, and ends at the beliefs. No entry is negative, so each draw is from a distribution, also for fired
//! variables:
//!
//! ```text
//! join     out(fired)  = a(fired) b(either) + a(silent) b(fired)
//! weigh    out(silent) = w(silent) in(silent) + w(fired) in(fired)
//! extend   out(either) = in(silent) + in(fired)
//! ```
//!
//! A fired variable may have different states in the two joined tables. So the walk stores entries of tables, not
//! states of variables. A sample is a typical combination with the probability of their share of Z, and a walk
//! otherwise. Checked in `samples_have_the_distribution_of_enumeration`.

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::JunctionTree;
use super::plan::{Plan, Step};
use super::runner::Runner;
use super::sweep::Workspace;
use super::underflow::is_kept;
use crate::assignment::Assignment;
use crate::belief::{BeliefMatrix, Instance, check_same_labels};
use crate::error::Result;
use crate::infer::account::Pool;
use crate::infer::samples::{Samples, Sampling, draw, draw_category, exponentiate};
use crate::infer::semiring::{Semiring, SumProduct};
use crate::infer::typical::{Mixture, Typical};
use crate::label::LabelId;
use crate::logic::impossible;

impl JunctionTree {
    /// Independent joint samples from the posterior of an instance.
    ///
    /// ```
    /// use prsl::infer::Sampling;
    /// use prsl::{Evidence, JunctionTree, Model};
    ///
    /// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 1: wet <- rain")?;
    /// let evidence = Evidence::new().observe("weather", "rain");
    /// let samples = JunctionTree::compile(&model)?.sample(&evidence, &Sampling { n_samples: 2, ..Sampling::default() })?;
    /// assert_eq!(samples, [[1, 1], [1, 1]]); // rain and wet
    /// # Ok::<(), prsl::Error>(())
    /// ```
    ///
    /// Returns an error if only a plan with signs fits the limits, see [`JunctionTree::is_careful`].
    pub fn sample(&self, instance: &impl Instance, sampling: &Sampling) -> Result<Samples> {
        let row = &instance.values(self.model())?[..];
        let source = self.source()?;
        let samples = source.sample_group(&source.runner.one, &[row], 0, sampling);
        source.runner.rest();
        samples.into_iter().next().flatten().ok_or_else(|| impossible(self.model(), row))
    }

    /// Samples for every row; `None` if the row is impossible. The random stream of a row depends on the seed and its
    /// position.
    pub fn sample_batch(
        &self,
        rows: &BeliefMatrix,
        sampling: &Sampling,
    ) -> Result<Vec<Result<Option<Samples>>>> {
        check_same_labels(rows.model(), self.model())?;
        Ok(self.source()?.sample_batch(rows, sampling).into_iter().map(Ok).collect())
    }

    /// The samples of one row; `None` if it is impossible.
    pub(crate) fn samples_of(&self, row: &[f64], sampling: &Sampling) -> Option<Samples> {
        let source = self.source().expect("the tree was compiled without signs");
        source.sample_group(&source.runner.one, &[row], 0, sampling).into_iter().next().flatten()
    }

    fn source(&self) -> Result<Source<'_>> {
        let runner = self.careful()?;
        let walk = self.walk.get_or_init(|| Walk::new(&runner.plan));
        Ok(Source { runner, walk, typical: &self.typical })
    }
}

/// The result of sampling a row with plain numbers.
enum Attempt {
    /// The samples; `None` if the row is impossible.
    Done(Option<Samples>),
    /// Underflow may have affected the samples. The row is sampled again in logarithms.
    Underflow,
}

/// A plan without signs, with its joins in a form for walking backward.
struct Source<'t> {
    runner: &'t Runner<SumProduct>,
    walk: &'t Walk,
    typical: &'t Typical,
}

impl Source<'_> {
    fn sample_batch(&self, rows: &BeliefMatrix, sampling: &Sampling) -> Vec<Option<Samples>> {
        // Lanes speed up only the forward pass, one per row. With many samples, the walks take most of the time.
        let threads = rayon::current_num_threads();
        if rows.n_rows() >= 4 && sampling.n_samples <= 8 && self.runner.fits(8, threads) {
            self.sample_batch_in(&self.runner.eight, rows, sampling)
        } else {
            self.sample_batch_in(&self.runner.one, rows, sampling)
        }
    }

    fn sample_batch_in<const L: usize>(
        &self,
        pool: &Pool<Workspace<SumProduct, L>>,
        rows: &BeliefMatrix,
        sampling: &Sampling,
    ) -> Vec<Option<Samples>> {
        let group = |start: usize| {
            let group: Vec<&[f64]> =
                (start..rows.n_rows().min(start + L)).map(|row| rows.values_of(row)).collect();
            self.sample_group(pool, &group, start, sampling)
        };
        let starts: Vec<usize> = (0..rows.n_rows()).step_by(L).collect();
        let parts: Vec<Vec<Option<Samples>>> = starts.into_par_iter().map(group).collect();
        self.runner.rest();
        parts.into_iter().flatten().collect()
    }

    /// The samples of up to `L` rows. The first one has the position `start` in its table.
    fn sample_group<const L: usize>(
        &self,
        pool: &Pool<Workspace<SumProduct, L>>,
        rows: &[&[f64]],
        start: usize,
        sampling: &Sampling,
    ) -> Vec<Option<Samples>> {
        let sample = |workspace: &Workspace<SumProduct, L>, lane: usize, log_total: f64| {
            if workspace.is_suspicious(lane) {
                return Attempt::Underflow;
            }
            let Some(mixture) = self.mixture(rows[lane], log_total) else { return Attempt::Done(None) };
            let rng = sampling.generator(start + lane);
            let samples = self.walk_back(workspace, lane, rows[lane], &mixture, sampling.n_samples, rng);
            samples.map_or(Attempt::Underflow, |samples| Attempt::Done(Some(samples)))
        };
        let attempts: Vec<Attempt> = self.runner.with(pool, |workspace| {
            let log_totals = self.runner.collect(workspace, rows);
            (0..rows.len()).map(|lane| sample(workspace, lane, log_totals[lane])).collect()
        });
        let finish = |(lane, attempt): (usize, Attempt)| match attempt {
            Attempt::Done(samples) => samples,
            Attempt::Underflow => {
                self.sample_in_logarithms(rows[lane], sampling.n_samples, sampling.generator(start + lane))
            }
        };
        attempts.into_iter().enumerate().map(finish).collect()
    }

    /// The samples of a row whose numbers may underflow; `None` if it is impossible.
    fn sample_in_logarithms(&self, row: &[f64], n: usize, rng: ChaCha8Rng) -> Option<Samples> {
        self.runner.with(&self.runner.log, |workspace| {
            let [log_total] = self.runner.collect(workspace, &[row]);
            let mixture = self.mixture(row, log_total)?;
            let samples = self.walk_back(workspace, 0, row, &mixture, n, rng);
            Some(samples.expect("logarithms do not underflow"))
        })
    }

    /// The probability that a sample is a typical combination, given ln Z of the plan; `None` if the row is impossible.
    fn mixture(&self, row: &[f64], log_total: f64) -> Option<Mixture> {
        let log_rest = log_total + self.runner.log_unspoken(row);
        (log_rest > f64::NEG_INFINITY).then(|| self.typical.mixture(row, log_rest))
    }

    /// Draws samples by walks through the tables; `None` if underflow may have affected a draw.
    fn walk_back<S: Semiring, const L: usize>(
        &self,
        workspace: &Workspace<S, L>,
        lane: usize,
        row: &[f64],
        mixture: &Mixture,
        n: usize,
        rng: ChaCha8Rng,
    ) -> Option<Samples> {
        let runner = self.runner;
        let mut walker = Walker {
            plan: &runner.plan,
            weights: &runner.weights,
            workspace,
            lane,
            rng,
            entries: vec![0; runner.plan.tables.len()],
            choices: Vec::new(),
            shares: Vec::new(),
            is_sound: true,
        };
        let mut samples = Vec::with_capacity(n);
        for _ in 0..n {
            let combination = self.typical.sample(mixture, &mut walker.rng);
            samples.push(Assignment::from_indices(match combination {
                Some(combination) => combination,
                None => {
                    walker.run(self.walk);
                    walker.is_sound.then(|| self.categories(row, &mut walker))?
                }
            }));
        }
        Some(samples)
    }

    /// The category of every label, given the states that the walk came to.
    fn categories<S: Semiring, const L: usize>(
        &self,
        row: &[f64],
        walker: &mut Walker<'_, S, L>,
    ) -> Vec<usize> {
        let category = |(label, leaf): (usize, &Option<usize>)| {
            let state = leaf.map_or(0, |leaf| walker.entries[leaf]);
            let beliefs = &row[self.runner.model.block(LabelId::new(label))];
            draw_category(beliefs, &self.runner.states.of_category[label], state, &mut walker.rng)
        };
        self.runner.belief_leaves.iter().enumerate().map(category).collect()
    }
}

/// The joins of a plan, in a form for walking backward.
pub(super) struct Walk {
    /// One entry per step of the plan; `None` for steps that are no join, or independent of the row.
    joins: Vec<Option<Join>>,
}

/// The entries of two tables that contribute to an entry of their join.
struct Join {
    /// The variables of the result. The one whose state changes fastest comes first.
    kept: Vec<Digit>,
    /// The offsets in both tables of every combination of the variables that are summed out.
    summed: Vec<[usize; 2]>,
}

/// A variable of the result of a join.
struct Digit {
    n_states: usize,
    /// The distance between adjacent states in both tables; 0 in a table without the variable.
    strides: [usize; 2],
    /// Whether it is a fired variable of both tables.
    or: bool,
}

impl Walk {
    fn new(plan: &Plan) -> Self {
        let join = |step: &Step| match step {
            // No belief contributes to a table that is independent of the row.
            Step::Join { a, b, out, .. } | Step::Or { a, b, out, .. } if !plan.tables[*out].fixed => {
                Some(Join::new(plan, [*a, *b], *out))
            }
            _ => None,
        };
        Self { joins: plan.steps.iter().map(join).collect() }
    }
}

impl Join {
    fn new(plan: &Plan, inputs: [usize; 2], out: usize) -> Self {
        let (inputs, out) = (inputs.map(|table| &plan.tables[table]), &plan.tables[out]);
        let strides = |variable| inputs.map(|table| table.stride(variable).unwrap_or(0));
        let digit = |(&variable, &n_states): (&usize, &usize)| Digit {
            n_states,
            strides: strides(variable),
            or: inputs[1].n_states(variable).is_some_and(|n| n > n_states),
        };
        let kept = out.variables.iter().zip(&out.sizes).rev().map(digit).collect();
        let mut summed = vec![[0, 0]];
        for (index, table) in inputs.into_iter().enumerate() {
            for (&variable, &n_states) in table.variables.iter().zip(&table.sizes) {
                let seen = index == 1 && inputs[0].variables.contains(&variable);
                if !seen && !out.variables.contains(&variable) {
                    summed = combined(&summed, strides(variable), n_states);
                }
            }
        }
        Self { kept, summed }
    }
}

impl Digit {
    /// The offsets of these states in both tables.
    fn offsets(&self, states: [usize; 2]) -> [usize; 2] {
        [states[0] * self.strides[0], states[1] * self.strides[1]]
    }
}

fn shift(entries: &mut [[usize; 2]], by: [usize; 2]) {
    for entry in entries {
        *entry = [entry[0] + by[0], entry[1] + by[1]];
    }
}

/// The offsets of all combinations with one more variable.
fn combined(offsets: &[[usize; 2]], [a, b]: [usize; 2], n_states: usize) -> Vec<[usize; 2]> {
    let states = |offset: &[usize; 2]| {
        let [x, y] = *offset;
        (0..n_states).map(move |state| [x + state * a, y + state * b])
    };
    offsets.iter().flat_map(states).collect()
}

/// A walk backward through a plan that has run forward.
struct Walker<'r, S, const L: usize> {
    plan: &'r Plan,
    weights: &'r [[f64; 2]],
    workspace: &'r Workspace<S, L>,
    lane: usize,
    rng: ChaCha8Rng,
    /// The entry drawn in each table.
    entries: Vec<usize>,
    /// Buffers for a draw.
    choices: Vec<[usize; 2]>,
    shares: Vec<f64>,
    /// Whether all shares so far were accurate in spite of underflow.
    is_sound: bool,
}

const SILENT: usize = 0;
const FIRED: usize = 1;
const EITHER: usize = 2;

impl<S: Semiring, const L: usize> Walker<'_, S, L> {
    /// Draws an entry in every table that depends on the row.
    fn run(&mut self, walk: &Walk) {
        for &root in &self.plan.roots {
            self.entries[root] = 0;
        }
        for (step, join) in self.plan.steps.iter().zip(&walk.joins).rev() {
            let out = self.entries[step.out()];
            match (step, join) {
                _ if self.plan.tables[step.out()].fixed => {}
                (Step::Join { a, b, .. } | Step::Or { a, b, .. }, Some(join)) => {
                    [self.entries[*a], self.entries[*b]] = self.join(join, [*a, *b], out);
                }
                (Step::Weigh { input, rule, stride, .. }, _) => {
                    let state = out / stride % 2;
                    let silent = out - state * stride;
                    let weights = if state == SILENT { self.weights[rule.index()] } else { [1.0, 1.0] };
                    self.entries[*input] = self.one_of(*input, [silent, silent + stride], weights);
                }
                (Step::Extend { input, stride, .. }, _) => {
                    let (block, state, rest) = (out / stride / 3, out / stride % 3, out % stride);
                    let silent = block * 2 * stride + rest;
                    self.entries[*input] = match state {
                        EITHER => self.one_of(*input, [silent, silent + stride], [1.0, 1.0]),
                        state => silent + state * stride,
                    };
                }
                (Step::Join { .. } | Step::Or { .. }, None) => {
                    unreachable!("every join that depends on the row is known")
                }
            }
        }
    }

    /// The entries of the two joined tables, given the entry of the result.
    fn join(&mut self, join: &Join, [a, b]: [usize; 2], out: usize) -> [usize; 2] {
        self.choices.clear();
        self.choices.push([0, 0]);
        let mut rest = out;
        for digit in &join.kept {
            let state = rest % digit.n_states;
            rest /= digit.n_states;
            if digit.or && state == FIRED {
                // Fired in the first table and either in the second, or fired in the second only.
                let half = self.choices.len();
                self.choices.extend_from_within(..);
                shift(&mut self.choices[..half], digit.offsets([FIRED, EITHER]));
                shift(&mut self.choices[half..], digit.offsets([SILENT, FIRED]));
            } else {
                shift(&mut self.choices, digit.offsets([state, state]));
            }
        }
        let lost = self.workspace.lost([a, b], self.lane);
        let [a, b] = [a, b].map(|table| self.workspace.value(&self.plan.tables[table]));
        self.shares.clear();
        for [x, y] in &self.choices {
            let share = |[u, v]: &[usize; 2]| S::mul(a[x + u][self.lane], b[y + v][self.lane]);
            self.shares.extend(join.summed.iter().map(share));
        }
        let drawn = self.draw(lost);
        let ([x, y], [u, v]) =
            (self.choices[drawn / join.summed.len()], join.summed[drawn % join.summed.len()]);
        [x + u, y + v]
    }

    /// Draws one of two entries of a table, in proportion to value times weight.
    fn one_of(&mut self, table: usize, entries: [usize; 2], weights: [f64; 2]) -> usize {
        let values = self.workspace.value(&self.plan.tables[table]);
        self.shares.clear();
        for (entry, weight) in entries.into_iter().zip(weights) {
            self.shares.push(S::mul(S::element(weight), values[entry][self.lane]));
        }
        let lost = self.workspace.lost_by_weight(table, weights, self.lane);
        entries[self.draw(lost)]
    }

    /// Draws the position of a share, in proportion to the shares. `lost` bounds the error of each by underflow.
    fn draw(&mut self, lost: f64) -> usize {
        if self.shares.len() == 1 {
            return 0;
        }
        if S::SCALED {
            let total: f64 = self.shares.iter().sum();
            self.is_sound &= is_kept(total, lost * self.shares.len() as f64);
        } else {
            exponentiate(&mut self.shares);
        }
        let drawn = draw(&self.shares, &mut self.rng);
        debug_assert!(drawn.is_some() || !self.is_sound, "an entry that was drawn is summed from something");
        drawn.unwrap_or(0)
    }
}
