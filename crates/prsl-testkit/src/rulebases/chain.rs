//! The answers of bases whose labels form a chain of layers.

use super::{Answer, rescale};

/// Some labels of a chain, and all their assignments with the states before and after them.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    labels: Vec<usize>,
    steps: Vec<Step>,
    n_from: usize,
    n_to: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The labels of the layer that are yes, as a bit set.
    pub(super) yes: u64,
    /// The product of the weights of rules.
    pub(super) weight: f64,
}

impl Layer {
    pub(super) fn new(labels: Vec<usize>, mut steps: Vec<Step>) -> Self {
        steps.retain(|step| step.weight > 0.0);
        let n = |state: fn(&Step) -> usize| steps.iter().map(state).max().map_or(0, |last| last + 1);
        let (n_from, n_to) = (n(|step| step.from), n(|step| step.to));
        Self { labels, steps, n_from, n_to }
    }

    /// The product of the beliefs in each assignment of the labels.
    fn beliefs(&self, beliefs: &[f64]) -> Vec<f64> {
        let belief = |yes: u64, place: usize| match yes >> place & 1 {
            1 => beliefs[self.labels[place]],
            _ => 1.0 - beliefs[self.labels[place]],
        };
        let product = |yes: u64| (0..self.labels.len()).map(|place| belief(yes, place)).product();
        (0..1u64 << self.labels.len()).map(product).collect()
    }
}

/// Sums over all sequences of steps, forward and backward.
pub(super) fn chain_answer(layers: &[Layer], beliefs: &[f64]) -> Answer {
    let mut log_evidence = 0.0;
    let mut forward = vec![vec![1.0]];
    for layer in layers {
        let (before, beliefs) = (&forward[forward.len() - 1], layer.beliefs(beliefs));
        let mut after = vec![0.0; layer.n_to];
        for step in &layer.steps {
            // A hard rule may exclude all steps to a state.
            let weight_before = before.get(step.from).copied().unwrap_or(0.0);
            after[step.to] += weight_before * step.weight * beliefs[step.yes as usize];
        }
        log_evidence += rescale(&mut after).ln();
        forward.push(after);
    }
    let last = &forward[forward.len() - 1];
    log_evidence += last.iter().sum::<f64>().ln();
    let mut marginals = vec![0.0; beliefs.len()];
    let mut after = vec![1.0; last.len()];
    for (layer, before) in layers.iter().zip(&forward).rev() {
        let belief_of = layer.beliefs(beliefs);
        let mut backward = vec![0.0; layer.n_from.max(before.len())];
        let mut masses = vec![0.0; belief_of.len()];
        for step in &layer.steps {
            let weight_after = after.get(step.to).copied().unwrap_or(0.0);
            let weight = step.weight * belief_of[step.yes as usize] * weight_after;
            backward[step.from] += weight;
            masses[step.yes as usize] += before.get(step.from).copied().unwrap_or(0.0) * weight;
        }
        let total: f64 = masses.iter().sum();
        for (place, &label) in layer.labels.iter().enumerate() {
            let yes = masses.iter().enumerate().filter(|(yes, _)| yes >> place & 1 == 1);
            marginals[label] = yes.map(|(_, mass)| mass).sum::<f64>() / total;
        }
        rescale(&mut backward);
        after = backward;
    }
    Answer { log_evidence, marginals }
}
