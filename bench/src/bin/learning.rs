//! Learning on the paper's datasets: classifiers' beliefs by fold, learned on the training rows, chosen on the validation rows, reported on the test
//! rows. One setting for all datasets.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use prsl::learn::{Examples, Learner};
use prsl::metrics::{Evaluation, Metric};
use prsl::{BeliefMatrix, Model, Normalize};
use prsl_data::{Cell, TableReader};

const DATASETS: [&str; 6] = ["emotions", "yeast", "birds", "medical", "enron", "mediamill2k"];
const METRICS: [Metric; 5] = [
    Metric::JointAccuracy,
    Metric::MeanJointLogLikelihood,
    Metric::MedianJointLogLikelihood,
    Metric::MedianLabelLogLikelihood,
    Metric::HammingLoss,
];

/// Learning on the paper's datasets.
#[derive(Parser)]
struct Arguments {
    /// Where the belief files are.
    #[arg(long, default_value = "../shared/data/beliefs")]
    data: PathBuf,
    /// Datasets, all of them by default: `birds,yeast`.
    #[arg(long, value_delimiter = ',')]
    datasets: Option<Vec<String>>,
    /// So many folds of each at most.
    #[arg(long, default_value_t = usize::MAX)]
    folds: usize,
    /// Where the table goes, as Markdown.
    #[arg(long, default_value = "target/learning.md")]
    out: PathBuf,
}

/// The rows of one fold.
struct Fold {
    train: Examples,
    valid: Examples,
    test: Examples,
}

/// Rows as they are read: beliefs and truths.
type Part = (BeliefMatrix, Vec<Vec<Option<usize>>>);

/// One fold's scores on its test rows.
struct Outcome {
    scores: Vec<f64>,
    seconds: f64,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if !arguments.data.is_dir() {
        println!(
            "nothing is measured: there are no belief files in {}; name their folder with --data",
            arguments.data.display()
        );
        return Ok(());
    }
    let is_wanted =
        |name: &str| arguments.datasets.as_ref().is_none_or(|only| only.iter().any(|other| other == name));
    let mut table = header();
    print!("{table}");
    for name in DATASETS.into_iter().filter(|name| is_wanted(name)) {
        let (model, folds) = read(&arguments.data.join(format!("{name}.parquet")))?;
        let mut outcomes = Vec::new();
        for (index, fold) in folds.iter().take(arguments.folds).enumerate() {
            eprint!("\r{name}: fold {} of {}  ", index + 1, folds.len());
            outcomes.push(measure(&model, fold)?);
        }
        eprint!("\r");
        let line = line(name, &outcomes);
        print!("{line}");
        table += &line;
    }
    if let Some(folder) = arguments.out.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    std::fs::write(&arguments.out, table)
        .with_context(|| format!("cannot write {}", arguments.out.display()))?;
    Ok(())
}

fn header() -> String {
    let names: Vec<String> = METRICS.iter().map(|metric| metric.name().replace('_', " ")).collect();
    format!("| dataset | {} | seconds a fold |\n|---|{}---|\n", names.join(" | "), "---|".repeat(names.len()))
}

/// Means over folds, with standard errors.
fn line(name: &str, outcomes: &[Outcome]) -> String {
    let n = outcomes.len() as f64;
    let cell = |metric: usize| {
        let mean = outcomes.iter().map(|outcome| outcome.scores[metric]).sum::<f64>() / n;
        let squares: f64 = outcomes.iter().map(|outcome| (outcome.scores[metric] - mean).powi(2)).sum();
        format!("{mean:.3} ± {:.3}", (squares / (n - 1.0).max(1.0) / n).sqrt())
    };
    let cells: Vec<String> = (0..METRICS.len()).map(cell).collect();
    let seconds = outcomes.iter().map(|outcome| outcome.seconds).sum::<f64>() / n;
    format!("| {name} | {} | {seconds:.1} |\n", cells.join(" | "))
}

fn measure(model: &Model, fold: &Fold) -> Result<Outcome> {
    let start = Instant::now();
    let learned = Learner::default().learn(model, &fold.train, &fold.valid)?;
    let seconds = start.elapsed().as_secs_f64();
    let mut rows = BeliefMatrix::new(&learned.model);
    for row in 0..fold.test.n_rows() {
        let cells: Vec<Option<f64>> = fold.test.beliefs().row(row).iter().copied().map(Some).collect();
        rows.push(&cells, Normalize::Always)?;
    }
    let scores = Evaluation::of(&learned.model, &rows, fold.test.truths())?.scores();
    let scores = METRICS
        .iter()
        .map(|metric| scores.get(*metric).context("a score is missing"))
        .collect::<Result<_>>()?;
    Ok(Outcome { scores, seconds })
}

fn read(path: &Path) -> Result<(Model, Vec<Fold>)> {
    let mut table = TableReader::open(path)?;
    let columns = table.columns().to_vec();
    let names: Vec<&str> = columns.iter().filter_map(|column| column.strip_prefix("belief_")).collect();
    let builder = names.iter().fold(Model::builder(), |builder, name| builder.binary_label(*name));
    let model = builder.build()?;
    let column = |name: &str| {
        columns
            .iter()
            .position(|column| column == name)
            .with_context(|| format!("{} has no column {name}", path.display()))
    };
    let (fold, split) = (column("fold")?, column("split")?);
    let beliefs: Vec<usize> =
        names.iter().map(|name| column(&format!("belief_{name}"))).collect::<Result<_>>()?;
    let truths: Vec<usize> =
        names.iter().map(|name| column(&format!("true_{name}"))).collect::<Result<_>>()?;
    let mut parts: Vec<[Part; 3]> = Vec::new();
    while let Some(chunk) = table.read_chunk(1000)? {
        for row in 0..chunk.n_rows() {
            let number = |column: usize| -> Result<f64> {
                chunk.cell(row, column).number()?.context("a number is missing")
            };
            let fold = number(fold)? as usize;
            while parts.len() <= fold {
                parts.push(std::array::from_fn(|_| (BeliefMatrix::new(&model), Vec::new())));
            }
            let split = match chunk.cell(row, split) {
                Cell::Text("train") => 0,
                Cell::Text("val") => 1,
                _ => 2,
            };
            let yes: Vec<f64> = beliefs.iter().map(|&column| number(column)).collect::<Result<_>>()?;
            let cells: Vec<Option<f64>> =
                yes.into_iter().flat_map(|yes| [Some(yes), Some(1.0 - yes)]).collect();
            let is_no =
                |&column: &usize| -> Result<Option<usize>> { Ok(Some(usize::from(number(column)? < 0.5))) };
            let (rows, known) = &mut parts[fold][split];
            rows.push(&cells, Normalize::Always)?;
            known.push(truths.iter().map(is_no).collect::<Result<_>>()?);
        }
    }
    let folds = parts.into_iter().filter(|[train, ..]| train.0.n_rows() > 0).map(|parts| {
        let [train, valid, test] = parts.map(|(beliefs, truths)| Examples::new(beliefs, truths));
        Ok(Fold { train: train?, valid: valid?, test: test? })
    });
    Ok((model, folds.collect::<Result<_>>()?))
}
