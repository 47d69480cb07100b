//! The search for a cheap plan: which rules are taken apart, and in which order variables are eliminated.
//!
//! Its budget is counted in work and depends on the model alone, never on the clock or the number of rows: the
//! same model always compiles to the same plan.

use super::network::{Factors, Filled, Form, Network};
use super::order::{Graph, HEURISTICS};
use super::plan::{Outline, Plan};
use crate::error::{Error, Result};

/// Work is counted in units of about a nanosecond. The search stops when it has cost about as much as this many
/// rows of the best plan so far ...
const ROWS_WORTH: f64 = 300.0;
/// ... but not before this much work ...
const LEAST_WORK: f64 = 1e5;
/// ... and not after this much.
const MOST_WORK: f64 = 4e8;

/// The best plan so far and how it was found.
struct Best {
    forms: Vec<Form>,
    outline: Outline,
    price: f64,
}

/// A network with its numbers, and the plan for it.
pub(crate) fn search(factors: &Factors, maximum: bool) -> Result<(Network, Outline)> {
    let choices: Vec<Vec<Form>> = factors.list.iter().map(|factor| factors.forms(factor, maximum)).collect();
    if let Some(stuck) = choices.iter().position(Vec::is_empty) {
        let factor = &factors.list[stuck];
        return Err(Error::TooCostly {
            what: format!("the most probable explanation under rule {}", factor.rule.index() + 1),
            needed: format!("a table of {:.1e} entries", factor.table_size),
            limit: "4.2e6 entries".to_owned(),
            advice: "give the rule fewer labels, or ask for marginals".to_owned(),
        });
    }
    let mut search = Search { factors, work: 0.0, seed: 0, best: None };
    for forms in starting_forms(factors, &choices) {
        search.try_forms(&forms, 4)?;
    }
    search.flip(&choices)?;
    search.polish()?;
    let best = search.best.expect("at least one choice of forms was tried");
    Ok((factors.network(&best.forms, Filled::Yes)?, best.outline))
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
    work: f64,
    seed: u64,
    best: Option<Best>,
}

impl Search<'_> {
    fn price(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |best| best.price)
    }

    /// Whether `share` of the budget is spent.
    fn is_spent(&self, share: f64) -> bool {
        self.work > share * (ROWS_WORTH * self.price()).clamp(LEAST_WORK, MOST_WORK)
    }

    /// A few orders for one choice of forms.
    fn try_forms(&mut self, forms: &[Form], trials: u64) -> Result<()> {
        // A diagram that is too large rules out this choice, unless it is the only one.
        let network = match self.factors.network(forms, Filled::No) {
            Ok(network) => network,
            Err(_) if self.best.is_some() => return Ok(()),
            Err(error) => return Err(error),
        };
        let graph = Graph::new(&network);
        for trial in 0..trials {
            self.try_order(forms, &network, &graph, trial);
        }
        Ok(())
    }

    /// One greedy order: the first few without noise, then shaken more and more, then less again.
    fn try_order(&mut self, forms: &[Form], network: &Network, graph: &Graph, trial: u64) {
        let heuristic = HEURISTICS[(trial % 3) as usize];
        let noise = if trial < 3 { 0.0 } else { [0.1, 0.3, 0.6, 1.0][(trial / 3 % 4) as usize] };
        self.seed += 1;
        let limit = self.price();
        self.work += 1000.0 + 50.0 * network.variables.len() as f64;
        let Some(order) = graph.eliminate(heuristic, noise, self.seed, limit, &mut self.work) else { return };
        self.work += 500.0 * network.leaves.len() as f64;
        let Some(outline) = Outline::new(network, &order, limit) else { return };
        let price = outline.cost.price();
        if price < limit {
            self.best = Some(Best { forms: forms.to_vec(), outline, price });
        }
    }

    /// Takes single rules apart, or puts them together, where that is cheaper.
    fn flip(&mut self, choices: &[Vec<Form>]) -> Result<()> {
        let free: Vec<usize> = (0..choices.len()).filter(|&rule| choices[rule].len() > 1).collect();
        loop {
            let before = self.price();
            for &rule in &free {
                if self.is_spent(0.4) {
                    return Ok(());
                }
                let mut forms = self.best.as_ref().expect("starting forms were tried").forms.clone();
                forms[rule] = if forms[rule] == Form::Table { Form::Apart } else { Form::Table };
                self.try_forms(&forms, 6)?;
            }
            if self.price() >= before {
                return Ok(());
            }
        }
    }

    /// Spends the rest of the budget on orders for the best forms.
    fn polish(&mut self) -> Result<()> {
        let forms = self.best.as_ref().expect("starting forms were tried").forms.clone();
        let network = self.factors.network(&forms, Filled::No)?;
        let graph = Graph::new(&network);
        for trial in 3.. {
            if network.variables.is_empty() || self.is_spent(1.0) {
                break;
            }
            self.try_order(&forms, &network, &graph, trial);
        }
        Ok(())
    }
}

impl Outline {
    /// The plan of this outline.
    pub(crate) fn plan(&self, network: &Network) -> Plan {
        Plan::new(network, self)
    }
}
