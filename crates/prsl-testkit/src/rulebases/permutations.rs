//! Permutations: one yes in each row and each column of a square.

use super::chain::{Layer, Step};
use super::{RuleBase, Rules, Softness, Structure, count, weight};

/// A permutation: `n` × `n` labels, `exactly 1 of` each row and each column. It has answers for `n` up to 6, because they
/// take 6ⁿ steps for each row.
pub fn permutations(n: usize, softness: Softness, seed: u64) -> RuleBase {
    let mut rules = Rules::new(2 * n, softness, seed);
    let name = |row: usize, column: usize| format!("x{row}_{column}");
    let cells = || (0..n * n).map(|cell| name(cell / n, cell % n));
    let rows: Vec<f64> =
        (0..n).map(|row| rules.push(&count("exactly 1", (0..n).map(|column| name(row, column))))).collect();
    let columns: Vec<f64> =
        (0..n).map(|column| rules.push(&count("exactly 1", (0..n).map(|row| name(row, column))))).collect();
    // The state of a layer is the number of yes in each column so far, from 0 to 2 or more, as digits in base 3.
    let layer = |row: usize| {
        let mut steps = Vec::new();
        for from in 0..3usize.pow(n as u32) {
            let before: Vec<usize> = (0..n).map(|column| from / 3usize.pow(column as u32) % 3).collect();
            for yes in 0..1u64 << n {
                let after: Vec<usize> =
                    (0..n).map(|column| (before[column] + (yes >> column & 1) as usize).min(2)).collect();
                let mut weight = weight(rows[row], yes.count_ones() == 1);
                let mut to = (0..n).map(|column| after[column] * 3usize.pow(column as u32)).sum();
                if row + 1 == n {
                    weight *= (0..n).map(|it| self::weight(columns[it], after[it] == 1)).product::<f64>();
                    to = 0;
                }
                steps.push(Step { from, to, yes, weight });
            }
        }
        Layer::new((row * n..(row + 1) * n).collect(), steps)
    };
    let structure = (n <= 6).then(|| Structure::Chain((0..n).map(layer).collect()));
    RuleBase { text: rules.text(cells()), structure }
}
