//! The plan: which tables are joined, in which order, and which variables are summed out on the way.
//!
//! Every step joins two tables into one and sums out the variables that occur nowhere else, so the plan is a
//! binary tree of contractions. Its tables are the messages of a junction tree; the clique tables themselves are
//! never stored. Running the steps forward gives Z; running them backward gives the derivative of Z in every
//! table, and with it all marginals at once.

mod bits;
mod loops;
mod outline;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

pub(crate) use loops::{At, Fan, Loops, Nest};
pub(crate) use outline::Outline;

use super::network::{Kind, Network};
use crate::infer::limits::Cost;
use crate::rule::RuleId;
use loops::combinations;

/// A table of the plan: a leaf of the network or the result of a step.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// Last variable fastest.
    pub(super) variables: Vec<usize>,
    /// How many states each variable has in this table: a fired variable has a third one where it is extended.
    pub(super) sizes: Vec<usize>,
    pub(crate) size: usize,
    /// Where its values start in the workspace.
    pub(crate) offset: usize,
    /// Where its derivatives start; they make room for others once they have been used.
    pub(crate) derivative: usize,
    /// Whether it is the same for every row.
    pub(crate) fixed: bool,
    /// Whether its terms show how much of Z a rule with signs takes away.
    pub(crate) watched: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// out = Σ a·b over the variables that end here. Each entry of the result, and of `a`, is come by once and in order.
    Join { a: usize, b: usize, out: usize, forward: Nest, backward: Nest },
    /// The same where fired variables are in both tables and stay: the states of these decide which terms an entry has.
    Or { a: usize, b: usize, out: usize, forward: Box<Fan>, backward: Box<Fan> },
    /// Brings a rule's weights into a table that has its fired variable: the next join sums it out.
    ///
    /// ```text
    /// Σ_{u,v} w(u or v) a(u) b(v) = Σ_u a(u) b′(u)    b′(silent) = w(silent) b(silent) + w(fired) b(fired)
    ///                                                 b′(fired)  = w(fired) (b(silent) + b(fired))
    /// ```
    Weigh { input: usize, out: usize, rule: RuleId, stride: usize },
    /// Gives a fired variable a third state, "either", which saves the next join one product in four.
    ///
    /// ```text
    /// out(silent) = a(silent) b(silent)     out(fired) = a(fired) b(either) + a(silent) b(fired)
    /// ```
    Extend { input: usize, out: usize, stride: usize },
}

impl Cost {
    /// What the search for a plan minimizes: multiply-adds, and touching every entry a few times.
    pub(crate) fn price(&self) -> f64 {
        self.multiply_adds + 4.0 * self.entries
    }
}

/// Tables and steps, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) tables: Vec<Table>,
    pub(crate) steps: Vec<Step>,
    /// Tables without variables whose product is Z.
    pub(crate) roots: Vec<usize>,
    /// For every table, the root that it is part of.
    pub(crate) root_of: Vec<usize>,
    /// Numbers in all tables.
    pub(crate) size: usize,
    /// Numbers in the derivatives that are needed at the same time.
    pub(crate) derivatives: usize,
    pub(crate) cost: Cost,
}

impl Plan {
    /// Works out every offset; the outline must be of the same network, and small enough to be stored.
    pub(crate) fn new(network: &Network, outline: &Outline) -> Self {
        let mut plan = Plan {
            tables: Vec::new(),
            steps: Vec::new(),
            roots: Vec::new(),
            root_of: Vec::new(),
            size: 0,
            derivatives: 0,
            cost: outline.cost,
        };
        // Position in the outline to position in the plan, which has more tables: the weighed ones.
        let mut place: Vec<usize> = Vec::new();
        for (leaf, table) in network.leaves.iter().zip(&outline.tables) {
            let sizes = leaf.variables.iter().map(|&v| network.variables[v].n_states).collect();
            place.push(plan.add(leaf.variables.clone(), sizes, table.fixed));
        }
        let n_leaves = place.len();
        place.resize(outline.tables.len(), usize::MAX);
        let (order, roots) = outline.depth_first(n_leaves);
        let mut ends = vec![0; network.variables.len()];
        for (position, &joined) in order.iter().enumerate() {
            // A later join overwrites an earlier one: the last one that has a variable sums it out.
            let (a, b) = outline.joins[joined - n_leaves];
            let variables = [a, b].into_iter().flat_map(|table| outline.variables_of(table));
            variables.for_each(|&variable| ends[variable as usize] = position);
        }
        for joined in order {
            let (a, b) = outline.joins[joined - n_leaves];
            let mut kept = outline.variables_of(joined).to_vec();
            // Variables that end last are outermost in all tables, so that joined tables are read in nearly the same order.
            kept.sort_by_key(|&variable| Reverse((ends[variable as usize], variable)));
            place[joined] = plan.join(network, place[a], place[b], &kept, outline.tables[joined].fixed);
        }
        plan.roots = roots.into_iter().map(|table| place[table]).collect();
        plan.place_derivatives(n_leaves);
        plan
    }

    /// The memory that the plan itself takes.
    pub(crate) fn bytes(&self) -> u64 {
        let tables: usize =
            self.tables.iter().map(|table| size_of::<Table>() + 2 * size_of_val(&table.variables[..])).sum();
        let steps: usize =
            self.steps.iter().map(|step| size_of::<Step>() + step.n_offsets() * size_of::<At>()).sum();
        (tables + steps + size_of_val(&self.root_of[..])) as u64
    }

    /// The memory of a workspace for so many rows side by side.
    pub(crate) fn workspace_bytes(&self, n_rules: usize, lanes: usize) -> u64 {
        let numbers = self.size + self.derivatives + 4 * n_rules;
        // For its values and for its derivatives each, a table has an exponent and three bounds on its entries.
        let of_table = 2 * (size_of::<i32>() + 3 * size_of::<f64>());
        (lanes * (numbers * size_of::<f64>() + self.tables.len() * of_table)) as u64
    }

    /// Watches, for each of these variables, the smallest table that has it and depends on the row.
    pub(crate) fn watch(&mut self, variables: &HashSet<usize>) {
        let mut smallest: HashMap<usize, usize> = HashMap::new();
        for (index, table) in self.tables.iter().enumerate().filter(|(_, table)| !table.fixed) {
            for &variable in table.variables.iter().filter(|variable| variables.contains(variable)) {
                let best = smallest.entry(variable).or_insert(index);
                if table.size < self.tables[*best].size {
                    *best = index;
                }
            }
        }
        debug_assert_eq!(
            smallest.len(),
            variables.len(),
            "rules with signs are put together when a row has come"
        );
        smallest.into_values().for_each(|table| self.tables[table].watched = true);
    }

    fn add(&mut self, variables: Vec<usize>, sizes: Vec<usize>, fixed: bool) -> usize {
        let size = sizes.iter().product();
        self.tables.push(Table {
            variables,
            sizes,
            size,
            offset: self.size,
            derivative: 0,
            fixed,
            watched: false,
        });
        self.size += size;
        self.tables.len() - 1
    }

    /// Finds room for the derivatives: those of the leaves stay, a step's is free once those of its inputs are known.
    fn place_derivatives(&mut self, n_leaves: usize) {
        let mut room = Room::default();
        for table in (0..n_leaves).chain(self.roots.clone()) {
            self.tables[table].derivative = room.take(self.tables[table].size);
        }
        self.root_of = (0..self.tables.len()).collect();
        for step in self.steps.iter().rev() {
            step.inputs().for_each(|input| self.root_of[input] = self.root_of[step.out()]);
            for input in step.inputs().filter(|&input| input >= n_leaves) {
                self.tables[input].derivative = room.take(self.tables[input].size);
            }
            let out = &self.tables[step.out()];
            room.give_back(out.derivative, out.size);
        }
        self.derivatives = room.size;
    }

    /// Joins two tables into one that keeps these variables, in this order.
    fn join(&mut self, network: &Network, a: usize, b: usize, kept: &[u32], fixed: bool) -> usize {
        let variables: Vec<usize> = kept.iter().map(|&variable| variable as usize).collect();
        let kept = |v: &usize| variables.contains(v);
        // The larger table is `a`: the smaller one is weighed.
        let (a, mut b) = if self.tables[a].size >= self.tables[b].size { (a, b) } else { (b, a) };
        let mut union = self.tables[a].variables.clone();
        union.extend(self.tables[b].variables.iter().filter(|v| !self.tables[a].variables.contains(v)));
        for &variable in &union {
            let shared = [a, b].iter().all(|&table| self.tables[table].variables.contains(&variable));
            match network.variables[variable].kind {
                Kind::Fired(rule) if !kept(&variable) => b = self.weigh(b, variable, rule),
                Kind::Fired(_) if shared => b = self.extend(b, variable),
                _ => {}
            }
        }
        let sizes = variables.iter().map(|&v| network.variables[v].n_states).collect();
        let out = self.add(variables.clone(), sizes, fixed);
        let digit = |&v: &usize| self.digit(network.variables[v].n_states, v, [a, b, out]);
        let digits = |variables: &[usize]| -> Vec<Vec<At>> { variables.iter().map(digit).collect() };
        let is_extended =
            |&v: &usize| self.tables[b].n_states(v).is_some_and(|n| n > network.variables[v].n_states);
        let (fired, plain): (Vec<usize>, Vec<usize>) = union.iter().partition(|v| is_extended(v));
        let along_out: Vec<usize> = variables.iter().copied().filter(|v| plain.contains(v)).collect();
        let across_out: Vec<usize> = plain.iter().copied().filter(|v| !kept(v)).collect();
        let in_a = |v: &&usize| self.tables[a].variables.contains(v);
        let (along_a, across_a): (Vec<usize>, Vec<usize>) = plain.iter().partition(in_a);
        let step = if fired.is_empty() {
            let nest = |along: &[usize], across: &[usize]| Nest {
                along: Loops::new(&digits(along)),
                across: combinations(&digits(across)),
            };
            let (forward, backward) = (nest(&along_out, &across_out), nest(&along_a, &across_a));
            Step::Join { a, b, out, forward, backward }
        } else {
            let fired = digits(&fired);
            let fan = |along: &[usize], across: &[usize], target: fn(&At) -> u32| {
                Box::new(Fan::new(digits(along), &fired, combinations(&digits(across)), target))
            };
            let forward = fan(&along_out, &across_out, |at| at.out);
            Step::Or { a, b, out, forward, backward: fan(&along_a, &across_a, |at| at.a) }
        };
        self.steps.push(step);
        out
    }

    fn weigh(&mut self, input: usize, variable: usize, rule: RuleId) -> usize {
        let table = self.tables[input].clone();
        let stride = table.stride(variable).expect("both tables have a variable that ends");
        let out = self.add(table.variables, table.sizes, table.fixed);
        self.steps.push(Step::Weigh { input, out, rule, stride });
        out
    }

    fn extend(&mut self, input: usize, variable: usize) -> usize {
        let mut table = self.tables[input].clone();
        let stride = table.stride(variable).expect("both tables have a variable that is shared");
        let place = table.place(variable).expect("it has a stride");
        table.sizes[place] = 3;
        let out = self.add(table.variables, table.sizes, table.fixed);
        self.steps.push(Step::Extend { input, out, stride });
        out
    }

    /// The offsets that a variable's states stand for in a join.
    fn digit(&self, n_states: usize, variable: usize, [a, b, out]: [usize; 3]) -> Vec<At> {
        let [in_a, in_b, in_out] = [a, b, out].map(|table| self.tables[table].stride(variable).unwrap_or(0));
        let at = |u: usize, v: usize, w: usize| At {
            a: (in_a * u) as u32,
            b: (in_b * v) as u32,
            out: (in_out * w) as u32,
        };
        let extended = self.tables[b].n_states(variable).is_some_and(|n| n > n_states);
        if extended {
            let (silent, fired, either) = (0, 1, 2);
            return vec![at(silent, silent, silent), at(silent, fired, fired), at(fired, either, fired)];
        }
        (0..n_states).map(|state| at(state, state, state)).collect()
    }
}

impl Step {
    /// The table that the step computes.
    pub(crate) fn out(&self) -> usize {
        match self {
            Step::Join { out, .. } | Step::Or { out, .. } => *out,
            Step::Weigh { out, .. } | Step::Extend { out, .. } => *out,
        }
    }

    /// How many offsets it lists.
    fn n_offsets(&self) -> usize {
        match self {
            Step::Join { forward, backward, .. } => {
                [forward, backward].iter().map(|nest| nest.along.n_offsets() + nest.across.len()).sum()
            }
            Step::Or { forward, backward, .. } => forward.n_offsets() + backward.n_offsets(),
            Step::Weigh { .. } | Step::Extend { .. } => 0,
        }
    }

    /// The tables that it computes it from.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, second) = match self {
            Step::Join { a, b, .. } | Step::Or { a, b, .. } => (*a, Some(*b)),
            Step::Weigh { input, .. } | Step::Extend { input, .. } => (*input, None),
        };
        [Some(first), second].into_iter().flatten()
    }
}

/// Memory that is handed out and given back.
#[derive(Default)]
struct Room {
    size: usize,
    /// Free pieces as (start, length), in order, none next to another.
    free: Vec<(usize, usize)>,
}

impl Room {
    /// The start of the smallest free piece that is large enough.
    fn take(&mut self, size: usize) -> usize {
        let fitting = (0..self.free.len()).filter(|&piece| self.free[piece].1 >= size);
        let Some(piece) = fitting.min_by_key(|&piece| self.free[piece].1) else {
            // The end is extended, from the last piece on if that is free.
            let start = match self.free.last() {
                Some(&(start, length)) if start + length == self.size => {
                    self.free.pop();
                    start
                }
                _ => self.size,
            };
            self.size = start + size;
            return start;
        };
        let (start, length) = self.free[piece];
        if length == size {
            self.free.remove(piece);
        } else {
            self.free[piece] = (start + size, length - size);
        }
        start
    }

    fn give_back(&mut self, start: usize, size: usize) {
        let next = self.free.partition_point(|&(other, _)| other < start);
        self.free.insert(next, (start, size));
        if next + 1 < self.free.len() && start + size == self.free[next + 1].0 {
            self.free[next].1 += self.free.remove(next + 1).1;
        }
        if next > 0 && self.free[next - 1].0 + self.free[next - 1].1 == start {
            self.free[next - 1].1 += self.free.remove(next).1;
        }
    }
}

impl Table {
    fn place(&self, variable: usize) -> Option<usize> {
        self.variables.iter().position(|&v| v == variable)
    }

    pub(super) fn n_states(&self, variable: usize) -> Option<usize> {
        self.place(variable).map(|place| self.sizes[place])
    }

    /// How far apart two neighboring states of a variable are.
    pub(super) fn stride(&self, variable: usize) -> Option<usize> {
        self.place(variable).map(|place| self.sizes[place + 1..].iter().product())
    }
}
