//! Expected violations of all rules, added up over rows.

use rayon::prelude::*;

use super::Circuit;
use super::evaluator::Evaluator;
use super::sweep::Workspace;
use crate::infer::account::Pool;
use crate::infer::expectations::{CHUNK, Expectations, Rows, push_marginals};
use crate::infer::ranking::Answer;
use crate::infer::semiring::SumProduct;

impl Circuit {
    /// Changes the weights of all rules, silent and fired. Hard rules keep theirs.
    pub(crate) fn reweigh(&mut self, weights: Vec<[f64; 2]>) {
        self.sums.constants = self.sums.layout.constants(&weights);
        self.sums.weights = weights;
    }

    /// ln Z and marginals of every row, and the weighted number of rows in which each rule has fired, expected.
    pub(crate) fn expectations(&self, rows: &Rows<'_>) -> Expectations {
        let starts: Vec<usize> = (0..rows.n_rows()).step_by(CHUNK).collect();
        // Sums are over fixed chunks, merged in order. So the bits do not depend on the number of threads.
        let parts: Vec<Expectations> = match self.sums.n_lanes() {
            8 => starts.par_iter().map(|&start| self.sums.part(&self.sums.eight, rows, start)).collect(),
            _ => starts.par_iter().map(|&start| self.sums.part(&self.sums.one, rows, start)).collect(),
        };
        let mut answer =
            Expectations { violated: vec![0.0; self.sums.weights.len()], ..Expectations::default() };
        for part in parts {
            answer.log_evidence.extend(part.log_evidence);
            answer.marginals.extend(part.marginals);
            answer.violated.iter_mut().zip(part.violated).for_each(|(sum, part)| *sum += part);
        }
        // The weights of hard rules are not in the circuit: they have always fired, or never.
        let possible = answer.log_evidence.iter().zip(rows.weights);
        let total: f64 =
            possible.filter(|(log, _)| **log > f64::NEG_INFINITY).map(|(_, weight)| weight).sum();
        for (slot, &[silent, _]) in answer.violated.iter_mut().zip(&self.sums.weights) {
            if silent == 0.0 {
                *slot = total;
            }
        }
        answer
    }
}

impl Evaluator<SumProduct> {
    fn part<const L: usize>(
        &self,
        pool: &Pool<Workspace<SumProduct, L>>,
        rows: &Rows<'_>,
        start: usize,
    ) -> Expectations {
        let mut part = Expectations { violated: vec![0.0; self.weights.len()], ..Expectations::default() };
        let end = rows.n_rows().min(start + CHUNK);
        pool.with(
            || Workspace::new(&self.layout),
            |workspace| {
                for first in (start..end).step_by(L) {
                    let range = first..end.min(first + L);
                    let group: Vec<&[f64]> = range.clone().map(|row| rows.values_of(row)).collect();
                    let answers = self.answers(workspace, &group, &self.constants);
                    let mut weights = [0.0; L];
                    for (lane, (answer, row)) in answers.into_iter().zip(range).enumerate() {
                        match answer {
                            Some(answer) => {
                                if answer.log_total > f64::NEG_INFINITY {
                                    weights[lane] = rows.weights[row];
                                }
                                self.push(&mut part, &answer);
                            }
                            None => self.add_in_logarithms(group[lane], rows.weights[row], &mut part),
                        }
                    }
                    self.add_fired(workspace, &weights, &mut part.violated);
                }
            },
        );
        part
    }

    /// Adds weight · P(fired) of each soft rule, after both passes.
    fn add_fired<const L: usize>(
        &self,
        workspace: &Workspace<SumProduct, L>,
        weights: &[f64; L],
        fired: &mut [f64],
    ) {
        let totals = workspace.total();
        let factors: [f64; L] =
            std::array::from_fn(|l| if weights[l] == 0.0 { 0.0 } else { weights[l] / totals[l] });
        for (node, range) in self.layout.nodes.iter().enumerate() {
            for edge in range.start as usize..range.end as usize {
                let mut rules = self.layout.rules(edge).filter(|(_, fired)| *fired).peekable();
                if rules.peek().is_none() {
                    continue;
                }
                let (above, below) = (&workspace.derivatives[node], &workspace.edges[edge]);
                let mass: f64 = (0..L).map(|l| factors[l] * above[l] * below[l]).sum();
                rules.for_each(|(rule, _)| fired[rule.index()] += mass);
            }
        }
    }

    fn add_in_logarithms(&self, row: &[f64], weight: f64, part: &mut Expectations) {
        let answer = self.in_logarithms(row, &self.constants);
        self.push(part, &answer);
        if answer.log_total == f64::NEG_INFINITY {
            return;
        }
        for (slot, [silent, fired]) in
            part.violated.iter_mut().zip(self.log_masses_of_rules(row, &self.constants))
        {
            if fired > f64::NEG_INFINITY {
                *slot += weight / (1.0 + (silent - fired).exp());
            }
        }
    }

    fn push(&self, part: &mut Expectations, answer: &Answer) {
        part.log_evidence.push(answer.log_total);
        push_marginals(&self.model, &answer.masses, &mut part.marginals);
    }
}
