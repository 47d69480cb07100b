//! Compares prsl's circuits with those of other tools on rule bases with many hard rules. Writes the rule bases with
//! prsl's size and times, and a report with the results of `circuits.py`.
//!
//! `bench/peers/run` runs both programs. Times are CPU time on one thread, and medians of five measurements. All
//! marginals are compared with the stored ones.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use prsl::infer::Circuit;
use prsl::model::Node;
use prsl::{BeliefMatrix, Body, Formula, Model, Normalize, Posterior};
use prsl_bench::{Table, seconds, seconds_per_call};
use prsl_testkit::shared;
use serde::{Deserialize, Serialize};

const RULE_BASES: [&str; 2] = ["road-r", "road-soft24"];
/// The stored rows are repeated until there are at least this many.
const ROWS: usize = 20_000;
const QUICK_ROWS: usize = 2_000;
/// Maximum error of a marginal. Exact tools differ by rounding, which is below 1e-14 here.
const TOLERANCE: f64 = 1e-9;

/// A rule base with its rows, and the results of prsl.
#[derive(Serialize, Deserialize)]
struct Case {
    name: String,
    n_labels: usize,
    clauses: Vec<Clause>,
    /// P(yes) of each label, row by row: beliefs, and the exact marginals.
    rows: Vec<Vec<f64>>,
    marginals: Vec<Vec<f64>>,
    /// Number of rows that every tool answers at least.
    n_rows: usize,
    runs: Vec<Run>,
}

#[derive(Serialize, Deserialize)]
struct Clause {
    probability: f64,
    /// Numbers of labels from 1; negative for `no`.
    literals: Vec<i64>,
}

/// The result of one tool on one rule base.
#[derive(Serialize, Deserialize)]
struct Run {
    rule_base: String,
    tool: String,
    /// The size of the circuit with its unit.
    size: String,
    compile_seconds: f64,
    seconds_per_row: f64,
    largest_error: f64,
}

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write the rule bases with prsl's size and times. Without the rule bases, nothing is written.
    Cases {
        folder: PathBuf,
        /// One rule base, a tenth of the rows.
        #[arg(long)]
        quick: bool,
    },
    /// Print a table, and write it to `report.md`.
    Report { folder: PathBuf },
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Cases { folder, quick } => write_cases(&folder, quick),
        Command::Report { folder } => report(&folder),
    }
}

fn write_cases(folder: &Path, quick: bool) -> Result<()> {
    let Some(source) = shared("rulebases") else { return Ok(()) };
    std::fs::create_dir_all(folder)?;
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    for &name in if quick { &RULE_BASES[..1] } else { &RULE_BASES[..] } {
        let (model, mut case) = read(&source, name)?;
        case.n_rows = if quick { QUICK_ROWS } else { ROWS };
        case.runs = one_thread.install(|| measure(&model, &case))?;
        for run in &case.runs {
            let time = seconds(run.seconds_per_row);
            eprintln!("{name}: {}: {}, {time} per row, error {:.1e}", run.tool, run.size, run.largest_error);
        }
        let path = folder.join(format!("{name}.case.json"));
        std::fs::write(&path, serde_json::to_vec(&case)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn read(source: &Path, name: &str) -> Result<(Model, Case)> {
    let text = |file: String| {
        let path = source.join(file);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let numbers = |file: String| -> Result<Vec<Vec<f64>>> {
        let row = |line: &str| line.split(',').map(|cell| cell.trim().parse()).collect::<Result<_, _>>();
        text(file.clone())?.lines().skip(1).map(row).collect::<Result<_, _>>().with_context(|| file)
    };
    let model = Model::parse(&text(format!("{name}.prsl"))?)?;
    ensure!(model.labels().iter().all(|label| label.n_categories() == 2), "{name}: only yes/no labels");
    let mut clauses = Vec::new();
    for rule in model.rules() {
        let literals = match rule.body() {
            Body::Formula(formula) => literals(formula),
            _ => None,
        };
        let literals = literals.with_context(|| format!("{name}: a rule is not a clause"))?;
        clauses.push(Clause { probability: rule.probability(), literals });
    }
    let mut marginals = numbers(format!("{name}-marginals.csv"))?;
    let n_labels = model.labels().len();
    marginals.iter_mut().for_each(|row| row.truncate(n_labels)); // without the column `log_evidence`
    let rows = numbers(format!("{name}-beliefs.csv"))?;
    let runs = Vec::new();
    Ok((model, Case { name: name.to_owned(), n_labels, clauses, rows, marginals, n_rows: 0, runs }))
}

/// The literals of a disjunction; `None` for other formulas.
fn literals(formula: &Formula) -> Option<Vec<i64>> {
    let mut literals = Vec::new();
    let mut stack = vec![(formula.root(), true)];
    while let Some((id, sign)) = stack.pop() {
        match (&formula.nodes()[id.index()], sign) {
            (Node::Atom(atom), _) => {
                let label = atom.label().index() as i64 + 1;
                let is_yes = atom.single()?.index() == 0;
                literals.push(if is_yes == sign { label } else { -label });
            }
            (Node::Not(child), _) => stack.push((*child, !sign)),
            (Node::Or(children), true) | (Node::And(children), false) => {
                stack.extend(children.iter().map(|&child| (child, sign)));
            }
            (Node::Implies(condition, then) | Node::ImpliedBy(then, condition), true) => {
                stack.extend([(*condition, false), (*then, true)]);
            }
            _ => return None,
        }
    }
    Some(literals)
}

/// Measures all rows in one batch, and one row per call.
fn measure(model: &Model, case: &Case) -> Result<Vec<Run>> {
    let floor = Duration::from_millis(100);
    let circuit = Circuit::compile(model)?;
    let compile_seconds = seconds_per_call(floor, || {
        std::hint::black_box(Circuit::compile(model).expect("it was compiled before"));
    });
    let mut rows = BeliefMatrix::new(model);
    for row in case.rows.iter().cycle().take(case.n_rows.next_multiple_of(case.rows.len())) {
        let cells: Vec<Option<f64>> = row.iter().flat_map(|&p| [Some(p), None]).collect();
        rows.push(&cells, Normalize::Never)?;
    }
    let run = |tool: &str, seconds_per_row: f64, largest_error: f64| Run {
        rule_base: case.name.clone(),
        tool: tool.to_owned(),
        size: format!("{} edges, {} multiply-adds", circuit.size().edges, circuit.size().multiply_adds),
        compile_seconds,
        seconds_per_row,
        largest_error,
    };

    let mut batch = None;
    let seconds = seconds_per_call(floor, || batch = circuit.infer_batch(&rows).ok());
    let batch = batch.context("a row is impossible")?;
    let error = largest_error(case, |row| batch.marginals(row).unwrap_or_default())?;
    let in_batch = run("prsl", seconds / rows.n_rows() as f64, error);

    let one_by_one = || -> prsl::Result<Vec<Posterior>> {
        (0..case.rows.len()).map(|row| circuit.infer(&rows.row(row))).collect()
    };
    let posteriors = one_by_one()?;
    let seconds = seconds_per_call(floor, || {
        std::hint::black_box(one_by_one().expect("these rows have answers"));
    });
    let error = largest_error(case, |row| posteriors[row].marginals())?;
    let single = run("prsl, one row per call", seconds / case.rows.len() as f64, error);
    Ok(vec![in_batch, single])
}

/// The largest difference to the stored marginals. Returns an error if it exceeds the tolerance.
fn largest_error<'a>(case: &Case, marginals: impl Fn(usize) -> &'a [f64]) -> Result<f64> {
    let mut largest: f64 = 0.0;
    for (row, expected) in case.marginals.iter().enumerate() {
        let actual = marginals(row);
        ensure!(actual.len() == 2 * expected.len(), "{}: row {} has no answer", case.name, row + 1);
        for (label, (actual, expected)) in actual.iter().step_by(2).zip(expected).enumerate() {
            let error = (actual - expected).abs();
            ensure!(
                error <= TOLERANCE,
                "DISAGREEMENT: {} row {} label {}: {actual}, expected {expected}",
                case.name,
                row + 1,
                label + 1
            );
            largest = largest.max(error);
        }
    }
    Ok(largest)
}

fn report(folder: &Path) -> Result<()> {
    let read = |file: String| -> Result<Vec<u8>> {
        let path = folder.join(file);
        std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let mut table =
        Table::new(["rule base", "tool", "circuit", "compile time", "time per row", "largest error"]);
    let mut others: Vec<Run> = Vec::new();
    for tool in ["pysdd", "klay"] {
        let file = format!("{tool}.json");
        if folder.join(&file).exists() {
            others.extend(serde_json::from_slice::<Vec<Run>>(&read(file)?)?);
        }
    }
    let measured = |name: &&str| folder.join(format!("{name}.case.json")).exists();
    for name in RULE_BASES.into_iter().filter(measured) {
        let case: Case = serde_json::from_slice(&read(format!("{name}.case.json"))?)?;
        for run in case.runs.iter().chain(others.iter().filter(|run| run.rule_base == name)) {
            table.push([
                name.to_owned(),
                run.tool.clone(),
                run.size.clone(),
                seconds(run.compile_seconds),
                seconds(run.seconds_per_row),
                format!("{:.1e}", run.largest_error),
            ]);
        }
    }
    let text = format!("CPU time on one thread. {}\n\n{table}", load());
    let path = folder.join("report.md");
    std::fs::write(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    print!("{text}");
    Ok(())
}

/// A sentence about other programs that ran at the same time. This one keeps one processor busy.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
    match text.split_whitespace().nth(1).and_then(|load| load.parse::<f64>().ok()) {
        Some(load) if load > 1.5 => {
            format!("The machine was busy with other programs: load average {load:.1} on {n_cores} cores.")
        }
        Some(load) => format!("The machine was otherwise idle: load average {load:.1} on {n_cores} cores."),
        None => "The load of the machine is unknown.".to_owned(),
    }
}
