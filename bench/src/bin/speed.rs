//! CPU time of compiling simulated models and of inferring rows, one line of JSON for each model.
//!
//! Builds of two revisions are compared by running both in turn; `bench/speed.py` does that.

use std::time::Instant;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use prsl::simulate::Simulation;
use prsl::{BeliefMatrix, JunctionTree, Loopy, Posteriors};
use serde_json::json;

/// CPU time of compiling simulated models and of inferring rows
#[derive(Parser)]
struct Arguments {
    /// The engine
    #[arg(long, value_enum, default_value_t = Engine::Exact)]
    engine: Engine,
    /// The number of labels, and of rules
    #[arg(long, default_value_t = 30)]
    labels: usize,
    /// Seeds of the models
    #[arg(long, value_delimiter = ',', default_value = "1,2,3,4,5")]
    seeds: Vec<u64>,
    /// The number of rows
    #[arg(long, default_value_t = 256)]
    rows: usize,
    /// Minimum number of runs over the rows; the fastest counts
    #[arg(long, default_value_t = 1)]
    repeats: usize,
    /// Minimum CPU seconds of all runs
    #[arg(long, default_value_t = 0.2)]
    seconds: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    Exact,
    Loopy,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;
    for &seed in &arguments.seeds {
        let n = arguments.labels;
        let (model, rows) = Simulation { n_labels: n, n_rules: n, n_rows: arguments.rows, seed }.draw()?;
        let start = cpu_seconds();
        let engine: Infer = match arguments.engine {
            Engine::Exact => {
                let tree = JunctionTree::compile(&model)?;
                Box::new(move |rows| tree.infer_batch(rows).expect("rows of the model"))
            }
            Engine::Loopy => {
                let loopy = Loopy::compile(&model)?;
                Box::new(move |rows| loopy.infer_batch(rows).expect("rows of the model"))
            }
        };
        let compile = cpu_seconds() - start;
        let (row, log_evidence) = fastest(&arguments, &rows, &engine);
        println!(
            "{}",
            json!({ "labels": n, "seed": seed, "compile": compile, "row": row, "log_evidence": log_evidence })
        );
    }
    Ok(())
}

type Infer = Box<dyn Fn(&BeliefMatrix) -> Posteriors>;

/// CPU seconds of a row in the fastest of several runs, and the sum of all rows' ln Z.
fn fastest(arguments: &Arguments, rows: &BeliefMatrix, infer: &Infer) -> (f64, f64) {
    let (mut fastest, mut spent, mut runs, mut log_evidence) = (f64::INFINITY, 0.0, 0, 0.0);
    while runs < arguments.repeats.max(1) || spent < arguments.seconds {
        let start = cpu_seconds();
        let posteriors = infer(rows);
        let seconds = cpu_seconds() - start;
        let possible = (0..rows.n_rows()).filter(|&row| posteriors.is_possible(row));
        log_evidence = possible.map(|row| posteriors.log_evidence(row)).sum();
        (fastest, spent, runs) = (fastest.min(seconds), spent + seconds, runs + 1);
    }
    (fastest / rows.n_rows() as f64, log_evidence)
}

/// CPU seconds of all threads of this process so far; elapsed seconds if the system does not report them.
fn cpu_seconds() -> f64 {
    let of_thread = |entry: std::io::Result<std::fs::DirEntry>| -> Option<f64> {
        let text = std::fs::read_to_string(entry.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    match std::fs::read_dir("/proc/self/task") {
        Ok(threads) => threads.filter_map(of_thread).sum::<f64>() * 1e-9,
        Err(_) => {
            static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
            START.get_or_init(Instant::now).elapsed().as_secs_f64()
        }
    }
}
