//! The pool adjacent violators algorithm, which fits isotonic calibrators.

/// Pooled observations: their range of beliefs, their hits and their total weight.
#[derive(Clone, Copy)]
struct Block {
    first: f64,
    last: f64,
    hits: f64,
    weight: f64,
}

impl Block {
    fn value(&self) -> f64 {
        self.hits / self.weight
    }

    fn join(&mut self, other: &Block) {
        self.last = other.last;
        self.hits += other.hits;
        self.weight += other.weight;
    }
}

/// Fits a nondecreasing map by least squares to observations (belief, whether it was true, weight). Returns its points.
///
/// Neighboring blocks are joined while a mean is not above the previous one. Two pseudo-observations of weight `extra`
/// keep every value away from 0 and 1: a hit at the lowest belief and a miss at the highest.
pub(super) fn pool(mut observations: Vec<(f64, bool, f64)>, extra: f64) -> Vec<(f64, f64)> {
    observations.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some(&lowest), Some(&highest)) = (observations.first(), observations.last()) else {
        return vec![(0.0, 0.0), (1.0, 1.0)];
    };
    observations.insert(0, (lowest.0, true, extra));
    observations.push((highest.0, false, extra));
    let mut blocks: Vec<Block> = Vec::new();
    for block in ties(&observations) {
        blocks.push(block);
        while let [.., before, last] = &mut blocks[..]
            && before.value() >= last.value()
        {
            before.join(&last.clone());
            blocks.pop();
        }
    }
    blocks.iter().flat_map(points).collect()
}

/// Joins observations of equal belief.
fn ties(observations: &[(f64, bool, f64)]) -> Vec<Block> {
    let same = observations.chunk_by(|a, b| a.0 == b.0);
    let block = |tied: &[(f64, bool, f64)]| Block {
        first: tied[0].0,
        last: tied[0].0,
        hits: tied.iter().filter(|observation| observation.1).map(|observation| observation.2).sum(),
        weight: tied.iter().map(|observation| observation.2).sum(),
    };
    same.map(block).collect()
}

fn points(block: &Block) -> Vec<(f64, f64)> {
    let value = block.value().clamp(0.0, 1.0);
    if block.first == block.last {
        vec![(block.first, value)]
    } else {
        vec![(block.first, value), (block.last, value)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falling_neighbors_are_pooled() {
        let seen = |belief, hit| (belief, hit, 1.0);
        let rows =
            vec![seen(0.1, false), seen(0.2, true), seen(0.3, false), seen(0.9, true), seen(0.9, true)];
        let points = pool(rows, 1e-9);
        let expected = [(0.1, 0.0), (0.2, 0.5), (0.3, 0.5), (0.9, 1.0)];
        assert_eq!(points.len(), expected.len());
        for (point, expected) in points.iter().zip(expected) {
            assert_eq!(point.0, expected.0);
            assert!((point.1 - expected.1).abs() < 1e-8);
        }
    }

    #[test]
    fn pseudo_observations_keep_values_away_from_0_and_1() {
        assert_eq!(pool(vec![(0.5, false, 8.0)], 1.0), [(0.5, 0.1)]);
        assert_eq!(pool(vec![(0.2, false, 1.0), (0.8, true, 3.0)], 1.0), [(0.2, 0.5), (0.8, 0.75)]);
        assert_eq!(pool(Vec::new(), 1.0), [(0.0, 0.0), (1.0, 1.0)]);
    }
}
