//! Expected violations of all rules, added up over rows.

use rayon::prelude::*;

use super::JunctionTree;
use super::runner::{MAX_BYTES_OF_EIGHT_LANES, Runner};
use super::sweep::{Back, Workspace, boundary};
use crate::infer::account::Pool;
use crate::infer::expectations::{CHUNK, Expectations, Rows, push_marginals};
use crate::infer::semiring::SumProduct;
use crate::rule::RuleId;

impl JunctionTree {
    /// Changes the weights of all rules, silent and fired.
    pub(crate) fn reweigh(&mut self, weights: Vec<[f64; 2]>) {
        self.careful.as_mut().expect("the tree was compiled without signs").reweigh(weights);
    }

    /// See [`Runner::expectations`].
    pub(crate) fn expectations(&self, rows: &Rows<'_>) -> Expectations {
        self.careful().expect("the tree was compiled without signs").expectations(rows)
    }
}

impl Runner<SumProduct> {
    /// ln Z and marginals of every row, and the weighted number of rows in which each rule has fired, expected.
    pub(crate) fn expectations(&self, rows: &Rows<'_>) -> Expectations {
        let tables = boundary(&self.plan);
        let is_cached = self.plan.workspace_bytes(self.weights.len(), 8) <= MAX_BYTES_OF_EIGHT_LANES;
        // The number of threads must not decide, because eight lanes add in another order than one. Threads without room wait.
        let sums = match is_cached && self.fits(8, 1) {
            true => self.expectations_in(&self.eight, rows, &tables),
            false => self.expectations_in(&self.one, rows, &tables),
        };
        self.rest();
        sums
    }

    fn expectations_in<const L: usize>(
        &self,
        pool: &Pool<Workspace<SumProduct, L>>,
        rows: &Rows<'_>,
        tables: &[usize],
    ) -> Expectations {
        let mut sum = Part::new(self, tables);
        let mut answer = Expectations::default();
        // Sums are over fixed chunks, merged in order. So the bits do not depend on the number of threads.
        let starts: Vec<usize> = (0..rows.n_rows()).step_by(CHUNK).collect();
        for group in starts.chunks(4 * rayon::current_num_threads()) {
            let parts: Vec<Part> =
                group.par_iter().map(|&start| self.part(pool, rows, start, tables)).collect();
            for part in parts {
                answer.log_evidence.extend(&part.log_evidence);
                answer.marginals.extend(&part.marginals);
                sum.add(&part);
            }
        }
        answer.violated = self.fired(&sum, tables);
        answer
    }

    fn part<const L: usize>(
        &self,
        pool: &Pool<Workspace<SumProduct, L>>,
        rows: &Rows<'_>,
        start: usize,
        tables: &[usize],
    ) -> Part {
        let mut part = Part::new(self, tables);
        let end = rows.n_rows().min(start + CHUNK);
        self.with(pool, |workspace| {
            for first in (start..end).step_by(L) {
                self.lanes(workspace, rows, first..end.min(first + L), tables, &mut part);
            }
        });
        part
    }

    /// Adds up to `L` rows.
    fn lanes<const L: usize>(
        &self,
        workspace: &mut Workspace<SumProduct, L>,
        rows: &Rows<'_>,
        range: std::ops::Range<usize>,
        tables: &[usize],
        part: &mut Part,
    ) {
        let group: Vec<&[f64]> = range.clone().map(|row| rows.values_of(row)).collect();
        let answers = self.sweep_back(workspace, &group, Back::Boundary);
        let mut weights = [0.0; L];
        for (lane, (answer, row)) in answers.into_iter().zip(range).enumerate() {
            let answer = answer.filter(|_| !workspace.is_suspicious_of_rules(lane));
            let is_plain = answer.as_ref().is_some_and(|answer| answer.log_total > f64::NEG_INFINITY);
            match answer {
                Some(answer) => part.push(self, answer.log_total, &answer.masses),
                None => self.add_in_logarithms(group[lane], rows.weights[row], part),
            }
            if is_plain {
                weights[lane] = rows.weights[row];
            }
        }
        part.weight += weights.iter().sum::<f64>();
        workspace.add_boundary(&self.plan, tables, &weights, &mut part.boundary);
        for &rule in &part.weighed {
            let [silent, fired] = workspace.masses(rule);
            let [w_silent, w_fired] = self.weights[rule.index()];
            for lane in (0..L).filter(|&lane| weights[lane] > 0.0) {
                let fired = w_fired * fired[lane];
                part.fired[rule.index()] += weights[lane] * fired / (w_silent * silent[lane] + fired);
            }
        }
    }

    /// Adds a row whose numbers underflow.
    fn add_in_logarithms(&self, row: &[f64], weight: f64, part: &mut Part) {
        let answer = self.one(row);
        part.push(self, answer.log_total, &answer.masses);
        if answer.log_total == f64::NEG_INFINITY {
            return;
        }
        let (_, agreement) = self.one_with_agreement(row);
        for (rule, agreement) in agreement.into_iter().enumerate() {
            // a = w(silent) s + w(fired) (1 − s), where s is the cavity probability that the rule is silent.
            let [w_silent, w_fired] = self.weights[rule];
            let change = w_fired - w_silent;
            let fired = if change == 0.0 { f64::NAN } else { (agreement - w_silent) / change };
            let fired = if fired.is_nan() { 0.5 } else { w_fired * fired.clamp(0.0, 1.0) / agreement };
            part.fired[rule] += weight * fired;
        }
    }

    /// The expected number of rows in which each rule has fired.
    fn fired(&self, sum: &Part, tables: &[usize]) -> Vec<f64> {
        let mut workspace: Workspace<SumProduct, 1> = self.workspace();
        workspace.distribute_boundary(&self.plan, &self.leaves, tables, &sum.boundary);
        let mut fired = sum.fired.clone();
        for (index, slot) in fired.iter_mut().enumerate() {
            let rule = RuleId::new(index);
            if sum.weighed.contains(&rule) {
                continue;
            }
            let [silent, of_fired] = workspace.masses(rule).map(|[mass]| mass);
            let [w_silent, w_fired] = self.weights[index];
            let total = w_silent * silent + w_fired * of_fired;
            if total > 0.0 {
                *slot += sum.weight * w_fired * of_fired / total;
            }
        }
        fired
    }
}

/// The sums of a chunk of rows.
struct Part {
    log_evidence: Vec<f64>,
    marginals: Vec<f64>,
    /// The weight of the rows that are in `boundary`.
    weight: f64,
    boundary: Vec<f64>,
    /// The expected number of rows in which each rule has fired, as far as it is not in `boundary`.
    fired: Vec<f64>,
    /// The rules whose weights are applied in steps that depend on the row.
    weighed: Vec<RuleId>,
}

impl Part {
    fn new(runner: &Runner<SumProduct>, tables: &[usize]) -> Self {
        let plan = &runner.plan;
        Self {
            log_evidence: Vec::new(),
            marginals: Vec::new(),
            weight: 0.0,
            boundary: vec![0.0; tables.iter().map(|&table| plan.tables[table].size).sum()],
            fired: vec![0.0; runner.weights.len()],
            weighed: plan.rules_of_steps(),
        }
    }

    fn push(&mut self, runner: &Runner<SumProduct>, log_total: f64, masses: &[f64]) {
        self.log_evidence.push(log_total);
        push_marginals(&runner.model, masses, &mut self.marginals);
    }

    fn add(&mut self, other: &Self) {
        self.weight += other.weight;
        self.boundary.iter_mut().zip(&other.boundary).for_each(|(sum, other)| *sum += other);
        self.fired.iter_mut().zip(&other.fired).for_each(|(sum, other)| *sum += other);
    }
}
