//! Compares prsl with other tools. Writes models with prsl's answers and times, and a report with the results of
//! `peers.py`.
//!
//! `bench/peers/run` runs both programs. Times are CPU time per row on one thread, without compiling a model and
//! reading files. A prsl time is the median of five measurements of a batch of 100 rows. A cell of the report is the
//! median over models. If a row takes longer than 20 ms, the batch has 8 rows. If it takes longer than a second, 4
//! rows are measured once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use prsl::infer::{LoopySettings, MaxProductTree};
use prsl::{
    BeliefMatrix, Body, BranchAndBound, CategoryId, JunctionTree, Limits, Loopy, Model, MostProbable,
    Posteriors,
};
use prsl_bench::{Table, cpu_time, median, seconds, seconds_per_call, three_digits};
use prsl_testkit::{golden, simulated};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The number of rows of a model, and of rows whose marginals are written for other tools to check. All assignments are
/// written.
const ROWS: usize = 100;
const ANSWERS: usize = 10;
/// Pairs of seconds and rows. A row that takes longer is measured in a batch of this number of rows.
const SLOW: (f64, usize) = (0.02, 8);
const VERY_SLOW: (f64, usize) = (1.0, 4);
const LIMITS: Limits = Limits { memory: 4 << 30 };

/// The queries that every tool answers.
struct Question {
    name: &'static str,
    title: &'static str,
    sizes: &'static [usize],
    /// Number of labels from which only three models are measured, and none with `--quick`.
    few_models_from: usize,
}

impl Question {
    fn is_asked(&self, n_labels: usize, index: usize, quick: bool) -> bool {
        let few = if quick { 0 } else { 3 };
        self.sizes.contains(&n_labels) && (n_labels < self.few_models_from || index < few)
    }
}

const QUESTIONS: [Question; 3] = [
    Question {
        name: "marginals",
        title: "Exact marginals",
        sizes: &[5, 10, 20, 30, 40, 60],
        few_models_from: 60,
    },
    Question {
        name: "mpe",
        title: "Exact most probable assignment",
        sizes: &[10, 20, 30, 40, 60, 100],
        few_models_from: 1000,
    },
    Question { name: "loopy", title: "Loopy marginals", sizes: &[10, 30, 100], few_models_from: 1000 },
];

/// An engine of prsl as a column of the report.
struct Engine {
    question: &'static str,
    name: &'static str,
    compile: fn(&Model) -> prsl::Result<Compiled>,
}

/// A compiled model: a function from rows to answers.
type Compiled = Box<dyn Fn(&BeliefMatrix) -> Answers + Sync>;

/// The engines. Another engine takes one line here and one function below.
const ENGINES: [Engine; 4] = [
    Engine { question: "marginals", name: "prsl, junction tree", compile: junction_tree },
    Engine { question: "mpe", name: "prsl, max-product tree", compile: max_product_tree },
    Engine { question: "mpe", name: "prsl, branch and bound", compile: branch_and_bound },
    Engine { question: "loopy", name: "prsl, loopy", compile: loopy },
];

fn junction_tree(model: &Model) -> prsl::Result<Compiled> {
    let engine = JunctionTree::compile_within(model, LIMITS)?;
    Ok(Box::new(move |rows| Answers::Marginals(engine.infer_batch(rows).expect("rows of the model"))))
}

fn max_product_tree(model: &Model) -> prsl::Result<Compiled> {
    let engine = MaxProductTree::compile_within(model, LIMITS)?;
    Ok(Box::new(move |rows| Answers::Best(engine.best_batch(rows).expect("rows of the model"))))
}

fn branch_and_bound(model: &Model) -> prsl::Result<Compiled> {
    let engine = BranchAndBound::compile(model)?;
    Ok(Box::new(move |rows| Answers::Best(engine.best_batch(rows).expect("rows of the model"))))
}

/// Loopy propagation without merged rules. Other tools do not merge rules, and merging may change the answer.
fn loopy(model: &Model) -> prsl::Result<Compiled> {
    let engine = Loopy::compile_with(model, LoopySettings { merge: false, ..LoopySettings::default() })?;
    Ok(Box::new(move |rows| Answers::Marginals(engine.infer_batch(rows).expect("rows of the model"))))
}

enum Answers {
    Marginals(Posteriors),
    Best(Vec<Option<MostProbable>>),
}

impl Answers {
    /// Answers in the format of `peers.py`. `final` tells whether inference finished, instead of stopping at a limit.
    fn to_json(&self) -> Value {
        match self {
            Answers::Marginals(posteriors) => (0..posteriors.n_rows().min(ANSWERS))
                .map(|row| {
                    json!({"marginals": posteriors.marginals(row), "final": posteriors.stopped(row).is_final()})
                })
                .collect(),
            Answers::Best(best) => best
                .iter()
                .flatten()
                .map(|best| json!({"assignment": best.assignment.indices(), "final": best.is_optimal()}))
                .collect(),
        }
    }
}

/// A model, its rows, and prsl's answers.
#[derive(Serialize, Deserialize)]
struct Case {
    name: String,
    n_labels: usize,
    /// The number of categories of every label.
    sizes: Vec<usize>,
    rules: Vec<CaseRule>,
    /// The beliefs of each row: the labels' distributions one after the other.
    rows: Vec<Vec<f64>>,
    /// The queries for other tools about this model.
    questions: Vec<String>,
    runs: Vec<Run>,
}

#[derive(Serialize, Deserialize)]
struct CaseRule {
    probability: f64,
    /// For each label, the inhibition probability of each category.
    inhibitions: Vec<(usize, Vec<f64>)>,
}

/// The result of one engine on one model.
#[derive(Serialize, Deserialize)]
struct Run {
    question: String,
    engine: String,
    /// `None` if the engine refused the model.
    seconds_per_row: Option<f64>,
    compile_seconds: f64,
    answers: Value,
}

/// The result of another tool on one model, as `peers.py` writes it.
#[derive(Deserialize)]
struct PeerRun {
    question: String,
    n_labels: usize,
    peer: String,
    /// `None` if it failed or exceeded the time limit.
    seconds_per_row: Option<f64>,
}

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write models with prsl's answers and times.
    Models {
        folder: PathBuf,
        /// Two models of each size.
        #[arg(long)]
        quick: bool,
    },
    /// Print a table per query, and write them to `report.md`.
    Report { folder: PathBuf },
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Models { folder, quick } => write_models(&folder, quick),
        Command::Report { folder } => report(&folder),
    }
}

fn write_models(folder: &Path, quick: bool) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let mut sizes: Vec<usize> = QUESTIONS.iter().flat_map(|question| question.sizes).copied().collect();
    sizes.sort_unstable();
    sizes.dedup();
    for n_labels in sizes {
        for (index, (name, model, rows)) in models(n_labels, quick).into_iter().enumerate() {
            let mut case = case(&name, &model, &rows);
            for question in QUESTIONS.iter().filter(|question| question.is_asked(n_labels, index, quick)) {
                case.questions.push(question.name.to_owned());
                for engine in ENGINES.iter().filter(|engine| engine.question == question.name) {
                    let run = one_thread.install(|| run(engine, &model, &rows));
                    let time = run.seconds_per_row.map_or("too large".to_owned(), seconds);
                    eprintln!("{name}: {}: {time}", engine.name);
                    case.runs.push(run);
                }
            }
            let path = folder.join(format!("{name}.json"));
            std::fs::write(&path, serde_json::to_vec(&case)?)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

/// The authors' models of this size if their files are available, and simulated ones otherwise.
fn models(n_labels: usize, quick: bool) -> Vec<(String, Model, BeliefMatrix)> {
    let n_models = if quick { 2 } else { 10 };
    let golden = match n_labels {
        5 => golden("small"),
        10 => golden("medium"),
        30 => golden("almostLarge"),
        _ => Vec::new(),
    };
    if !golden.is_empty() {
        return golden
            .into_iter()
            .take(n_models)
            .map(|golden| (golden.name, golden.model, golden.rows))
            .collect();
    }
    (0..n_models)
        .map(|seed| {
            let (model, rows) = simulated(n_labels, n_labels, ROWS, seed as u64);
            (format!("simulated_{n_labels:03}_{seed:02}"), model, rows)
        })
        .collect()
}

fn case(name: &str, model: &Model, rows: &BeliefMatrix) -> Case {
    let sizes: Vec<usize> = model.labels().iter().map(prsl::Label::n_categories).collect();
    let rules = model.rules().iter().map(|rule| {
        let Body::NoisyOr(noisy_or) = rule.body() else {
            unreachable!("these models have noisy-or rules only")
        };
        let inhibitions = noisy_or.scope().into_iter().map(|label| {
            let of = |category| noisy_or.inhibition(label, CategoryId::new(category));
            (label.index(), (0..sizes[label.index()]).map(of).collect())
        });
        CaseRule { probability: rule.probability(), inhibitions: inhibitions.collect() }
    });
    Case {
        name: name.to_owned(),
        n_labels: sizes.len(),
        rules: rules.collect(),
        rows: (0..rows.n_rows()).map(|row| rows.row(row).to_vec()).collect(),
        sizes,
        questions: Vec::new(),
        runs: Vec::new(),
    }
}

fn run(engine: &Engine, model: &Model, rows: &BeliefMatrix) -> Run {
    let (question, name) = (engine.question.to_owned(), engine.name.to_owned());
    let start = cpu_time();
    let compiled = (engine.compile)(model);
    let compile_seconds = cpu_time().saturating_sub(start).as_secs_f64();
    let Ok(compiled) = compiled else {
        return Run { question, engine: name, seconds_per_row: None, compile_seconds, answers: json!([]) };
    };
    let timed = |rows: &BeliefMatrix| {
        let start = cpu_time();
        let answers = compiled(rows);
        (answers, cpu_time().saturating_sub(start).as_secs_f64() / rows.n_rows() as f64)
    };
    let (mut answers, mut seconds_per_row) = timed(&rows.slice(0..1));
    if seconds_per_row > VERY_SLOW.0 {
        (answers, seconds_per_row) = timed(&rows.slice(0..VERY_SLOW.1));
    } else {
        let n_rows = if seconds_per_row > SLOW.0 { SLOW.1 } else { rows.n_rows() };
        let batch = rows.slice(0..n_rows);
        let call = || answers = compiled(&batch);
        seconds_per_row = seconds_per_call(Duration::from_millis(100), call) / n_rows as f64;
    }
    let answers = answers.to_json();
    Run { question, engine: name, seconds_per_row: Some(seconds_per_row), compile_seconds, answers }
}

fn report(folder: &Path) -> Result<()> {
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(folder.join("models"))? {
        let path = entry?.path();
        let case: Case = serde_json::from_slice(&std::fs::read(&path)?)
            .with_context(|| format!("cannot read {}", path.display()))?;
        cases.push(case);
    }
    let peers: Vec<PeerRun> = serde_json::from_slice(&std::fs::read(folder.join("peers.json"))?)?;
    let mut text = String::from(
        "CPU time per row on one thread, compiling aside; medians over models. In parentheses: over how many, if not \
         over all.\n",
    );
    for question in &QUESTIONS {
        write!(text, "\n### {}\n\n{}", question.title, table(question, &cases, &peers))?;
    }
    let path = folder.join("report.md");
    std::fs::write(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    print!("{text}");
    Ok(())
}

/// The times of one tool at one size; infinite if there is no answer.
type Times = Vec<f64>;

fn table(question: &Question, cases: &[Case], peers: &[PeerRun]) -> Table {
    let engines: Vec<&str> =
        ENGINES.iter().filter(|engine| engine.question == question.name).map(|engine| engine.name).collect();
    let mut names: Vec<&str> = Vec::new();
    let mut times: BTreeMap<(usize, &str), Times> = BTreeMap::new();
    for peer in peers.iter().filter(|peer| peer.question == question.name) {
        if !names.contains(&peer.peer.as_str()) {
            names.push(&peer.peer);
        }
        let time = peer.seconds_per_row.unwrap_or(f64::INFINITY);
        times.entry((peer.n_labels, &peer.peer)).or_default().push(time);
    }
    for case in cases {
        for run in case.runs.iter().filter(|run| run.question == question.name) {
            let time = run.seconds_per_row.unwrap_or(f64::INFINITY);
            times.entry((case.n_labels, &run.engine)).or_default().push(time);
        }
    }
    let heads = ["labels", "models"].iter().chain(&engines).chain(&names).chain(&["fastest other / prsl"]);
    let mut table = Table::new(heads.copied());
    for &size in question.sizes {
        let n_models = cases
            .iter()
            .filter(|case| case.n_labels == size && case.questions.iter().any(|name| name == question.name))
            .count();
        if n_models == 0 {
            continue;
        }
        let median_of =
            |name: &&str| times.get(&(size, *name)).and_then(|times| median(times.iter().copied()));
        let fastest = |names: &[&str]| names.iter().filter_map(median_of).fold(f64::INFINITY, f64::min);
        let ratio = fastest(&names) / fastest(&engines);
        let ratio = if ratio.is_finite() && ratio > 0.0 { three_digits(ratio) } else { String::new() };
        let cells = engines.iter().chain(&names).map(|name| cell(times.get(&(size, *name)), n_models));
        table.push([size.to_string(), n_models.to_string()].into_iter().chain(cells).chain([ratio]));
    }
    table
}

fn cell(times: Option<&Times>, n_models: usize) -> String {
    let Some(times) = times else { return String::new() };
    let time = match median(times.iter().copied()) {
        Some(time) if time.is_finite() => seconds(time),
        _ => "no answer".to_owned(),
    };
    if times.len() < n_models { format!("{time} ({})", times.len()) } else { time }
}
