//! The total weights W(c, m) of two labels' categories, and where along a line of beliefs the target wins.

/// Relative difference up to which two weights are equal. It is above the rounding errors of exact inference.
const TIE: f64 = 1e-12;

/// W(c, m) for every category c of a label that changes, and every category m of the target's label.
pub(super) struct Weights {
    target: usize,
    /// ln Z(X = c); −∞ if c is impossible.
    log_evidence: Vec<f64>,
    /// P(T = m | X = c); all 0 if c is impossible.
    conditional: Vec<Vec<f64>>,
}

/// The same with factors Z(X = c), divided by the largest of them.
pub(super) struct ScaledWeights {
    target: usize,
    evidence: Vec<f64>,
    conditional: Vec<Vec<f64>>,
}

impl Weights {
    pub fn new(target: usize) -> Self {
        Self { target, log_evidence: Vec::new(), conditional: Vec::new() }
    }

    /// Adds the next category.
    pub fn push(&mut self, log_evidence: f64, conditional: Option<&[f64]>) {
        self.log_evidence.push(log_evidence);
        self.conditional.push(conditional.unwrap_or_default().to_vec());
    }

    pub fn n_categories(&self) -> usize {
        self.log_evidence.len()
    }

    pub fn scaled(self) -> ScaledWeights {
        let largest = self.log_evidence.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let evidence = |&log: &f64| if log == f64::NEG_INFINITY { 0.0 } else { (log - largest).exp() };
        ScaledWeights {
            target: self.target,
            evidence: self.log_evidence.iter().map(evidence).collect(),
            conditional: self.conditional,
        }
    }
}

impl ScaledWeights {
    /// The probability of the target if a category is observed, if the target is the most probable one then.
    pub fn wins_if_observed(&self, category: usize) -> Option<f64> {
        self.wins(&self.conditional[category])
    }

    /// The same for any belief.
    pub fn wins_if_believed(&self, belief: &[f64]) -> Option<f64> {
        self.wins(&self.totals(belief))
    }

    /// The interval of s in which the target is the most probable category, if the belief is s in `category` and
    /// (1 − s) times `others` in the others.
    pub fn winning_interval(&self, category: usize, others: &[f64]) -> Option<[f64; 2]> {
        let mut certain = vec![0.0; self.evidence.len()];
        certain[category] = 1.0;
        let [zero, one] = [self.totals(others), self.totals(&certain)];
        if zero.is_empty() {
            return None; // no category is possible
        }
        let (mut low, mut high) = (0.0_f64, 1.0_f64);
        for rival in self.rivals(zero.len()) {
            let lead = |totals: &[f64]| lead(totals[self.target], totals[rival]);
            let (at_0, at_1) = (lead(&zero), lead(&one)); // (4)
            match (at_0 > 0.0, at_1 > 0.0) {
                (false, false) => return None,
                (true, true) => {}
                (false, true) => low = low.max(-at_0 / (at_1 - at_0)),
                (true, false) => high = high.min(at_0 / (at_0 - at_1)),
            }
        }
        // Thresholds may be so close to 0 or 1 that only certainty suffices.
        match high - low > TIE {
            true => Some([low, high]),
            false if self.wins(&one).is_some() => Some([1.0, 1.0]),
            false => self.wins(&zero).map(|_| [0.0, 0.0]),
        }
    }

    /// N(m) for every m. (1)
    fn totals(&self, belief: &[f64]) -> Vec<f64> {
        let n_target = self.conditional.iter().map(Vec::len).max().unwrap_or(0);
        let mut totals = vec![0.0; n_target];
        for ((belief, evidence), conditional) in belief.iter().zip(&self.evidence).zip(&self.conditional) {
            for (total, probability) in totals.iter_mut().zip(conditional) {
                *total += belief * evidence * probability;
            }
        }
        totals
    }

    fn wins(&self, totals: &[f64]) -> Option<f64> {
        let &target = totals.get(self.target)?;
        let sum: f64 = totals.iter().sum();
        let wins = self.rivals(totals.len()).all(|rival| exceeds(target, totals[rival]));
        wins.then(|| target / sum)
    }

    fn rivals(&self, n: usize) -> impl Iterator<Item = usize> {
        let target = self.target;
        (0..n).filter(move |&category| category != target)
    }
}

/// Whether the first of two weights is larger by more than rounding errors.
pub(super) fn exceeds(weight: f64, rival: f64) -> bool {
    lead(weight, rival) > 0.0
}

/// The difference of two weights; 0 if they are equal up to rounding errors.
fn lead(weight: f64, rival: f64) -> f64 {
    let difference = weight - rival;
    if difference.abs() <= TIE * (weight + rival) { 0.0 } else { difference }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two categories with these probabilities of the target, and one rival.
    fn two(evidence: [f64; 2], target: [f64; 2]) -> ScaledWeights {
        let mut weights = Weights::new(0);
        for (evidence, p) in evidence.into_iter().zip(target) {
            weights.push(evidence.ln(), (evidence > 0.0).then_some(&[p, 1.0 - p]));
        }
        weights.scaled()
    }

    #[test]
    fn the_interval_is_where_the_target_wins() {
        let weights = two([0.2, 0.4], [0.9, 0.3]);
        let [low, high] = weights.winning_interval(0, &[0.0, 1.0]).unwrap();
        assert_eq!(high, 1.0);
        let wins = |s: f64| weights.wins_if_believed(&[s, 1.0 - s]).is_some();
        assert!(!wins(low - 1e-9) && wins(low + 1e-9), "{low}");
        assert_eq!(weights.winning_interval(1, &[1.0, 0.0]).unwrap()[1], 1.0 - low);
    }

    #[test]
    fn a_lasting_tie_is_never_won() {
        assert_eq!(two([0.2, 0.4], [0.5, 0.5]).winning_interval(0, &[0.0, 1.0]), None);
        assert_eq!(two([0.2, 0.4], [0.5, 0.3]).winning_interval(0, &[0.0, 1.0]), None);
        assert_eq!(two([0.2, 0.4], [0.5, 0.7]).winning_interval(0, &[0.0, 1.0]), Some([0.0, 1.0]));
    }

    #[test]
    fn certainty_suffices_where_no_other_number_does() {
        let weights = two([1e-30, 1.0], [0.9, 0.3]);
        assert_eq!(weights.winning_interval(0, &[0.0, 1.0]), Some([1.0, 1.0]));
        assert_eq!(weights.winning_interval(1, &[1.0, 0.0]), Some([0.0, 0.0]));
    }

    #[test]
    fn impossible_categories_have_no_weight() {
        assert_eq!(two([0.0, 0.4], [0.9, 0.3]).winning_interval(0, &[0.0, 1.0]), None);
        assert_eq!(two([0.4, 0.0], [0.9, 0.3]).winning_interval(0, &[0.0, 1.0]), Some([0.0, 1.0]));
        assert_eq!(two([0.0, 0.0], [0.9, 0.3]).winning_interval(0, &[0.0, 1.0]), None);
        assert_eq!(two([0.0, 0.4], [0.9, 0.3]).wins_if_observed(0), None);
    }
}
