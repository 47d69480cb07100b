//! Rules in the form that engines use: classified by shape, with equivalent categories merged.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use super::arrangement::Arrangement;
use super::counter::{self, Counter, MIN_LABELS, Tally};
use super::diagram::{Diagram, Level, MAX_STATES, TooLarge};
use super::limits::quantity;
use crate::diagnostic::quoted;
use crate::error::{Error, Result};
use crate::formula::as_clause;
use crate::label::{CategoryId, LabelId};
use crate::model::Model;
use crate::outcome::Outcome;
use crate::rule::{Body, RuleId};

/// For each label, the groups (states) of categories that no rule distinguishes.
#[derive(Clone, Debug)]
pub(crate) struct States {
    /// For every label, the state of each category.
    pub(crate) of_category: Vec<Vec<usize>>,
    /// For every label, the first category of each state.
    pub(crate) representatives: Vec<Vec<CategoryId>>,
}

/// The shape of a rule.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// A rank-one rule, Q = ∏ q: for each label of the scope, q of each state.
    RankOne(Vec<(LabelId, Vec<f64>)>),
    /// Any other formula.
    Logical(Vec<LabelId>),
}

#[derive(Clone, Debug)]
pub(crate) struct Factor {
    pub(crate) rule: RuleId,
    pub(crate) shape: Shape,
    /// The rule's weights when it is silent and when it has fired.
    pub(crate) weights: [f64; 2],
    /// Whether the rule is the negation of a clause. Then a fired clause has the weight 1 − p.
    pub(crate) is_negated: bool,
    /// Number of entries of its full table.
    pub(crate) table_size: f64,
    /// How it counts, if it counts many labels.
    pub(crate) counted: Option<Counted>,
    /// Its decision diagram, compiled on first use.
    diagram: OnceLock<Result<Diagram, TooLarge>>,
}

/// The model's rules with their shapes, and its labels' states. All engines of a model share them. Decision diagrams
/// are compiled when an engine first needs them.
pub(crate) struct Factors {
    pub(crate) model: Model,
    pub(crate) states: Arc<States>,
    pub(crate) list: Vec<Factor>,
    /// Maximum work of compiling the decision diagram of one rule.
    max_diagram_work: f64,
}

/// Maximum work of compiling the decision diagrams of all rules, in units of about a nanosecond.
const MAX_DIAGRAM_WORK: f64 = 1e9;

/// Maximum number of formula nodes evaluated to fill one table.
const MAX_TABLE_WORK: f64 = 1e8;

impl Factors {
    pub(crate) fn new(model: &Model) -> Self {
        Self::with_states(model, States::new(model))
    }

    /// The same with given states.
    pub(crate) fn with_states(model: &Model, states: States) -> Self {
        let mut list: Vec<Factor> = model.rule_ids().map(|rule| Factor::new(model, &states, rule)).collect();
        arrange(model, &mut list);
        let n_logical = list.iter().filter(|factor| matches!(factor.shape, Shape::Logical(_))).count();
        let max_diagram_work = MAX_DIAGRAM_WORK / n_logical.max(1) as f64;
        Self { model: model.clone(), states: Arc::new(states), list, max_diagram_work }
    }

    /// The labels of a rule.
    pub(crate) fn scope(&self, factor: &Factor) -> Vec<LabelId> {
        factor.labels()
    }

    /// The rule's outcome for every combination of the states of `scope`, the last label fastest.
    ///
    /// `scope` contains all labels of the rule, and possibly others.
    pub(crate) fn entries(&self, factor: &Factor, scope: &[LabelId]) -> Vec<Outcome> {
        let sizes: Vec<usize> =
            scope.iter().map(|label| self.states.representatives[label.index()].len()).collect();
        match (&factor.shape, self.diagram(factor)) {
            (Shape::RankOne(q), _) => {
                let q: HashMap<LabelId, &Vec<f64>> = q.iter().map(|(label, q)| (*label, q)).collect();
                let step = |[silent, fired, log_silent]: [f64; 3], place: usize, state: usize| {
                    let q = q.get(&scope[place]).map_or(1.0, |q| q[state]);
                    [silent * q, fired + silent * (1.0 - q), log_silent + q.ln()]
                };
                let outcome =
                    |[silent, fired, log_silent]: [f64; 3]| Outcome::new([silent, fired], || log_silent);
                prefixes(&sizes, [1.0, 0.0, 0.0], step).into_iter().map(outcome).collect()
            }
            (Shape::Logical(_), Some(diagram)) => entries_along(diagram, scope, &sizes),
            (Shape::Logical(_), None) => self.entries_one_by_one(factor, scope, &sizes),
        }
    }

    fn entries_one_by_one(&self, factor: &Factor, scope: &[LabelId], sizes: &[usize]) -> Vec<Outcome> {
        let mut assignment: Vec<usize> =
            self.states.representatives.iter().map(|representatives| representatives[0].index()).collect();
        let mut entries = Vec::with_capacity(sizes.iter().product());
        for_each_combination(sizes, |digits| {
            for (label, &digit) in scope.iter().zip(digits) {
                assignment[label.index()] = self.states.representatives[label.index()][digit].index();
            }
            entries.push(self.model.rule(factor.rule).precise_outcome(&assignment));
        });
        entries
    }

    /// Whether the rule's table has at most `max_entries` and takes at most [`MAX_TABLE_WORK`] to fill.
    pub(crate) fn has_table(&self, factor: &Factor, max_entries: f64) -> bool {
        factor.table_size <= max_entries
            && match &factor.shape {
                Shape::RankOne(_) => true,
                Shape::Logical(_) => {
                    self.diagram(factor).is_some()
                        || factor.table_size * self.n_nodes(factor) <= MAX_TABLE_WORK
                }
            }
    }

    fn n_nodes(&self, factor: &Factor) -> f64 {
        self.model.rule(factor.rule).formula().map_or(1.0, |formula| formula.nodes().len() as f64)
    }

    /// The decision diagram of a logical rule; an error if it is too large.
    pub(crate) fn require_diagram<'a>(&self, factor: &'a Factor) -> Result<&'a Diagram> {
        self.compiled_diagram(factor).as_ref().map_err(|&too_large| {
            let work = quantity(self.max_diagram_work);
            let (needed, limit) = match too_large {
                TooLarge::States { label } => (
                    format!(
                        "a decision diagram of more than {MAX_STATES} states at label {}",
                        quoted(self.model.label(label).name())
                    ),
                    format!("{MAX_STATES} states"),
                ),
                TooLarge::Work => (
                    format!("more than {work} steps for its decision diagram"),
                    format!("{work} steps, shared equally among the rules that need a diagram"),
                ),
            };
            Error::TooCostly {
                what: format!("rule {}", quoted(self.model.rule_name(factor.rule))),
                needed,
                limit,
                advice: "split it into several rules".to_owned(),
            }
        })
    }

    /// The decision diagram of a logical rule; `None` if it is too large.
    pub(crate) fn diagram<'a>(&self, factor: &'a Factor) -> Option<&'a Diagram> {
        match factor.shape {
            Shape::RankOne(_) => None,
            Shape::Logical(_) => self.compiled_diagram(factor).as_ref().ok(),
        }
    }

    fn compiled_diagram<'a>(&self, factor: &'a Factor) -> &'a Result<Diagram, TooLarge> {
        factor.diagram.get_or_init(|| {
            let formula = self.model.rule(factor.rule).formula().expect("only formulas are logical");
            let choices: Vec<_> = self
                .scope(factor)
                .into_iter()
                .map(|label| (label, self.states.representatives[label.index()].clone()))
                .collect();
            Diagram::compile(formula, &choices, self.max_diagram_work)
        })
    }
}

/// Evaluates a decision diagram for every combination. `scope` may have the labels in another order.
fn entries_along(diagram: &Diagram, scope: &[LabelId], sizes: &[usize]) -> Vec<Outcome> {
    let place_of: HashMap<LabelId, usize> =
        scope.iter().enumerate().map(|(place, &label)| (label, place)).collect();
    let places: Vec<usize> = diagram.levels.iter().map(|level| place_of[&level.label]).collect();
    let outcome = |state: usize| Outcome::of(diagram.accepts[state]);
    if places.is_sorted() {
        let mut level_at: Vec<Option<usize>> = vec![None; scope.len()];
        places.iter().enumerate().for_each(|(level, &place)| level_at[place] = Some(level));
        let step = |state: usize, place: usize, choice: usize| match level_at[place] {
            Some(level) => diagram.levels[level].after(state, choice),
            None => state,
        };
        return prefixes(sizes, 0, step).into_iter().map(outcome).collect();
    }
    let mut entries = Vec::with_capacity(sizes.iter().product());
    for_each_combination(sizes, |digits| {
        let walk = |state: usize, (level, &place): (&Level, &usize)| level.after(state, digits[place]);
        entries.push(outcome(diagram.levels.iter().zip(&places).fold(0, walk)));
    });
    entries
}

/// Folds `step` over the digits of every combination, the last digit fastest, and returns all results.
///
/// Combinations with equal first digits share the steps for these digits.
fn prefixes<T: Copy>(sizes: &[usize], start: T, step: impl Fn(T, usize, usize) -> T) -> Vec<T> {
    let mut results = vec![start];
    for (place, &size) in sizes.iter().enumerate() {
        results = results
            .iter()
            .flat_map(|&prefix| (0..size).map(move |digit| (prefix, digit)))
            .map(|(prefix, digit)| step(prefix, place, digit))
            .collect();
    }
    results
}

/// Calls `visit` with every combination of digits, the last fastest.
fn for_each_combination(sizes: &[usize], mut visit: impl FnMut(&[usize])) {
    let mut digits = vec![0; sizes.len()];
    loop {
        visit(&digits);
        let Some(place) = (0..digits.len()).rev().find(|&place| digits[place] + 1 < sizes[place]) else {
            return;
        };
        digits[place] += 1;
        digits[place + 1..].fill(0);
    }
}

/// Decides how symmetric rules of many labels count them. Smaller rules keep the order of their text: a taxonomy or a
/// permutation is written in an order that suits it.
fn arrange(model: &Model, list: &mut [Factor]) {
    let formula = |factor: &Factor| {
        let formula = model.rule(factor.rule).formula().filter(|_| factor.labels().len() >= MIN_LABELS);
        formula.filter(|formula| !factor.is_negated && formula.is_symmetric())
    };
    if list.iter().all(|factor| formula(factor).is_none()) {
        return;
    }
    let scope = |factor: &Factor| factor.labels().into_iter().map(LabelId::index).collect();
    let scopes: Vec<Vec<usize>> = list.iter().map(scope).collect();
    let tree = Arrangement::new(model.labels().len(), scopes.iter().map(Vec::as_slice));
    if let Some(tree) = &tree {
        let mut position = vec![0; model.labels().len()];
        tree.order.iter().enumerate().for_each(|(place, &label)| position[label] = place);
        for factor in list.iter_mut().filter(|factor| formula(factor).is_some()) {
            if let Shape::Logical(scope) = &mut factor.shape {
                scope.sort_by_key(|label| position[label.index()]);
            }
        }
    }
    let mut groups: Vec<(Tally, Vec<usize>)> = Vec::new();
    for (place, factor) in list.iter().enumerate() {
        let Some(tally) = formula(factor).and_then(Tally::new) else { continue };
        let joined = groups.iter_mut().find_map(|group| group.0.join(&tally).map(|both| (group, both)));
        match joined {
            Some((group, both)) => {
                group.0 = both;
                group.1.push(place);
            }
            None => groups.push((tally, vec![place])),
        }
    }
    // A rule like `at_least 1 of` is a clause, which is cheaper alone.
    groups.retain(|(_, places)| places.iter().any(|&place| matches!(list[place].shape, Shape::Logical(_))));
    for (tally, places) in groups {
        let counter = Arc::new(Counter::new(tally, tree.as_ref()));
        let n_states = counter.n_states(counter.additions.len() - 1);
        for &place in &places {
            let formula = formula(&list[place]).expect("it is symmetric");
            let holds = (0..n_states).map(|state| counter::admits(formula, state)).collect();
            list[place].counted = Some(Counted { counter: Arc::clone(&counter), first: places[0], holds });
        }
    }
}

/// A rule that counts many labels.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub(crate) counter: Arc<Counter>,
    /// The first rule with the same counter.
    pub(crate) first: usize,
    /// Whether the rule holds in each state of the sum.
    pub(crate) holds: Vec<bool>,
}

impl Factor {
    /// The labels of the rule.
    fn labels(&self) -> Vec<LabelId> {
        match &self.shape {
            Shape::RankOne(q) => q.iter().map(|(label, _)| *label).collect(),
            Shape::Logical(scope) => scope.clone(),
        }
    }

    /// Whether an earlier rule has the same counter.
    pub(crate) fn shares_counter(&self) -> bool {
        self.counted.as_ref().is_some_and(|counted| counted.first != self.rule.index())
    }

    fn new(model: &Model, states: &States, id: RuleId) -> Self {
        let rule = model.rule(id);
        let p = rule.probability();
        let of_states = |label: LabelId, q: &dyn Fn(CategoryId) -> f64| -> (LabelId, Vec<f64>) {
            (label, states.representatives[label.index()].iter().map(|&category| q(category)).collect())
        };
        let (shape, is_negated) = match rule.body() {
            Body::NoisyOr(noisy_or) => {
                let named: HashMap<(LabelId, CategoryId), f64> = noisy_or
                    .inhibitions()
                    .iter()
                    .map(|it| ((it.label, it.category), it.probability))
                    .collect();
                let q_of = |label: LabelId| {
                    of_states(label, &|category| named.get(&(label, category)).copied().unwrap_or(1.0))
                };
                (Shape::RankOne(noisy_or.scope().into_iter().map(q_of).collect()), false)
            }
            Body::Formula(formula) => match as_clause(formula, |label| model.label(label).n_categories()) {
                Some(clause) if !clause.always => {
                    let q_of = |(&label, fires): (&LabelId, &Vec<CategoryId>)| {
                        of_states(label, &|category| f64::from(fires.binary_search(&category).is_err()))
                    };
                    (Shape::RankOne(clause.literals.iter().map(q_of).collect()), !clause.positive)
                }
                _ => (Shape::Logical(formula.scope()), false),
            },
        };
        let weights = if is_negated { [p, 1.0 - p] } else { [1.0 - p, p] };
        let mut factor = Self {
            rule: id,
            shape,
            weights,
            is_negated,
            table_size: 1.0,
            counted: None,
            diagram: OnceLock::new(),
        };
        let n_states = |label: &LabelId| states.representatives[label.index()].len() as f64;
        factor.table_size = factor.labels().iter().map(n_states).product();
        factor
    }
}

impl States {
    /// Two categories share a state if every rule treats them equally.
    fn new(model: &Model) -> Self {
        let mut partitions: Vec<Partition> =
            model.labels().iter().map(|label| Partition::new(label.n_categories())).collect();
        for rule in model.rules() {
            refine(&mut partitions, rule.body());
        }
        let (of_category, representatives) = partitions.into_iter().map(Partition::numbered).unzip();
        Self { of_category, representatives }
    }

    /// One state for every category.
    pub(crate) fn of_categories(model: &Model) -> Self {
        let sizes = || model.labels().iter().map(|label| label.n_categories());
        Self {
            of_category: sizes().map(|n| (0..n).collect()).collect(),
            representatives: sizes().map(|n| (0..n).map(CategoryId::new).collect()).collect(),
        }
    }
}

/// Separates categories that a rule distinguishes.
fn refine(partitions: &mut [Partition], body: &Body) {
    match body {
        Body::Formula(formula) => {
            let mut seen = HashSet::new();
            for atom in formula.atoms().filter(|&atom| seen.insert(atom)) {
                partitions[atom.label().index()]
                    .split(atom.categories().iter().map(|&category| (category, 0)));
            }
        }
        Body::NoisyOr(noisy_or) => {
            let mut of_label: BTreeMap<LabelId, HashMap<CategoryId, u64>> = BTreeMap::new();
            for inhibition in noisy_or.inhibitions().iter().filter(|it| it.probability != 1.0) {
                let named = of_label.entry(inhibition.label).or_default();
                named.insert(inhibition.category, inhibition.probability.to_bits());
            }
            of_label.into_iter().for_each(|(label, named)| partitions[label.index()].split(named));
        }
    }
}

/// A partition of categories that is refined step by step.
struct Partition {
    classes: Vec<usize>,
    n_classes: usize,
}

impl Partition {
    fn new(n_categories: usize) -> Self {
        Self { classes: vec![0; n_categories], n_classes: 1 }
    }

    /// Moves these categories into new classes. Categories with equal class and key stay together.
    fn split(&mut self, categories: impl IntoIterator<Item = (CategoryId, u64)>) {
        let mut fresh: HashMap<(usize, u64), usize> = HashMap::new();
        for (category, key) in categories {
            let class = &mut self.classes[category.index()];
            let next = self.n_classes;
            *class = *fresh.entry((*class, key)).or_insert(next);
            self.n_classes = self.n_classes.max(*class + 1);
        }
    }

    /// The class of each category, numbered in the order of first categories; and the first category of each class.
    fn numbered(self) -> (Vec<usize>, Vec<CategoryId>) {
        let mut ids = HashMap::new();
        let mut representatives = Vec::new();
        let of_category = self.classes.into_iter().enumerate().map(|(category, class)| {
            *ids.entry(class).or_insert_with(|| {
                representatives.push(CategoryId::new(category));
                representatives.len() - 1
            })
        });
        (of_category.collect(), representatives)
    }
}
