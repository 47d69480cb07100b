//! Expert rules that the rows contradict.

use super::examples::Examples;
use crate::formula::{Formula, Node};
use crate::model::Model;
use crate::rule::{Rule, RuleId};

/// Number of standard deviations by which violations exceed their expected number.
const DEVIATIONS: f64 = 3.0;
/// Smallest difference between the share of violations and its expectation that matters to users.
const MIN_DIFFERENCE: f64 = 0.05;

/// A rule that is violated more often than its probability says.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Contradiction {
    /// The rule.
    pub rule: RuleId,
    /// Weight of the known rows that violate the rule. For a probability below 0.5, those in which its formula holds.
    pub broken: f64,
    /// Weight of the known rows: those in which the condition of the rule holds and all its labels are known. A rule that
    /// is no implication has no condition.
    pub known: f64,
    /// The share of the known rows in which the formula holds: the probability that the rows suggest.
    pub suggested: f64,
}

/// The rules of `base` that the rows contradict, in the order of the model.
///
/// A rule of probability p is expected to be violated in a share e = 1 − p of the rows where its condition holds. It is
/// contradicted if the share is larger by more than 0.05, and the number of rows by more than three standard deviations
/// plus one. For p < 0.5 the negation of the formula is tested, with e = p. Noisy-or rules are not tested.
///
/// ```
/// use prsl::learn::{Examples, contradictions};
/// use prsl::{BeliefMatrix, Evidence, Model, Truth};
///
/// let model = Model::parse("label rain\nlabel wet\nrule 0.95: rain -> wet")?;
/// let mut beliefs = BeliefMatrix::new(&model);
/// let mut truths = Vec::new();
/// for row in 0..100 {
///     beliefs.push_evidence(&Evidence::new())?;
///     truths.push(Truth::from_indices([Some(0), Some(usize::from(row < 31))])); // it rains, and 31 rows are dry
/// }
/// let found = contradictions(&model, &Examples::new(beliefs, truths)?);
/// assert_eq!((found[0].broken, found[0].known), (31.0, 100.0));
/// assert!((found[0].suggested - 0.69).abs() < 1e-12);
/// # Ok::<(), prsl::Error>(())
/// ```
pub fn contradictions(base: &Model, rows: &Examples) -> Vec<Contradiction> {
    base.rule_ids().filter_map(|id| contradiction(id, base.rule(id), rows)).collect()
}

fn contradiction(id: RuleId, rule: &Rule, rows: &Examples) -> Option<Contradiction> {
    let formula = rule.formula()?;
    let probability = rule.probability();
    if probability == 0.5 {
        return None;
    }
    let (known, held) = tally(formula, rows);
    let is_mirrored = probability < 0.5;
    let broken = if is_mirrored { held } else { known - held };
    let expected = probability.min(1.0 - probability);
    let deviation = (known * expected * (1.0 - expected)).sqrt();
    let is_frequent = broken > known * expected + DEVIATIONS * deviation + 1.0;
    let is_large = broken > known * (expected + MIN_DIFFERENCE);
    (is_frequent && is_large).then(|| Contradiction { rule: id, broken, known, suggested: held / known })
}

/// The weight of the rows where the condition holds and all labels are known, and of those in which the formula holds.
fn tally(formula: &Formula, rows: &Examples) -> (f64, f64) {
    let condition = condition(formula);
    let scope = formula.scope();
    let (mut known, mut held) = (0.0, 0.0);
    for (row, weight) in rows.weights().iter().enumerate() {
        if scope.iter().any(|&label| rows.category(row, label).is_none()) {
            continue;
        }
        let truth = rows.truth(row);
        // The formula does not read the unknown labels.
        let assignment: Vec<usize> = truth.indices().iter().map(|category| category.unwrap_or(0)).collect();
        if condition.as_ref().is_none_or(|condition| condition.holds_at(&assignment)) {
            known += weight;
            held += if formula.holds_at(&assignment) { *weight } else { 0.0 };
        }
    }
    (known, held)
}

/// The condition of an implication.
fn condition(formula: &Formula) -> Option<Formula> {
    match formula.nodes()[formula.root().index()] {
        Node::Implies(condition, _) | Node::ImpliedBy(_, condition) => Some(formula.part(condition)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::belief::BeliefMatrix;
    use crate::evidence::Evidence;
    use crate::truth::Truth;

    /// Rows about `a` and `b` with the positions of their categories: 0 is yes.
    fn found(rules: &str, counts: &[([Option<usize>; 2], usize)]) -> Vec<Contradiction> {
        let model = Model::parse(&format!("label a\nlabel b\n{rules}")).unwrap();
        let mut beliefs = BeliefMatrix::new(&model);
        let mut truths = Vec::new();
        for (truth, n) in counts {
            for _ in 0..*n {
                beliefs.push_evidence(&Evidence::new()).unwrap();
                truths.push(Truth::from_indices(*truth));
            }
        }
        contradictions(&model, &Examples::new(beliefs, truths).unwrap())
    }

    const BOTH: [Option<usize>; 2] = [Some(0), Some(0)];
    const ONLY_A: [Option<usize>; 2] = [Some(0), Some(1)];
    const ONLY_B: [Option<usize>; 2] = [Some(1), Some(0)];

    #[test]
    fn only_known_rows_whose_condition_holds_count() {
        let unknown = [Some(0), None];
        let rows = [(BOTH, 60), (ONLY_A, 40), (ONLY_B, 500), (unknown, 500)];
        for rule in ["rule 0.9: a -> b", "rule 0.9: b <- a"] {
            let found = found(rule, &rows);
            assert_eq!(found.len(), 1, "{rule}");
            assert_eq!((found[0].broken, found[0].known, found[0].suggested), (40.0, 100.0, 0.6), "{rule}");
        }
    }

    #[test]
    fn a_rule_without_condition_counts_every_known_row() {
        let found = found("rule 0.9: a | b\nrule 0.9: a & b", &[(BOTH, 50), (ONLY_A, 50)]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].rule, found[0].suggested), (RuleId::new(1), 0.5));
    }

    #[test]
    fn a_probability_below_one_half_is_mirrored() {
        let rows = [(BOTH, 60), (ONLY_A, 40)];
        let found = found("rule 0.1: a -> b\nrule 0.6: a -> b\nrule 0.5: a -> b", &rows);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].rule, found[0].broken, found[0].suggested), (RuleId::new(0), 60.0, 0.6));
    }

    #[test]
    fn few_or_expected_violations_are_no_contradiction() {
        assert_eq!(found("rule 1: a -> b", &[(BOTH, 3), (ONLY_A, 1)]), []);
        assert_eq!(found("rule 0.9: a -> b", &[(BOTH, 88), (ONLY_A, 12)]), []);
        assert_eq!(found("rule 0.9: a -> b", &[(ONLY_B, 100)]), []);
        // Surely more than expected, but hardly.
        assert_eq!(found("rule 0.9: a -> b", &[(BOTH, 8_700), (ONLY_A, 1_300)]), []);
    }
}
