//! The plan: the steps that contract the tables of a network into Z.
//!
//! A step joins two tables and sums out the variables that occur in no other table. So the plan is a binary tree of
//! contractions. Its tables are the messages of a junction tree; clique tables are never stored. The forward pass gives
//! Z. The backward pass gives the derivative of Z in every table, and from these all marginals.

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
    /// Its variables. The state of the last one changes fastest.
    pub(super) variables: Vec<usize>,
    /// Number of states of each variable in this table. A fired variable has three in an extended table.
    pub(super) sizes: Vec<usize>,
    pub(crate) size: usize,
    /// Offset of its values in the workspace.
    pub(crate) offset: usize,
    /// Offset of its derivatives. Tables whose derivatives are never needed at the same time may share memory.
    pub(crate) derivative: usize,
    /// Whether it is independent of the row.
    pub(crate) fixed: bool,
    /// Whether its largest terms are compared with Z, to detect cancellation by a nearly hard rule with signs.
    pub(crate) watched: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// out = Σ a·b over the variables that are summed out. The forward loop visits the entries of `out` once and in
    /// order, the backward loop those of `a`.
    Join { a: usize, b: usize, out: usize, forward: Nest, backward: Nest },
    /// A join of tables that share fired variables, which remain in the result. Their states decide the terms of an
    /// entry.
    Or { a: usize, b: usize, out: usize, forward: Box<Fan>, backward: Box<Fan> },
    /// Applies a rule's weights to a table with its fired variable. The next join then sums the variable out.
    ///
    /// ```text
    /// Σ_{u,v} w(u or v) a(u) b(v) = Σ_u a(u) b′(u)    b′(silent) = w(silent) b(silent) + w(fired) b(fired)
    ///                                                 b′(fired)  = w(fired) (b(silent) + b(fired))
    /// ```
    Weigh { input: usize, out: usize, rule: RuleId, stride: usize },
    /// Adds a third state, "either", to a fired variable. It saves one of four products in the next join.
    ///
    /// ```text
    /// out(silent) = a(silent) b(silent)     out(fired) = a(fired) b(either) + a(silent) b(fired)
    /// ```
    Extend { input: usize, out: usize, stride: usize },
}

impl Cost {
    /// The objective of the search: multiply-adds, and four units per table entry for reading and writing it.
    pub(crate) fn price(&self) -> f64 {
        self.multiply_adds + 4.0 * self.entries
    }
}

/// Tables and steps with all offsets.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) tables: Vec<Table>,
    pub(crate) steps: Vec<Step>,
    /// Tables without variables whose product is Z.
    pub(crate) roots: Vec<usize>,
    /// For every table, the root that it is part of.
    pub(crate) root_of: Vec<usize>,
    /// Number of entries of all tables.
    pub(crate) size: usize,
    /// Number of entries of the memory for derivatives.
    pub(crate) derivatives: usize,
    pub(crate) cost: Cost,
}

impl Plan {
    /// Computes all offsets. The outline must belong to the network, and its tables must fit the memory.
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
        // Maps tables of the outline to tables of the plan, which also has weighed and extended ones.
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
            // The last join with a variable sums it out. It overwrites the position of earlier ones.
            let (a, b) = outline.joins[joined - n_leaves];
            let variables = [a, b].into_iter().flat_map(|table| outline.variables_of(table));
            variables.for_each(|&variable| ends[variable as usize] = position);
        }
        for joined in order {
            let (a, b) = outline.joins[joined - n_leaves];
            let mut kept = outline.variables_of(joined).to_vec();
            // Variables that are summed out last are outermost in all tables, so that joined tables are read in nearly
            // the same order.
            kept.sort_by_key(|&variable| Reverse((ends[variable as usize], variable)));
            place[joined] = plan.join(network, place[a], place[b], &kept, outline.tables[joined].fixed);
        }
        plan.roots = roots.into_iter().map(|table| place[table]).collect();
        plan.place_derivatives(n_leaves);
        plan
    }

    /// The memory of the plan itself, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let tables: usize =
            self.tables.iter().map(|table| size_of::<Table>() + 2 * size_of_val(&table.variables[..])).sum();
        let steps: usize =
            self.steps.iter().map(|step| size_of::<Step>() + step.n_offsets() * size_of::<At>()).sum();
        (tables + steps + size_of_val(&self.root_of[..])) as u64
    }

    /// The memory of a workspace, in bytes.
    pub(crate) fn workspace_bytes(&self, n_rules: usize, lanes: usize) -> u64 {
        let numbers = self.size + self.derivatives + 4 * n_rules;
        // The values and the derivatives of a table each have an exponent and three bounds.
        let of_table = 2 * (size_of::<i32>() + 3 * size_of::<f64>());
        (lanes * (numbers * size_of::<f64>() + self.tables.len() * of_table)) as u64
    }

    /// The rules whose weights are applied in steps that depend on the row.
    pub(crate) fn rules_of_steps(&self) -> Vec<RuleId> {
        let rule = |step: &Step| match step {
            Step::Weigh { rule, out, .. } if !self.tables[*out].fixed => Some(*rule),
            _ => None,
        };
        self.steps.iter().filter_map(rule).collect()
    }

    /// Marks, for each of these variables, the smallest table with it that depends on the row as watched.
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
            "each signed variable occurs in a table that depends on the row"
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

    /// Assigns memory to the derivatives. Those of leaves are kept. That of a step's result is free once those of the
    /// step's inputs are computed.
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

    /// Adds the step that joins two tables into one with the variables `kept`, in this order.
    fn join(&mut self, network: &Network, a: usize, b: usize, kept: &[u32], fixed: bool) -> usize {
        let variables: Vec<usize> = kept.iter().map(|&variable| variable as usize).collect();
        let kept = |v: &usize| variables.contains(v);
        // `a` is the larger table. Weights are applied to the smaller one.
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

    /// The offsets of a variable's states in a join.
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

    /// Number of stored offsets.
    fn n_offsets(&self) -> usize {
        match self {
            Step::Join { forward, backward, .. } => {
                [forward, backward].iter().map(|nest| nest.along.n_offsets() + nest.across.len()).sum()
            }
            Step::Or { forward, backward, .. } => forward.n_offsets() + backward.n_offsets(),
            Step::Weigh { .. } | Step::Extend { .. } => 0,
        }
    }

    /// The tables that the step reads.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, second) = match self {
            Step::Join { a, b, .. } | Step::Or { a, b, .. } => (*a, Some(*b)),
            Step::Weigh { input, .. } | Step::Extend { input, .. } => (*input, None),
        };
        [Some(first), second].into_iter().flatten()
    }
}

/// An allocator of ranges in the memory for derivatives.
#[derive(Default)]
struct Room {
    size: usize,
    /// Free ranges as (start, length), in order. Adjacent ranges are merged.
    free: Vec<(usize, usize)>,
}

impl Room {
    /// Allocates the smallest free range that is large enough, and returns its start.
    fn take(&mut self, size: usize) -> usize {
        let fitting = (0..self.free.len()).filter(|&piece| self.free[piece].1 >= size);
        let Some(piece) = fitting.min_by_key(|&piece| self.free[piece].1) else {
            // The memory grows, from the start of the last range if that is free.
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

    /// The distance between entries of adjacent states of a variable.
    pub(super) fn stride(&self, variable: usize) -> Option<usize> {
        self.place(variable).map(|place| self.sizes[place + 1..].iter().product())
    }
}
