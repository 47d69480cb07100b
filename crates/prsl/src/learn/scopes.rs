//! Which labels rules are learned about: small groups that hang together as a thin tree.
//!
//! Labels are taken up one by one, always the one whose residuals (truth less belief) go most with those of labels that
//! are there already: it joins up to `width` of them that share a group. So every group lies in a clique of a tree, and
//! inference stays exact at any number of labels. Labels that experts' rules tie together are there as a block.

use super::watch::Watch;

/// How much the residuals of two labels go together: row by row of the upper triangle, symmetric.
pub(crate) struct Association {
    n: usize,
    values: Vec<f64>,
}

impl Association {
    /// Sums of squared correlations between the residuals of the categories of two labels, where both are known.
    ///
    /// `residual(row, category)` is `None` where the label's truth is not known; `blocks` are the labels' categories.
    /// `None` if the watch says to stop.
    pub(crate) fn new(
        n_rows: usize,
        blocks: &[std::ops::Range<usize>],
        residual: impl Fn(usize, usize) -> Option<f64>,
        watch: &mut Watch,
    ) -> Option<Self> {
        let n = blocks.len();
        let n_categories = blocks.last().map_or(0, |block| block.end);
        let columns: Vec<Vec<Option<f64>>> = (0..n_categories)
            .map(|category| (0..n_rows).map(|row| residual(row, category)).collect())
            .collect();
        let mut association = Self { n, values: vec![0.0; n * n] };
        for a in 0..n {
            for b in 0..a {
                let pairs = blocks[a].clone().flat_map(|x| blocks[b].clone().map(move |y| (x, y)));
                let value: f64 = pairs.map(|(x, y)| correlation(&columns[x], &columns[y]).powi(2)).sum();
                association.values[a * n + b] = value;
                association.values[b * n + a] = value;
                if !watch.goes_on(n_rows * blocks[a].len() * blocks[b].len()) {
                    return None;
                }
            }
        }
        Some(association)
    }

    pub(crate) fn of(&self, a: usize, b: usize) -> f64 {
        self.values[a * self.n + b]
    }
}

/// Σ ab / √(Σ a² Σ b²) over the rows where both are known, 0 if that is nothing.
fn correlation(a: &[Option<f64>], b: &[Option<f64>]) -> f64 {
    let (mut products, mut squares) = (0.0, [0.0; 2]);
    for (a, b) in a.iter().zip(b) {
        if let (Some(a), Some(b)) = (a, b) {
            products += a * b;
            squares[0] += a * a;
            squares[1] += b * b;
        }
    }
    let scale = (squares[0] * squares[1]).sqrt();
    if scale > 0.0 { products / scale } else { 0.0 }
}

/// Groups of up to `width + 1` labels for rules to be learned about; `blocks` are groups that have to stay together,
/// as the cliques of a tree have them (each block a connected part, its cliques listed). `None` if the watch says to stop.
pub(crate) fn thin_tree(
    association: &Association,
    width: usize,
    blocks: &[Vec<Vec<usize>>],
    watch: &mut Watch,
) -> Option<Vec<Vec<usize>>> {
    let n = association.n;
    if width == 0 {
        return Some((0..n).map(|label| vec![label]).collect());
    }
    let mut in_block = vec![false; n];
    blocks.iter().flatten().flatten().for_each(|&label| in_block[label] = true);
    let mut waiting: Vec<Vec<Vec<usize>>> = blocks.to_vec();
    waiting.extend((0..n).filter(|&label| !in_block[label]).map(|label| vec![vec![label]]));
    let strength = |part: &Vec<Vec<usize>>| -> f64 {
        let labels: Vec<usize> = part.iter().flatten().copied().collect();
        labels.iter().map(|&a| (0..n).map(|b| association.of(a, b)).sum::<f64>()).sum()
    };
    // Begin with the largest block, or with the label that goes most with all others.
    let first = (0..waiting.len()).max_by(|&a, &b| {
        let size = |part: &Vec<Vec<usize>>| part.iter().map(Vec::len).max().unwrap_or(0);
        let by_size = size(&waiting[a]).cmp(&size(&waiting[b]));
        by_size.then(strength(&waiting[a]).total_cmp(&strength(&waiting[b]))).then(b.cmp(&a))
    });
    let Some(first) = first else { return Some(Vec::new()) };
    let mut cliques = waiting.swap_remove(first);
    let mut groups: Vec<Vec<usize>> =
        cliques.iter().filter(|clique| (2..=width + 1).contains(&clique.len())).cloned().collect();
    while !waiting.is_empty() {
        let (part, link, _) = best_link(association, width, &cliques, &waiting, watch)?;
        let joined = waiting.swap_remove(part);
        groups.extend(joined.iter().filter(|clique| (2..=width + 1).contains(&clique.len())).cloned());
        cliques.extend(joined.into_iter().filter(|clique| clique.len() > 1));
        // While the first clique is not full, it grows instead of leaving parts of itself behind.
        cliques.retain(|clique| !clique.iter().all(|label| link.contains(label)));
        groups.retain(|group| !group.iter().all(|label| link.contains(label)));
        cliques.push(link.clone());
        groups.push(link);
    }
    Some(groups)
}

/// Operations on numbers that a look at two cliques takes, about.
const LINK_WORK: usize = 16;

/// The part that goes best with the cliques there are: its place, the labels that link it, and how well. `None` if the watch
/// says to stop.
fn best_link(
    association: &Association,
    width: usize,
    cliques: &[Vec<usize>],
    waiting: &[Vec<Vec<usize>>],
    watch: &mut Watch,
) -> Option<(usize, Vec<usize>, f64)> {
    let mut best: Option<(usize, Vec<usize>, f64)> = None;
    for (part, part_cliques) in waiting.iter().enumerate() {
        for theirs in part_cliques {
            for ours in cliques {
                let (link, score) = link(association, width, ours, theirs);
                if best.as_ref().is_none_or(|(_, _, best)| score > *best) {
                    best = Some((part, link, score));
                }
            }
            if !watch.goes_on(cliques.len() * LINK_WORK) {
                return None;
            }
        }
    }
    Some(best.expect("there is a clique and a part"))
}

/// The labels of two cliques that are best looked at together, at most `width + 1`, some of both.
fn link(association: &Association, width: usize, ours: &[usize], theirs: &[usize]) -> (Vec<usize>, f64) {
    let across = |a: usize, others: &[usize]| others.iter().map(|&b| association.of(a, b)).sum::<f64>();
    let ranked = |own: &[usize], others: &[usize]| {
        let mut ranked: Vec<usize> = own.to_vec();
        ranked.sort_by(|&a, &b| across(b, others).total_cmp(&across(a, others)).then(a.cmp(&b)));
        ranked
    };
    let mut theirs = ranked(theirs, ours);
    theirs.truncate(width.div_ceil(2).max(1).min(theirs.len()));
    let mut ours = ranked(ours, &theirs);
    ours.truncate((width + 1).saturating_sub(theirs.len()).max(1));
    let score = ours.iter().map(|&a| across(a, &theirs)).sum();
    ours.extend(theirs);
    (ours, score)
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::learn::clique_tree::CliqueTree;
    use crate::learn::watch::never;

    fn thin_tree(association: &Association, width: usize, blocks: &[Vec<Vec<usize>>]) -> Vec<Vec<usize>> {
        super::thin_tree(association, width, blocks, &mut Watch::new(&mut never())).unwrap()
    }

    /// Counts questions, not time: so many labels are enough for one.
    #[test]
    fn preparing_could_not_be_stopped() {
        let n = 300;
        let association = Association { n, values: vec![0.5; n * n] };
        let mut n_asked = 0;
        let mut ask = || {
            n_asked += 1;
            ControlFlow::Break(())
        };
        assert!(super::thin_tree(&association, 2, &[], &mut Watch::new(&mut ask)).is_none());
        let blocks: Vec<_> = (0..n).map(|label| 2 * label..2 * label + 2).collect();
        let residual = |row: usize, _: usize| Some(row as f64);
        assert!(Association::new(300, &blocks, residual, &mut Watch::new(&mut ask)).is_none());
        assert_eq!(n_asked, 2);
    }

    #[test]
    fn groups_hang_together_as_a_thin_tree() {
        let n = 12;
        let values = (0..n * n).map(|at| ((at / n * 7 + at % n * 7) % 11) as f64).collect();
        let association = Association { n, values };
        for width in 0..5 {
            let groups = thin_tree(&association, width, &[]);
            assert!(groups.iter().all(|group| group.len() == width + 1), "{groups:?}");
            assert_eq!(groups.len(), n - width);
            let tree = CliqueTree::new(&vec![2; n], &groups).unwrap();
            assert!(tree.cliques.iter().all(|clique| clique.labels.len() <= width + 1));
        }
        let experts = vec![vec![vec![0, 1, 2, 3, 4], vec![4, 5]], vec![vec![8, 9]]];
        let groups = thin_tree(&association, 2, &experts);
        let scopes: Vec<Vec<usize>> = groups.into_iter().chain(experts.into_iter().flatten()).collect();
        let tree = CliqueTree::new(&vec![2; n], &scopes).unwrap();
        assert!(tree.cliques.iter().all(|clique| clique.labels.len() <= 5));
    }
}
