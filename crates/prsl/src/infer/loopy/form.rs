//! Messages from one factor to its labels, in the cheapest form for the factor.
//!
//! A factor receives a cavity message from each of its labels. It sends to each label the ⊕ over the other labels of
//! the rule's weight times their cavity messages. Slots are ordered by label, as in the factor's scope. Every slot is
//! a lane.
//!
//! Hot loops index whole slices by a range of slots instead of zipping parts of them. With zipped parts, the compiler
//! vectorizes across slots with gather instructions instead of across the lane.

mod chain;
mod table;

use std::ops::Range;

pub(super) use chain::Chain;
pub(super) use table::Table;

use super::frontier::Frontier;
use crate::infer::semiring::Semiring;

/// One value for each of `L` rows.
pub(super) type Lane<const L: usize> = [f64; L];

/// Lower limit of positive values: the product of two such values does not underflow.
pub(super) const MIN_POSITIVE: f64 = 1e-145;

/// The form in which a factor's messages are computed.
#[derive(Clone, Debug)]
pub(super) enum Form {
    RankOne(RankOne),
    Table(Table),
    Chain(Chain),
    Frontier(Frontier),
}

impl Form {
    /// Converts the numbers of the form to elements of a semiring.
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
            // A frontier computes with plain numbers in every semiring.
            Form::Frontier(form) => Form::Frontier(form.clone()),
        }
    }

    /// Whether all positive weights are at least [`MIN_POSITIVE`], so that products with messages do not underflow.
    pub(super) fn is_plain(&self) -> bool {
        let is_plain = |number: f64| number == 0.0 || number >= MIN_POSITIVE;
        match self {
            Form::RankOne(form) => form.weights.into_iter().chain(form.q.iter().map(|q| q[0])).all(is_plain),
            Form::Table(form) => form
                .entries
                .iter()
                .zip(&form.logs)
                .all(|(&number, &log)| number >= MIN_POSITIVE || log == f64::NEG_INFINITY),
            Form::Chain(form) => form.ends.iter().copied().all(is_plain),
            Form::Frontier(form) => form.weights.into_iter().chain(form.q.iter().copied()).all(is_plain),
        }
    }

    /// Returns a value below [`MIN_POSITIVE`] if a product in [`Self::send`] may have underflowed. `cavities` has the
    /// smallest positive cavity message of each label, and `scratch` the contents that [`Self::send`] left.
    #[inline(always)]
    pub(super) fn smallest_product<const L: usize>(
        &self,
        cavities: &[Lane<L>],
        scratch: &[Lane<L>],
    ) -> Lane<L> {
        match self {
            Form::RankOne(form) => form.smallest_product(cavities),
            Form::Table(form) => {
                let mut product = [form.smallest; L];
                for cavity in cavities {
                    for l in 0..L {
                        product[l] *= cavity[l];
                    }
                }
                product
            }
            Form::Chain(form) => form.smallest_product(cavities, scratch),
            // A frontier scales its points, so it does not underflow.
            Form::Frontier(_) => [f64::INFINITY; L],
        }
    }

    /// Number of values that the form stores, about 8 bytes each.
    pub(super) fn n_values(&self) -> usize {
        match self {
            Form::RankOne(form) => 2 * form.q.len(),
            Form::Table(form) => form.n_values(),
            Form::Chain(form) => form.n_values(),
            Form::Frontier(form) => form.q.len(),
        }
    }

    /// Number of lanes of scratch memory that [`Self::send`] needs.
    #[inline(always)]
    pub(super) fn n_scratch(&self) -> usize {
        match self {
            Form::RankOne(form) => 4 * form.sizes.len(),
            Form::Table(form) => form.n_scratch(),
            Form::Chain(form) => 2 * (form.levels.iter().map(|level| level.n_states).sum::<usize>() + 2),
            Form::Frontier(_) => 0,
        }
    }

    /// Computes the unnormalized messages to all labels from their cavity messages.
    #[inline(always)]
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

/// A noisy-or or a clause. Its messages take linear time in the number of labels, and all terms are non-negative.
///
/// # Derivation
///
/// The rule has weight w(silent) if no label fires, and w(fired) otherwise. A label i with cavity message c is silent
/// or fires with the weights
///
/// ```text
/// sᵢ = Σ q(m) c(m)          fᵢ = Σ (1 − q(m)) c(m)                                  (1)
/// ```
///
/// Two groups of labels together are silent if both are silent, and fire if either fires:
///
/// ```text
/// (s₁, f₁) ∨ (s₂, f₂) = (s₁ s₂, f₁ (s₂ + f₂) + s₁ f₂)                               (2)
/// ```
///
/// Let (S, F) be the ∨ of all other labels. State m of the label is silent with q = q(m) and fires with 1 − q, so
///
/// ```text
/// message(m) = w(silent) S q + w(fired) (F q + (F + S) (1 − q))
///          A = w(silent) S + w(fired) F          B = w(fired) (S + F)               (3)
/// message(m) = q A + (1 − q) B                                                      (4)
/// ```
///
/// Domain: 0 ≤ q ≤ 1 under a sum. Under a maximum, q must be 0 or 1. Then each state either is silent or fires, and a
/// pair holds the best weight of each case. Checked in `trees_are_exact`.
#[derive(Clone, Debug)]
pub(super) struct RankOne {
    /// Number of states of each label.
    pub(super) sizes: Vec<usize>,
    /// q and 1 − q of each slot.
    pub(super) q: Vec<[f64; 2]>,
    /// w(silent) and w(fired).
    pub(super) weights: [f64; 2],
    /// The smallest positive q or 1 − q.
    smallest: f64,
}

impl RankOne {
    /// Creates the form from the inhibition probability of each slot.
    pub(super) fn new(sizes: Vec<usize>, q: Vec<f64>, weights: [f64; 2]) -> Self {
        let q: Vec<[f64; 2]> = q.into_iter().map(|q| [q, 1.0 - q]).collect();
        let smallest = q.iter().flatten().copied().filter(|&q| q > 0.0).fold(1.0, f64::min);
        Self { sizes, q, weights, smallest }
    }

    /// See [`Form::smallest_product`]. The weight of "fired" is a sum, at least as large as its largest term. The
    /// weight of "silent" is a product over labels. If it dominates, all messages are as small as the product, and
    /// the factor's total shows it. So only a single small cavity message can underflow undetected.
    #[inline(always)]
    fn smallest_product<const L: usize>(&self, cavities: &[Lane<L>]) -> Lane<L> {
        /// Margin for the totals of the other labels.
        const TOTALS: f64 = 1e-85;
        let mut smallest = [f64::INFINITY; L];
        for cavity in cavities {
            for l in 0..L {
                smallest[l] = if cavity[l] < smallest[l] { cavity[l] } else { smallest[l] };
            }
        }
        for l in 0..L {
            smallest[l] *= self.smallest * TOTALS;
        }
        smallest
    }

    #[inline(always)]
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
            // In this loop, `own` becomes the ∨ of a label and all labels after it, and `before` that of all other
            // labels. The first and the last label skip an empty ∨, because most rules are short.
            if label + 1 < n {
                before[label] = match label {
                    0 => own[1],
                    _ => or::<S, L>(&before[label], &own[label + 1]),
                };
                own[label] = or::<S, L>(&own[label], &own[label + 1]);
            }
            before[label] = self.weigh::<S, L>(&before[label]); // (3)
            self.send_one::<S, L>(&before[label], outgoing, slots); // (4)
        }
    }

    /// The weights with which a label is silent and fires, by (1).
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

    /// A and B of (3).
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
    fn send_one<S: Semiring, const L: usize>(
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

/// The smallest positive value of each lane, or infinity if there is none.
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

/// The ∨ of (2).
#[inline(always)]
fn or<S: Semiring, const L: usize>([s1, f1]: &[Lane<L>; 2], [s2, f2]: &[Lane<L>; 2]) -> [Lane<L>; 2] {
    let [mut silent, mut fired] = [[S::ZERO; L]; 2];
    for l in 0..L {
        silent[l] = S::mul(s1[l], s2[l]);
        fired[l] = S::add(S::mul(f1[l], S::add(s2[l], f2[l])), S::mul(s1[l], f2[l]));
    }
    [silent, fired]
}
