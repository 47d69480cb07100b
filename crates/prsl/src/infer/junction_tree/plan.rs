//! The plan: which tables are joined, in which order, and which variables are summed out on the way.
//!
//! Every step joins two tables into one and sums out the variables that occur nowhere else, so the plan is a
//! binary tree of contractions. Its tables are the messages of a junction tree; the clique tables themselves are
//! never stored. Running the steps forward gives Z; running them backward gives the derivative of Z in every
//! table, and with it all marginals at once.

use super::network::{Kind, Network, Source, Variable};
use super::order::{Order, bits};
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

/// All offsets of a loop over several variables, as sums of an outer and an inner part: two short lists in place
/// of one long one.
#[derive(Clone, Debug)]
pub(crate) struct Loops {
    pub(crate) outer: Vec<At>,
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
    /// Bytes for one row: each table and its derivative.
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
    if x < 1e6 {
        let digits = format!("{x:.0}");
        let mut grouped = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index) % 3 == 0 {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        grouped
    } else {
        format!("{x:.1e}")
    }
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

/// The steps before their offsets are worked out: enough to know the cost.
#[derive(Clone)]
pub(crate) struct Outline {
    tables: Vec<OutlineTable>,
    joins: Vec<(usize, usize)>,
    pub(crate) cost: Cost,
}

#[derive(Clone)]
struct OutlineTable {
    /// Its variables as a bit set.
    variables: Vec<u64>,
    size: f64,
    fixed: bool,
}

/// What joining two tables comes to.
struct Joined {
    kept: Vec<u64>,
    size: f64,
    work: f64,
    /// How many fired variables end: the smaller table is weighed for each.
    n_weighed: usize,
    /// How many fired variables are in both tables and stay: the smaller table is extended for each.
    n_extended: usize,
}

impl Outline {
    /// The contractions that an elimination order leads to; `None` as soon as they cost more than `limit`.
    pub(crate) fn new(network: &Network, order: &Order, limit: f64) -> Option<Self> {
        let words = network.variables.len().div_ceil(64);
        let mut outline = Self {
            tables: Vec::with_capacity(2 * network.leaves.len()),
            joins: Vec::with_capacity(network.leaves.len()),
            cost: Cost { entries: 0.0, bytes: 0.0, multiply_adds: 0.0 },
        };
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); network.variables.len()];
        for (index, leaf) in network.leaves.iter().enumerate() {
            let mut variables = vec![0; words];
            let mut size = 1.0;
            for &variable in &leaf.variables {
                variables[variable / 64] |= 1 << (variable % 64);
                size *= network.variables[variable].n_states as f64;
                users[variable].push(index);
            }
            outline.cost.entries += size;
            outline.tables.push(OutlineTable {
                variables,
                size,
                fixed: !matches!(leaf.source, Source::Belief(_)),
            });
        }
        for &variable in &order.variables {
            while users[variable].len() > 1 {
                outline.join_cheapest(network, variable, &mut users);
                if outline.cost.price() > limit {
                    return None;
                }
            }
            debug_assert!(users[variable].is_empty(), "joining the last two tables sums the variable out");
        }
        outline.cost.bytes = outline.cost.entries * 16.0;
        Some(outline)
    }

    /// Whether a table that depends on the row has this variable.
    pub(crate) fn meets_a_row(&self, variable: usize) -> bool {
        let has = |table: &OutlineTable| table.variables[variable / 64] >> (variable % 64) & 1 == 1;
        self.tables.iter().any(|table| !table.fixed && has(table))
    }

    /// Joins the two tables with `variable` whose result is smallest.
    fn join_cheapest(&mut self, network: &Network, variable: usize, users: &mut [Vec<usize>]) {
        // The cheapest pair is among the small ones; all pairs of a long list would take too long.
        const PROMISING: usize = 8;
        let mut bucket = users[variable].clone();
        if bucket.len() > PROMISING {
            bucket.sort_by(|&x, &y| self.tables[x].size.total_cmp(&self.tables[y].size).then(x.cmp(&y)));
            bucket.truncate(PROMISING);
        }
        let mut best: Option<(Joined, usize, usize)> = None;
        for (index, &a) in bucket.iter().enumerate() {
            for &b in &bucket[index + 1..] {
                let joined = self.joined(network, a, b, users);
                let better = |best: &Joined| (joined.size, joined.work) < (best.size, best.work);
                if best.as_ref().is_none_or(|(best, ..)| better(best)) {
                    best = Some((joined, a, b));
                }
            }
        }
        let (joined, a, b) = best.expect("there are at least two tables");
        let fixed = self.tables[a].fixed && self.tables[b].fixed;
        self.cost.entries +=
            joined.size + joined.n_weighed as f64 * self.tables[a].size.min(self.tables[b].size);
        // Forward once, backward twice: for each of the two tables.
        self.cost.multiply_adds += if fixed { 0.0 } else { 3.0 * joined.work };
        let id = self.tables.len();
        for table in [a, b] {
            for variable in bits(&self.tables[table].variables) {
                users[variable].retain(|&user| user != table);
            }
        }
        for variable in bits(&joined.kept) {
            users[variable].push(id);
        }
        self.tables.push(OutlineTable { variables: joined.kept, size: joined.size, fixed });
        self.joins.push((a, b));
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

    fn joined(&self, network: &Network, a: usize, b: usize, users: &[Vec<usize>]) -> Joined {
        let (a, b) = (&self.tables[a].variables, &self.tables[b].variables);
        let union: Vec<u64> = a.iter().zip(b).map(|(a, b)| a | b).collect();
        let mut joined = Joined { kept: union.clone(), size: 1.0, work: 1.0, n_weighed: 0, n_extended: 0 };
        for variable in bits(&union) {
            let has = |set: &[u64]| set[variable / 64] >> (variable % 64) & 1 == 1;
            let shared = has(a) && has(b);
            let ends = users[variable].len() == 1 + usize::from(shared);
            let Variable { n_states, kind } = network.variables[variable];
            let fired = matches!(kind, Kind::Fired(_));
            let or = fired && shared && !ends;
            joined.work *= if or { 3.0 } else { n_states as f64 };
            joined.n_extended += usize::from(or);
            if ends {
                joined.kept[variable / 64] &= !(1 << (variable % 64));
                joined.n_weighed += usize::from(fired);
            } else {
                joined.size *= n_states as f64;
            }
        }
        joined
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
            place[joined] = plan.join(network, place[a], place[b], &outline.tables[joined]);
        }
        plan.roots = roots.into_iter().map(|table| place[table]).collect();
        plan.place_derivatives(n_leaves);
        plan.cost.bytes = 8.0 * (plan.size + plan.derivatives) as f64;
        plan
    }

    /// Watches the smallest table with this variable that depends on the row.
    pub(crate) fn watch(&mut self, variable: usize) {
        let has = |table: &&mut Table| !table.fixed && table.variables.contains(&variable);
        let smallest = self.tables.iter_mut().filter(has).min_by_key(|table| table.size);
        smallest.expect("rules with signs are put together when a row has come").watched = true;
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

    fn join(&mut self, network: &Network, a: usize, b: usize, result: &OutlineTable) -> usize {
        let kept = |v: &usize| result.variables[v / 64] >> (v % 64) & 1 == 1;
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
        let out = self.add(variables.clone(), sizes, result.fixed);
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
    /// How many offsets there are.
    pub(crate) fn len(&self) -> usize {
        self.outer.len() * self.inner.len()
    }

    /// The loop over all combinations of the digits, the last fastest.
    fn new(digits: &[Vec<At>]) -> Self {
        const INNER: usize = 256;
        let mut split = digits.len();
        let mut inner_size = 1;
        while split > 0 && inner_size * digits[split - 1].len() <= INNER {
            split -= 1;
            inner_size *= digits[split].len();
        }
        Self { outer: combinations(&digits[..split]), inner: combinations(&digits[split..]) }
    }
}

fn combinations(digits: &[Vec<At>]) -> Vec<At> {
    digits.iter().fold(vec![At { a: 0, b: 0, out: 0 }], |all, digit| {
        all.iter()
            .flat_map(|x| digit.iter().map(|y| At { a: x.a + y.a, b: x.b + y.b, out: x.out + y.out }))
            .collect()
    })
}
