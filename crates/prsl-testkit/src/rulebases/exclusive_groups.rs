//! Groups of labels that exclude each other, with implications between neighboring groups.

use rand::RngExt;
use rand::seq::SliceRandom;

use super::chain::{Layer, Step};
use super::{RuleBase, Rules, Softness, Structure, count, structure_generator, weight};

/// `n_groups` groups of `size` labels, `exactly 1 of` each group, and two implications between members of any two
/// neighboring groups.
pub fn exclusive_groups(n_groups: usize, size: usize, softness: Softness, seed: u64) -> RuleBase {
    let mut rng = structure_generator(seed);
    let mut rules = Rules::new(3 * n_groups - 2, softness, seed);
    let name = |group: usize, member: usize| format!("g{group}_{member}");
    let layer = |group: usize| {
        let exclusive = rules.push(&count("exactly 1", (0..size).map(|member| name(group, member))));
        let mut implications = Vec::new();
        // Implications start from different members, so that the hard base excludes no member.
        let mut sources: Vec<usize> = (0..size).collect();
        sources.shuffle(&mut rng);
        for &source in sources.iter().take(if group == 0 { 0 } else { 2 }) {
            let target = rng.random_range(0..size);
            let formula = format!("{} -> {}", name(group - 1, source), name(group, target));
            implications.push((source, target, rules.push(&formula)));
        }
        let mut steps = Vec::new();
        for from in 0..if group == 0 { 1 } else { 1usize << size } {
            for yes in 0..1u64 << size {
                let implied = implications.iter().map(|&(source, target, probability)| {
                    weight(probability, from >> source & 1 == 0 || yes >> target & 1 == 1)
                });
                let weight = weight(exclusive, yes.count_ones() == 1) * implied.product::<f64>();
                steps.push(Step { from, to: yes as usize, yes, weight });
            }
        }
        Layer::new((group * size..(group + 1) * size).collect(), steps)
    };
    let layers = (0..n_groups).map(layer).collect();
    let names = (0..n_groups * size).map(|label| name(label / size, label % size));
    RuleBase { text: rules.text(names), structure: Some(Structure::Chain(layers)) }
}
