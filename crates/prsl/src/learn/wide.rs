//! Rules over all labels: too wide for a clique, and still exact.
//!
//! A noisy-or rule is f(l) = p + (1 − 2p) ∏ⱼ qⱼ(lⱼ). The second part is a factor for each label on its own, so that a model with W
//! wide rules is a sum of 2^W models without: for each subset of the rules, beliefs times the q of its rules.
//!
//! ```text
//! Z = Σ_S ∏_{w ∈ S} (1 − 2p_w) ∏_{w ∉ S} p_w · Z(π ∏_{w ∈ S} q_w)
//! ```

use super::objective::Problem;
use super::sweep::{LANES, Lane, Sweep, dot};

/// A wide rule. Its q are above 0 where they are learned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wide<'a> {
    /// Where its q start: one for each category of each label, in their order.
    pub(crate) start: usize,
    pub(crate) sizes: &'a [usize],
    pub(crate) probability: f64,
}

impl Wide<'_> {
    /// The places of the q of an assignment's categories.
    fn places(&self, assignment: impl Fn(usize) -> usize) -> impl Iterator<Item = usize> {
        let mut block = self.start;
        self.sizes.iter().enumerate().map(move |(label, size)| {
            block += size;
            block - size + assignment(label)
        })
    }

    /// ∏ q, and f.
    fn silence_and_factor(&self, parameters: &[f64], assignment: impl Fn(usize) -> usize) -> [f64; 2] {
        let silence: f64 = self.places(assignment).map(|at| parameters[at]).product();
        [silence, (1.0 - self.probability) * silence + self.probability * (1.0 - silence)]
    }

    /// f of an assignment.
    pub(crate) fn factor(&self, parameters: &[f64], assignment: impl Fn(usize) -> usize) -> f64 {
        self.silence_and_factor(parameters, assignment)[1]
    }

    /// Adds the gradient of ln f of an assignment, so many times.
    pub(crate) fn add_log_factor(
        &self,
        parameters: &[f64],
        assignment: impl Fn(usize) -> usize + Copy,
        times: f64,
        gradient: &mut [f64],
    ) {
        if times == 0.0 {
            return;
        }
        let [silence, factor] = self.silence_and_factor(parameters, assignment);
        let slope = times * (1.0 - 2.0 * self.probability) * silence / factor;
        let is_learned = |at: &usize| parameters[*at] > 0.0;
        self.places(assignment).filter(is_learned).for_each(|at| gradient[at] += slope / parameters[at]);
    }
}

/// The models without wide rules that a model with some is a sum of.
pub(crate) struct Split {
    parts: Vec<Part>,
    /// For each part: ln of what it adds to Z, its sign apart, for eight rows.
    pub(crate) logs: Vec<Lane>,
}

struct Part {
    /// ∏ (1 − 2p) ∏ p: the logarithm of its size, and its sign.
    log: f64,
    sign: f64,
    /// ∏ q for each category.
    factors: Vec<f64>,
    /// Where the q of its rules start.
    starts: Vec<usize>,
}

impl Split {
    /// `None` if there are no wide rules.
    pub(crate) fn new(problem: &Problem, parameters: &[f64]) -> Option<Self> {
        let n_categories = problem.tree.sizes.iter().sum();
        let nothing = Part { log: 0.0, sign: 1.0, factors: vec![1.0; n_categories], starts: Vec::new() };
        let mut parts = vec![nothing];
        for wide in problem.wide() {
            let q = &parameters[wide.start..][..n_categories];
            parts = parts.into_iter().flat_map(|part| part.split(wide, q)).collect();
        }
        let logs = vec![[f64::NEG_INFINITY; LANES]; parts.len()];
        (parts.len() > 1).then_some(Self { parts, logs })
    }

    pub(crate) fn n_parts(&self) -> usize {
        self.parts.len()
    }

    /// Does something with the beliefs of a part.
    pub(crate) fn within(&self, part: usize, sweep: &mut Sweep, work: impl FnOnce(&mut Sweep)) {
        let beliefs = sweep.beliefs.clone();
        for (belief, factor) in sweep.beliefs.iter_mut().zip(&self.parts[part].factors) {
            *belief = belief.map(|belief| belief * factor);
        }
        work(sweep);
        sweep.beliefs = beliefs;
    }

    /// ln Z of all parts, each by a sweep up.
    pub(crate) fn sum_up(&mut self, sweep: &mut Sweep, mut up: impl FnMut(&mut Sweep)) -> Lane {
        for part in 0..self.n_parts() {
            self.within(part, sweep, &mut up);
            self.logs[part] = sweep.log_total.map(|log| log + self.parts[part].log);
        }
        std::array::from_fn(|l| {
            let largest = self.logs.iter().map(|logs| logs[l]).fold(f64::NEG_INFINITY, f64::max);
            let term = |(part, logs): (&Part, &Lane)| part.sign * (logs[l] - largest).exp();
            let sum: f64 = self.parts.iter().zip(&self.logs).map(term).sum();
            if sum > 0.0 { largest + sum.ln() } else { f64::NEG_INFINITY }
        })
    }

    /// What a part's share in Z counts, its sign included.
    pub(crate) fn signed(&self, part: usize, share: Lane) -> Lane {
        share.map(|share| self.parts[part].sign * share)
    }

    /// Adds ∂ / ∂ q from the marginals of a part.
    pub(crate) fn add_gradient(
        &self,
        part: usize,
        parameters: &[f64],
        marginals: &[Lane],
        share: &Lane,
        gradient: &mut [f64],
    ) {
        for &start in &self.parts[part].starts {
            let is_learned = |(at, _): &(usize, &Lane)| parameters[start + at] > 0.0;
            for (at, marginal) in marginals.iter().enumerate().filter(is_learned) {
                gradient[start + at] += dot(marginal, share) / parameters[start + at];
            }
        }
    }
}

impl Part {
    /// Without and with one more rule.
    fn split(self, wide: Wide, q: &[f64]) -> [Self; 2] {
        let toward_silence = 1.0 - 2.0 * wide.probability;
        let with = Self {
            log: self.log + toward_silence.abs().ln(),
            sign: self.sign * toward_silence.signum(),
            factors: self.factors.iter().zip(q).map(|(factor, q)| factor * q).collect(),
            starts: self.starts.iter().copied().chain([wide.start]).collect(),
        };
        [Self { log: self.log + wide.probability.ln(), ..self }, with]
    }
}
