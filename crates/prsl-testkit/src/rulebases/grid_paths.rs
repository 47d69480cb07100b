//! Paths between opposite corners of a grid.

use super::chain::{Layer, Step};
use super::{RuleBase, Rules, Softness, Structure, count, weight};

/// A path between opposite corners of a grid of `width` × `height` points, and possibly cycles beside it. The labels
/// are the edges of the grid.
///
/// One rule for each point says that it is on one edge if it is one of the corners, and on none or two otherwise.
pub fn grid_paths(width: usize, height: usize, softness: Softness, seed: u64) -> RuleBase {
    let mut rules = Rules::new(width * height, softness, seed);
    let across = |row: usize, column: usize| format!("h{row}_{column}");
    let down = |row: usize, column: usize| format!("v{row}_{column}");
    let is_end =
        |row: usize, column: usize| (row, column) == (0, 0) || (row + 1, column + 1) == (height, width);
    let mut points = Vec::new();
    let mut names = Vec::new();
    for row in 0..height {
        names.extend((0..width - 1).map(|column| across(row, column)));
        if row + 1 < height {
            names.extend((0..width).map(|column| down(row, column)));
        }
        for column in 0..width {
            let mut edges = Vec::new();
            edges.extend((row > 0).then(|| down(row - 1, column)));
            edges.extend((column > 0).then(|| across(row, column - 1)));
            edges.extend((column + 1 < width).then(|| across(row, column)));
            edges.extend((row + 1 < height).then(|| down(row, column)));
            let of = |bound: &str| count(bound, edges.iter().cloned());
            let formula = match is_end(row, column) {
                true => of("exactly 1"),
                false => format!("{} | {}", of("exactly 0"), of("exactly 2")),
            };
            points.push(rules.push(&formula));
        }
    }
    // The state of a layer is the set of edges that lead down from a row.
    let mut n_labels = 0;
    let layer = |row: usize| {
        let (n_across, n_down) = (width - 1, if row + 1 < height { width } else { 0 });
        let mut steps = Vec::new();
        for from in 0..if row == 0 { 1 } else { 1usize << width } {
            for yes in 0..1u64 << (n_across + n_down) {
                let (across, to) = ((yes & ((1 << n_across) - 1)) << 1, (yes >> n_across) as usize);
                let degree = |column: usize| {
                    (from >> column & 1) + (to >> column & 1) + (across >> column & 3).count_ones() as usize
                };
                let holds = |column: usize| match is_end(row, column) {
                    true => degree(column) == 1,
                    false => degree(column) == 0 || degree(column) == 2,
                };
                let weights = (0..width).map(|column| weight(points[row * width + column], holds(column)));
                steps.push(Step { from, to, yes, weight: weights.product() });
            }
        }
        n_labels += n_across + n_down;
        Layer::new((n_labels - n_across - n_down..n_labels).collect(), steps)
    };
    let layers = (0..height).map(layer).collect();
    RuleBase { text: rules.text(names), structure: Some(Structure::Chain(layers)) }
}
