//! Measures the library's time for a million rows. The model and the beliefs are written to files, so that other
//! programs can be measured on the same input.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use prsl::simulate::Simulation;
use prsl::{BeliefMatrix, Engines, Normalize};

/// Measure the time of marginals for many rows of a simulated model
#[derive(Parser)]
struct Arguments {
    /// The number of rows
    #[arg(long, default_value_t = 1_000_000)]
    rows: usize,
    /// The number of labels
    #[arg(long, default_value_t = 14)]
    labels: usize,
    /// The number of rules
    #[arg(long, default_value_t = 20)]
    rules: usize,
    /// The number of runs; the fastest counts
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// The folder for model.prsl, beliefs.f64 and marginals.f64
    #[arg(long, default_value = "target/throughput")]
    out: PathBuf,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let simulation = Simulation {
        n_labels: arguments.labels,
        n_rules: arguments.rules,
        n_rows: arguments.rows,
        ..Simulation::default()
    };
    let (model, drawn) = simulation.draw()?;
    let (beliefs, n_categories) = (drawn.values(), model.n_categories());
    let mut fastest = f64::INFINITY;
    let mut marginals = Vec::new();
    for _ in 0..arguments.repeats.max(1) {
        let start = Instant::now();
        let mut rows = BeliefMatrix::new(&model);
        let mut cells = vec![None; n_categories];
        for row in beliefs.chunks_exact(n_categories) {
            cells.iter_mut().zip(row).for_each(|(cell, belief)| *cell = Some(*belief));
            rows.push(&cells, Normalize::Never)?;
        }
        let engine = Engines::new(&model).marginals()?;
        let posteriors = engine.infer_batch(&rows)?;
        fastest = fastest.min(start.elapsed().as_secs_f64());
        let possible = |row: usize| posteriors.marginals(row).map(<[f64]>::to_vec);
        marginals = (0..posteriors.n_rows().min(1000)).filter_map(possible).flatten().collect();
    }
    std::fs::create_dir_all(&arguments.out)
        .with_context(|| format!("cannot make {}", arguments.out.display()))?;
    let write = |name: &str, bytes: &[u8]| {
        let path = arguments.out.join(Path::new(name));
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    };
    write("model.prsl", model.to_string().as_bytes())?;
    let bytes =
        |numbers: &[f64]| -> Vec<u8> { numbers.iter().flat_map(|number| number.to_le_bytes()).collect() };
    write("beliefs.f64", &bytes(beliefs))?;
    write("marginals.f64", &bytes(&marginals))?;
    println!("{fastest}");
    Ok(())
}
