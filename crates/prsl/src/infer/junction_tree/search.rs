//! The search for a cheap plan: which rules are taken apart, and in which order variables are eliminated.
//!
//! Its budget is counted in work and depends on the model alone, never on the clock or the number of rows: the
//! same model always compiles to the same plan.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::network::{Filled, Form, Network, Split};
use super::order::{Graph, HEURISTICS, Order};
use super::plan::{Outline, Plan};
use crate::error::{Error, Result};
use crate::infer::factor::Factors;
use crate::rule::RuleId;

/// Work is counted in units of about a nanosecond. The search stops when it has cost about as much as this many
/// rows of the best plan so far ...
const ROWS_WORTH: f64 = 1000.0;
/// ... but not before this much work ...
const LEAST_WORK: f64 = 1e5;
/// ... and not after this much: less for maxima, for which there is branch and bound where the tree is wide.
const MOST_WORK: [f64; 2] = [4e9, 6e8];

/// How far a variable is moved in an order to see whether that is cheaper.
const REACH: usize = 12;

/// By how much a change may make a plan dearer at the beginning of the search.
const TOLERANCE: f64 = 0.1;

/// A plan and how it was found.
#[derive(Clone)]
struct Candidate {
    forms: Vec<Form>,
    order: Order,
    outline: Outline,
    price: f64,
}

/// What the search found: enough to make the network and its plan.
pub(crate) struct Best {
    pub(crate) forms: Vec<Form>,
    order: Order,
    split: Split,
    /// The plan in outline.
    pub(crate) outline: Outline,
}

impl Best {
    /// The network with its numbers.
    pub(crate) fn network(&self, factors: &Factors) -> Result<Network> {
        factors.network(&self.forms, self.split, Filled::Yes)
    }

    /// How its rank-one rules are taken apart.
    pub(crate) fn split(&self) -> Split {
        self.split
    }

    /// The same with rules as tables that would be taken apart and put together again before a row comes: that saves nothing, and
    /// no sum shows the digits that signs cost there.
    fn settled(mut self, factors: &Factors) -> Result<Self> {
        let network = factors.network(&self.forms, self.split, Filled::No)?;
        let is_lost = |&&(_, variable): &&(RuleId, usize)| !self.outline.meets_a_row(variable);
        let lost: Vec<RuleId> = network.signed.iter().filter(is_lost).map(|&(rule, _)| rule).collect();
        if lost.is_empty() {
            return Ok(self);
        }
        lost.iter().for_each(|rule| self.forms[rule.index()] = Form::Table);
        self.with_split(factors, self.split)?.settled(factors)
    }

    /// The same rules in the same order, taken apart in another way.
    pub(crate) fn with_split(&self, factors: &Factors, split: Split) -> Result<Best> {
        let network = factors.network(&self.forms, split, Filled::No)?;
        let outline = Outline::new(&network, &self.order, f64::INFINITY).expect("nothing is above infinity");
        Ok(Best { forms: self.forms.clone(), order: self.order.clone(), split, outline })
    }
}

/// The cheapest plan that is found within the budget.
pub(crate) fn search(factors: &Factors, maximum: bool, split: Split) -> Result<Best> {
    let choices: Vec<Vec<Form>> = factors.list.iter().map(|factor| factors.forms(factor, maximum)).collect();
    if let Some(stuck) = choices.iter().position(Vec::is_empty) {
        let factor = &factors.list[stuck];
        let (what, advice) = if maximum {
            ("the most probable explanation", "give the rule fewer labels, or ask for marginals")
        } else {
            ("exact inference", "split the rule into several, or give it fewer labels")
        };
        return Err(Error::TooCostly {
            what: format!("{what} under rule {}", factor.rule.index() + 1),
            needed: format!("a table of {:.1e} entries", factor.table_size),
            limit: "4.2e6 entries".to_owned(),
            advice: advice.to_owned(),
        });
    }
    let most_work = MOST_WORK[usize::from(maximum)];
    let mut search = Search { factors, split, most_work, work: 0.0, seed: 0, best: None };
    // A diagram that is too large rules out one choice of forms, not the others.
    let mut refused = None;
    for forms in starting_forms(factors, &choices) {
        refused = search.try_forms(&forms, 6).err().or(refused);
    }
    if let (None, Some(error)) = (&search.best, refused) {
        return Err(error);
    }
    search.anneal(&choices)?;
    let best = search.best.expect("at least one choice of forms was tried");
    Best { forms: best.forms, order: best.order, split, outline: best.outline }.settled(factors)
}

/// Tables up to some size, everything larger taken apart: a few thresholds to start from.
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
                _ => Form::Apart,
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

    /// How much of the budget is spent; 1 and above means all of it.
    fn spent(&self) -> f64 {
        self.work / (ROWS_WORTH * self.price()).clamp(LEAST_WORK, self.most_work)
    }

    /// A few orders for one choice of forms.
    fn try_forms(&mut self, forms: &[Form], trials: u64) -> Result<()> {
        let network = self.factors.network(forms, self.split, Filled::No)?;
        let graph = Graph::new(&network);
        for trial in 0..trials {
            if let Some(candidate) = self.greedy(forms, &network, &graph, trial, self.price()) {
                self.keep_if_best(&candidate);
            }
        }
        Ok(())
    }

    /// One greedy order: the first few without noise, then shaken more and more, then less again.
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
        self.work += 1000.0 + 50.0 * network.variables.len() as f64;
        let order = graph.eliminate(heuristic, noise, self.seed, limit, &mut self.work)?;
        self.candidate(forms, network, order, limit)
    }

    /// What an order comes to, unless that is above `limit`.
    fn candidate(
        &mut self,
        forms: &[Form],
        network: &Network,
        order: Order,
        limit: f64,
    ) -> Option<Candidate> {
        self.work += 500.0 * network.leaves.len() as f64;
        let outline = Outline::new(network, &order, limit)?;
        let price = outline.cost.price();
        Some(Candidate { forms: forms.to_vec(), order, outline, price })
    }

    fn keep_if_best(&mut self, candidate: &Candidate) {
        // The first is kept whatever it costs, also if that is more than a float can say.
        if self.best.is_none() || candidate.price < self.price() {
            self.best = Some(candidate.clone());
        }
    }

    /// Spends the budget on small changes: a variable moved within the order, a rule taken apart or put together,
    /// now and then a new order. A change for the worse is kept too as long as it is small, and how small falls
    /// to nothing: so the search leaves the valley where it began.
    fn anneal(&mut self, choices: &[Vec<Form>]) -> Result<()> {
        let free: Vec<usize> = (0..choices.len()).filter(|&rule| choices[rule].len() > 1).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut current = self.best.clone().expect("starting forms were tried");
        let mut network = self.factors.network(&current.forms, self.split, Filled::No)?;
        let n = current.order.variables.len();
        for trial in 3.. {
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
                        let to = (from + rng.random_range(0..=2 * REACH)).saturating_sub(REACH).min(n - 1);
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

    /// One rule in its other form, its variables at a new place of the order.
    fn flipped(
        &mut self,
        current: &Candidate,
        rule: usize,
        limit: f64,
        rng: &mut ChaCha8Rng,
    ) -> Option<Candidate> {
        let (mut forms, mut order) = (current.forms.clone(), current.order.clone());
        forms[rule] = if forms[rule] == Form::Table { Form::Apart } else { Form::Table };
        let network = self.factors.network(&forms, self.split, Filled::No).ok()?;
        self.work += 100.0 * network.leaves.len() as f64;
        if forms[rule] == Form::Apart {
            let factor = &self.factors.list[rule];
            if factor.n_variables() > 1 {
                // A whole chain of variables: a new order finds the places.
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
