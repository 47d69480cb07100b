//! What a rule answers its labels: the messages of one factor, in the form that is cheapest for it.
//!
//! A factor receives from each of its labels what everything else makes of it (its *cavity*), and sends to each
//! label the ⊕ over the other labels of the rule's weight times their cavities. Slots lie label after label, in
//! the order of the factor's scope; every slot is a lane.
//!
//! Hot loops index whole slices by a range of slots instead of zipping parts of them: otherwise the compiler vectorizes
//! across slots and gathers, where it should across the lane.

use std::ops::Range;

use super::frontier::Frontier;
use super::merge::Weight;
use crate::infer::diagram::Diagram;
use crate::infer::semiring::Semiring;

/// One value for each of `L` rows.
pub(super) type Lane<const L: usize> = [f64; L];

/// Positive numbers stay above this, so that the product of two of them does not underflow.
pub(super) const LEAST: f64 = 1e-145;

/// How a factor's messages are computed.
#[derive(Clone, Debug)]
pub(super) enum Form {
    RankOne(RankOne),
    Table(Table),
    Chain(Chain),
    Frontier(Frontier),
}

impl Form {
    /// The same with its numbers as elements of a semiring.
    pub(super) fn elements<S: Semiring>(&self) -> Self {
        match self {
            Form::RankOne(form) => Form::RankOne(RankOne {
                sizes: form.sizes.clone(),
                q: form.q.iter().map(|pair| pair.map(S::element)).collect(),
                weights: form.weights.map(S::element),
                smallest: form.smallest,
            }),
            Form::Table(form) => Form::Table(Table {
                entries: if S::SCALED { form.entries.clone() } else { form.logs.clone() },
                logs: Vec::new(),
                ..form.clone()
            }),
            Form::Chain(form) => Form::Chain(Chain {
                ends: form.ends.iter().map(|&weight| S::element(weight)).collect(),
                ..form.clone()
            }),
            // It computes with plain numbers in every semiring.
            Form::Frontier(form) => Form::Frontier(form.clone()),
        }
    }

    /// Whether plain numbers hold what it weighs by, with room for products with messages.
    pub(super) fn is_plain(&self) -> bool {
        let is_plain = |number: f64| number == 0.0 || number >= LEAST;
        match self {
            Form::RankOne(form) => form.weights.into_iter().chain(form.q.iter().map(|q| q[0])).all(is_plain),
            Form::Table(form) => form
                .entries
                .iter()
                .zip(&form.logs)
                .all(|(&number, &log)| number >= LEAST || log == f64::NEG_INFINITY),
            Form::Chain(form) => form.ends.iter().copied().all(is_plain),
            Form::Frontier(form) => form.weights.into_iter().chain(form.q.iter().copied()).all(is_plain),
        }
    }

    /// A number below [`LEAST`] if a product on the way to the messages may have underflowed, given the smallest positive
    /// cavity of each label. Asked after [`Self::send`], with its scratch memory.
    pub(super) fn least<const L: usize>(&self, cavities: &[Lane<L>], scratch: &[Lane<L>]) -> Lane<L> {
        match self {
            Form::RankOne(form) => form.least(cavities),
            Form::Table(form) => cavities
                .iter()
                .fold([form.smallest; L], |product, cavity| std::array::from_fn(|l| product[l] * cavity[l])),
            Form::Chain(form) => form.least(cavities, scratch),
            // It does not underflow.
            Form::Frontier(_) => [f64::INFINITY; L],
        }
    }

    /// How many lanes of scratch memory [`Self::send`] needs.
    pub(super) fn n_scratch(&self) -> usize {
        match self {
            Form::RankOne(form) => 4 * form.sizes.len(),
            Form::Table(form) => form.n_scratch(),
            Form::Chain(form) => 2 * (form.levels.iter().map(|level| level.n_states).sum::<usize>() + 2),
            Form::Frontier(_) => 0,
        }
    }

    /// The messages to all labels, given the cavities of all labels. They are not normalized.
    pub(super) fn send<S: Semiring, const L: usize>(
        &self,
        incoming: &[Lane<L>],
        outgoing: &mut [Lane<L>],
        scratch: &mut [Lane<L>],
    ) {
        match self {
            Form::RankOne(form) => form.send::<S, L>(incoming, outgoing, scratch),
            Form::Table(form) => form.send::<S, L>(incoming, outgoing, scratch),
            Form::Chain(form) => form.send::<S, L>(incoming, outgoing, scratch),
            Form::Frontier(form) => form.send::<S, L>(incoming, outgoing),
        }
    }
}

/// A noisy-or or a clause: messages linear in the number of labels, all terms non-negative.
///
/// # Derivation
///
/// The rule weighs by w(silent) if no label fires and by w(fired) if one does. A label i with cavity c stays silent
/// or fires with
///
/// ```text
/// sᵢ = Σ q(m) c(m)          fᵢ = Σ (1 − q(m)) c(m)                                  (1)
/// ```
///
/// and two groups of labels together are silent if both are, fired if either is:
///
/// ```text
/// (s₁, f₁) ∨ (s₂, f₂) = (s₁ s₂, f₁ (s₂ + f₂) + s₁ f₂)                               (2)
/// ```
///
/// With (S, F) the ∨ of all other labels, the label's own state m is silent with q and fires with 1 − q, so
///
/// ```text
/// message(m) = w(silent) S q + w(fired) (F q + (F + S) (1 − q))
///          A = w(silent) S + w(fired) F          B = w(fired) (S + F)               (3)
/// message(m) = q A + (1 − q) B                                                      (4)
/// ```
///
/// Domain: 0 ≤ q ≤ 1 under a sum. Under a maximum q must be 0 or 1: then each state is silent or fires, and the pair
/// holds the best weights of either kind. Checked in `trees_are_exact`.
#[derive(Clone, Debug)]
pub(super) struct RankOne {
    /// How many states each label has.
    pub(super) sizes: Vec<usize>,
    /// q and 1 − q of each slot.
    pub(super) q: Vec<[f64; 2]>,
    /// When silent and when fired.
    pub(super) weights: [f64; 2],
    /// The smallest positive q or 1 − q.
    smallest: f64,
}

impl RankOne {
    /// The form of a rule with q of each slot.
    pub(super) fn new(sizes: Vec<usize>, q: Vec<f64>, weights: [f64; 2]) -> Self {
        let q: Vec<[f64; 2]> = q.into_iter().map(|q| [q, 1.0 - q]).collect();
        let smallest = q.iter().flatten().copied().filter(|&q| q > 0.0).fold(1.0, f64::min);
        Self { sizes, q, weights, smallest }
    }

    /// That something fires is a sum, as large as its largest term. That nothing fires is a product, but where that is what
    /// counts all messages are as small as it is, and the factor's total shows it. So it takes one small cavity to underflow.
    fn least<const L: usize>(&self, cavities: &[Lane<L>]) -> Lane<L> {
        /// What is left of [`LEAST`] for the totals of the other labels.
        const TOTALS: f64 = 1e-85;
        cavities.iter().fold([f64::INFINITY; L], |least, cavity| {
            std::array::from_fn(|l| least[l].min(cavity[l] * (self.smallest * TOTALS)))
        })
    }

    fn send<S: Semiring, const L: usize>(
        &self,
        incoming: &[Lane<L>],
        outgoing: &mut [Lane<L>],
        scratch: &mut [Lane<L>],
    ) {
        let n = self.sizes.len();
        let (own, before) = scratch.as_chunks_mut::<2>().0.split_at_mut(n);
        let mut first = 0;
        for label in 0..n {
            let slots = first..first + self.sizes[label];
            first = slots.end;
            own[label] = self.outcome::<S, L>(incoming, slots); // (1)
            before[label] = match label {
                0 => [[S::ONE; L], [S::ZERO; L]],
                1 => own[0],
                _ => or::<S, L>(&before[label - 1], &own[label - 1]), // (2)
            };
        }
        for label in (0..n).rev() {
            let slots = first - self.sizes[label]..first;
            first = slots.start;
            // From here on `own` is the or of a label and all behind it, and `before` that of all others. Nobody is
            // before the first label and nobody behind the last: short rules are most rules.
            if label + 1 < n {
                before[label] = match label {
                    0 => own[1],
                    _ => or::<S, L>(&before[label], &own[label + 1]),
                };
                own[label] = or::<S, L>(&own[label], &own[label + 1]);
            }
            before[label] = self.weigh::<S, L>(&before[label]); // (3)
            self.answer::<S, L>(&before[label], outgoing, slots); // (4)
        }
    }

    /// How likely a label is to stay silent and to fire.
    #[inline(always)]
    fn outcome<S: Semiring, const L: usize>(&self, cavity: &[Lane<L>], slots: Range<usize>) -> [Lane<L>; 2] {
        let [mut silent, mut fired] = [[S::ZERO; L]; 2];
        for slot in slots {
            let ([q, not_q], c) = (self.q[slot], &cavity[slot]);
            for l in 0..L {
                silent[l] = S::add(silent[l], S::mul(q, c[l]));
                fired[l] = S::add(fired[l], S::mul(not_q, c[l]));
            }
        }
        [silent, fired]
    }

    /// A and B.
    #[inline(always)]
    fn weigh<S: Semiring, const L: usize>(&self, [silent, fired]: &[Lane<L>; 2]) -> [Lane<L>; 2] {
        let [w_silent, w_fired] = self.weights;
        let [mut a, mut b] = [[S::ZERO; L]; 2];
        for l in 0..L {
            a[l] = S::add(S::mul(w_silent, silent[l]), S::mul(w_fired, fired[l]));
            b[l] = S::mul(w_fired, S::add(silent[l], fired[l]));
        }
        [a, b]
    }

    #[inline(always)]
    fn answer<S: Semiring, const L: usize>(
        &self,
        [a, b]: &[Lane<L>; 2],
        message: &mut [Lane<L>],
        slots: Range<usize>,
    ) {
        for slot in slots {
            let ([q, not_q], message) = (self.q[slot], &mut message[slot]);
            for l in 0..L {
                message[l] = S::add(S::mul(q, a[l]), S::mul(not_q, b[l]));
            }
        }
    }
}

/// The smallest positive number of each lane, infinite if there is none.
#[inline(always)]
pub(super) fn smallest<const L: usize>(lanes: &[Lane<L>]) -> Lane<L> {
    let mut smallest = [f64::INFINITY; L];
    for lane in lanes {
        for l in 0..L {
            let number = if lane[l] > 0.0 { lane[l] } else { f64::INFINITY };
            smallest[l] = if number < smallest[l] { number } else { smallest[l] };
        }
    }
    smallest
}

#[inline(always)]
fn or<S: Semiring, const L: usize>([s1, f1]: &[Lane<L>; 2], [s2, f2]: &[Lane<L>; 2]) -> [Lane<L>; 2] {
    let [mut silent, mut fired] = [[S::ZERO; L]; 2];
    for l in 0..L {
        silent[l] = S::mul(s1[l], s2[l]);
        fired[l] = S::add(S::mul(f1[l], S::add(s2[l], f2[l])), S::mul(s1[l], f2[l]));
    }
    [silent, fired]
}

/// Any weights over few labels.
///
/// # Derivation
///
/// With T(x₁ … x_d) the table and cᵢ the cavities, contract the labels from the last to the first,
///
/// ```text
/// T_d = T          Tᵢ₋₁(x₁ … xᵢ₋₁) = Σ_{xᵢ} Tᵢ(x₁ … xᵢ) cᵢ(xᵢ)                      (1)
/// ```
///
/// and multiply them up from the first to the last, P₀ = 1, Pᵢ(x₁ … xᵢ) = Pᵢ₋₁(x₁ … xᵢ₋₁) cᵢ(xᵢ)   (2). Then
///
/// ```text
/// message to i = Σ_{x₁ … xᵢ₋₁} Pᵢ₋₁(x₁ … xᵢ₋₁) Tᵢ(x₁ … xᵢ)                          (3)
/// ```
///
/// a few operations for each entry of the table, and no division. States of a label that the table does not tell
/// apart are one class, and only classes are summed over.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// How many classes each label has.
    sizes: Vec<usize>,
    /// The class of each slot, counted through all labels.
    classes: Vec<usize>,
    /// Over classes, the last label fastest.
    entries: Vec<f64>,
    /// Their logarithms, until the entries are elements of a semiring.
    logs: Vec<f64>,
    /// The smallest positive entry.
    smallest: f64,
}

impl Table {
    /// The table of these entries over the labels' states, the last label fastest.
    pub(super) fn new(sizes: &[usize], weights: &[Weight]) -> Self {
        let entries: Vec<f64> = weights.iter().map(|weight| weight.number).collect();
        let logs = weights.iter().map(|weight| weight.log).collect();
        let smallest = entries.iter().copied().filter(|&entry| entry > 0.0).fold(1.0, f64::min);
        let mut table = Self { sizes: sizes.to_vec(), classes: Vec::new(), entries, logs, smallest };
        let mut first = 0;
        for label in 0..sizes.len() {
            let classes = table.merge(label);
            table.classes.extend(classes.iter().map(|class| first + class));
            first += table.sizes[label];
        }
        table
    }

    /// Merges the states of a label whose slices of the table are the same; the class of each state.
    fn merge(&mut self, label: usize) -> Vec<usize> {
        let (n, stride) = (self.sizes[label], self.sizes[label + 1..].iter().product::<usize>());
        let slice = |state: usize| {
            let logs = &self.logs;
            logs.chunks(n * stride).flat_map(move |c| &c[state * stride..(state + 1) * stride])
        };
        let mut distinct: Vec<usize> = Vec::new();
        let mut classes = Vec::with_capacity(n);
        for state in 0..n {
            let class = distinct.iter().position(|&other| slice(other).eq(slice(state)));
            classes.push(class.unwrap_or(distinct.len()));
            if class.is_none() {
                distinct.push(state);
            }
        }
        let kept = |chunk: &[f64]| -> Vec<f64> {
            distinct.iter().flat_map(|state| chunk[state * stride..(state + 1) * stride].to_vec()).collect()
        };
        self.entries = self.entries.chunks(n * stride).flat_map(kept).collect();
        self.logs = self.logs.chunks(n * stride).flat_map(kept).collect();
        self.sizes[label] = distinct.len();
        classes
    }

    /// How many entries it has.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    fn n_scratch(&self) -> usize {
        let mut partial = 0;
        let mut size = 1;
        for &n in &self.sizes {
            partial += size;
            size *= n;
        }
        2 * self.sizes.iter().sum::<usize>() + 2 * partial
    }

    fn send<S: Semiring, const L: usize>(
        &self,
        incoming: &[Lane<L>],
        outgoing: &mut [Lane<L>],
        scratch: &mut [Lane<L>],
    ) {
        let n_classes = self.sizes.iter().sum::<usize>();
        let (cavities, scratch) = scratch.split_at_mut(n_classes);
        let (messages, scratch) = scratch.split_at_mut(n_classes);
        cavities.fill([S::ZERO; L]);
        for (&class, cavity) in self.classes.iter().zip(incoming) {
            for l in 0..L {
                cavities[class][l] = S::add(cavities[class][l], cavity[l]);
            }
        }
        self.send_to_classes::<S, L>(cavities, messages, scratch);
        for (&class, slot) in self.classes.iter().zip(outgoing) {
            *slot = messages[class];
        }
    }

    fn send_to_classes<S: Semiring, const L: usize>(
        &self,
        cavities: &[Lane<L>],
        messages: &mut [Lane<L>],
        scratch: &mut [Lane<L>],
    ) {
        // T₀ … T_d₋₁ one after the other, then P₀ … P_d₋₁, each pair of the same size.
        let (contracted, products) = scratch.split_at_mut(self.n_scratch() / 2 - cavities.len());
        let last = self.sizes.len() - 1;
        let (mut size, mut start, mut first) = (self.entries.len(), contracted.len(), cavities.len());
        for label in (0..=last).rev() {
            let n = self.sizes[label];
            size /= n;
            first -= n;
            let (below, above) = contracted.split_at_mut(start);
            let (out, cavity) = (&mut below[start - size..], &cavities[first..first + n]);
            if label == last {
                contract::<S, L, _>(&self.entries, |entry| [*entry; L], cavity, out); // (1)
            } else {
                contract::<S, L, _>(&above[..size * n], |lane| *lane, cavity, out); // (1)
            }
            start -= size;
        }
        products[0] = [S::ONE; L];
        let (mut size, mut start, mut first) = (1, 0, 0);
        for label in 0..=last {
            let n = self.sizes[label];
            let (below, above) = products.split_at_mut(start + size);
            let out = &mut messages[first..first + n];
            if label == last {
                gather::<S, L, _>(&below[start..], &self.entries, |entry| [*entry; L], out); // (3)
                return;
            }
            let table = &contracted[start + size..start + size + size * n];
            gather::<S, L, _>(&below[start..], table, |lane| *lane, out); // (3)
            multiply::<S, L>(&below[start..], &cavities[first..first + n], &mut above[..size * n]); // (2)
            start += size;
            size *= n;
            first += n;
        }
    }
}

/// out[x] = Σ_m table[x, m] cavity[m]
#[inline(always)]
fn contract<S: Semiring, const L: usize, T>(
    table: &[T],
    lane: impl Fn(&T) -> Lane<L>,
    cavity: &[Lane<L>],
    out: &mut [Lane<L>],
) {
    for (slot, row) in out.iter_mut().zip(table.chunks_exact(cavity.len())) {
        let mut sum = [S::ZERO; L];
        for (entry, c) in row.iter().zip(cavity) {
            let entry = lane(entry);
            for l in 0..L {
                sum[l] = S::add(sum[l], S::mul(entry[l], c[l]));
            }
        }
        *slot = sum;
    }
}

/// message[m] = Σ_x product[x] table[x, m]
#[inline(always)]
fn gather<S: Semiring, const L: usize, T>(
    products: &[Lane<L>],
    table: &[T],
    lane: impl Fn(&T) -> Lane<L>,
    message: &mut [Lane<L>],
) {
    message.fill([S::ZERO; L]);
    for (product, row) in products.iter().zip(table.chunks_exact(message.len())) {
        for (entry, slot) in row.iter().zip(message.iter_mut()) {
            let entry = lane(entry);
            for l in 0..L {
                slot[l] = S::add(slot[l], S::mul(product[l], entry[l]));
            }
        }
    }
}

/// out[x, m] = product[x] cavity[m]
#[inline(always)]
fn multiply<S: Semiring, const L: usize>(products: &[Lane<L>], cavity: &[Lane<L>], out: &mut [Lane<L>]) {
    for (product, row) in products.iter().zip(out.chunks_exact_mut(cavity.len())) {
        for (slot, c) in row.iter_mut().zip(cavity) {
            for l in 0..L {
                slot[l] = S::mul(product[l], c[l]);
            }
        }
    }
}

/// A logical rule along its decision diagram.
///
/// Forward, α(state) is the ⊕ over the ways to reach a state of the products of their cavities; backward, β(state) that
/// of the ways from it to an end, times the end's weight. A label's state m then gets
///
/// ```text
/// message(m) = Σ_state α(state) β(next(state, m))
/// ```
///
/// linear in the size of the diagram, for sums and maxima alike.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    levels: Vec<Level>,
    /// The rule's weight in each state behind the last level.
    ends: Vec<f64>,
}

#[derive(Clone, Debug)]
struct Level {
    n_states: usize,
    n_choices: usize,
    next: Vec<u32>,
}

impl Chain {
    pub(super) fn new(diagram: &Diagram, [silent, fired]: [f64; 2]) -> Self {
        let level = |level: &crate::infer::diagram::Level| Level {
            n_states: level.n_states,
            n_choices: level.n_choices,
            next: level.next.iter().map(|&state| state as u32).collect(),
        };
        let ends = diagram.accepts.iter().map(|&accepts| if accepts { fired } else { silent }).collect();
        Self { levels: diagram.levels.iter().map(level).collect(), ends }
    }

    /// Each α and β is a sum of products of one before it and a cavity.
    fn least<const L: usize>(&self, cavities: &[Lane<L>], scratch: &[Lane<L>]) -> Lane<L> {
        let n = self.levels.iter().map(|level| level.n_states).sum::<usize>() + self.ends.len();
        let (alpha, beta) = scratch.split_at(scratch.len() / 2);
        let [alpha, beta] = [alpha, beta].map(|sums| smallest(&sums[..n]));
        let mut least: Lane<L> = std::array::from_fn(|l| alpha[l].min(beta[l]));
        for cavity in cavities {
            (0..L).for_each(|l| least[l] = least[l].min(cavity[l]));
        }
        least.map(|least| least * least)
    }

    /// How many steps lead from state to state.
    pub(super) fn len(&self) -> usize {
        self.levels.iter().map(|level| level.next.len()).sum()
    }

    fn send<S: Semiring, const L: usize>(
        &self,
        incoming: &[Lane<L>],
        outgoing: &mut [Lane<L>],
        scratch: &mut [Lane<L>],
    ) {
        let (alpha, beta) = scratch.split_at_mut(scratch.len() / 2);
        alpha[0] = [S::ONE; L];
        let (mut start, mut first) = (0, 0);
        for (index, level) in self.levels.iter().enumerate() {
            let n_after = self.levels.get(index + 1).map_or(self.ends.len(), |level| level.n_states);
            let (before, after) = alpha.split_at_mut(start + level.n_states);
            let cavity = &incoming[first..first + level.n_choices];
            level.forward::<S, L>(&before[start..], cavity, &mut after[..n_after]);
            start += level.n_states;
            first += level.n_choices;
        }
        let ends = &mut beta[start..start + self.ends.len()];
        for (slot, &weight) in ends.iter_mut().zip(&self.ends) {
            *slot = [weight; L];
        }
        for level in self.levels.iter().rev() {
            let (before, after) = beta.split_at_mut(start);
            start -= level.n_states;
            first -= level.n_choices;
            let slots = first..first + level.n_choices;
            level.answer::<S, L>(&alpha[start..], after, &mut outgoing[slots.clone()]);
            level.backward::<S, L>(after, &incoming[slots], &mut before[start..]);
        }
    }
}

impl Level {
    fn steps(&self) -> impl Iterator<Item = (usize, &[u32])> {
        self.next.chunks_exact(self.n_choices).enumerate()
    }

    fn forward<S: Semiring, const L: usize>(
        &self,
        alpha: &[Lane<L>],
        cavity: &[Lane<L>],
        after: &mut [Lane<L>],
    ) {
        after.fill([S::ZERO; L]);
        for (state, next) in self.steps() {
            for (&next, c) in next.iter().zip(cavity) {
                let slot = &mut after[next as usize];
                for l in 0..L {
                    slot[l] = S::add(slot[l], S::mul(alpha[state][l], c[l]));
                }
            }
        }
    }

    fn backward<S: Semiring, const L: usize>(
        &self,
        after: &[Lane<L>],
        cavity: &[Lane<L>],
        beta: &mut [Lane<L>],
    ) {
        for (state, next) in self.steps() {
            let mut sum = [S::ZERO; L];
            for (&next, c) in next.iter().zip(cavity) {
                for l in 0..L {
                    sum[l] = S::add(sum[l], S::mul(after[next as usize][l], c[l]));
                }
            }
            beta[state] = sum;
        }
    }

    fn answer<S: Semiring, const L: usize>(
        &self,
        alpha: &[Lane<L>],
        after: &[Lane<L>],
        message: &mut [Lane<L>],
    ) {
        message.fill([S::ZERO; L]);
        for (state, next) in self.steps() {
            for (&next, slot) in next.iter().zip(message.iter_mut()) {
                for l in 0..L {
                    slot[l] = S::add(slot[l], S::mul(alpha[state][l], after[next as usize][l]));
                }
            }
        }
    }
}
