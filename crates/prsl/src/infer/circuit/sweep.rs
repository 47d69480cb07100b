//! Evaluation of a circuit for several rows side by side.
//!
//! Upward, a node is the sum of its edges, and an edge is the product of its constant, its terms and its children.
//! Downward, each node has the derivative of the root's value in its own. An edge's *mass* is its share of Z:
//!
//! ```text
//! value(n) = Σ_{e of n} value(e)      value(e) = c(e) · ∏ terms · ∏ children                                (1)
//! d(root)  = 1      d(child) = Σ_{e with the child} d(node of e) · c(e) · ∏ terms · ∏ other children        (2)
//! mass(e)  = d(node of e) · value(e)                                                                       (3)
//! ```
//!
//! The mass of a state is the sum over the edges that decide it, and over the edges in which its label is free, times its
//! belief. All numbers are non-negative, and nothing is divided. The beliefs about a free label have the sum 1 (or
//! the maximum 1, for maxima), so (1) omits them.

use super::layout::{Constants, Layout};
use crate::infer::semiring::{Semiring, SumProduct, wide};

/// The values of one evaluation, with `L` rows side by side.
pub(super) struct Workspace<S: Semiring, const L: usize> {
    pub(super) beliefs: Vec<[f64; L]>,
    terms: Vec<[f64; L]>,
    pub(super) edges: Vec<[f64; L]>,
    pub(super) nodes: Vec<[f64; L]>,
    pub(super) derivatives: Vec<[f64; L]>,
    term_masses: Vec<[f64; L]>,
    free_masses: Vec<[f64; L]>,
    /// For each label, the mass of the assignments in which it is free.
    label_masses: Vec<[f64; L]>,
    /// The mass of each state.
    pub(super) masses: Vec<[f64; L]>,
    semiring: std::marker::PhantomData<S>,
}

impl<S: Semiring, const L: usize> Workspace<S, L> {
    pub(super) fn new(layout: &Layout) -> Self {
        let zeros = |n: usize| vec![[S::ZERO; L]; n];
        Self {
            beliefs: zeros(layout.n_states),
            terms: zeros(layout.terms.len()),
            edges: zeros(layout.edges.len()),
            nodes: zeros(layout.nodes.len()),
            derivatives: zeros(layout.nodes.len()),
            term_masses: zeros(layout.terms.len()),
            free_masses: zeros(layout.free.len()),
            label_masses: zeros(layout.labels.len()),
            masses: zeros(layout.n_states),
            semiring: std::marker::PhantomData,
        }
    }

    /// The value of the root: Z, or the largest weight.
    pub(super) fn total(&self) -> [f64; L] {
        *self.nodes.last().expect("the root is a node")
    }

    pub(super) fn collect(&mut self, layout: &Layout, constants: &Constants) {
        wide!(self.collect_in(layout, constants));
    }

    pub(super) fn distribute(&mut self, layout: &Layout, constants: &Constants) {
        wide!(self.distribute_in(layout, constants));
    }

    #[inline(always)]
    fn collect_in(&mut self, layout: &Layout, constants: &Constants) {
        self.terms[0] = [S::ONE; L];
        for entry in 1..layout.terms.len() {
            let parent = self.terms[layout.terms.parents[entry] as usize];
            self.terms[entry] = times::<S, L>(parent, self.beliefs[layout.terms.items[entry] as usize]);
        }
        let constants = if S::SCALED { &constants.linear } else { &constants.log };
        for (node, range) in layout.nodes.iter().enumerate() {
            let mut sum = [S::ZERO; L];
            for edge in range.start as usize..range.end as usize {
                let flat = &layout.edges[edge];
                let mut value = scaled::<S, L>(constants[edge], self.terms[flat.terms as usize]);
                for &child in &layout.children[flat.children.start as usize..flat.children.end as usize] {
                    value = times::<S, L>(value, self.nodes[child as usize]);
                }
                self.edges[edge] = value;
                sum = plus::<S, L>(sum, value); // (1)
            }
            self.nodes[node] = sum;
        }
    }

    #[inline(always)]
    fn distribute_in(&mut self, layout: &Layout, constants: &Constants) {
        self.derivatives.fill([S::ZERO; L]);
        self.term_masses.fill([S::ZERO; L]);
        self.free_masses.fill([S::ZERO; L]);
        *self.derivatives.last_mut().expect("the root is a node") = [S::ONE; L];
        let constants = if S::SCALED { &constants.linear } else { &constants.log };
        for (node, range) in layout.nodes.iter().enumerate().rev() {
            let derivative = self.derivatives[node];
            for edge in range.start as usize..range.end as usize {
                let flat = &layout.edges[edge];
                let mass = times::<S, L>(derivative, self.edges[edge]); // (3)
                let slot = &mut self.term_masses[flat.terms as usize];
                *slot = plus::<S, L>(*slot, mass);
                let slot = &mut self.free_masses[flat.free as usize];
                *slot = plus::<S, L>(*slot, mass);
                let children = &layout.children[flat.children.start as usize..flat.children.end as usize];
                if children.is_empty() {
                    continue;
                }
                let outer = times::<S, L>(
                    derivative,
                    scaled::<S, L>(constants[edge], self.terms[flat.terms as usize]),
                );
                for (place, &child) in children.iter().enumerate() {
                    let mut change = outer;
                    for (_, &other) in children.iter().enumerate().filter(|(other, _)| *other != place) {
                        change = times::<S, L>(change, self.nodes[other as usize]);
                    }
                    let slot = &mut self.derivatives[child as usize];
                    *slot = plus::<S, L>(*slot, change); // (2)
                }
            }
        }
        self.masses_of_states(layout);
    }

    /// Sums the masses of sets into masses of states. Children of a set come after it.
    #[inline(always)]
    fn masses_of_states(&mut self, layout: &Layout) {
        self.label_masses.fill([S::ZERO; L]);
        for entry in (1..layout.free.len()).rev() {
            let mass = self.free_masses[entry];
            let label = &mut self.label_masses[layout.free.items[entry] as usize];
            *label = plus::<S, L>(*label, mass);
            let parent = &mut self.free_masses[layout.free.parents[entry] as usize];
            *parent = plus::<S, L>(*parent, mass);
        }
        for (label, mass) in layout.labels.iter().zip(&self.label_masses) {
            for state in label.states.clone() {
                self.masses[state] = times::<S, L>(*mass, self.beliefs[state]);
            }
        }
        for entry in (1..layout.terms.len()).rev() {
            let mass = self.term_masses[entry];
            let state = &mut self.masses[layout.terms.items[entry] as usize];
            *state = plus::<S, L>(*state, mass);
            let parent = &mut self.term_masses[layout.terms.parents[entry] as usize];
            *parent = plus::<S, L>(*parent, mass);
        }
    }
}

impl<const L: usize> Workspace<SumProduct, L> {
    /// Divides the masses of each label by their sum. Returns for each row the smallest mass before the division, of the
    /// states that are possible and have a positive belief.
    pub(super) fn normalize(&mut self, layout: &Layout) -> [f64; L] {
        wide!(self.normalize_in(layout))
    }

    #[inline(always)]
    fn normalize_in(&mut self, layout: &Layout) -> [f64; L] {
        let mut smallest = [f64::INFINITY; L];
        for label in &layout.labels {
            let mut total = [0.0; L];
            for state in label.states.clone() {
                let (mass, belief) = (self.masses[state], self.beliefs[state]);
                total = plus::<SumProduct, L>(total, mass);
                if layout.is_possible[state] {
                    for lane in 0..L {
                        let counted = if belief[lane] > 0.0 { mass[lane] } else { f64::INFINITY };
                        smallest[lane] = if counted < smallest[lane] { counted } else { smallest[lane] };
                    }
                }
            }
            for state in label.states.clone() {
                for lane in 0..L {
                    let mass = self.masses[state][lane];
                    self.masses[state][lane] = if total[lane] > 0.0 { mass / total[lane] } else { mass };
                }
            }
        }
        smallest
    }
}

#[inline(always)]
fn times<S: Semiring, const L: usize>(a: [f64; L], b: [f64; L]) -> [f64; L] {
    let mut product = a;
    for lane in 0..L {
        product[lane] = S::mul(a[lane], b[lane]);
    }
    product
}

#[inline(always)]
fn scaled<S: Semiring, const L: usize>(a: f64, b: [f64; L]) -> [f64; L] {
    let mut product = b;
    for lane in 0..L {
        product[lane] = S::mul(a, b[lane]);
    }
    product
}

#[inline(always)]
fn plus<S: Semiring, const L: usize>(a: [f64; L], b: [f64; L]) -> [f64; L] {
    let mut sum = a;
    for lane in 0..L {
        sum[lane] = S::add(a[lane], b[lane]);
    }
    sum
}
