//! Learning on the paper's datasets: fixed beliefs by fold, fitted on the training rows, selected on the validation rows, reported on the
//! test rows.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use prsl::learn::{Examples, Thin};
use prsl::{BeliefMatrix, MaxProductTree, Model, Normalize};
use prsl_data::{Cell, TableReader};

const DATASETS: [&str; 6] = ["emotions", "yeast", "birds", "medical", "enron", "mediamill2k"];

#[derive(Parser)]
struct Arguments {
    /// Where the belief files are.
    #[arg(long, default_value = "../shared/data/beliefs")]
    data: PathBuf,
    /// Datasets, all of them by default.
    #[arg(long, value_delimiter = ',')]
    datasets: Option<Vec<String>>,
    /// Folds, all of them by default.
    #[arg(long)]
    folds: Option<usize>,
    #[arg(long)]
    width: Option<usize>,
    #[arg(long)]
    rules: Option<usize>,
    #[arg(long)]
    steps: Option<usize>,
    #[arg(long)]
    spread: Option<f64>,
    #[arg(long)]
    penalty: Option<f64>,
    #[arg(long)]
    pull: Option<f64>,
    #[arg(long)]
    rate: Option<f64>,
}

/// The rows of one fold.
struct Fold {
    train: Examples,
    valid: Examples,
    test: Examples,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut settings = Thin::default();
    settings.width = arguments.width.unwrap_or(settings.width);
    settings.rules_per_group = arguments.rules.unwrap_or(settings.rules_per_group);
    settings.steps = arguments.steps.unwrap_or(settings.steps);
    settings.spread = arguments.spread.unwrap_or(settings.spread);
    settings.penalty = arguments.penalty.unwrap_or(settings.penalty);
    settings.pull = arguments.pull.unwrap_or(settings.pull);
    settings.learning_rate = arguments.rate.unwrap_or(settings.learning_rate);
    for name in DATASETS
        .iter()
        .filter(|name| arguments.datasets.as_ref().is_none_or(|only| only.iter().any(|o| o == *name)))
    {
        let (model, folds) = read(&arguments.data.join(format!("{name}.parquet")))?;
        let mut sums = [0.0; 5];
        let n = arguments.folds.unwrap_or(folds.len()).min(folds.len());
        for fold in &folds[..n] {
            let start = Instant::now();
            let learned = settings.learn(&model, &fold.train, &fold.valid)?;
            let seconds = start.elapsed().as_secs_f64();
            let accuracy = joint_accuracy(&learned, &fold.test)?;
            let best = learned.curve.iter().max_by(|a, b| a.2.total_cmp(&b.2)).unwrap();
            sums[0] += accuracy;
            sums[1] += learned.mean_log_likelihood(&fold.test);
            sums[2] += learned.validation;
            sums[3] += seconds;
            sums[4] += best.0 as f64;
        }
        let mean = sums.map(|sum| sum / n as f64);
        println!(
            "{name:12} accuracy {:.3} log-likelihood {:.3} (validation {:.3}) {:.1} s a fold, best step {:.0}",
            mean[0], mean[1], mean[2], mean[3], mean[4]
        );
    }
    Ok(())
}

fn joint_accuracy(learned: &prsl::learn::Learned, test: &Examples) -> Result<f64> {
    let engine = MaxProductTree::compile(&learned.model)?;
    let beliefs = learned.calibrated(test)?;
    let best = engine.best_batch(&beliefs);
    let combinations = learned.combinations();
    let mut right = 0;
    for (row, (best, truth)) in best.iter().zip(test.truths()).enumerate() {
        let best = best.as_ref().context("no explanation")?;
        let (mut assignment, mut weight) = (best.assignment.clone(), best.log_weight);
        for (combination, log_typical) in &combinations {
            let own = learned.model.log_weight(beliefs.row(row), combination) + log_typical.exp().ln_1p();
            if own > weight {
                (assignment, weight) = (combination.to_vec(), own);
            }
        }
        right +=
            usize::from(truth.iter().zip(&assignment).all(|(truth, category)| *truth == Some(*category)));
    }
    Ok(right as f64 / test.n_rows() as f64)
}

fn read(path: &Path) -> Result<(Model, Vec<Fold>)> {
    let mut table = TableReader::open(path)?;
    let columns = table.columns().to_vec();
    let names: Vec<&str> = columns.iter().filter_map(|column| column.strip_prefix("belief_")).collect();
    let mut builder = Model::builder();
    for at in 0..names.len() {
        builder = builder.binary_label(format!("l{at}"));
    }
    let model = builder.build()?;
    let column = |name: &str| columns.iter().position(|column| column == name).context("a column is missing");
    let (fold, split) = (column("fold")?, column("split")?);
    let beliefs: Vec<usize> =
        names.iter().map(|name| column(&format!("belief_{name}"))).collect::<Result<_>>()?;
    let truths: Vec<usize> =
        names.iter().map(|name| column(&format!("true_{name}"))).collect::<Result<_>>()?;
    let mut parts: Vec<[(BeliefMatrix, Vec<Vec<Option<usize>>>); 3]> = Vec::new();
    while let Some(chunk) = table.read_chunk(1000)? {
        for row in 0..chunk.n_rows() {
            let number = |column: usize| -> Result<f64> {
                Ok(chunk.cell(row, column).number()?.context("a number is missing")?)
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
            let cells: Vec<Option<f64>> = beliefs
                .iter()
                .map(|&column| number(column))
                .collect::<Result<Vec<f64>>>()?
                .into_iter()
                .flat_map(|yes| [Some(yes), Some(1.0 - yes)])
                .collect();
            let part = &mut parts[fold][split];
            part.0.push(&cells, Normalize::Always)?;
            part.1.push(
                truths
                    .iter()
                    .map(|&column| Ok(Some(usize::from(number(column)? < 0.5))))
                    .collect::<Result<_>>()?,
            );
        }
    }
    let folds = parts.into_iter().filter(|[train, ..]| train.0.n_rows() > 0).map(|parts| {
        let [train, valid, test] = parts.map(|(beliefs, truths)| Examples::new(beliefs, truths));
        Ok(Fold { train: train?, valid: valid?, test: test? })
    });
    Ok((model, folds.collect::<Result<_>>()?))
}
