//! Expert rules that the rows contradict.
//!
//! The probability of a rule is not the share of rows that obey it: other rules and the classifiers' beliefs matter, too. So
//! the number of violations is compared with the number that the whole model expects, given that the condition holds.

use super::examples::Examples;
use crate::error::Result;
use crate::formula::{Formula, Node};
use crate::infer::Engines;
use crate::model::Model;
use crate::posterior::{Engine, Posteriors};
use crate::rule::{Rule, RuleId};

/// Number of standard deviations by which violations exceed their expected number.
const DEVIATIONS: f64 = 3.0;
/// Smallest difference between the share of violations and its expectation that matters to users.
const MIN_DIFFERENCE: f64 = 0.05;
/// Maximum work of inference for a rule, in multiply-adds: a few seconds. Beyond it, evenly spaced rows are used.
const MAX_WORK: f64 = 5e9;
/// Number of bisections for a probability, which is then accurate to 2⁻⁴⁰.
const BISECTIONS: usize = 40;

/// A rule that is violated more often than the model expects.
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
    /// The probability that the rows suggest: that with which the model expects as many violations as there are.
    pub suggested: f64,
}

/// The rules of `base` that the rows contradict, in the order of the model.
///
/// In a row where its condition holds, the model expects a rule of probability p to be violated with the probability
///
/// ```text
/// e = (1 − p) v / ((1 − p) v + p (1 − v))                                  (1)
/// ```
///
/// where v is the probability of a violation by the condition, the row's beliefs and all other rules. A rule is
/// contradicted if the number of violations exceeds Σ e by more than 0.05 per row, and by more than three standard
/// deviations plus one. It must exceed Σ (1 − p) as much, the expectation if nothing else is known (v = 0.5). For p < 0.5
/// the negation of the formula is tested. Noisy-or rules are not tested. If exact inference is too costly, v = 0.5.
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
/// let found = contradictions(&model, &Examples::new(beliefs, truths)?)?;
/// assert_eq!((found[0].broken, found[0].known), (31.0, 100.0));
/// assert!((found[0].suggested - 0.69).abs() < 1e-9);
/// # Ok::<(), prsl::Error>(())
/// ```
pub fn contradictions(base: &Model, rows: &Examples) -> Result<Vec<Contradiction>> {
    let found = base.rule_ids().map(|id| contradiction(base, id, rows));
    Ok(found.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

fn contradiction(base: &Model, id: RuleId, rows: &Examples) -> Result<Option<Contradiction>> {
    let rule = base.rule(id);
    let Some(formula) = rule.formula().filter(|_| rule.probability() != 0.5) else { return Ok(None) };
    let known = Known::new(rule, formula, rows);
    let p = obedience(rule);
    if !known.exceed(&Violations { of_rows: vec![(known.weight, 0.5)] }, p) {
        return Ok(None);
    }
    let violations = Violations::new(base, id, formula, rows, &known)?;
    let suggested = violations.probability(known.broken);
    Ok(known.exceed(&violations, p).then(|| Contradiction {
        rule: id,
        broken: known.broken,
        known: known.weight,
        suggested: if rule.probability() < 0.5 { 1.0 - suggested } else { suggested },
    }))
}

/// The probability of the formula, or of its negation if that is larger.
fn obedience(rule: &Rule) -> f64 {
    rule.probability().max(1.0 - rule.probability())
}

/// The rows in which the condition of a rule holds and all its labels are known.
struct Known {
    rows: Vec<usize>,
    weight: f64,
    /// The weight of those that violate the rule.
    broken: f64,
}

impl Known {
    fn new(rule: &Rule, formula: &Formula, rows: &Examples) -> Self {
        let condition = condition(formula);
        let scope = formula.scope();
        let mut known = Self { rows: Vec::new(), weight: 0.0, broken: 0.0 };
        for (row, &weight) in rows.weights().iter().enumerate() {
            if weight == 0.0 || scope.iter().any(|&label| rows.category(row, label).is_none()) {
                continue;
            }
            // The formula does not read the unknown labels.
            let truth = rows.truth(row);
            let assignment: Vec<usize> =
                truth.indices().iter().map(|category| category.unwrap_or(0)).collect();
            if condition.as_ref().is_none_or(|condition| condition.holds_at(&assignment)) {
                known.rows.push(row);
                known.weight += weight;
                let is_broken = formula.holds_at(&assignment) == (rule.probability() < 0.5);
                known.broken += if is_broken { weight } else { 0.0 };
            }
        }
        known
    }

    /// Whether there are more violations than expected of a rule with the probability p.
    fn exceed(&self, violations: &Violations, p: f64) -> bool {
        let [expected, variance] = violations.expected(p);
        self.broken > expected + DEVIATIONS * variance.sqrt() + 1.0
            && self.broken > expected + MIN_DIFFERENCE * self.weight
    }
}

/// How probable violations of a rule are by everything else.
struct Violations {
    /// The weight of each row, and v in (1).
    of_rows: Vec<(f64, f64)>,
}

impl Violations {
    /// With the rule, the evidence of a row is Z = Z₀ (p (1 − v) + (1 − p) v), where Z₀ is that without it. So v follows from
    /// two passes. The categories of the rule's condition are observed in both.
    fn new(base: &Model, id: RuleId, formula: &Formula, rows: &Examples, known: &Known) -> Result<Self> {
        let with = base.edit().remove_typical().build()?;
        let without = with.edit().retain_rules(|other| other != id).build()?;
        let unknown = Self { of_rows: vec![(known.weight, 0.5)] };
        let engine = Engines::new(&with).marginals()?;
        let most = (MAX_WORK / engine.work()) as usize;
        if engine.engine() == Engine::Loopy || most == 0 {
            return Ok(unknown);
        }
        let picked: Vec<usize> =
            known.rows.iter().copied().step_by(known.rows.len().div_ceil(most)).collect();
        let sample = rows.select(&picked);
        let observed = condition(formula).map_or(Vec::new(), |condition| condition.scope());
        let evidence = |model: &Model| -> Result<Option<Posteriors>> {
            let engine = Engines::new(model).marginals()?;
            let mut beliefs = sample.to_beliefs().calibrated_by(model)?;
            for row in 0..sample.n_rows() {
                for &label in &observed {
                    let category = sample.category(row, label).expect("the labels of the rule are known");
                    beliefs.observe(row, label, category)?;
                }
            }
            let is_exact = engine.engine() != Engine::Loopy;
            is_exact.then(|| engine.infer_batch(&beliefs)).transpose()
        };
        let (Some(with), Some(without)) = (evidence(&with)?, evidence(&without)?) else { return Ok(unknown) };
        let p = obedience(base.rule(id));
        let violation = |row: usize| {
            let ratio = (with.log_evidence(row) - without.log_evidence(row)).exp();
            if ratio.is_finite() { ((p - ratio) / (2.0 * p - 1.0)).clamp(0.0, 1.0) } else { 0.5 }
        };
        let scale = known.weight / sample.weights().iter().sum::<f64>();
        let weights = sample.weights().iter().enumerate();
        Ok(Self { of_rows: weights.map(|(row, weight)| (scale * weight, violation(row))).collect() })
    }

    /// The expected weight of violations of a rule with the probability p, and its variance.
    fn expected(&self, p: f64) -> [f64; 2] {
        let mut sums = [0.0; 2];
        for &(weight, v) in &self.of_rows {
            let (broken, obeyed) = ((1.0 - p) * v, p * (1.0 - v));
            let e = if broken > 0.0 { broken / (broken + obeyed) } else { 0.0 }; // (1)
            sums[0] += weight * e;
            sums[1] += weight * e * (1.0 - e);
        }
        sums
    }

    /// The probability with which so many violations are expected.
    fn probability(&self, broken: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..BISECTIONS {
            let middle = f64::midpoint(low, high);
            if self.expected(middle)[0] > broken { low = middle } else { high = middle }
        }
        f64::midpoint(low, high)
    }
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
    use crate::assignment::Assignment;
    use crate::belief::BeliefMatrix;
    use crate::evidence::Evidence;
    use crate::label::LabelId;
    use crate::simulate::RowSimulation;
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
        contradictions(&model, &Examples::new(beliefs, truths).unwrap()).unwrap()
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
            assert_eq!((found[0].broken, found[0].known), (40.0, 100.0), "{rule}");
            assert!((found[0].suggested - 0.6).abs() < 1e-9, "{rule}");
        }
    }

    #[test]
    fn a_rule_without_condition_counts_every_known_row() {
        let found = found("rule 0.9: a | b\nrule 0.9: a & b", &[(BOTH, 50), (ONLY_A, 50)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].rule, RuleId::new(1));
    }

    #[test]
    fn a_probability_below_one_half_is_mirrored() {
        let rows = [(BOTH, 60), (ONLY_A, 40)];
        let found = found("rule 0.1: a -> b\nrule 0.6: a -> b\nrule 0.5: a -> b", &rows);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].rule, found[0].broken), (RuleId::new(0), 60.0));
        // The second rule already says 0.6, so nothing is left to say for the first.
        assert!((found[0].suggested - 0.5).abs() < 1e-9);
    }

    /// Rules of which `pale -> wet` is violated in more than a third of the rows where its condition holds.
    const LOAF: &str = "\
label crust: pale, golden, burnt
label weight: light, right, heavy
label crumb: wet, done
rule 0.95: burnt -> done
rule 0.9: wet -> heavy
";

    fn drawn(model: &Model, simulation: RowSimulation) -> Examples {
        let (truths, beliefs) = simulation.draw(&Engines::new(model).sampler().unwrap()).unwrap();
        let known = |truth: Assignment| {
            Truth::from_indices(truth.indices().iter().copied().map(Some).collect::<Vec<_>>())
        };
        Examples::new(beliefs, truths.into_iter().map(known).collect()).unwrap()
    }

    #[test]
    fn rows_of_the_model_itself_were_a_contradiction() {
        let model = |p: f64| Model::parse(&format!("{LOAF}rule {p}: pale -> wet\n")).unwrap();
        let simulation = RowSimulation { n_rows: 3_000, ..RowSimulation::default() };
        let rows = drawn(&model(0.8), simulation);
        assert_eq!(contradictions(&model(0.8), &rows).unwrap(), []);
        let found = contradictions(&model(0.99), &rows).unwrap();
        assert_eq!(found.len(), 1);
        let share = found[0].broken / found[0].known;
        assert!(share > 0.3, "{share}"); // the probability suggested was 1 minus this share
        assert!((found[0].suggested - 0.8).abs() < 0.05, "{found:?}");
    }

    #[test]
    fn expected_violations_agree_with_enumeration() {
        let text = format!("{LOAF}rule 0.8: pale -> wet\nrule 0.2: pale | light\nrule 1: !(burnt & light)\n");
        let model = Model::parse(&text).unwrap();
        let simulation = RowSimulation { n_rows: 20, missing: 0.3, ..RowSimulation::default() };
        let rows = drawn(&model, simulation);
        for id in model.rule_ids() {
            let (rule, formula) = (model.rule(id), model.rule(id).formula().unwrap());
            let known = Known::new(rule, formula, &rows);
            let found = Violations::new(&model, id, formula, &rows, &known).unwrap();
            let wanted: f64 = known.rows.iter().map(|&row| expected_violation(&model, id, &rows, row)).sum();
            let [expected, _] = found.expected(obedience(rule));
            assert!((expected - wanted).abs() < 1e-9, "{id:?}: {expected} instead of {wanted}");
        }
    }

    /// P(violation | condition, beliefs) of a row, by enumeration.
    fn expected_violation(model: &Model, id: RuleId, rows: &Examples, row: usize) -> f64 {
        let rule = model.rule(id);
        let formula = rule.formula().unwrap();
        let observed = condition(formula).map_or(Vec::new(), |condition| condition.scope());
        let beliefs = rows.beliefs_of(row..row + 1);
        let [mut broken, mut all] = [0.0; 2];
        for assignment in (0..18).map(|n| [n % 3, n / 3 % 3, n / 9]) {
            let agrees = |label: &LabelId| {
                rows.category(row, *label)
                    .is_some_and(|category| category.index() == assignment[label.index()])
            };
            if observed.iter().all(agrees) {
                let of = Assignment::from_indices(assignment);
                let weight = model.log_weight(&beliefs.row(0), &of).exp();
                all += weight;
                broken +=
                    if formula.holds_at(&assignment) == (rule.probability() < 0.5) { weight } else { 0.0 };
            }
        }
        broken / all
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
