//! Measures size and time of circuits for rule bases, compares them with the junction tree, and writes
//! `docs/circuits.md`.
//!
//! ```text
//! cargo run --release -p prsl-bench --bin circuits
//! ```

use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use prsl::infer::Circuit;
use prsl::{BeliefMatrix, Engines, JunctionTree, Model, Posteriors};
use prsl_bench::{cpu_time, seconds};
use prsl_testkit::rulebases::{
    Softness, exclusive_groups, grid_paths, permutations, road_soft, taxonomy_dag, taxonomy_tree, yes_no_rows,
};

/// Measure size and time of circuits for rule bases.
#[derive(Debug, Parser)]
struct Arguments {
    /// The page to write.
    #[arg(short, long, default_value = "docs/circuits.md")]
    output: PathBuf,
    /// Maximum number of rows of a measurement.
    #[arg(long, default_value_t = 20_000)]
    rows: usize,
    /// Only the rule bases whose description contains this; no page is written.
    #[arg(long, default_value = "")]
    only: String,
}

/// Multiply-adds of all rows of a measurement: about a second. Rows beyond it are left out.
const MAX_WORK: f64 = 1e9;

/// A rule base, with the maximum times that its circuit may take.
struct Line {
    what: String,
    text: String,
    target: Option<Target>,
}

/// Maximum seconds on one thread.
#[derive(Clone, Copy)]
struct Target {
    compile: f64,
    row: f64,
}

fn lines() -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    if let Some(folder) = prsl_testkit::shared("rulebases") {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).context(name.to_owned());
        let (hard, soft24) = (read("road-r.prsl")?, read("road-soft24.prsl")?);
        let (soft120, soft180) = (road_soft(&hard, 120, 1), road_soft(&hard, 180, 1));
        for (what, text, compile, row) in [
            ("ROAD-R, all rules hard", hard, 0.05, 1e-6),
            ("ROAD-R, 24 rules soft", soft24, 0.05, 1.5e-6),
            ("ROAD-R, 120 rules soft", soft120, 0.05, 5e-6),
            ("ROAD-R, 180 rules soft", soft180, 0.5, 40e-6),
        ] {
            lines.push(Line { what: what.to_owned(), text, target: Some(Target { compile, row }) });
        }
    }
    for (softness, rules) in [(Softness::Hard, "hard"), (Softness::ThirdSoft, "a third soft")] {
        for (what, base) in [
            ("permutations of 6", permutations(6, softness, 1)),
            ("permutations of 10", permutations(10, softness, 1)),
            ("paths in a 4 × 4 grid", grid_paths(4, 4, softness, 1)),
            ("40 exclusive groups of 5", exclusive_groups(40, 5, softness, 1)),
            ("tree of 500 labels", taxonomy_tree(500, 6, softness, 1)),
            ("directed acyclic taxonomy of 4,000 labels", taxonomy_dag(4000, 12, softness, 1)),
        ] {
            lines.push(Line { what: format!("{what}, {rules}"), text: base.text, target: None });
        }
    }
    Ok(lines)
}

const HEAD: &str = "\
# Circuits: rule bases that exclude most assignments

A circuit lists what a model's hard rules allow, as sums and products. It is compiled once and answers every row exactly.
It pays off if hard rules exclude most combinations of categories: one yes in each row and column, paths in a grid,
exclusive categories, taxonomies. The tables of a junction tree have entries for excluded combinations too, so they are
often larger. Soft rules exclude nothing, so they make a circuit larger. A circuit of more than 256,000 edges is refused, and
so is one whose search takes too much work.

ROAD-R is a base of 243 rules about 41 labels that people wrote for traffic videos (Giunchiglia et al., 2022). Its lines are
missing if the file is not available. The other bases are generated: `crates/prsl-testkit/src/rulebases` describes them.
Soft rules have different probabilities from 0.7 to 0.99. All labels are yes/no, with random beliefs from 0.02 to 0.98.

Times are CPU time on one thread, the smallest of five runs; only one run if it takes more than two seconds. A row is its
marginals and ln Z, in a batch of up to 20,000 rows. Other programs that run at the same time make all times longer.
Targets are in parentheses. The memory limit is 1 GiB. If a circuit is refused, the time is that until the refusal.

Made by `make bench-circuits` at commit COMMIT.

";

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;
    let mut page = HEAD.replace("COMMIT", &commit()?);
    page += "| rule base | labels | rules | nodes | edges | compile time | row | junction tree | its row | chosen engine |\n";
    page += "|---|--:|--:|--:|--:|--:|--:|---|--:|---|\n";
    let mut reasons = String::new();
    let mut missed = Vec::new();
    for line in lines()?.iter().filter(|line| line.what.contains(&arguments.only)) {
        let measured = measure(line, arguments.rows).with_context(|| line.what.clone())?;
        println!("{}\n{}", measured.cells, measured.reason);
        writeln!(page, "{}", measured.cells)?;
        writeln!(reasons, "- {}: {}", line.what, measured.reason)?;
        missed.extend(measured.missed.then_some(&*line.what).map(str::to_owned));
    }
    if arguments.only.is_empty() {
        writeln!(page, "\nThe reasons for the choice of an engine for marginals:\n\n{}", reasons.trim_end())?;
        std::fs::write(&arguments.output, page)?;
    }
    ensure!(missed.is_empty(), "slower than the target: {}", missed.join("; "));
    Ok(())
}

/// The abbreviated hash of the checked-out commit.
fn commit() -> Result<String> {
    let output =
        Command::new("git").args(["rev-parse", "--short", "HEAD"]).output().context("git is needed")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

struct Measured {
    /// The row of the table.
    cells: String,
    /// The reason for the choice of an engine.
    reason: String,
    /// Whether a time exceeds its target.
    missed: bool,
}

fn measure(line: &Line, n_rows: usize) -> Result<Measured> {
    let model = Model::parse(&line.text)?;
    let rows = yes_no_rows(&model, n_rows, 1).1;
    let (compile, circuit) = fastest(|| Circuit::compile(&model));
    let (nodes, edges, row) = match &circuit {
        Ok(circuit) => {
            let (size, rows) = (circuit.size(), affordable(&rows, circuit.size().multiply_adds));
            let row = time_per_row(&rows, || circuit.infer_batch(&rows));
            (size.nodes.to_string(), size.edges.to_string(), Some(row))
        }
        Err(_) => ("–".to_owned(), "refused".to_owned(), None),
    };
    let (tree, tree_row) = match JunctionTree::compile(&model) {
        Ok(tree) => {
            let rows = affordable(&rows, tree.cost().multiply_adds);
            let row = time_per_row(&rows, || tree.infer_batch(&rows));
            (format!("{:.1e} multiply-adds", tree.cost().multiply_adds), seconds(row))
        }
        Err(prsl::Error::TooCostly { needed, .. }) => (format!("refused: {needed}"), "–".to_owned()),
        Err(error) => return Err(error.into()),
    };
    let chosen = Engines::new(&model).marginals()?;
    let with_target = |time: f64, target: Option<f64>| match target {
        Some(target) => format!("{} ({})", seconds(time), seconds(target)),
        None => seconds(time),
    };
    let cells = format!(
        "| {} | {} | {} | {nodes} | {edges} | {} | {} | {tree} | {tree_row} | {} |",
        line.what,
        model.labels().len(),
        model.rules().len(),
        with_target(compile, line.target.map(|target| target.compile)),
        row.map_or("–".to_owned(), |row| with_target(row, line.target.map(|target| target.row))),
        chosen.engine().name(),
    );
    let missed =
        line.target.is_some_and(|target| compile > target.compile || row.is_none_or(|row| row > target.row));
    Ok(Measured { cells, reason: chosen.reason().to_owned(), missed })
}

/// The first rows, if a row takes so many multiply-adds that all of them would take too long.
fn affordable(rows: &BeliefMatrix, multiply_adds: f64) -> BeliefMatrix {
    rows.slice(0..rows.n_rows().min((MAX_WORK / multiply_adds).ceil() as usize))
}

/// CPU seconds per row of a batch.
fn time_per_row(rows: &BeliefMatrix, infer: impl FnMut() -> prsl::Result<Posteriors>) -> f64 {
    fastest(infer).0 / rows.n_rows() as f64
}

/// CPU seconds of the fastest of five runs, and the result of the last. A run is repeated for at least 50 ms, because the
/// system counts the time of a running thread in ticks of some milliseconds. A run of more than two seconds is not
/// repeated.
fn fastest<T>(mut run: impl FnMut() -> T) -> (f64, T) {
    let mut fastest = f64::INFINITY;
    let mut n_runs = 0;
    loop {
        let (start, mut n_calls) = (cpu_time(), 0);
        let (spent, result) = loop {
            let result = run();
            n_calls += 1;
            let spent = cpu_time().saturating_sub(start).as_secs_f64();
            if spent >= 0.05 {
                break (spent, result);
            }
        };
        fastest = fastest.min(spent / f64::from(n_calls));
        n_runs += 1;
        if n_runs == 5 || spent > 2.0 {
            return (fastest, result);
        }
    }
}
