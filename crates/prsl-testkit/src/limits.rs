//! Very large models as texts, which must be answered or refused quickly and with little memory.

use std::fmt::Write;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// `n` yes/no labels `x0`, `x1`, ...
fn labels(n: usize) -> String {
    (0..n).map(|label| format!("label x{label}\n")).collect()
}

/// The names of `n` labels as a list.
fn names(n: usize) -> String {
    (0..n).map(|label| format!("x{label}")).collect::<Vec<_>>().join(", ")
}

fn generator() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(1)
}

/// Different random labels.
fn draw<const N: usize>(rng: &mut ChaCha8Rng, n_labels: usize) -> [usize; N] {
    loop {
        let drawn: [usize; N] = std::array::from_fn(|_| rng.random_range(0..n_labels));
        if (0..N).all(|place| !drawn[..place].contains(&drawn[place])) {
            return drawn;
        }
    }
}

/// Two labels of `n` categories; one formula pairs their categories.
pub fn paired_categories(n: usize) -> String {
    let categories = |of: &str| (0..n).map(|c| format!("{of}{c}")).collect::<Vec<_>>().join(", ");
    let pairs = (0..n).map(|c| format!("a{c} & b{c}")).collect::<Vec<_>>().join(" | ");
    format!("label a: {}\nlabel b: {}\nlabel c\nrule 0.9: ({pairs}) -> c\n", categories("a"), categories("b"))
}

/// One noisy-or over `n` labels.
pub fn wide_noisy_or(n: usize) -> String {
    let mut rng = generator();
    let causes: Vec<String> = (0..n).map(|x| format!("x{x} {:.3}", rng.random_range(0.5..0.9))).collect();
    format!("{}noisy_or 0.9: {}\n", labels(n), causes.join(", "))
}

/// A count such as `at_most 2` of `n` labels.
pub fn count(bound: &str, n: usize) -> String {
    format!("{}rule 0.9: {bound} of {{{}}}\n", labels(n), names(n))
}

/// Each of `n` labels implies the next.
pub fn chain(n: usize) -> String {
    let rules: String = (1..n).map(|x| format!("rule 0.9: x{} -> x{x}\n", x - 1)).collect();
    labels(n) + &rules
}

/// Each of `n` labels implies all later ones.
pub fn dense(n: usize) -> String {
    let mut text = labels(n);
    for a in 0..n {
        for b in a + 1..n {
            writeln!(text, "rule 0.9: x{a} -> x{b}").expect("a string takes all");
        }
    }
    text
}

/// A square grid of labels, each equal to its neighbors.
pub fn grid(width: usize) -> String {
    let mut text = labels(width * width);
    for at in 0..width * width {
        let right = (at % width + 1 < width).then_some(at + 1);
        let below = (at + width < width * width).then_some(at + width);
        for other in right.into_iter().chain(below) {
            writeln!(text, "rule 0.8: x{at} <-> x{other}").expect("a string takes all");
        }
    }
    text
}

/// `n_rules` noisy-or rules, each over all `n` labels.
pub fn wide_noisy_ors(n_rules: usize, n: usize) -> String {
    let mut rng = generator();
    let mut text = labels(n);
    for _ in 0..n_rules {
        let causes: Vec<String> = (0..n).map(|x| format!("x{x} {:.3}", rng.random_range(0.3..0.9))).collect();
        writeln!(text, "noisy_or 0.95: {}", causes.join(", ")).expect("a string takes all");
    }
    text
}

/// Random clauses of three literals, as rules of this probability.
pub fn clauses(n_labels: usize, n_clauses: usize, probability: &str) -> String {
    let mut rng = generator();
    let mut text = labels(n_labels);
    for _ in 0..n_clauses {
        let literals = draw::<3>(&mut rng, n_labels)
            .map(|label| format!("{}x{label}", if rng.random() { "!" } else { "" }));
        writeln!(text, "rule {probability}: {}", literals.join(" | ")).expect("a string takes all");
    }
    text
}

/// One rule of `n_terms` terms `x & y` over `n_labels` labels.
pub fn terms(n_terms: usize, n_labels: usize) -> String {
    let mut rng = generator();
    let term = |_| draw::<2>(&mut rng, n_labels).map(|label| format!("x{label}")).join(" & ");
    let terms: Vec<String> = (0..n_terms).map(term).map(|term| format!("({term})")).collect();
    format!("{}rule 0.9: {}\n", labels(n_labels), terms.join(" | "))
}

/// A label of `n` categories; one rule splits them in halves, and others name single ones.
pub fn many_categories(n: usize) -> String {
    let categories: Vec<String> = (0..n).map(|c| format!("a{c}")).collect();
    let half = categories.iter().step_by(2).cloned().collect::<Vec<_>>().join(" | ");
    let single: String = categories.iter().step_by(7).map(|c| format!("rule 0.8: {c} -> b\n")).collect();
    format!("label a: {}\nlabel b\nrule 0.9: {half} -> b\n{single}", categories.join(", "))
}

/// [`pigeonhole`] with two labels `full` and `shared`, one of which must hold. The last rule says so and is redundant, but
/// proving it takes as long as the pigeonhole principle. Contradictions and impossible categories are simple to exclude.
pub fn redundant_pigeonhole(n_pigeons: usize) -> String {
    let mut text = pigeonhole(n_pigeons).replace("rule 1: !", "rule 1: shared | !");
    text = text.replace("rule 1: p", "rule 1: full | p");
    format!("label full\nlabel shared\n{text}rule 1: full | shared\n")
}

/// `n` labels without a common rule.
pub fn independent(n: usize) -> String {
    labels(n) + "label y\nrule 0.9: y\n"
}

/// The pigeonhole problem with yes/no labels: every pigeon has a hole, no hole has two, and there is one hole too few.
pub fn pigeonhole(n_pigeons: usize) -> String {
    let n_holes = n_pigeons - 1;
    let name = |pigeon: usize, hole: usize| format!("p{pigeon}h{hole}");
    let mut text = String::new();
    for pigeon in 0..n_pigeons {
        (0..n_holes).for_each(|hole| text += &format!("label {}\n", name(pigeon, hole)));
    }
    for pigeon in 0..n_pigeons {
        let holes: Vec<String> = (0..n_holes).map(|hole| name(pigeon, hole)).collect();
        text += &format!("rule 1: {}\n", holes.join(" | "));
    }
    for hole in 0..n_holes {
        for a in 0..n_pigeons {
            (0..a).for_each(|b| text += &format!("rule 1: !{} | !{}\n", name(a, hole), name(b, hole)));
        }
    }
    text
}

/// A table with `n_rows` rows of random beliefs, for a model whose labels have either no categories or a list of them.
pub fn beliefs(model: &str, n_rows: usize) -> String {
    let mut rng = generator();
    let mut sizes = Vec::new();
    let mut columns = Vec::new();
    for line in model.lines().map_while(|line| line.strip_prefix("label ")) {
        match line.split_once(": ") {
            None => {
                columns.push(line.to_owned());
                sizes.push(1);
            }
            Some((label, categories)) => {
                let before = columns.len();
                columns.extend(categories.split(", ").map(|category| format!("{label}={category}")));
                sizes.push(columns.len() - before);
            }
        }
    }
    let mut table = columns.join(",") + "\n";
    for _ in 0..n_rows {
        let mut cells: Vec<String> = Vec::with_capacity(columns.len());
        for &size in &sizes {
            let drawn: Vec<f64> = (0..size).map(|_| rng.random_range(0.01..0.99)).collect();
            let total: f64 = if size == 1 { 1.0 } else { drawn.iter().sum() };
            cells.extend(drawn.iter().map(|x| (x / total).to_string()));
        }
        table += &(cells.join(",") + "\n");
    }
    table
}
