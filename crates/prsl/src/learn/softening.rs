//! Softened clauses: where a crisp clause is not enough, one of its inhibition probabilities becomes a number.
//!
//! # Derivation
//!
//! A clause of weight w multiplies an assignment by e⁻ʷ if all of its literals fail. Let literal j have the inhibition
//! probability q instead of 0. The rule is then the noisy-or
//!
//! ```text
//! all literals fail                              (1 − p) / p             = e⁻ʷ
//! only literal j holds                           (1 − p) q / p + 1 − q   = 1 − q (1 − e⁻ʷ)  =: e⁻ᵘ        (1)
//! another literal holds                          1
//! ```
//!
//! relative to p. This is a pair of crisp clauses of the weights w and u < w that differ in literal j alone, which one of
//! them asserts and the other denies. So softening adds the second clause, and the learner needs no other kind of
//! parameter. Its price is that of a number, γ · ½ ln n, where n is the number of rows. By (1),
//!
//! ```text
//! q = (1 − e⁻ᵘ) / (1 − e⁻ʷ)                                                                               (2)
//! ```
//!
//! A clause has at most one number: two numbers would also determine the weight of assignments where both literals hold,
//! which is not linear in weights. Checked in `a_pair_of_clauses_is_a_noisy_or`.

use super::feature::{Feature, Literal};
use super::objective::sigmoid;
use super::prices::Prices;
use super::priors::significant;
use crate::label::{CategoryId, LabelId};
use crate::model::Model;
use crate::noisy_or::{Inhibition, NoisyOr};
use crate::rule::{Body, Rule};

/// A learned rule, as places of features: a clause or count rule, and the clause that softens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Softened {
    pub(crate) rule: usize,
    pub(crate) softening: Option<usize>,
}

impl Softened {
    /// The places of all features of the rule.
    pub(crate) fn places(self) -> impl Iterator<Item = usize> {
        [Some(self.rule), self.softening].into_iter().flatten()
    }
}

impl Prices {
    /// The rules that features form, in the order of their first feature. A pair is one rule if that is cheaper.
    pub(crate) fn rules(&self, features: &[Feature]) -> Vec<Softened> {
        let mut rules: Vec<Softened> = Vec::new();
        for (place, feature) in features.iter().enumerate() {
            let softens = |rule: &&mut Softened| {
                rule.softening.is_none() && self.is_softening(feature, &features[rule.rule])
            };
            match rules.iter_mut().find(softens) {
                Some(rule) => rule.softening = Some(place),
                None => rules.push(Softened { rule: place, softening: None }),
            }
        }
        rules
    }

    /// The price of all features together, at parsimony 1.
    pub(crate) fn of_all(&self, features: &[Feature]) -> f64 {
        let price =
            |rule: Softened| self.of(&features[rule.rule]) + rule.softening.map_or(0.0, |_| self.number());
        self.rules(features).into_iter().map(price).sum()
    }

    /// What the price of all features would be less without those at some places, at parsimony 1.
    pub(crate) fn of_places(&self, features: &[Feature], places: &[usize]) -> f64 {
        let rest = (0..features.len()).filter(|place| !places.contains(place));
        let rest: Vec<Feature> = rest.map(|place| features[place].clone()).collect();
        self.of_all(features) - self.of_all(&rest)
    }

    /// The clauses that would soften one of these rules.
    pub(crate) fn softenings(&self, features: &[Feature], sizes: &[usize]) -> Vec<Feature> {
        let crisp = self.rules(features).into_iter().filter(|rule| rule.softening.is_none());
        let flipped = |rule: Softened| flips(&features[rule.rule], sizes);
        let all = crisp.flat_map(flipped);
        all.filter(|it| !features.contains(it) && self.number() < self.of(it)).collect()
    }

    /// Whether two clauses are one softened clause, and cheaper so.
    fn is_softening(&self, feature: &Feature, of: &Feature) -> bool {
        self.number() < self.of(feature) && flipped_literal(of, feature, self.sizes()).is_some()
    }
}

/// The clauses of two and more literals that differ from a clause in the sign of one literal.
fn flips(feature: &Feature, sizes: &[usize]) -> Vec<Feature> {
    let Feature::Conjunction(literals) = feature else { return Vec::new() };
    if literals.len() < 2 {
        return Vec::new();
    }
    let flip = |place: usize| {
        let mut flipped = literals.clone();
        flipped[place].categories = literals[place].negated(sizes[literals[place].label]);
        Feature::Conjunction(flipped)
    };
    (0..literals.len()).map(flip).collect()
}

/// The place of the only literal in which two clauses differ, if one asserts what the other denies.
fn flipped_literal(a: &Feature, b: &Feature, sizes: &[usize]) -> Option<usize> {
    let (Feature::Conjunction(a), Feature::Conjunction(b)) = (a, b) else { return None };
    if a.len() != b.len() || a.len() < 2 {
        return None;
    }
    let mut different = (0..a.len()).filter(|&place| a[place] != b[place]);
    let place = different.next().filter(|_| different.next().is_none())?;
    let is_flipped =
        a[place].label == b[place].label && a[place].negated(sizes[a[place].label]) == b[place].categories;
    is_flipped.then_some(place)
}

/// The noisy-or of a pair of clauses with their weights, w and u in equation (2), in either order.
pub(crate) fn noisy_or(model: &Model, pair: [&Feature; 2], weights: [f64; 2]) -> Rule {
    let sizes: Vec<usize> = model.labels().iter().map(|label| label.n_categories()).collect();
    let [rule, softening] = if weights[0] < weights[1] { [1, 0] } else { [0, 1] };
    let soft = flipped_literal(pair[0], pair[1], &sizes).expect("the clauses differ in one literal");
    let Feature::Conjunction(literals) = pair[rule] else { unreachable!("it is a clause") };
    let q = (-weights[softening]).exp_m1() / (-weights[rule]).exp_m1(); // (2)
    let inhibitions = |(place, literal): (usize, &Literal)| {
        let probability = if place == soft { significant(q.clamp(0.0, 1.0), 3) } else { 0.0 };
        let label = LabelId::new(literal.label);
        let of = move |category| Inhibition { label, category: CategoryId::new(category), probability };
        literal.negated(sizes[literal.label]).into_iter().map(of)
    };
    let body = NoisyOr::new(literals.iter().enumerate().flat_map(inhibitions));
    Rule::new(sigmoid(weights[rule]), Body::NoisyOr(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clause(literals: &[(usize, &[usize])]) -> Feature {
        let literal =
            |&(label, categories): &(usize, &[usize])| Literal { label, categories: categories.to_vec() };
        Feature::Conjunction(literals.iter().map(literal).collect())
    }

    #[test]
    fn a_pair_of_clauses_is_a_noisy_or() {
        let model = Model::parse("label a\nlabel b: x, y, z\nlabel c").expect("a model");
        let pair =
            [clause(&[(0, &[0]), (1, &[0, 2]), (2, &[1])]), clause(&[(0, &[0]), (1, &[1]), (2, &[1])])];
        for weights in [[2.0, 0.7], [0.7, 2.0], [1.5, 1e-3], [4.0, 3.9]] {
            let rule = noisy_or(&model, [&pair[0], &pair[1]], weights);
            for number in 0..12 {
                let assignment = [number % 2, number / 2 % 3, number / 6];
                let violated = |feature: &Feature| feature.is_violated(|label| assignment[label], &[]);
                let cost: f64 =
                    pair.iter().zip(weights).filter(|(it, _)| violated(it)).map(|(_, weight)| weight).sum();
                let found = rule.weight_at(&assignment) / rule.probability();
                assert!((found - (-cost).exp()).abs() < 1e-3, "{found} is not {}", (-cost).exp());
            }
        }
    }

    #[test]
    fn a_softened_clause_is_cheaper_than_two_clauses() {
        let prices = Prices::new(&[2; 40], &[], 1000.0);
        let rule = clause(&[(0, &[0]), (3, &[1])]);
        let softening = clause(&[(0, &[0]), (3, &[0])]);
        let other = clause(&[(0, &[0]), (4, &[0])]);
        let features = [rule.clone(), other.clone(), softening.clone()];
        let found = prices.rules(&features);
        let expected = [Softened { rule: 0, softening: Some(2) }, Softened { rule: 1, softening: None }];
        assert_eq!(found, expected);
        assert_eq!(prices.of_all(&features), 2.0 * prices.of(&rule) + 0.5 * 1000_f64.ln());
        assert_eq!(prices.of_places(&features, &[0]), 0.5 * 1000_f64.ln());
        assert!((prices.of_places(&features, &[1]) - prices.of(&other)).abs() < 1e-12);
        assert!(prices.softenings(&features[..2], &[2; 40]).contains(&softening));
        assert_eq!(prices.softenings(&features, &[2; 40]).len(), 2); // those of `other`
    }

    #[test]
    fn numbers_that_cost_more_than_a_clause_are_not_used() {
        let prices = Prices::new(&[2; 3], &[], 1e6);
        let pair = [clause(&[(0, &[0]), (2, &[1])]), clause(&[(0, &[0]), (2, &[0])])];
        assert_eq!(prices.rules(&pair).len(), 2);
        assert_eq!(prices.of_all(&pair), 2.0 * prices.of(&pair[0]));
    }
}
