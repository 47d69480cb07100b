//! What each rule makes of its conclusion by itself.

use serde::Serialize;

use crate::formula::{Formula, Node};
use crate::label::LabelId;
use crate::model::Model;
use crate::rule::{Body, Rule, RuleId};
use crate::syntax::print;

/// Maximum number of assignments of a rule's labels.
const MAX_ASSIGNMENTS: usize = 1 << 20;

/// The probability of a rule's conclusion with and without the rule, at the labels' priors and without all other rules.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Implied {
    /// The rule's number, from 1.
    pub rule: usize,
    /// The condition of an implication; `None` for other rules.
    pub condition: Option<String>,
    /// The conclusion of an implication, or the whole rule.
    pub conclusion: String,
    /// P(conclusion | condition) by the priors alone.
    pub without: f64,
    /// The same with this rule. For a noisy-or it is the probability that it fires.
    pub with: f64,
}

/// What every rule makes of its conclusion by itself. Rules over too many labels are left out, and so are those whose
/// condition is impossible.
///
/// A rule `0.97: b -> a` does not make P(a | b) = 0.97, unless P(a) is one half without it:
///
/// ```
/// use prsl::{Model, lint};
///
/// let model = Model::parse("label a prior 0.02\nlabel b\nrule 0.97: b -> a")?;
/// let implied = &lint::implied(&model)[0];
/// assert_eq!((implied.condition.as_deref(), implied.conclusion.as_str()), (Some("b"), "a"));
/// assert_eq!(format!("{:.2} {:.2}", implied.without, implied.with), "0.02 0.40");
/// # Ok::<(), prsl::Error>(())
/// ```
pub fn implied(model: &Model) -> Vec<Implied> {
    model.rule_ids().filter_map(|rule| of_rule(model, rule)).collect()
}

fn of_rule(model: &Model, id: RuleId) -> Option<Implied> {
    let rule = model.rule(id);
    let parts = Parts::of(rule);
    let scope = rule.scope();
    let sizes: Vec<usize> = scope.iter().map(|&label| model.label(label).n_categories()).collect();
    let n =
        sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size)).filter(|&n| n <= MAX_ASSIGNMENTS)?;
    let priors: Vec<Vec<f64>> = scope.iter().map(|&label| model.label(label).prior_or_uniform()).collect();
    let mut assignment = vec![0; model.labels().len()];
    // Sums over the assignments with the condition: all of them, and those with the conclusion.
    let (mut without, mut with) = ([0.0; 2], [0.0; 2]);
    for index in 0..n {
        let weight = set(&mut assignment, index, &scope, &priors);
        if parts.condition.as_ref().is_some_and(|condition| !condition.holds_at(&assignment)) {
            continue;
        }
        let p = rule.probability();
        let [silent, fired] = rule.outcome_at(&assignment);
        let holds = match &parts.conclusion {
            Some(conclusion) if conclusion.holds_at(&assignment) => [1.0, rule.weight_at(&assignment)],
            Some(_) => [0.0, 0.0],
            None => [fired, p * fired],
        };
        without[0] += weight * holds[0];
        with[0] += weight * holds[1];
        without[1] += weight;
        with[1] += weight * (p * fired + (1.0 - p) * silent);
    }
    let names = model.names();
    let conclusion = match &parts.conclusion {
        Some(conclusion) => print::formula(names, conclusion),
        None => print::body(names, rule.body()),
    };
    (without[1] > 0.0 && with[1] > 0.0).then(|| Implied {
        rule: id.index() + 1,
        condition: parts.condition.as_ref().map(|condition| print::formula(names, condition)),
        conclusion,
        without: without[0] / without[1],
        with: with[0] / with[1],
    })
}

/// The parts of a rule. A noisy-or has neither.
struct Parts {
    condition: Option<Formula>,
    conclusion: Option<Formula>,
}

impl Parts {
    fn of(rule: &Rule) -> Self {
        let Body::Formula(formula) = rule.body() else {
            return Self { condition: None, conclusion: None };
        };
        let implication = match formula.nodes()[formula.root().index()] {
            Node::Implies(condition, conclusion) | Node::ImpliedBy(conclusion, condition) => {
                Some((condition, conclusion))
            }
            _ => None,
        };
        match implication {
            Some((condition, conclusion)) => {
                Self { condition: Some(formula.part(condition)), conclusion: Some(formula.part(conclusion)) }
            }
            None => Self { condition: None, conclusion: Some(formula.clone()) },
        }
    }
}

/// Sets the labels of a scope to the assignment of this number, and returns the product of their priors.
fn set(assignment: &mut [usize], mut index: usize, scope: &[LabelId], priors: &[Vec<f64>]) -> f64 {
    let mut weight = 1.0;
    for (label, prior) in scope.iter().zip(priors) {
        let category = index % prior.len();
        index /= prior.len();
        assignment[label.index()] = category;
        weight *= prior[category];
    }
    weight
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;

    /// The numbers agree with inference in the model with this rule alone, with its condition observed.
    #[test]
    fn implied_probabilities_agree_with_inference() {
        let text = "label a prior 0.1\nlabel b prior 0.3\nlabel c: x, y, z prior 0.2, 0.3, 0.5\n\
                    rule 0.9: a -> x\nrule 0.8: y <- b\nrule 1: a -> b\nrule 0.2: b -> a\n";
        let model = Model::parse(text).unwrap();
        let found = implied(&model);
        assert_eq!(found.len(), 4);
        for (implied, (observed, label, category)) in
            found.iter().zip([("a", "c", 0), ("b", "c", 1), ("a", "b", 0), ("b", "a", 0)])
        {
            let alone = model.edit().retain_rules(|rule| rule.index() + 1 == implied.rule).build().unwrap();
            let posterior = alone.infer(&Evidence::new().observe(observed, "yes")).unwrap();
            let with = posterior.marginal(alone.find_label(label).unwrap())[category];
            assert!((implied.with - with).abs() < 1e-12, "{implied:?} {with}");
            let prior = alone.label(alone.find_label(label).unwrap()).prior_or_uniform()[category];
            assert!((implied.without - prior).abs() < 1e-12, "{implied:?} {prior}");
        }
    }

    #[test]
    fn other_rules_have_no_condition() {
        let model =
            Model::parse("label a\nlabel b\nrule 0.9: a xor b\nnoisy_or 0.8: a 0.5\nrule 1: a & !a -> b")
                .unwrap();
        let found = implied(&model);
        // The condition of the last rule is impossible.
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].condition.as_ref(), found[0].without), (None, 0.5));
        assert!((found[0].with - 0.9).abs() < 1e-12);
        // It fires with 0.25, and 0.8 · 0.25 / (0.8 · 0.25 + 0.2 · 0.75) = 4/7.
        assert!((found[1].without - 0.25).abs() < 1e-12 && (found[1].with - 4.0 / 7.0).abs() < 1e-12);
    }
}
