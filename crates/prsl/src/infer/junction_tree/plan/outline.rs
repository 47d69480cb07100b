//! The outline of a plan: its tables and joins without offsets. It suffices to know the cost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::super::network::{Kind, Network, Source, Variable};
use super::super::order::Order;
use super::Cost;
use super::bits::Bits;
use crate::infer::semiring::wide;

/// The tables and joins of a plan, without offsets.
#[derive(Clone)]
pub(crate) struct Outline {
    pub(super) tables: Vec<OutlineTable>,
    /// The variables of all tables, one table after the other.
    pub(super) variables: Vec<u32>,
    pub(super) joins: Vec<(usize, usize)>,
    pub(crate) cost: Cost,
    /// Buffer for the variables of a join.
    kept: Vec<u32>,
    /// Work to construct it, in units of about a nanosecond.
    work: f64,
}

#[derive(Clone)]
pub(super) struct OutlineTable {
    /// Its variables, ascending, as a range of [`Outline::variables`].
    pub(super) variables: Range<usize>,
    size: f64,
    pub(super) fixed: bool,
}

/// The size and the cost of a join.
struct Joined {
    size: f64,
    work: f64,
    /// Number of fired variables that are summed out. Each takes a weighed copy of the smaller table.
    n_weighed: usize,
}

impl Outline {
    /// The outline of an elimination order; `None` if its price exceeds `limit`.
    ///
    /// The running time is added to `work`, in units of about a nanosecond.
    pub(crate) fn new(network: &Network, order: &Order, limit: f64, work: &mut f64) -> Option<Self> {
        let (mut outline, mut users) = Self::of_leaves(network);
        let mut bucket = Vec::new();
        outline.work = 1000.0 + 60.0 * (network.leaves.len() + order.variables.len()) as f64;
        let is_within =
            order.variables.iter().all(|&v| outline.eliminate(network, v, &mut users, &mut bucket, limit));
        *work += outline.work;
        debug_assert!(
            !is_within || users.counts.iter().all(|&count| count == 0),
            "every variable is summed out"
        );
        outline.cost.bytes = outline.cost.entries * 16.0;
        is_within.then_some(outline)
    }

    /// The outline of a list of joins. Tables are numbered: first the leaves, then the results in order.
    pub(crate) fn of_joins(network: &Network, joins: &[(usize, usize)]) -> Self {
        let (mut outline, mut users) = Self::of_leaves(network);
        for &(a, b) in joins {
            outline.join(network, a, b, &mut users);
        }
        debug_assert!(users.counts.iter().all(|&count| count == 0), "every variable is summed out");
        outline.cost.bytes = outline.cost.entries * 16.0;
        outline
    }

    /// An outline without joins, and the tables of each variable.
    fn of_leaves(network: &Network) -> (Self, Users) {
        let mut outline = Self {
            tables: Vec::with_capacity(2 * network.leaves.len()),
            variables: Vec::with_capacity(4 * network.leaves.len()),
            joins: Vec::with_capacity(network.leaves.len()),
            cost: Cost { entries: 0.0, bytes: 0.0, multiply_adds: 0.0 },
            kept: Vec::new(),
            work: 0.0,
        };
        let mut users = Users::new(network);
        for leaf in &network.leaves {
            let start = outline.variables.len();
            outline.variables.extend(leaf.variables.iter().map(|&variable| variable as u32));
            outline.variables[start..].sort_unstable();
            let size = leaf.variables.iter().map(|&v| network.variables[v].n_states as f64).product();
            outline.add(start, size, !matches!(leaf.source, Source::Belief(_)), &mut users);
            outline.cost.entries += size;
        }
        (outline, users)
    }

    /// The variables of a table, ascending.
    pub(super) fn variables_of(&self, table: usize) -> &[u32] {
        &self.variables[self.tables[table].variables.clone()]
    }

    /// For every table: its variables, whether it is independent of the row, and the two tables that it is joined from.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&[u32], bool, Option<(usize, usize)>)> {
        let n_leaves = self.tables.len() - self.joins.len();
        let children = (0..n_leaves).map(|_| None).chain(self.joins.iter().copied().map(Some));
        self.tables
            .iter()
            .zip(children)
            .map(|(table, children)| (&self.variables[table.variables.clone()], table.fixed, children))
    }

    /// Whether each variable occurs in a table that depends on the row.
    pub(crate) fn meet_a_row(&self, n_variables: usize) -> Vec<bool> {
        let mut meet = vec![false; n_variables];
        for table in self.tables.iter().filter(|table| !table.fixed) {
            self.variables[table.variables.clone()]
                .iter()
                .for_each(|&variable| meet[variable as usize] = true);
        }
        meet
    }

    /// Adds a table. Its variables are those in the list from `start`.
    fn add(&mut self, start: usize, size: f64, fixed: bool, users: &mut Users) -> usize {
        let variables = start..self.variables.len();
        users.add(&self.variables[start..], self.tables.len());
        self.tables.push(OutlineTable { variables, size, fixed });
        self.tables.len() - 1
    }

    /// Joins the tables with `variable` until it is summed out. Returns `false` if the price exceeds `limit`. `bucket`
    /// is a buffer.
    fn eliminate(
        &mut self,
        network: &Network,
        variable: usize,
        users: &mut Users,
        bucket: &mut Vec<usize>,
        limit: f64,
    ) -> bool {
        // Number of tables whose pairs are compared, smallest first. Comparing all pairs of a long list takes too long.
        const N_COMPARED: usize = 8;
        users.collect(variable, bucket);
        let by_size = |outline: &Self, table: usize| Reverse((outline.tables[table].size.to_bits(), table));
        let mut larger = BinaryHeap::new();
        if bucket.len() > N_COMPARED {
            larger.extend(bucket.drain(..).map(|table| by_size(self, table)));
        }
        while users.counts[variable] > 1 {
            while bucket.len() < N_COMPARED
                && let Some(smallest) = larger.pop()
            {
                // Ascending: the table of the last join may be smaller than those in the bucket.
                let place = bucket.partition_point(|&table| by_size(self, table) > smallest);
                bucket.insert(place, smallest.0.1);
            }
            let (a, b) = wide!(self.cheapest_pair(network, bucket, users));
            let joined = self.join(network, a, b, users);
            if self.cost.price() > limit {
                return false;
            }
            bucket.retain(|&table| table != a && table != b);
            if users.counts[variable] > 0 {
                // If there are more tables than are compared, the result is sorted among them by its size.
                match larger.is_empty() {
                    true => bucket.push(joined),
                    false => larger.push(by_size(self, joined)),
                }
            }
        }
        true
    }

    /// The two tables whose join has the smallest result, and the least work among equals.
    #[inline(always)]
    fn cheapest_pair(&mut self, network: &Network, bucket: &[usize], users: &Users) -> (usize, usize) {
        let mut best = ((f64::INFINITY, f64::INFINITY), (bucket[0], bucket[1]));
        for (index, &a) in bucket.iter().enumerate() {
            for &b in &bucket[index + 1..] {
                let price = match &users.bits {
                    Some(bits) => bits.joined(a, b),
                    None => {
                        let joined = self.joined(network, a, b, users, |_| {});
                        (joined.size, joined.work)
                    }
                };
                self.work +=
                    5.0 * (self.tables[a].variables.len() + self.tables[b].variables.len() + 2) as f64;
                if price < best.0 {
                    best = (price, (a, b));
                }
            }
        }
        best.1
    }

    fn join(&mut self, network: &Network, a: usize, b: usize, users: &mut Users) -> usize {
        let fixed = self.tables[a].fixed && self.tables[b].fixed;
        let start = self.variables.len();
        let mut kept = std::mem::take(&mut self.kept);
        let joined = self.joined(network, a, b, users, |variable| kept.push(variable));
        self.work += 100.0 + 10.0 * kept.len() as f64;
        self.cost.entries +=
            joined.size + joined.n_weighed as f64 * self.tables[a].size.min(self.tables[b].size);
        // One pass forward, and one backward for each of the two tables.
        self.cost.multiply_adds += if fixed { 0.0 } else { 3.0 * joined.work };
        for table in [a, b] {
            users.remove(table, &self.variables[self.tables[table].variables.clone()]);
        }
        self.variables.append(&mut kept);
        self.kept = kept;
        self.joins.push((a, b));
        self.add(start, joined.size, fixed, users)
    }

    /// The joins in depth-first order, which uses results soon after they are computed, and the roots.
    pub(super) fn depth_first(&self, n_leaves: usize) -> (Vec<usize>, Vec<usize>) {
        let mut used = vec![false; self.tables.len()];
        self.joins.iter().for_each(|&(a, b)| (used[a], used[b]) = (true, true));
        let roots: Vec<usize> = (0..used.len()).filter(|&table| !used[table]).collect();
        // Parents first, the larger child last. The order is reversed below.
        let mut order = Vec::with_capacity(self.joins.len());
        let mut stack = roots.clone();
        while let Some(table) = stack.pop() {
            if table >= n_leaves {
                let (a, b) = self.joins[table - n_leaves];
                order.push(table);
                let (small, large) = if self.tables[a].size < self.tables[b].size { (a, b) } else { (b, a) };
                stack.extend([large, small]);
            }
        }
        order.reverse();
        (order, roots)
    }

    /// The size and the cost of a join. Calls `keep` with the variables of the result, ascending.
    fn joined(
        &self,
        network: &Network,
        a: usize,
        b: usize,
        users: &Users,
        mut keep: impl FnMut(u32),
    ) -> Joined {
        let [a, b] = [a, b].map(|table| &self.variables[self.tables[table].variables.clone()]);
        let mut joined = Joined { size: 1.0, work: 1.0, n_weighed: 0 };
        let (mut i, mut j) = (0, 0);
        while i < a.len() || j < b.len() {
            let variable = match (a.get(i), b.get(j)) {
                (Some(&x), Some(&y)) => x.min(y),
                (Some(&x), None) | (None, Some(&x)) => x,
                (None, None) => unreachable!("one of the lists goes on"),
            };
            let (in_a, in_b) = (a.get(i) == Some(&variable), b.get(j) == Some(&variable));
            (i, j) = (i + usize::from(in_a), j + usize::from(in_b));
            let shared = in_a && in_b;
            let ends = users.counts[variable as usize] == 1 + u32::from(shared);
            let Variable { n_states, kind } = network.variables[variable as usize];
            let fired = matches!(kind, Kind::Fired(_));
            joined.work *= if fired && shared && !ends { 3.0 } else { n_states as f64 };
            if ends {
                joined.n_weighed += usize::from(fired);
            } else {
                joined.size *= n_states as f64;
                keep(variable);
            }
        }
        joined
    }
}

/// The tables of each variable, as linked lists in one allocation.
struct Users {
    /// The last link of each variable's list, or [`NO_LINK`].
    last: Vec<u32>,
    /// A table, and the previous link. Tables stay in the lists after they are joined.
    links: Vec<(u32, u32)>,
    /// Number of tables of each variable that are not joined yet.
    counts: Vec<u32>,
    is_joined: Vec<bool>,
    /// The variables of each table as bits, unless there are too many.
    bits: Option<Bits>,
}

const NO_LINK: u32 = u32::MAX;

impl Users {
    fn new(network: &Network) -> Self {
        let (n_variables, n_leaves) = (network.variables.len(), network.leaves.len());
        Self {
            last: vec![NO_LINK; n_variables],
            links: Vec::with_capacity(4 * n_leaves),
            counts: vec![0; n_variables],
            is_joined: vec![false; 2 * n_leaves],
            bits: Bits::new(network),
        }
    }

    /// Adds a table with its variables.
    fn add(&mut self, variables: &[u32], table: usize) {
        for &variable in variables {
            self.links.push((table as u32, self.last[variable as usize]));
            self.last[variable as usize] = self.links.len() as u32 - 1;
            self.counts[variable as usize] += 1;
        }
        if let Some(bits) = &mut self.bits {
            bits.add(variables, &self.counts);
        }
    }

    fn remove(&mut self, table: usize, variables: &[u32]) {
        self.is_joined[table] = true;
        variables.iter().for_each(|&variable| self.counts[variable as usize] -= 1);
        if let Some(bits) = &mut self.bits {
            bits.count(variables, &self.counts);
        }
    }

    /// Collects the tables of a variable that are not joined yet, ascending.
    fn collect(&self, variable: usize, tables: &mut Vec<usize>) {
        tables.clear();
        let mut link = self.last[variable];
        while link != NO_LINK {
            let (table, before) = self.links[link as usize];
            if !self.is_joined[table as usize] {
                tables.push(table as usize);
            }
            link = before;
        }
        tables.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::network::{Filled, Form, Split};
    use super::super::super::order::{Graph, HEURISTICS};
    use super::*;
    use crate::infer::factor::{Factor, Factors};
    use crate::simulate::Simulation;

    #[test]
    fn joins_have_the_same_price_by_bits_and_by_lists() {
        for (seed, split) in [(1, Split::Signed), (2, Split::Or)] {
            let simulation = Simulation { n_labels: 30, n_rules: 60, n_rows: 1, seed };
            let factors = Factors::new(&simulation.draw().expect("a model").0);
            let form =
                |factor: &Factor| if factor.n_variables() == 0 { Form::Table } else { Form::Decomposed };
            let forms: Vec<Form> = factors.list.iter().map(form).collect();
            let network = factors.network(&forms, split, Filled::No).expect("a network");
            let order = Graph::new(&network).eliminate(HEURISTICS[0], 0.0, 0, f64::INFINITY, &mut 0.0);
            let joins = Outline::new(&network, &order.expect("an order"), f64::INFINITY, &mut 0.0);
            let (mut outline, mut users) = Outline::of_leaves(&network);
            for (a, b) in joins.expect("nothing is above infinity").joins {
                for other in (0..outline.tables.len()).filter(|&other| other != a && !users.is_joined[other])
                {
                    let joined = outline.joined(&network, a, other, &users, |_| {});
                    let bits = users.bits.as_ref().expect("few variables").joined(a, other);
                    assert_eq!(bits, (joined.size, joined.work));
                }
                outline.join(&network, a, b, &mut users);
            }
        }
    }
}
