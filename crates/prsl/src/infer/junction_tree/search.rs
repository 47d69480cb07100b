//! The search for a cheap plan: the form of each rule, and the elimination order of the variables.
//!
//! Its budget is counted work, which depends on the model only, neither on the clock nor on the number of rows. So the
//! same model always compiles to the same plan.

mod tree;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::network::{Filled, Form, Network, Split};
use super::order::{Graph, HEURISTICS, Order};
use super::plan::{Outline, Plan};
use crate::error::{Error, Result};
use crate::infer::factor::Factors;
use crate::infer::limits::{Cost, quantity};
use crate::infer::semiring::Aim;
use crate::label::LabelId;
use crate::rule::RuleId;
use tree::reconfigured;

/// Budget of the search, as the number of rows of the best plan so far that take the same time. Work is counted in
/// units of about a nanosecond.
const ROWS_WORTH: f64 = 1000.0;
/// Smallest budget of a search: 0.1 milliseconds.
const MIN_WORK: f64 = 1e5;
/// Largest budgets of a search, for sums and for maxima: 2 and 0.4 seconds. Maxima of wide models have branch and
/// bound.
const MAX_WORK: [f64; 2] = [2e9, 4e8];

/// Budget for reconfiguring one contraction tree, as a share of the budget for elimination orders. The plans with and
/// without signs have a tree each. Three times as much gained nothing on 40-label models.
const TREE_SHARE: f64 = 0.12;

/// Largest number of annealing steps per variable. Plans of a few variables do not improve any further.
const MAX_CHANGES: u64 = 1000;

/// Largest work for a lower bound on the treewidth: half a second.
const MAX_BOUND_WORK: f64 = 5e8;

/// Largest price of a plan. A greedy order is abandoned above it.
const MAX_PRICE: f64 = 1e18;

/// Excess over the limits above which a greedy plan is not annealed. On models of 40 to 60 labels, annealing gains a
/// factor of 50 to 100.
const HOPELESS: f64 = 1e6;

/// Largest distance by which an annealing step moves a variable in the order.
const MAX_MOVE: usize = 12;

/// Largest relative increase of the price that annealing accepts at its start. It falls to 0.
const TOLERANCE: f64 = 0.1;

/// A plan in outline, with its forms and its elimination order.
#[derive(Clone)]
struct Candidate {
    forms: Vec<Form>,
    order: Order,
    outline: Outline,
    price: f64,
}

/// The result of the search, from which the network and the plan are built.
pub(crate) struct Best {
    pub(crate) forms: Vec<Form>,
    order: Order,
    split: Split,
    /// The plan in outline.
    pub(crate) outline: Outline,
    /// The plan of the elimination order itself, used if the reconfigured one does not fit.
    spare: Option<Outline>,
    /// Work of the search, in units of about a nanosecond.
    work: f64,
    /// Budget for reconfiguring the contraction tree.
    budget: f64,
}

impl Best {
    /// The network with its numbers.
    pub(crate) fn network(&self, factors: &Factors) -> Result<Network> {
        factors.network(&self.forms, self.split, Filled::Yes)
    }

    /// The decomposition of its rank-one rules.
    pub(crate) fn split(&self) -> Split {
        self.split
    }

    /// The same plan, except that a rule becomes a table if no table with its auxiliary variable depends on the row.
    /// Decomposing such a rule saves nothing, and the sums of a row would not show digits lost to its signs.
    fn settled(mut self, factors: &Factors) -> Result<Self> {
        let network = factors.network(&self.forms, self.split, Filled::No)?;
        let n_variables = network.variables.len();
        let meet_a_row: Vec<Vec<bool>> =
            self.outlines().map(|outline| outline.meet_a_row(n_variables)).collect();
        let is_lost = |&&(_, variable): &&(RuleId, usize)| meet_a_row.iter().any(|meet| !meet[variable]);
        let lost: Vec<RuleId> = network.signed.iter().filter(is_lost).map(|&(rule, _)| rule).collect();
        if lost.is_empty() {
            return Ok(self);
        }
        lost.iter().for_each(|rule| self.forms[rule.index()] = Form::Table);
        // The recursion may repeat. With half the budget each time, all searches together take at most twice the
        // budget.
        self.budget /= 2.0;
        self.with_split(factors, self.split)?.settled(factors)
    }

    /// The same forms and elimination order with another decomposition.
    pub(crate) fn with_split(&self, factors: &Factors, split: Split) -> Result<Best> {
        let network = factors.network(&self.forms, split, Filled::No)?;
        let outline = Outline::new(&network, &self.order, f64::INFINITY, &mut 0.0);
        let outline = outline.expect("nothing is above infinity");
        let (forms, order, work, budget) = (self.forms.clone(), self.order.clone(), self.work, self.budget);
        Best { forms, order, split, outline, spare: None, work, budget }.reconfigured(factors)
    }

    /// The same plan with a cheaper contraction tree, if one is found.
    fn reconfigured(mut self, factors: &Factors) -> Result<Self> {
        let network = factors.network(&self.forms, self.split, Filled::No)?;
        if let Some(outline) = reconfigured(&network, &self.outline, self.budget, &mut self.work) {
            self.spare = Some(std::mem::replace(&mut self.outline, outline));
        }
        Ok(self)
    }

    /// The outline of the plan, and that of the elimination order if it is another one.
    pub(crate) fn outlines(&self) -> impl Iterator<Item = &Outline> {
        std::iter::once(&self.outline).chain(&self.spare)
    }
}

/// Limits of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ceiling {
    /// Bytes for the tables of one row.
    pub(crate) memory: f64,
    /// Multiply-adds per row.
    pub(crate) work: f64,
}

impl Ceiling {
    /// The factor by which a plan exceeds the limits. It is at most 1 for a plan within them.
    fn excess(&self, cost: &Cost) -> f64 {
        (cost.multiply_adds / self.work).max(8.0 * cost.entries / self.memory)
    }
}

/// Returns the cheapest plan that is found within the budget.
///
/// The ceiling does not change the plan. If it is out of reach, the search ends early, with an error or with a plan
/// that exceeds it.
pub(crate) fn search(factors: &Factors, aim: Aim, split: Split, ceiling: Ceiling) -> Result<Best> {
    let choices =
        factors.list.iter().map(|factor| factors.forms(factor, aim)).collect::<Result<Vec<Vec<Form>>>>()?;
    refuse_wide(factors, &choices, aim, ceiling)?;
    let most_work = MAX_WORK[usize::from(aim == Aim::Maximum)];
    let mut search = Search { factors, split, most_work, work: 0.0, seed: 0, best: None };
    for forms in starting_forms(factors, &choices) {
        search.try_forms(&forms, 6)?;
    }
    let Some(best) = &search.best else {
        return Err(Error::TooCostly {
            what: aim.query().to_owned(),
            needed: format!(
                "more than {} multiply-adds a row in every elimination order that was tried",
                quantity(MAX_PRICE)
            ),
            limit: format!("{} multiply-adds a row", quantity(ceiling.work)),
            advice: aim.advice().to_owned(),
        });
    };
    if ceiling.excess(&best.outline.cost) < HOPELESS {
        search.anneal(&choices)?;
    }
    let budget = search.budget() * TREE_SHARE;
    let best = search.best.expect("at least one choice of forms was tried");
    let (forms, order, outline) = (best.forms, best.order, best.outline);
    Best { forms, order, split, outline, spare: None, work: search.work, budget }
        .reconfigured(factors)?
        .settled(factors)
}

/// Returns an error if a lower bound on the treewidth proves that every plan exceeds the ceiling.
///
/// # Derivation
///
/// Let G have a vertex for each label, and for each rule about more than two labels a vertex adjacent to the rule's
/// labels. A decomposed rule contains this star as a minor. A rule as a table is a clique of its s labels. Adding a
/// vertex adjacent to all of them gives a treewidth of at most max(treewidth, s). So if the treewidth w of G is larger
/// than the s of every rule that may be a table, every choice of forms has at least treewidth w. Then some step of
/// every plan joins tables with w + 1 variables of at least two states:
///
/// ```text
/// multiply-adds ≥ 2^(w+1)
/// ```
fn refuse_wide(factors: &Factors, choices: &[Vec<Form>], aim: Aim, ceiling: Ceiling) -> Result<()> {
    let mut n_variables = factors.model.labels().len();
    let mut widest_table = 0;
    let mut cliques: Vec<Vec<usize>> = Vec::new();
    for (factor, choices) in factors.list.iter().zip(choices) {
        let has_variable = |label: &LabelId| factors.states.representatives[label.index()].len() > 1;
        let scope: Vec<usize> =
            factors.scope(factor).into_iter().filter(has_variable).map(LabelId::index).collect();
        if choices.contains(&Form::Table) {
            widest_table = widest_table.max(scope.len());
        }
        if factor.shares_counter() {
            continue; // the first rule of the counter stands for all
        }
        if factor.n_variables() == 0 {
            cliques.push(scope);
        } else if factors.is_connected(factor) {
            cliques.extend(scope.into_iter().map(|label| vec![label, n_variables]));
            n_variables += 1;
        }
    }
    let graph = Graph::of_cliques(vec![0; n_variables], cliques.iter().map(Vec::as_slice));
    let enough = ceiling.work.log2().floor() as usize;
    let treewidth = graph.treewidth_at_least(enough.max(widest_table + 1), MAX_BOUND_WORK);
    if treewidth < enough || treewidth <= widest_table {
        return Ok(());
    }
    Err(Error::TooCostly {
        what: aim.query().to_owned(),
        needed: format!(
            "at least {} multiply-adds a row, because the treewidth is at least {treewidth}",
            quantity((treewidth as f64 + 1.0).exp2())
        ),
        limit: format!("{} multiply-adds a row", quantity(ceiling.work)),
        advice: aim.advice().to_owned(),
    })
}

/// Forms to start from: for each of a few thresholds, larger rules are decomposed and the others are tables.
fn starting_forms(factors: &Factors, choices: &[Vec<Form>]) -> Vec<Vec<Form>> {
    let mut starts: Vec<Vec<Form>> = Vec::new();
    for largest_table in [0.0, 16.0, 64.0, 512.0, f64::INFINITY] {
        let forms: Vec<Form> = factors
            .list
            .iter()
            .zip(choices)
            .map(|(factor, choices)| match choices[..] {
                [only] => only,
                _ if factor.table_size <= largest_table => Form::Table,
                _ => Form::Decomposed,
            })
            .collect();
        if !starts.contains(&forms) {
            starts.push(forms);
        }
    }
    starts
}

struct Search<'a> {
    factors: &'a Factors,
    split: Split,
    most_work: f64,
    work: f64,
    seed: u64,
    best: Option<Candidate>,
}

impl Search<'_> {
    fn price(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |best| best.price)
    }

    /// The share of the budget that is spent.
    fn spent(&self) -> f64 {
        self.work / self.budget()
    }

    fn budget(&self) -> f64 {
        (ROWS_WORTH * self.price()).clamp(MIN_WORK, self.most_work)
    }

    /// Tries greedy orders for one choice of forms.
    fn try_forms(&mut self, forms: &[Form], trials: u64) -> Result<()> {
        let network = self.factors.network(forms, self.split, Filled::No)?;
        let graph = Graph::new(&network);
        for trial in 0..trials {
            let limit = self.price().min(MAX_PRICE);
            if let Some(candidate) = self.greedy(forms, &network, &graph, trial, limit) {
                self.keep_if_best(&candidate);
            }
        }
        Ok(())
    }

    /// The candidate of one greedy order. Its noise depends on the number of the trial; the first three have none.
    fn greedy(
        &mut self,
        forms: &[Form],
        network: &Network,
        graph: &Graph,
        trial: u64,
        limit: f64,
    ) -> Option<Candidate> {
        let heuristic = HEURISTICS[(trial % 3) as usize];
        let noise = if trial < 3 { 0.0 } else { [0.1, 0.3, 0.6, 1.0][(trial / 3 % 4) as usize] };
        self.seed += 1;
        let order = graph.eliminate(heuristic, noise, self.seed, limit, &mut self.work)?;
        self.candidate(forms, network, order, limit)
    }

    /// The candidate of an order; `None` if its price exceeds `limit`.
    fn candidate(
        &mut self,
        forms: &[Form],
        network: &Network,
        order: Order,
        limit: f64,
    ) -> Option<Candidate> {
        let outline = Outline::new(network, &order, limit, &mut self.work)?;
        let price = outline.cost.price();
        Some(Candidate { forms: forms.to_vec(), order, outline, price })
    }

    fn keep_if_best(&mut self, candidate: &Candidate) {
        if candidate.price < self.price() {
            self.best = Some(candidate.clone());
        }
    }

    /// Improves the plan by threshold annealing until the budget is spent. A step moves one or two variables in the
    /// order, changes the form of a rule, or tries a new greedy order. A step that raises the price is accepted up to a
    /// random threshold, which falls to 0.
    fn anneal(&mut self, choices: &[Vec<Form>]) -> Result<()> {
        let free: Vec<usize> = (0..choices.len()).filter(|&rule| choices[rule].len() > 1).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut current = self.best.clone().expect("starting forms were tried");
        let mut network = self.factors.network(&current.forms, self.split, Filled::No)?;
        let n = current.order.variables.len();
        // A step changes one variable or rule. A budget of fewer steps than variables improves no large plan.
        let mut work_of_change = 0.0;
        Outline::new(&network, &current.order, f64::INFINITY, &mut work_of_change);
        if self.budget() - self.work < work_of_change * n as f64 {
            return Ok(());
        }
        for trial in 3..3 + MAX_CHANGES * n as u64 {
            let spent = self.spent();
            if n < 3 || spent >= 1.0 {
                break;
            }
            let limit = current.price * (1.0 + TOLERANCE * (1.0 - spent) * rng.random::<f64>());
            let next = match rng.random_range(0..40) {
                0 => self.greedy(&current.forms, &network, &Graph::new(&network), trial, limit),
                1..=8 if !free.is_empty() => {
                    let rule = free[rng.random_range(0..free.len())];
                    self.flipped(&current, rule, limit, &mut rng)
                }
                _ => {
                    let mut order = current.order.clone();
                    for _ in 0..rng.random_range(1..=2) {
                        let from = rng.random_range(0..n);
                        let to =
                            (from + rng.random_range(0..=2 * MAX_MOVE)).saturating_sub(MAX_MOVE).min(n - 1);
                        order.relocate(from, to);
                    }
                    self.candidate(&current.forms, &network, order, limit)
                }
            };
            let Some(next) = next else { continue };
            self.keep_if_best(&next);
            if next.forms != current.forms {
                network = self.factors.network(&next.forms, self.split, Filled::No)?;
            }
            current = next;
        }
        Ok(())
    }

    /// The candidate with one rule in its other form, and its auxiliary variables at a new position in the order.
    fn flipped(
        &mut self,
        current: &Candidate,
        rule: usize,
        limit: f64,
        rng: &mut ChaCha8Rng,
    ) -> Option<Candidate> {
        let (mut forms, mut order) = (current.forms.clone(), current.order.clone());
        forms[rule] = if forms[rule] == Form::Table { Form::Decomposed } else { Form::Table };
        let network = self.factors.network(&forms, self.split, Filled::No).ok()?;
        self.work += 100.0 * network.leaves.len() as f64;
        if forms[rule] == Form::Decomposed {
            let factor = &self.factors.list[rule];
            if factor.n_variables() > 1 {
                // The rule has several auxiliary variables. A greedy order finds positions for all of them.
                return self.greedy(&forms, &network, &Graph::new(&network), 0, limit);
            }
            let before: usize = self.factors.list[..rule].iter().map(|factor| factor.n_variables()).sum();
            let variable = network.of_label.iter().flatten().count() + before;
            let from = order.variables.iter().position(|&v| v == variable).expect("orders are complete");
            order.relocate(from, rng.random_range(0..order.variables.len()));
        }
        self.candidate(&forms, &network, order, limit)
    }
}

impl Outline {
    /// The plan of this outline.
    pub(crate) fn plan(&self, network: &Network) -> Plan {
        Plan::new(network, self)
    }
}

#[cfg(test)]
mod tests {
    use prsl_testkit::limits;

    use super::*;
    use crate::model::Model;

    fn searched(text: &str) -> Result<Best> {
        let model = Model::parse(text).expect("a model");
        let ceiling = Ceiling { memory: (1u64 << 30) as f64, work: 1e12 };
        search(&Factors::new(&model), Aim::Sum, Split::Signed, ceiling)
    }

    /// Each line: a model, and the most work in seconds.
    #[test]
    fn plans_of_large_models_are_found_within_their_budget() {
        for (name, text, seconds) in [
            ("paired categories", limits::paired_categories(300), 0.5),
            ("a wide noisy-or", limits::wide_noisy_or(4000), 1.0),
            ("at most two", limits::count("at_most 2", 4000), 1.0),
            ("a chain", limits::chain(50_000), 2.0),
            ("many categories", limits::many_categories(5000), 2.0),
        ] {
            let best = searched(&text).unwrap_or_else(|refused| panic!("{name}: {refused}"));
            assert!(best.work < 1e9 * seconds, "{name}: {:e}", best.work);
            assert!(best.outline.cost.bytes < 1e9, "{name}: {}", best.outline.cost);
        }
    }

    #[test]
    fn plans_that_are_too_large_are_left_soon() {
        let best = searched(&limits::count("at_least 500", 1000)).expect("an outline");
        assert!(best.outline.cost.bytes > 1e9 && best.work < 3e9, "{:e}: {}", best.work, best.outline.cost);
    }

    #[test]
    fn hopeless_models_are_refused_before_the_search() {
        for (name, text, reason) in [
            ("all pairs", limits::dense(460), "because the treewidth is at least 459"),
            ("clauses", limits::clauses(1000, 2000, "0.9"), "because the treewidth is at least 39"),
            ("more clauses", limits::clauses(5000, 10_000, "0.9"), "because the treewidth is at least 39"),
            ("terms", limits::terms(50_000, 1000), "a decision diagram of more than 4096 states at label `"),
            (
                "more terms",
                limits::terms(333_333, 1000),
                "a decision diagram of more than 4096 states at label `",
            ),
        ] {
            let refused = searched(&text).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refused.contains(reason), "{name}: {refused:.300}");
        }
    }
}
