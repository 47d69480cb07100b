//! The prices of rules: their description length.

use super::feature::{Feature, Literal};

/// Maximum number of literals of a clause.
pub(crate) const MAX_LITERALS: usize = 4;
/// Largest number in a count rule.
pub(crate) const MAX_COUNT: usize = 3;

/// The prices of rules by shape: the logarithm of the number of candidates of that shape.
#[derive(Clone, Debug)]
pub(crate) struct Prices {
    /// ln of the number of clauses with 0, 1, 2, ... literals of single categories or their negations.
    pub(crate) clauses: Vec<f64>,
    /// The same for clauses with sets of categories.
    unions: Vec<f64>,
    counts: f64,
    /// ½ ln of the number of rows: the price of an inhibition probability.
    number: f64,
    sizes: Vec<usize>,
}

impl Prices {
    /// Prices for labels of these sizes. Unary rules are only about the labels in `unary`. Numbers cost ½ ln of the total
    /// weight of the rows.
    pub(crate) fn new(sizes: &[usize], unary: &[usize], total: f64) -> Self {
        let singles = |&size: &usize| if size == 2 { 2.0 } else { 2.0 * size as f64 };
        let sets = |&size: &usize| (size as f64).exp2() - 2.0;
        let mut clauses = log_symmetric(sizes.iter().map(singles));
        let mut unions = log_symmetric(sizes.iter().map(sets));
        let log_sum = |count: &dyn Fn(&usize) -> f64| {
            unary.iter().map(|&label| count(&sizes[label])).sum::<f64>().max(1.0).ln()
        };
        (clauses[1], unions[1]) = (log_sum(&singles), log_sum(&sets));
        let counts = (2.0 * MAX_COUNT as f64).ln();
        Self { clauses, unions, counts, number: 0.5 * total.max(1.0).ln(), sizes: sizes.to_vec() }
    }

    /// The price of an inhibition probability at parsimony 1.
    pub(crate) fn number(&self) -> f64 {
        self.number
    }

    pub(crate) fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The price of a rule at parsimony 1.
    pub(crate) fn of(&self, feature: &Feature) -> f64 {
        match feature {
            Feature::Conjunction(literals) => {
                let is_single = |literal: &Literal| {
                    literal.categories.len() == 1 || literal.categories.len() + 1 == self.sizes[literal.label]
                };
                match literals.iter().all(is_single) {
                    true => self.clauses[literals.len()],
                    false => self.unions[literals.len()],
                }
            }
            Feature::Fewer(_) | Feature::More(_) => self.counts,
        }
    }
}

/// ln of the elementary symmetric polynomials of degree 0 to [`MAX_LITERALS`].
fn log_symmetric(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sums = [0.0; MAX_LITERALS + 1];
    sums[0] = 1.0;
    for number in numbers {
        for degree in (1..=MAX_LITERALS).rev() {
            sums[degree] += number * sums[degree - 1];
        }
    }
    sums.map(|sum| f64::ln(sum.max(1.0))).to_vec()
}
