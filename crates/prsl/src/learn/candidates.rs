//! Which sizes are tried, one after another, and which of them is taken: the validation rows decide.

use super::climb::Climb;
use super::examples::Examples;
use super::learner::{Calibrating, Learner};
use super::objective::Problem;
use super::task::{Candidate, Size};
use crate::label::Label;
use crate::model::Model;

/// So many known truths that are not what their labels mostly are, at least, for each inhibition probability to learn.
const RARE_TRUTHS: usize = 2;
/// So many entries of all tables together, at most, for a size to be tried unasked.
const MAX_ENTRIES: f64 = (1u64 << 19) as f64;
/// So many sizes in a row may gain nothing before the rest is left out, and so many where combinations or calibrators are left out.
const SIZES: usize = 4;
const OTHER_SIZES: usize = 1;
/// More numbers instead of combinations have to gain so many standard errors, and beliefs as they are given instead of calibrators.
const CLEARLY: f64 = 1.5;

impl Learner {
    /// How many candidates there are at most.
    pub fn max_candidates(&self) -> usize {
        let n_stages = 1 + usize::from(self.typical) + usize::from(self.calibrate == Calibrating::Joint);
        self.sizes.len() * n_stages + 3 * usize::from(self.widens())
    }

    /// Whether a rule about all labels may be tried where none was asked for, but other rules were.
    fn widens(&self) -> bool {
        let learns_rules = self.sizes.iter().any(|size| *size != Size::NOTHING);
        self.wide && learns_rules && !self.sizes.iter().any(|size| size.is_wide())
    }

    /// The first size, and others that the rows can tell something about.
    pub(crate) fn affordable(&self, base: &Model, train: &Examples) -> Vec<Size> {
        let mut sizes: Vec<Size> = self.sizes.iter().map(|size| size.at_most(base.labels().len())).collect();
        let others = sizes.split_off(1);
        sizes.extend(others.into_iter().filter(|size| self.is_affordable(*size, base, train)));
        sizes
    }

    /// What to try next: larger sizes until some in a row gain nothing; then the best and larger ones without combinations; then a rule
    /// about all labels; then the best of all, larger ones as long as they gain, and nothing but a rule about all labels, with the
    /// beliefs as they are given.
    pub(crate) fn next(
        &self,
        sizes: &[Size],
        done: &[Climb],
        base: &Model,
        train: &Examples,
    ) -> Option<Candidate> {
        let n_labels = base.labels().len();
        let widen = |size: Size| size.widened(n_labels).filter(|size| self.is_affordable(*size, base, train));
        let [first, plain, wide, given] = self.stages(done);
        let is_at = |later: &[&[Climb]]| later.iter().all(|stage| stage.is_empty());
        let next = |from: usize, tried: &[Climb], patience: usize| {
            let gains = best(tried).is_none_or(|best| tried.len() - best <= patience);
            sizes.get(from + tried.len()).copied().filter(|_| gains)
        };
        let from = best(first).unwrap_or(0);
        if is_at(&[plain, wide, given])
            && let Some(size) = next(0, first, SIZES)
        {
            return Some(Candidate { size, typical: self.typical, calibrated: true });
        }
        if self.typical
            && is_at(&[wide, given])
            && let Some(size) = next(from, plain, OTHER_SIZES)
        {
            return Some(Candidate { size, typical: false, calibrated: true });
        }
        let narrow = &done[..first.len() + plain.len()];
        if self.widens()
            && is_at(&[given])
            && let Some(candidate) = next_wide(narrow, wide, &widen)
        {
            return Some(candidate);
        }
        let calibrated = &done[..narrow.len() + wide.len()];
        let best = best(calibrated).filter(|_| self.calibrate == Calibrating::Joint)?;
        let candidate = Candidate { calibrated: false, ..calibrated[best].candidate };
        let alone = widen(Size::NOTHING).map(|size| Candidate { size, ..candidate });
        if given.is_empty() {
            return Some(candidate);
        }
        if given.iter().any(|climb| Some(climb.candidate) == alone) {
            return None;
        }
        // Where the first is no better than it is with calibrators, larger ones are not either.
        let gains = given.iter().all(|climb| climb.best_validation > calibrated[best].best_validation);
        let at = best.checked_sub(first.len()).map_or(best, |plain| from + plain);
        let larger = next(at, given, OTHER_SIZES).filter(|_| gains && best < narrow.len());
        // Calibrators can do much of what a rule about all labels does, and are in its way more than in that of others.
        larger.map(|size| Candidate { size, ..candidate }).or_else(|| alone.filter(|_| self.widens()))
    }

    /// The candidates as they were asked for; then, to see whether that is better, those without combinations, those with a rule about all
    /// labels, and those without calibrators.
    fn stages<'a>(&self, done: &'a [Climb]) -> [&'a [Climb]; 4] {
        let while_it_is = |climbs: &'a [Climb], is: &dyn Fn(&Candidate) -> bool| {
            climbs.split_at(climbs.iter().take_while(|climb| is(&climb.candidate)).count())
        };
        let is_added = |size: Size| size.is_wide() && self.widens();
        let (calibrated, given) = while_it_is(done, &|candidate| candidate.calibrated);
        let (narrow, wide) = while_it_is(calibrated, &|candidate| !is_added(candidate.size));
        let (first, plain) = while_it_is(narrow, &|candidate| candidate.typical == self.typical);
        [first, plain, wide, given]
    }

    /// Which candidate it is to be.
    pub(crate) fn choose(&self, climbs: &[Climb], scored: &[(Problem, Vec<f64>)]) -> usize {
        let scores: Vec<&[f64]> = scored.iter().map(|(_, scores)| &scores[..]).collect();
        let mut chosen = None;
        let mut n_seen = 0;
        for stage in self.stages(climbs).into_iter().filter(|stage| !stage.is_empty()) {
            let other = n_seen + simplest_of_the_best(&scores[n_seen..][..stage.len()]);
            n_seen += stage.len();
            // Leaving out combinations has to be better with fewer numbers, or clearly better; a rule about all labels and leaving out
            // calibrators, clearly better.
            let is_better = |chosen: usize| {
                let (gain, error) = difference(scores[other], scores[chosen]);
                let has_fewer = climbs[other].parameters.len() < climbs[chosen].parameters.len();
                let is_enough = has_fewer && climbs[other].candidate.calibrated;
                gain > if is_enough { 0.0 } else { CLEARLY * error }
            };
            if chosen.is_none_or(is_better) {
                chosen = Some(other);
            }
        }
        chosen.expect("a candidate at least")
    }

    /// Whether the rows can tell something about a size: not too many numbers to learn, and not too large tables.
    fn is_affordable(&self, size: Size, base: &Model, train: &Examples) -> bool {
        let most = n_rare(train) / RARE_TRUTHS;
        let n_entries = size.n_entries(base);
        let n_grouped = if size.has_groups() { base.labels().len() } else { 0 };
        size.n_parameters(base).is_none_or(|n| n <= most)
            && n_entries <= MAX_ENTRIES
            && self.fits(n_grouped, n_entries)
    }
}

/// How many known truths are not the most frequent category of their label: what there is to learn rules from.
fn n_rare(examples: &Examples) -> usize {
    let labels = examples.beliefs().model().labels();
    let of_label = |(at, label): (usize, &Label)| {
        let mut counts = vec![0; label.n_categories()];
        examples.truths().iter().filter_map(|truth| truth.indices()[at]).for_each(|truth| counts[truth] += 1);
        counts.iter().sum::<usize>() - counts.iter().max().copied().unwrap_or(0)
    };
    labels.iter().enumerate().map(of_label).sum()
}

/// Of several candidates, the simplest first, the first that is not clearly worse than the best: within one standard error of
/// their difference, row by row.
fn simplest_of_the_best(scores: &[&[f64]]) -> usize {
    let best =
        (0..scores.len()).rev().max_by(|&a, &b| mean(scores[a]).total_cmp(&mean(scores[b]))).unwrap_or(0);
    let is_close = |candidate: &usize| {
        let (gain, error) = difference(scores[best], scores[*candidate]);
        gain <= error
    };
    (0..scores.len()).find(is_close).unwrap_or(best)
}

/// The mean difference between two scores of the same rows, and its standard error.
fn difference(a: &[f64], b: &[f64]) -> (f64, f64) {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let n = differences.len() as f64;
    let center = mean(&differences);
    let variance = differences.iter().map(|d| (d - center).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (center, (variance / n).sqrt())
}

/// A rule about all labels to try: beside no others, and if that gains something, beside those that are best without it.
fn next_wide(narrow: &[Climb], wide: &[Climb], widen: &dyn Fn(Size) -> Option<Size>) -> Option<Candidate> {
    let best = narrow[best(narrow)?].candidate;
    let nothing = Candidate { size: Size::NOTHING, ..best };
    let alone = narrow.iter().find(|climb| climb.candidate == nothing);
    let candidate = match (alone, wide) {
        (Some(_), []) => nothing,
        (None, []) => best,
        (Some(alone), [first]) if first.best_validation > alone.best_validation && best != nothing => best,
        _ => return None,
    };
    widen(candidate.size).map(|size| Candidate { size, ..candidate })
}

/// The best of some climbs, the first of equals.
fn best(climbs: &[Climb]) -> Option<usize> {
    (0..climbs.len()).rev().max_by(|&a, &b| climbs[a].best_validation.total_cmp(&climbs[b].best_validation))
}

fn mean(scores: &[f64]) -> f64 {
    scores.iter().sum::<f64>() / scores.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::belief::{BeliefMatrix, Normalize};
    use crate::truth::Truth;

    #[test]
    fn sizes_with_too_large_tables_or_too_few_truths_are_left_out() {
        let affordable = |n_categories: usize, n_rows: usize| {
            let names: Vec<String> = (0..n_categories).map(|category| format!("c{category}")).collect();
            let label =
                |builder: crate::ModelBuilder, at: usize| builder.label(format!("l{at}"), names.clone());
            let model = (0..12).fold(Model::builder(), label).build().unwrap();
            let mut beliefs = BeliefMatrix::new(&model);
            let even = vec![Some(1.0 / n_categories as f64); 12 * n_categories];
            (0..n_rows).for_each(|_| beliefs.push(&even, Normalize::Always).unwrap());
            let truths = (0..n_rows).map(|row| Truth::from_indices([Some(row % n_categories); 12])).collect();
            let examples = Examples::new(beliefs, truths).unwrap();
            Learner::default().affordable(&model, &examples).len()
        };
        let all = Learner::default().sizes.len();
        assert_eq!(affordable(2, 2000), all);
        // 12⁵ entries are too many, 12⁴ are not.
        assert_eq!(affordable(12, 2000), 3);
        assert_eq!(affordable(2, 1), 1);
    }
}
