//! Positions for the nodes of a graph: connected nodes are close, and no two overlap.
//!
//! Nodes repel each other, edges attract their ends, and steps get shorter, as in Fruchterman and Reingold ("Graph
//! drawing by force-directed placement", 1991). Then overlapping boxes are moved apart. There is no randomness, so the
//! same graph always gets the same picture.

/// A node: the size of its box.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Box2 {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Minimum distance between boxes.
const GAP: f64 = 10.0;
/// Maximum number of nodes for force-directed placement; larger graphs stay on the initial circle.
const MAX_NODES: usize = 3000;
/// Maximum number of pairs of nodes evaluated in all steps together.
const WORK: f64 = 1e7;
/// Minimum width of a row of boxes.
const ROW_WIDTH: f64 = 500.0;
/// Range of the repulsion, as a multiple of the desired distance.
const REPULSION_RANGE: f64 = 3.0;
/// Desired ratio of width to height.
const ASPECT: f64 = 1.4;

/// The center of every box. Nodes without edges are placed in rows below the others.
pub(crate) fn place(boxes: &[Box2], edges: &[(usize, usize)]) -> Vec<(f64, f64)> {
    let mut is_tied = vec![false; boxes.len()];
    edges.iter().for_each(|&(a, b)| (is_tied[a], is_tied[b]) = (true, true));
    let (tied, loose): (Vec<usize>, Vec<usize>) = (0..boxes.len()).partition(|&node| is_tied[node]);
    let mut index = vec![0; boxes.len()];
    tied.iter().enumerate().for_each(|(new, &old)| index[old] = new);
    let tied_edges: Vec<_> = edges.iter().map(|&(a, b)| (index[a], index[b])).collect();
    let tied_boxes: Vec<Box2> = tied.iter().map(|&node| boxes[node]).collect();
    let mut places = vec![(0.0, 0.0); boxes.len()];
    for (&node, place) in tied.iter().zip(place_tied(&tied_boxes, &tied_edges)) {
        places[node] = place;
    }
    place_in_rows(&mut places, boxes, &tied, &loose);
    places
}

fn place_tied(boxes: &[Box2], edges: &[(usize, usize)]) -> Vec<(f64, f64)> {
    let area: f64 = boxes.iter().map(|it| (it.width + 3.0 * GAP) * (it.height + 3.0 * GAP)).sum();
    let distance = (1.6 * area / boxes.len().max(1) as f64).sqrt();
    let mut places = start(boxes.len(), edges, distance);
    if boxes.len() <= MAX_NODES {
        attract_and_repel(&mut places, edges, distance);
        places.iter_mut().for_each(|place| place.0 *= ASPECT);
        separate(&mut places, boxes);
    }
    places
}

/// Places unconnected nodes in rows that are about as wide as the existing picture.
fn place_in_rows(places: &mut [(f64, f64)], boxes: &[Box2], there: &[usize], loose: &[usize]) {
    let ends = |node: &usize| {
        (places[*node].0 - boxes[*node].width / 2.0, places[*node].0 + boxes[*node].width / 2.0)
    };
    let left = there.iter().map(|node| ends(node).0).fold(f64::INFINITY, f64::min);
    let left = if left.is_finite() { left } else { 0.0 };
    let right = there.iter().map(|node| ends(node).1).fold(left + ROW_WIDTH, f64::max);
    let bottom = there.iter().map(|&node| places[node].1 + boxes[node].height / 2.0).fold(0.0, f64::max);
    let (mut x, mut y) = (left, bottom + 3.0 * GAP);
    for &node in loose {
        if x > left && x + boxes[node].width > right {
            (x, y) = (left, y + boxes[node].height + GAP);
        }
        places[node] = (x + boxes[node].width / 2.0, y + boxes[node].height / 2.0);
        x += boxes[node].width + GAP;
    }
}

/// Initial positions: a circle, in the order of a traversal of the graph.
fn start(n_nodes: usize, edges: &[(usize, usize)], distance: f64) -> Vec<(f64, f64)> {
    let mut neighbors = vec![Vec::new(); n_nodes];
    for &(a, b) in edges {
        neighbors[a].push(b);
        neighbors[b].push(a);
    }
    let mut order = Vec::with_capacity(n_nodes);
    let mut seen = vec![false; n_nodes];
    for first in 0..n_nodes {
        let mut waiting = vec![first];
        while let Some(node) = waiting.pop() {
            if !std::mem::replace(&mut seen[node], true) {
                order.push(node);
                waiting.extend(neighbors[node].iter().rev());
            }
        }
    }
    let radius = distance * n_nodes as f64 / std::f64::consts::TAU;
    let mut places = vec![(0.0, 0.0); n_nodes];
    for (index, node) in order.into_iter().enumerate() {
        let angle = std::f64::consts::TAU * index as f64 / n_nodes as f64;
        places[node] = (radius * angle.cos(), radius * angle.sin());
    }
    places
}

fn attract_and_repel(places: &mut [(f64, f64)], edges: &[(usize, usize)], distance: f64) {
    let n = places.len() as f64;
    let steps = (WORK / (n * n).max(1.0)).clamp(10.0, 600.0) as usize;
    for step in 0..steps {
        let longest = distance * (1.0 - step as f64 / steps as f64) * n.sqrt().max(2.0) / 4.0;
        let forces = forces(places, edges, distance);
        for (place, force) in places.iter_mut().zip(forces) {
            let length = force.0.hypot(force.1).max(1e-9);
            let scale = length.min(longest) / length;
            *place = (place.0 + force.0 * scale, place.1 + force.1 * scale);
        }
    }
}

fn forces(places: &[(f64, f64)], edges: &[(usize, usize)], distance: f64) -> Vec<(f64, f64)> {
    // A weak attraction to the center keeps unconnected components in the picture.
    let mut forces: Vec<_> = places.iter().map(|place| (-0.04 * place.0, -0.04 * place.1)).collect();
    let mut push = |a: usize, b: usize, strength: &dyn Fn(f64) -> f64| {
        let (x, y) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
        let length = x.hypot(y).max(1e-3);
        let force = strength(length) / length;
        forces[a] = (forces[a].0 + x * force, forces[a].1 + y * force);
        forces[b] = (forces[b].0 - x * force, forces[b].1 - y * force);
    };
    for a in 0..places.len() {
        for b in 0..a {
            push(a, b, &|length| {
                if length < REPULSION_RANGE * distance { distance * distance / length } else { 0.0 }
            });
        }
    }
    for &(a, b) in edges {
        push(a, b, &|length| -length * length / distance);
    }
    forces
}

/// Moves boxes apart, along the shorter direction, until none overlap.
fn separate(places: &mut [(f64, f64)], boxes: &[Box2]) {
    for _ in 0..500 {
        let mut moved = false;
        for a in 0..places.len() {
            for b in 0..a {
                if let Some((x, y)) = overlap(places, boxes, a, b) {
                    places[a] = (places[a].0 + x / 2.0, places[a].1 + y / 2.0);
                    places[b] = (places[b].0 - x / 2.0, places[b].1 - y / 2.0);
                    moved = true;
                }
            }
        }
        if !moved {
            break;
        }
    }
}

/// The displacement of the first box that separates it from the second.
fn overlap(places: &[(f64, f64)], boxes: &[Box2], a: usize, b: usize) -> Option<(f64, f64)> {
    let (x, y) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
    let missing_x = (boxes[a].width + boxes[b].width) / 2.0 + GAP - x.abs();
    let missing_y = (boxes[a].height + boxes[b].height) / 2.0 + GAP - y.abs();
    if missing_x <= 1e-6 || missing_y <= 1e-6 {
        return None;
    }
    let way = |missing: f64, direction: f64| if direction < 0.0 { -missing } else { missing };
    Some(if missing_x < missing_y { (way(missing_x, x), 0.0) } else { (0.0, way(missing_y, y)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring of labels, each connected with the next by a rule, and some unconnected ones.
    fn ring(n: usize) -> (Vec<Box2>, Vec<(usize, usize)>) {
        let mut boxes = vec![Box2 { width: 110.0, height: 26.0 }; n];
        boxes.extend(vec![Box2 { width: 20.0, height: 20.0 }; n]);
        boxes.extend(vec![Box2 { width: 80.0, height: 26.0 }; 3]);
        (boxes, (0..n).flat_map(|i| [(i, n + i), ((i + 1) % n, n + i)]).collect())
    }

    #[test]
    fn boxes_do_not_overlap() {
        for n in [1, 5, 20, 100] {
            let (boxes, edges) = ring(n);
            let places = place(&boxes, &edges);
            for a in 0..boxes.len() {
                for b in 0..a {
                    assert!(overlap(&places, &boxes, a, b).is_none(), "{a} and {b} of {n}");
                }
            }
        }
    }

    #[test]
    fn connected_nodes_are_nearer_than_others() {
        let (boxes, edges) = ring(12);
        let places = place(&boxes, &edges);
        let distance = |(a, b): (usize, usize)| (places[a].0 - places[b].0).hypot(places[a].1 - places[b].1);
        let connected = edges.iter().map(|&edge| distance(edge)).fold(0.0, f64::max);
        let opposite = distance((0, 6));
        assert!(connected < opposite, "{connected} {opposite}");
        assert_eq!(places, place(&boxes, &edges));
    }

    #[test]
    fn any_graph_has_places() {
        assert!(place(&[], &[]).is_empty());
        let many = vec![Box2 { width: 50.0, height: 20.0 }; MAX_NODES + 1];
        assert!(place(&many, &[]).iter().all(|place| place.0.is_finite() && place.1.is_finite()));
        // Rules may have no label, or the same labels.
        let same = place(&[many[0]; 3], &[(0, 1), (0, 2)]);
        assert!(same[1] != same[2]);
    }
}
