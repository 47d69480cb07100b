//! Rules as parts of a discrete network: a table, or a chain if the table would be too large.

use crate::combination::Combination;
use crate::diagnostic::quoted;
use crate::error::{Error, Result};
use crate::formula::as_clause;
use crate::infer::Limits;
use crate::infer::limits::bytes;
use crate::label::LabelId;
use crate::model::Model;
use crate::rule::{Body, Rule, RuleId};

/// Maximum table size of a clause or noisy-or; larger ones are written as chains.
const CHAIN_FROM: f64 = (1u32 << 10) as f64;
/// Maximum table size.
const MAX_ENTRIES: f64 = (1u32 << 20) as f64;
/// Bytes per table entry: the number, and its digits in the text.
const ENTRY_BYTES: f64 = 32.0;
/// Maximum size of all tables together.
const MAX_TOTAL: f64 = (1u32 << 24) as f64;
/// Maximum number of formula nodes evaluated to fill the tables of one model.
const MAX_WORK: f64 = (1u32 << 30) as f64;

/// One rule as part of a network.
pub(super) enum Piece {
    Table(Table),
    Chain(Chain),
}

/// The weight of each combination of some labels' categories.
pub(super) struct Table {
    /// The labels, in the model's order.
    pub(super) scope: Vec<LabelId>,
    /// One weight per combination, the category of the first label changing fastest.
    pub(super) weights: Vec<f64>,
}

/// A rule f = p + (1 − 2p) Q with Q = ∏ q, as a chain of auxiliary variables. The chain is silent until a label fires.
///
/// With aᵢ ∈ {silent, fired} after label i,
///
/// ```text
/// P(aᵢ = silent | aᵢ₋₁ = silent, lᵢ) = qᵢ(lᵢ),    P(aᵢ = fired | aᵢ₋₁ = fired) = 1
/// ```
///
/// the last one is silent with probability Q. Weighting this state by 1 − p and the other by p gives f. No entry
/// is negative, and the size of all tables is linear in the number of labels.
pub(super) struct Chain {
    /// Each label with its q per category, in the model's order.
    pub(super) links: Vec<(LabelId, Vec<f64>)>,
    /// The weight when nothing fired.
    pub(super) silent: f64,
    /// The weight when something fired.
    pub(super) fired: f64,
}

/// The factor of typical combinations as the sum over one more variable T: `other` or the combination s,
///
/// ```text
/// S(y) = Σₜ w(t) ∏ⱼ [t = other or tⱼ = yⱼ],    w(other) = 1
/// ```
///
/// so that each label shares only a small table with T.
pub(super) struct Choice<'m> {
    combinations: &'m [Combination],
    /// w(t), `other` first.
    pub(super) weights: Vec<f64>,
}

impl Choice<'_> {
    /// [t = other or tⱼ = m].
    pub(super) fn admits(&self, state: usize, label: LabelId, category: usize) -> bool {
        state == 0 || self.combinations[state - 1].categories()[label.index()] == category
    }

    /// The weights as a distribution.
    pub(super) fn probabilities(&self) -> Vec<f64> {
        // Their sum may overflow.
        let largest = self.weights.iter().copied().fold(0.0, f64::max);
        let scaled: Vec<f64> = self.weights.iter().map(|weight| weight / largest).collect();
        let total: f64 = scaled.iter().sum();
        scaled.into_iter().map(|weight| weight / total).collect()
    }
}

/// The factor of typical combinations, if there are any.
pub(super) fn choice(model: &Model, limits: Limits) -> Result<Option<Choice<'_>>> {
    let combinations = model.typical();
    if combinations.is_empty() {
        return Ok(None);
    }
    let entries = (combinations.len() + 1) as f64 * model.n_categories() as f64;
    if entries > MAX_TOTAL {
        return Err(Error::TooCostly {
            what: format!("the model with its {} typical combinations", combinations.len()),
            needed: format!("tables of about 2^{:.0} entries", entries.log2()),
            limit: "2^24".to_owned(),
            advice: "keep those of the largest weights".to_owned(),
        });
    }
    check_memory(entries, limits, || format!("the {} typical combinations", combinations.len()))?;
    let weights = std::iter::once(1.0).chain(combinations.iter().map(Combination::weight)).collect();
    Ok(Some(Choice { combinations, weights }))
}

/// A rule as a chain, if its table would be too large and a chain is possible.
pub(super) fn chain_of(model: &Model, rule: &Rule) -> Option<Chain> {
    if n_entries(model, &rule.scope()) > CHAIN_FROM { chain(model, rule) } else { None }
}

fn n_entries(model: &Model, scope: &[LabelId]) -> f64 {
    scope.iter().map(|&label| model.label(label).n_categories() as f64).product()
}

fn check_memory(entries: f64, limits: Limits, of: impl Fn() -> String) -> Result<()> {
    if entries * ENTRY_BYTES <= limits.memory as f64 {
        return Ok(());
    }
    Err(Error::TooCostly {
        what: format!("an export with tables for {}", of()),
        needed: format!("{} for {entries:.0} entries", bytes(entries * ENTRY_BYTES)),
        limit: bytes(limits.memory as f64),
        advice: "raise the memory limit, or export to ProbLog, which needs no tables".to_owned(),
    })
}

/// All rules as parts of the network, in order.
pub(super) fn pieces(model: &Model, limits: Limits) -> Result<Vec<Piece>> {
    let mut assignment = vec![0; model.labels().len()];
    let (mut total, mut work) = (0.0, 0.0);
    model
        .rule_ids()
        .map(|id| {
            let rule = model.rule(id);
            if let Some(chain) = chain_of(model, rule) {
                return Ok(Piece::Chain(chain));
            }
            let mut scope = rule.scope();
            scope.sort_unstable();
            let entries = n_entries(model, &scope);
            total += entries;
            work += entries * size(rule) as f64;
            if entries > MAX_ENTRIES || total > MAX_TOTAL || work > MAX_WORK {
                return Err(too_costly(model, id, entries));
            }
            check_memory(total, limits, || format!("the rules up to {}", quoted(model.rule_name(id))))?;
            Ok(Piece::Table(table(model, rule, scope, &mut assignment)))
        })
        .collect()
}

fn table(model: &Model, rule: &Rule, scope: Vec<LabelId>, assignment: &mut [usize]) -> Table {
    let mut weights = Vec::new();
    for &label in &scope {
        assignment[label.index()] = 0;
    }
    loop {
        weights.push(rule.weight_at(assignment));
        if !advance(model, &scope, assignment) {
            return Table { scope, weights };
        }
    }
}

/// Advances to the next combination of the scope's categories, the first label changing fastest. Returns whether there
/// is one.
pub(super) fn advance(model: &Model, scope: &[LabelId], assignment: &mut [usize]) -> bool {
    for &label in scope {
        let category = &mut assignment[label.index()];
        *category += 1;
        if *category < model.label(label).n_categories() {
            return true;
        }
        *category = 0;
    }
    false
}

/// The rule as a chain, if it is a noisy-or, a clause, or the negation of one.
fn chain(model: &Model, rule: &Rule) -> Option<Chain> {
    let p = rule.probability();
    match rule.body() {
        Body::NoisyOr(noisy_or) => {
            let mut scope = noisy_or.scope();
            scope.sort_unstable();
            let mut links: Vec<(LabelId, Vec<f64>)> = scope
                .into_iter()
                .map(|label| (label, vec![1.0; model.label(label).n_categories()]))
                .collect();
            for inhibition in noisy_or.inhibitions() {
                let at = links.partition_point(|(label, _)| *label < inhibition.label);
                links[at].1[inhibition.category.index()] = inhibition.probability;
            }
            Some(Chain { links, silent: 1.0 - p, fired: p })
        }
        Body::Formula(formula) => {
            let clause = as_clause(formula, |label| model.label(label).n_categories())?;
            let links = clause.literals.iter().map(|(&label, fires)| {
                let mut inhibitions = vec![1.0; model.label(label).n_categories()];
                fires.iter().for_each(|category| inhibitions[category.index()] = 0.0);
                (label, inhibitions)
            });
            let fired = if clause.positive { p } else { 1.0 - p };
            let silent = if clause.always { fired } else { 1.0 - fired };
            Some(Chain { links: links.collect(), silent, fired })
        }
    }
}

/// The number of nodes evaluated to weight one assignment.
fn size(rule: &Rule) -> usize {
    match rule.body() {
        Body::Formula(formula) => {
            formula.nodes().len() + formula.atoms().map(|atom| atom.categories().len()).sum::<usize>()
        }
        Body::NoisyOr(noisy_or) => noisy_or.inhibitions().len(),
    }
}

fn too_costly(model: &Model, id: RuleId, entries: f64) -> Error {
    let name = model.rule_name(id);
    if entries > MAX_ENTRIES {
        return Error::TooCostly {
            what: format!("rule {}", quoted(&name)),
            needed: format!("a table of about 2^{:.0} entries", entries.log2()),
            limit: "2^20".to_owned(),
            advice: "split it into rules over fewer labels, or export to ProbLog, which needs no tables"
                .to_owned(),
        };
    }
    Error::TooCostly {
        what: format!("the model up to rule {}", quoted(&name)),
        needed: "too large tables".to_owned(),
        limit: "2^24 entries and 2^30 evaluated operators".to_owned(),
        advice: "export a part of it, or export to ProbLog, which needs no tables".to_owned(),
    }
}
