//! Reconfigures a contraction tree by simulated annealing. It finds trees that no elimination order gives.
//!
//! Three neighboring tables can be joined in three orders: (a b) c, (a c) b and (b c) a. A change of this order
//! replaces one table and nothing above it, so its price takes nanoseconds to compute. The method is similar to Gray
//! and Kourtis, "Hyper-optimized tensor network contraction" (2021). Work is counted, so that the same model always
//! gets the same tree.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::network::{Kind, Network};
use super::super::plan::Outline;
use crate::infer::semiring::wide;

/// Temperatures at the start and at the end of each run, as relative changes of the price. Cold runs stay close to the
/// elimination order, hot runs find other trees. On 40-label models, each of the three was the best for some plan.
const TEMPERATURES: [[f64; 2]; 3] = [[0.01, 1e-4], [0.03, 1e-4], [0.1, 1e-4]];

/// Number of entries that any tree may have: 8 MiB per row. A larger tree must not have more entries than that of the
/// elimination order.
const FEW_ENTRIES: f64 = (1u64 << 20) as f64;

/// Number of changes per temperature. With so many, the time to compute the temperature is negligible.
const ROUND: usize = 256;

/// Returns the cheapest outline that is found within the budget; `None` if none is cheaper than `outline` without being
/// larger.
///
/// The running time is added to `work`, in units of about a nanosecond.
pub(super) fn reconfigured(
    network: &Network,
    outline: &Outline,
    budget: f64,
    work: &mut f64,
) -> Option<Outline> {
    match network.variables.len().div_ceil(64) {
        0..=1 => Tree::<1>::new(network, outline).best(network, outline, budget, work),
        2 => Tree::<2>::new(network, outline).best(network, outline, budget, work),
        3..=4 => Tree::<4>::new(network, outline).best(network, outline, budget, work),
        5..=8 => Tree::<8>::new(network, outline).best(network, outline, budget, work),
        // The budget of larger plans is too small for changes.
        _ => None,
    }
}

/// A set of variables.
type Scope<const W: usize> = [u64; W];

/// A contraction tree. Leaves come first. Children precede their parents at the start, but not after changes.
#[derive(Clone)]
struct Tree<const W: usize> {
    nodes: Vec<Node<W>>,
    n_leaves: usize,
    /// For each number of states: the variables with so many states, and the powers of the number.
    sizes: Vec<(Scope<W>, Vec<f64>)>,
    fired: Scope<W>,
    /// Powers of 3/2. A shared fired variable takes three products instead of two.
    repeated: Vec<f64>,
}

#[derive(Clone, Copy)]
struct Node<const W: usize> {
    scope: Scope<W>,
    size: f64,
    /// The price of joining the children; 0 for leaves.
    price: f64,
    children: [u32; 2],
    fixed: bool,
}

/// Three tables below one node: the two children of one child, and the other child.
struct Triple {
    parent: usize,
    child: usize,
    /// The tables that are joined first before the change.
    pair: [usize; 2],
    other: usize,
}

impl<const W: usize> Tree<W> {
    fn new(network: &Network, outline: &Outline) -> Self {
        let n = network.variables.len();
        let set = |variables: &mut dyn Iterator<Item = usize>| {
            let mut scope = [0; W];
            variables.for_each(|v| scope[v / 64] |= 1 << (v % 64));
            scope
        };
        let mut states: Vec<usize> = network.variables.iter().map(|variable| variable.n_states).collect();
        states.sort_unstable();
        states.dedup();
        let powers = |base: f64| (0..=n).map(|exponent| base.powi(exponent as i32)).collect();
        let of_states = |&states: &usize| {
            let with = (0..n).filter(|&v| network.variables[v].n_states == states);
            (set(&mut with.into_iter()), powers(states as f64))
        };
        let is_fired = |&v: &usize| matches!(network.variables[v].kind, Kind::Fired(_));
        let mut tree = Self {
            nodes: Vec::new(),
            n_leaves: network.leaves.len(),
            sizes: states.iter().filter(|&&states| states > 1).map(of_states).collect(),
            fired: set(&mut (0..n).filter(is_fired)),
            repeated: powers(1.5),
        };
        for (variables, fixed, children) in outline.nodes() {
            let scope = set(&mut variables.iter().map(|&v| v as usize));
            let children = children.map_or([u32::MAX; 2], |(a, b)| [a as u32, b as u32]);
            let node = Node { scope, size: tree.size(&scope), price: 0.0, children, fixed };
            tree.nodes.push(node);
        }
        for node in tree.n_leaves..tree.nodes.len() {
            let [a, b] = tree.nodes[node].children.map(|child| child as usize);
            tree.nodes[node].price = tree.joined(a, b, tree.nodes[node].scope).price;
        }
        tree
    }

    /// The number of entries of a table.
    #[inline(always)]
    fn size(&self, scope: &Scope<W>) -> f64 {
        let mut size = 1.0;
        for (with, powers) in &self.sizes {
            size *= powers[count(&and(scope, with))];
        }
        size
    }

    /// The join of two tables, with the price that [`Outline`] gives it.
    #[inline(always)]
    fn joined(&self, a: usize, b: usize, scope: Scope<W>) -> Node<W> {
        let (x, y) = (&self.nodes[a], &self.nodes[b]);
        let (fixed, size) = (x.fixed && y.fixed, self.size(&scope));
        let mut products = if fixed { 0.0 } else { 3.0 * self.size(&or(&x.scope, &y.scope)) };
        let mut entries = size;
        if self.fired != [0; W] {
            let shared = and(&and(&x.scope, &y.scope), &self.fired);
            let n_kept = count(&and(&shared, &scope));
            products *= self.repeated[n_kept];
            entries += (count(&shared) - n_kept) as f64 * x.size.min(y.size);
        }
        let price = products + 4.0 * entries;
        Node { scope, size, price, children: [a as u32, b as u32], fixed }
    }

    /// The cheapest outline of all runs; `None` if none is cheaper than `outline` without being larger.
    fn best(self, network: &Network, outline: &Outline, budget: f64, work: &mut f64) -> Option<Outline> {
        let n_joins = self.nodes.len() - self.n_leaves;
        // A change was measured to take this many nanoseconds.
        let work_of_round = ROUND as f64 * (40.0 + 6.0 * (W * self.sizes.len()) as f64);
        let n_rounds = (budget / TEMPERATURES.len() as f64 / work_of_round) as usize;
        if n_joins < 2 || n_rounds * ROUND < n_joins {
            return None;
        }
        let mut best = None;
        let mut lowest = outline.cost.price();
        for (seed, temperatures) in TEMPERATURES.into_iter().enumerate() {
            *work += n_rounds as f64 * work_of_round;
            let mut tree = self.clone();
            wide!(tree.anneal(seed as u64, n_rounds, temperatures));
            let found = Outline::of_joins(network, &tree.joins());
            let is_small = found.cost.entries <= outline.cost.entries.max(FEW_ENTRIES);
            if is_small && found.cost.price() < lowest {
                lowest = found.cost.price();
                best = Some(found);
            }
        }
        best
    }

    #[inline(always)]
    fn anneal(&mut self, seed: u64, n_rounds: usize, [start, end]: [f64; 2]) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut price: f64 = self.nodes.iter().map(|node| node.price).sum();
        for round in 0..n_rounds {
            let temperature = start * (end / start).powf(round as f64 / n_rounds as f64);
            for _ in 0..ROUND {
                self.change(&mut rng, temperature, &mut price);
            }
        }
    }

    /// Tries one change. Accepts it if it lowers the price, and otherwise with the probability of simulated annealing.
    #[inline(always)]
    fn change(&mut self, rng: &mut ChaCha8Rng, temperature: f64, price: &mut f64) {
        let Some(triple) = self.triple(rng.random::<u64>()) else { return };
        let Triple { parent, child, pair: [a, b], other } = triple;
        // The join of a and the other keeps the variables that occur in b or above the parent.
        let above = or(&self.nodes[parent].scope, &self.nodes[b].scope);
        let scope = and(&or(&self.nodes[a].scope, &self.nodes[other].scope), &above);
        let new_child = self.joined(a, other, scope);
        let old_child = std::mem::replace(&mut self.nodes[child], new_child);
        let new_parent = self.joined(child, b, self.nodes[parent].scope);
        let change = new_child.price + new_parent.price - old_child.price - self.nodes[parent].price;
        if change <= 0.0 || rng.random::<f64>() < (-change / (*price * temperature)).exp() {
            self.nodes[parent] = new_parent;
            *price += change;
        } else {
            self.nodes[child] = old_child;
        }
    }

    /// Selects three neighboring tables by random bits; `None` if the selected node has only leaves as children.
    #[inline(always)]
    fn triple(&self, bits: u64) -> Option<Triple> {
        let n_joins = (self.nodes.len() - self.n_leaves) as u64;
        let parent = self.n_leaves + (((bits >> 32) * n_joins) >> 32) as usize;
        let order = |[x, y]: [u32; 2], flipped: bool| {
            let (x, y) = if flipped { (y, x) } else { (x, y) };
            [x as usize, y as usize]
        };
        let [mut child, mut other] = order(self.nodes[parent].children, bits & 1 == 1);
        if child < self.n_leaves {
            (child, other) = (other, child);
        }
        let pair = (child >= self.n_leaves).then(|| order(self.nodes[child].children, bits & 2 == 2))?;
        Some(Triple { parent, child, pair, other })
    }

    /// The joins, children before their parents.
    fn joins(&self) -> Vec<(usize, usize)> {
        let mut is_child = vec![false; self.nodes.len()];
        let inner = &self.nodes[self.n_leaves..];
        inner.iter().flat_map(|node| node.children).for_each(|child| is_child[child as usize] = true);
        let mut stack: Vec<usize> =
            (self.n_leaves..self.nodes.len()).filter(|&node| !is_child[node]).collect();
        let mut order = Vec::with_capacity(inner.len());
        while let Some(node) = stack.pop() {
            order.push(node);
            let children = self.nodes[node].children.map(|child| child as usize);
            stack.extend(children.into_iter().filter(|&child| child >= self.n_leaves));
        }
        order.reverse();
        let mut place: Vec<usize> = (0..self.nodes.len()).collect();
        order.iter().enumerate().for_each(|(index, &node)| place[node] = self.n_leaves + index);
        let children = |&node: &usize| self.nodes[node].children.map(|child| place[child as usize]);
        order.iter().map(children).map(|[a, b]| (a, b)).collect()
    }
}

#[inline(always)]
fn and<const W: usize>(a: &Scope<W>, b: &Scope<W>) -> Scope<W> {
    let mut both = *a;
    for word in 0..W {
        both[word] &= b[word];
    }
    both
}

#[inline(always)]
fn or<const W: usize>(a: &Scope<W>, b: &Scope<W>) -> Scope<W> {
    let mut either = *a;
    for word in 0..W {
        either[word] |= b[word];
    }
    either
}

#[inline(always)]
fn count<const W: usize>(scope: &Scope<W>) -> usize {
    let mut n = 0;
    for word in scope {
        n += word.count_ones();
    }
    n as usize
}

#[cfg(test)]
mod tests {
    use super::super::super::network::{Filled, Form, Split};
    use super::super::super::order::{Graph, HEURISTICS};
    use super::*;
    use crate::infer::factor::Factors;
    use crate::simulate::Simulation;

    /// Networks of the paper's models with both decompositions, and a greedy outline of each.
    fn outlines() -> Vec<(Network, Outline)> {
        let mut outlines = Vec::new();
        for (seed, n_labels) in [(1, 5), (2, 12), (3, 20), (4, 30)] {
            let simulation = Simulation { n_labels, n_rules: n_labels, n_rows: 1, seed };
            let (model, _) = simulation.draw().expect("a model");
            let factors = Factors::new(&model);
            let form = |factor: &crate::infer::factor::Factor| match factor.n_variables() {
                0 => Form::Table,
                _ => Form::Decomposed,
            };
            let forms: Vec<Form> = factors.list.iter().map(form).collect();
            for split in [Split::Signed, Split::Or] {
                let network = factors.network(&forms, split, Filled::No).expect("a network");
                let order = Graph::new(&network).eliminate(HEURISTICS[0], 0.0, 0, f64::INFINITY, &mut 0.0);
                let order = order.expect("nothing is above infinity");
                let outline = Outline::new(&network, &order, f64::INFINITY, &mut 0.0);
                outlines.push((network, outline.expect("nothing is above infinity")));
            }
        }
        outlines
    }

    #[test]
    fn a_tree_has_the_price_of_its_outline_before_and_after_changes() {
        for (network, outline) in outlines() {
            let mut tree = Tree::<2>::new(&network, &outline);
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            for temperature in [0.0, 1.0] {
                let mut price = tree.nodes.iter().map(|node| node.price).sum();
                (0..1000 * (temperature as usize))
                    .for_each(|_| tree.change(&mut rng, temperature, &mut price));
                let leaves: f64 = tree.nodes[..tree.n_leaves].iter().map(|leaf| 4.0 * leaf.size).sum();
                let expected = Outline::of_joins(&network, &tree.joins()).cost.price();
                assert!(
                    (price + leaves - expected).abs() <= 1e-9 * expected,
                    "{price} + {leaves}, {expected}"
                );
            }
        }
    }

    #[test]
    fn reconfigured_trees_are_cheaper_and_contract_every_table_once() {
        let mut n_cheaper = 0;
        for (network, outline) in outlines() {
            let mut work = 0.0;
            let Some(found) = reconfigured(&network, &outline, 1e6, &mut work) else { continue };
            n_cheaper += 1;
            assert!(found.cost.price() < outline.cost.price() && work <= 1e6, "{}, {work}", found.cost);
            let mut children: Vec<usize> =
                found.nodes().filter_map(|(_, _, children)| children).flat_map(|(a, b)| [a, b]).collect();
            let n_tables = found.nodes().count();
            children.sort_unstable();
            assert!(children.windows(2).all(|pair| pair[0] < pair[1]), "a table is joined twice");
            let n_roots =
                outline.nodes().count() - 2 * outline.nodes().filter(|node| node.2.is_some()).count();
            assert_eq!(children.len() + n_roots, n_tables, "a table is not joined");
            assert!(children.iter().all(|&child| child < n_tables));
        }
        assert!(n_cheaper >= 4, "{n_cheaper} of 8 outlines became cheaper");
    }
}
