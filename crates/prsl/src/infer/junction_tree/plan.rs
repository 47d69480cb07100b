//! The plan: which tables are joined, in which order, and which variables are summed out on the way.
//!
//! Every step joins two tables into one and sums out the variables that occur nowhere else, so the plan is a
//! binary tree of contractions. Its tables are the messages of a junction tree; the clique tables themselves are
//! never stored. Running the steps forward gives Z; running them backward gives the derivative of Z in every
//! table, and with it all marginals at once.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::ops::Range;

use super::network::{Kind, Network, Source, Variable};
use super::order::Order;
use crate::rule::RuleId;

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

/// Offsets into the two tables that are joined and into their result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) out: u32,
}

/// All offsets of a loop over several variables, as sums of three parts: three short lists in place of one long one.
#[derive(Clone, Debug)]
pub(crate) struct Loops {
    outermost: Vec<At>,
    outer: Vec<At>,
    pub(crate) inner: Vec<At>,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// out = Σ a·b over the variables that end here. Each entry of the result, and of `a`, is come by once and in order.
    Join { a: usize, b: usize, out: usize, forward: Nest, backward: Nest },
    /// The same where fired variables are in both tables and stay: an entry of the result may be come by twice.
    Or { a: usize, b: usize, out: usize, kept: Loops, summed: Loops },
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

/// A loop in the order of one table's entries, and for each of them a loop over the variables that it lacks.
#[derive(Clone, Debug)]
pub(crate) struct Nest {
    pub(crate) along: Loops,
    pub(crate) across: Vec<At>,
}

/// What a plan takes, known before it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Numbers in all tables of one row.
    pub entries: f64,
    /// Bytes for one row: each table and its derivative, and the plan itself.
    pub bytes: f64,
    /// Multiply-adds for one row's marginals.
    pub multiply_adds: f64,
}

impl std::fmt::Display for Cost {
    /// `1,234 entries, 20 kB, 5,678 multiply-adds a row`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (entries, work) = (quantity(self.entries), quantity(self.multiply_adds));
        write!(f, "{entries} table entries ({}), {work} multiply-adds a row", bytes(self.bytes))
    }
}

/// A number for people: `20,000`, and from a million on `2.0e9`.
pub(crate) fn quantity(x: f64) -> String {
    if x < 1e6 { quantity_in_full(x) } else { format!("{x:.1e}") }
}

/// A whole number with commas: `1,073,741,824`.
fn quantity_in_full(x: f64) -> String {
    let digits = format!("{x:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number of bytes as people say it: `1.5 GiB`.
pub(crate) fn bytes(x: f64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let power = (x.max(1.0).log2() / 10.0).floor().min(4.0) as usize;
    let scaled = x / 1024f64.powi(power as i32);
    if power == 0 {
        format!("{x:.0} bytes")
    } else if scaled < 1e4 {
        format!("{scaled:.1} {}", units[power])
    } else {
        format!("{scaled:.1e} {}", units[power])
    }
}

/// A number of bytes that is above a limit, and the limit, with as many digits as it takes to tell them apart.
pub(crate) fn bytes_above(needed: f64, limit: f64) -> [String; 2] {
    let [shown, shown_limit] = [needed, limit].map(bytes);
    if shown != shown_limit {
        return [shown, shown_limit];
    }
    [needed, limit].map(|x| format!("{} bytes", quantity_in_full(x)))
}

/// The steps before their offsets are worked out: enough to know the cost.
#[derive(Clone)]
pub(crate) struct Outline {
    tables: Vec<OutlineTable>,
    /// The variables of all tables, one table after the other.
    variables: Vec<u32>,
    joins: Vec<(usize, usize)>,
    pub(crate) cost: Cost,
    /// Memory for the variables of a join.
    kept: Vec<u32>,
    /// About how many nanoseconds it took to find.
    work: f64,
}

#[derive(Clone)]
struct OutlineTable {
    /// Its variables, ascending, as a range of [`Outline::variables`].
    variables: Range<usize>,
    size: f64,
    fixed: bool,
}

/// What joining two tables comes to.
struct Joined {
    size: f64,
    work: f64,
    /// How many fired variables end: the smaller table is weighed for each.
    n_weighed: usize,
}

impl Outline {
    /// The contractions that an elimination order leads to; `None` as soon as they cost more than `limit`.
    ///
    /// The running time is added to `work`, in units of about a nanosecond.
    pub(crate) fn new(network: &Network, order: &Order, limit: f64, work: &mut f64) -> Option<Self> {
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

    /// The variables that meet a row: a table that depends on the row has them.
    pub(crate) fn meet_a_row(&self, n_variables: usize) -> Vec<bool> {
        let mut meet = vec![false; n_variables];
        for table in self.tables.iter().filter(|table| !table.fixed) {
            self.variables[table.variables.clone()]
                .iter()
                .for_each(|&variable| meet[variable as usize] = true);
        }
        meet
    }

    /// Adds a table whose variables are the last ones of the list.
    fn add(&mut self, start: usize, size: f64, fixed: bool, users: &mut Users) -> usize {
        let variables = start..self.variables.len();
        self.variables[variables.clone()].iter().for_each(|&v| users.add(v, self.tables.len()));
        self.tables.push(OutlineTable { variables, size, fixed });
        self.tables.len() - 1
    }

    /// Joins the tables that have `variable` until it is summed out; `false` if that costs more than `limit`. `bucket` is
    /// memory to work with.
    fn eliminate(
        &mut self,
        network: &Network,
        variable: usize,
        users: &mut Users,
        bucket: &mut Vec<usize>,
        limit: f64,
    ) -> bool {
        // The cheapest pair is among the small tables; all pairs of a long list would take too long.
        const PROMISING: usize = 8;
        users.collect(variable, bucket);
        let by_size = |outline: &Self, table: usize| Reverse((outline.tables[table].size.to_bits(), table));
        let mut larger = BinaryHeap::new();
        while users.counts[variable] > 1 {
            if bucket.len() > PROMISING {
                larger.extend(bucket.drain(..).map(|table| by_size(self, table)));
            }
            while bucket.len() < PROMISING
                && let Some(Reverse((_, table))) = larger.pop()
            {
                bucket.push(table);
            }
            let (a, b) = self.cheapest_pair(network, bucket, users);
            let joined = self.join(network, a, b, users);
            if self.cost.price() > limit {
                return false;
            }
            bucket.retain(|&table| table != a && table != b);
            if users.counts[variable] > 0 {
                // Where some tables are left out, it is compared with them by its size.
                match larger.is_empty() {
                    true => bucket.push(joined),
                    false => {
                        larger.extend(bucket.drain(..).chain([joined]).map(|table| by_size(self, table)))
                    }
                }
            }
        }
        true
    }

    /// The two tables whose join is smallest, and of these the one with the least work.
    fn cheapest_pair(&mut self, network: &Network, bucket: &[usize], users: &Users) -> (usize, usize) {
        let mut best = ((f64::INFINITY, f64::INFINITY), (bucket[0], bucket[1]));
        for (index, &a) in bucket.iter().enumerate() {
            for &b in &bucket[index + 1..] {
                let joined = self.joined(network, a, b, users, |_| {});
                self.work +=
                    5.0 * (self.tables[a].variables.len() + self.tables[b].variables.len() + 2) as f64;
                if (joined.size, joined.work) < best.0 {
                    best = ((joined.size, joined.work), (a, b));
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
        // Forward once, backward twice: for each of the two tables.
        self.cost.multiply_adds += if fixed { 0.0 } else { 3.0 * joined.work };
        for table in [a, b] {
            users.remove(table, &self.variables[self.tables[table].variables.clone()]);
        }
        self.variables.append(&mut kept);
        self.kept = kept;
        self.joins.push((a, b));
        self.add(start, joined.size, fixed, users)
    }

    /// The joins in an order in which results are used soon after they were computed, and the tables that are left.
    fn depth_first(&self, n_leaves: usize) -> (Vec<usize>, Vec<usize>) {
        let mut used = vec![false; self.tables.len()];
        self.joins.iter().for_each(|&(a, b)| (used[a], used[b]) = (true, true));
        let roots: Vec<usize> = (0..used.len()).filter(|&table| !used[table]).collect();
        // Parents first, the larger side last: read backward, the larger side is computed first.
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

    /// What joining two tables comes to; `keep` is told the variables of the result, ascending.
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

/// The tables that have each variable, as linked lists in one allocation.
struct Users {
    /// The last link of each variable's list, or [`NO_LINK`].
    last: Vec<u32>,
    /// A table, and the link before it. Tables that have been joined since stay in the lists.
    links: Vec<(u32, u32)>,
    /// How many tables have each variable now.
    counts: Vec<u32>,
    is_joined: Vec<bool>,
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
        }
    }

    fn add(&mut self, variable: u32, table: usize) {
        self.links.push((table as u32, self.last[variable as usize]));
        self.last[variable as usize] = self.links.len() as u32 - 1;
        self.counts[variable as usize] += 1;
    }

    fn remove(&mut self, table: usize, variables: &[u32]) {
        self.is_joined[table] = true;
        variables.iter().for_each(|&variable| self.counts[variable as usize] -= 1);
    }

    /// Collects the tables that have a variable now, ascending.
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
        for joined in order {
            let (a, b) = outline.joins[joined - n_leaves];
            let result = &outline.tables[joined];
            let kept = &outline.variables[result.variables.clone()];
            place[joined] = plan.join(network, place[a], place[b], kept, result.fixed);
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

    /// Joins two tables into one that keeps these variables, ascending.
    fn join(&mut self, network: &Network, a: usize, b: usize, kept: &[u32], fixed: bool) -> usize {
        let kept = |v: &usize| kept.binary_search(&(*v as u32)).is_ok();
        // The larger table is `a`: its layout is kept, and the smaller one is weighed.
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
        let variables: Vec<usize> = union.iter().copied().filter(kept).collect();
        let sizes = variables.iter().map(|&v| network.variables[v].n_states).collect();
        let out = self.add(variables.clone(), sizes, fixed);
        let digit = |&v: &usize| self.digit(network.variables[v].n_states, v, [a, b, out]);
        let (along_out, across_out): (Vec<usize>, Vec<usize>) = union.iter().partition(|v| kept(v));
        let is_or = union
            .iter()
            .any(|&v| self.tables[b].n_states(v).is_some_and(|n| n > network.variables[v].n_states));
        let step = if is_or {
            let loops = |variables: &[usize]| Loops::new(&variables.iter().map(digit).collect::<Vec<_>>());
            Step::Or { a, b, out, kept: loops(&along_out), summed: loops(&across_out) }
        } else {
            let n_in_a = self.tables[a].variables.len();
            let nest = |along: &[usize], across: &[usize]| Nest {
                along: Loops::new(&along.iter().map(digit).collect::<Vec<_>>()),
                across: combinations(&across.iter().map(digit).collect::<Vec<_>>()),
            };
            let (forward, backward) =
                (nest(&along_out, &across_out), nest(&union[..n_in_a], &union[n_in_a..]));
            Step::Join { a, b, out, forward, backward }
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
            Step::Or { kept, summed, .. } => kept.n_offsets() + summed.n_offsets(),
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

impl Loops {
    /// How many numbers it takes to list the offsets.
    fn n_offsets(&self) -> usize {
        self.outermost.len() + self.outer.len() + self.inner.len()
    }

    /// How many offsets there are.
    pub(crate) fn len(&self) -> usize {
        self.outermost.len() * self.outer.len() * self.inner.len()
    }

    /// All but the inner part of the offsets, in order.
    #[inline]
    pub(crate) fn outer(&self) -> impl Iterator<Item = At> + '_ {
        self.outermost.iter().flat_map(|x| self.outer.iter().map(move |y| x.plus(y)))
    }

    /// The loop over all combinations of the digits, the last fastest.
    fn new(digits: &[Vec<At>]) -> Self {
        const INNER: usize = 256;
        const OUTER: usize = 4096;
        let start = |end: usize, most: usize| {
            let (mut start, mut size) = (end, 1);
            while start > 0 && size * digits[start - 1].len() <= most {
                start -= 1;
                size *= digits[start].len();
            }
            start
        };
        let inner = start(digits.len(), INNER);
        let outer = start(inner, OUTER);
        Self {
            outermost: combinations(&digits[..outer]),
            outer: combinations(&digits[outer..inner]),
            inner: combinations(&digits[inner..]),
        }
    }
}

impl At {
    #[inline]
    fn plus(&self, other: &At) -> At {
        At { a: self.a + other.a, b: self.b + other.b, out: self.out + other.out }
    }
}

fn combinations(digits: &[Vec<At>]) -> Vec<At> {
    digits.iter().fold(vec![At { a: 0, b: 0, out: 0 }], |all, digit| {
        all.iter().flat_map(|x| digit.iter().map(|y| x.plus(y))).collect()
    })
}
