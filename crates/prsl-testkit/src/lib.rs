//! Random small models and named tolerances for the tests of prsl.

mod check;
#[cfg(doctest)]
pub mod documentation;
mod extreme;
mod golden;
pub mod limits;
pub mod planted;
mod precise;
mod random;
pub mod rulebases;
mod simulated;

pub use check::{
    Checked, check_assignments, check_circuit, check_loopy, check_marginals, check_samples, check_scores,
    check_search,
};
pub use extreme::{Bytes, Extreme, extreme_model, is_tree};
pub use golden::{Golden, GoldenTest, golden};
pub use precise::{Precise, Sums};
pub use random::{RandomModel, nearly_silent, random_model, random_row, random_tree};
pub use simulated::{sampled, simulated, with_truths};

use proptest::prelude::*;
use prsl::{BeliefMatrix, Model, Normalize};
use rand_chacha::ChaCha8Rng;

/// Tolerance between two exact engines. They differ only by rounding: some thousand operations of relative error 1e-16
/// each.
pub const EXACT: f64 = 1e-12;

/// A small model and rows for it, with edge cases.
///
/// Models include no rules, p = 0, ½ and 1, q = 0 and 1, several literals of one label, contradictions, and typical
/// combinations of any weight. Rows include beliefs with zeros, observed categories and missing values.
///
/// Shrinks towards fewer labels and fewer rules.
pub fn small_model() -> impl Strategy<Value = (Model, BeliefMatrix)> {
    (0usize..=7, 0usize..=7, any::<u64>()).prop_map(|(n_labels, n_rules, seed)| {
        let settings = RandomModel { n_labels, n_rules, ..RandomModel::default() };
        with_rows(random_model(&settings, seed))
    })
}

/// A small model whose factor graph is a forest, with rules of all kinds, and rows for it.
///
/// Shrinks towards fewer rules.
pub fn small_tree() -> impl Strategy<Value = (Model, BeliefMatrix)> {
    (0usize..=6, any::<u64>()).prop_map(|(n_rules, seed)| with_rows(random_tree(n_rules, seed)))
}

/// Peak resident memory of a running process in bytes; `None` if the system does not report it.
pub fn peak_memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| 1024 * kilobytes)
}

/// The text of a model of the pigeonhole problem: every pigeon has a hole, no hole has two pigeons, and there is one
/// more pigeon than holes. No assignment is possible, and there is no short proof by resolution.
pub fn pigeons(n_holes: usize) -> String {
    let holes: Vec<String> = (0..n_holes).map(|hole| format!("h{hole}")).collect();
    let label = |pigeon: usize| format!("label p{pigeon}: {}\n", holes.join(", "));
    let rule = |hole: &String| {
        let here: Vec<String> = (0..=n_holes).map(|pigeon| format!("p{pigeon}={hole}")).collect();
        format!("rule 1: at_most 1 of {{{}}}\n", here.join(", "))
    };
    (0..=n_holes).map(label).chain(holes.iter().map(rule)).collect()
}

fn with_rows((model, mut rng): (Model, ChaCha8Rng)) -> (Model, BeliefMatrix) {
    let mut rows = BeliefMatrix::new(&model);
    for _ in 0..3 {
        let cells = random_row(&model, &mut rng);
        rows.push(&cells, Normalize::Always).expect("random rows are valid");
    }
    (model, rows)
}

/// The folder of the shared data beside the project, if it exists; otherwise a message for the log.
pub fn shared(path: &str) -> Option<std::path::PathBuf> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(path);
    if !folder.exists() {
        eprintln!("skipped: {} is not here", folder.display());
        return None;
    }
    Some(folder)
}

/// Whether two numbers agree within `tolerance`, relative to their size if that is above 1.
pub fn close(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1.0)
}
