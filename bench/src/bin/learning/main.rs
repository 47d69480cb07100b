//! Learning on the paper's datasets. Input is classifiers' beliefs by fold. Models are learned on training rows,
//! selected on validation rows, and scored on test rows, with one setting for all datasets.

mod datasets;
mod papers_recipe;
mod simulated;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use prsl::learn::Examples;
use prsl::metrics::{Evaluation, Metric};
use prsl::{BeliefMatrix, CategoryId, LabelId, Model, Normalize, Truth};
use prsl_bench::publish::{Published, origin, publish};
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
    /// The folder of the belief files.
    #[arg(long, default_value = "../shared/data/beliefs")]
    data: PathBuf,
    /// Datasets, all of them by default: `birds,yeast`.
    #[arg(long, value_delimiter = ',')]
    datasets: Option<Vec<String>>,
    /// Maximum number of folds per dataset.
    #[arg(long, default_value_t = usize::MAX)]
    folds: usize,
    /// Parts, all of them by default.
    #[arg(long, value_delimiter = ',')]
    parts: Option<Vec<Part>>,
    /// Write the tables into `docs`. With `--datasets` or `--folds` nothing is written there.
    #[arg(long)]
    publish: bool,
    /// The file for the report, as Markdown.
    #[arg(long, default_value = "target/learning.md")]
    out: PathBuf,
    /// The file for the scores of the default recipe by fold, as CSV.
    #[arg(long, default_value = "target/learning.csv")]
    scores: PathBuf,
}

/// A part of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The default recipe on all datasets.
    Default,
    /// Missing training labels.
    Missing,
    /// A label whose truth is never known.
    Hidden,
    /// Planted rules that are found again.
    Planted,
    /// Learning from few rows.
    Little,
    /// Recovery of simulated models.
    Found,
    /// Labels whose classifier is silent.
    Silent,
    /// Time by number of rows.
    Scale,
    /// The time of a step of the paper's recipe.
    Step,
}

/// The rows of one fold.
struct Fold {
    train: Examples,
    valid: Examples,
    test: Examples,
}

/// Rows as they are read: beliefs and truths.
type Rows = (BeliefMatrix, Vec<Truth>);

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut report = String::new();
    let mut tables = Vec::new();
    let is_there = arguments.data.is_dir();
    if !is_there {
        println!(
            "only simulated data is learned from: there are no belief files in {}; name their folder with --data",
            arguments.data.display()
        );
    }
    for part in Part::value_variants() {
        let is_wanted = arguments.parts.as_ref().is_none_or(|parts| parts.contains(part));
        let needs_data = matches!(part, Part::Default | Part::Missing | Part::Hidden);
        if !is_wanted || needs_data && !is_there {
            continue;
        }
        let start = report.len();
        let mut page = Page { text: &mut report };
        match part {
            Part::Default => datasets::default_recipe(&arguments, &mut page)?,
            Part::Missing => datasets::missing_labels(&arguments, &mut page)?,
            Part::Hidden => datasets::hidden_label(&arguments, &mut page)?,
            Part::Planted => simulated::planted(&mut page)?,
            Part::Little => simulated::little_data(&mut page)?,
            Part::Found => simulated::found_again(&mut page)?,
            Part::Silent if is_there => simulated::silent_classifiers(&arguments, &mut page)?,
            Part::Silent => {}
            Part::Scale => simulated::scale(&mut page)?,
            Part::Step => papers_recipe::steps(&mut page)?,
        }
        tables.extend(published(*part, &report[start..]));
    }
    write(&arguments.out, &report)?;
    if arguments.publish && arguments.datasets.is_none() && arguments.folds == usize::MAX {
        for page in publish(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &tables)? {
            println!("{}", page.display());
        }
    }
    Ok(())
}

/// The table of a part for the documentation, with its origin behind its title; `None` if it measured nothing.
fn published(part: Part, text: &str) -> Option<Published> {
    let (title, table) = text.trim_start().strip_prefix("### ")?.split_once('\n')?;
    let name = part.to_possible_value()?.get_name().to_owned();
    let command = format!("make bench-learning LEARNING=\"--parts {name}\"");
    let text = format!("{title}. {}\n\n{}", origin(&command), table.trim_start());
    Some(Published { name: format!("learning-{name}"), text })
}

/// Writes a file, and makes its folder.
fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The report, which is printed and written.
struct Page<'a> {
    text: &'a mut String,
}

impl Page<'_> {
    fn line(&mut self, line: &str) {
        println!("{line}");
        let _ = writeln!(self.text, "{line}");
    }

    fn table(&mut self, title: &str, columns: &[&str]) {
        self.line(&format!("\n### {title}\n"));
        self.line(&format!("| {} |", columns.join(" | ")));
        self.line(&format!("|{}", "---|".repeat(columns.len())));
    }

    fn row(&mut self, cells: &[String]) {
        self.line(&format!("| {} |", cells.join(" | ")));
    }
}

impl Arguments {
    /// The folds of a dataset; empty if it is not requested.
    fn folds(&self, name: &str) -> Result<Option<(Model, Vec<Fold>)>> {
        let is_wanted = self.datasets.as_ref().is_none_or(|only| only.iter().any(|other| other == name));
        if !is_wanted {
            return Ok(None);
        }
        let (model, mut folds) = read(&self.data.join(format!("{name}.parquet")))?;
        folds.truncate(self.folds);
        Ok(Some((model, folds)))
    }
}

fn tell(name: &str, fold: usize, folds: usize) {
    eprint!("\r{name}: fold {} of {folds}          \r", fold + 1);
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean over folds, with its standard error.
fn with_error(values: &[f64]) -> String {
    let (n, mean) = (values.len() as f64, mean(values));
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    format!("{mean:.3} ± {:.3}", (squares / (n - 1.0).max(1.0) / n).sqrt())
}

/// The same rows with other truths.
fn with_truths(
    rows: &Examples,
    mut change: impl FnMut(LabelId, Option<CategoryId>) -> Option<CategoryId>,
) -> Result<Examples> {
    let labels = || rows.model().label_ids();
    let mut changed = |truth: Truth| -> Truth {
        labels().zip(truth.categories()).map(|(label, category)| change(label, category)).collect()
    };
    let truths = rows.truths().map(&mut changed).collect();
    Ok(Examples::new(rows.to_beliefs(), truths)?)
}

/// The beliefs of rows, calibrated by a model, without those about one label.
fn beliefs_without(model: &Model, rows: &Examples, without: usize) -> Result<BeliefMatrix> {
    let blocks: Vec<_> = model.label_ids().map(|label| (label.index(), model.block(label))).collect();
    let mut beliefs = BeliefMatrix::new(model);
    for row in 0..rows.n_rows() {
        let beliefs_of_row = rows.beliefs_of(row..row + 1);
        let given = beliefs_of_row.row(0);
        let cell = |(label, at): (usize, usize)| (label != without).then_some(given[at]);
        let cells: Vec<Option<f64>> =
            blocks.iter().flat_map(|(label, block)| block.clone().map(|at| (*label, at))).map(cell).collect();
        beliefs.push(&cells, Normalize::Always)?;
    }
    Ok(beliefs)
}

fn scores(model: &Model, rows: &Examples, wanted: &[Metric]) -> Result<Vec<f64>> {
    scores_of(model, &beliefs_without(model, rows, usize::MAX)?, rows, wanted)
}

fn scores_of(model: &Model, beliefs: &BeliefMatrix, rows: &Examples, wanted: &[Metric]) -> Result<Vec<f64>> {
    let scores = Evaluation::of(model, beliefs, &rows.to_truths())?.scores();
    wanted.iter().map(|metric| scores.get(*metric).context("a score is missing")).collect()
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
    let mut parts: Vec<[Rows; 3]> = Vec::new();
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
            let category = |&column: &usize| -> Result<Option<CategoryId>> {
                Ok(Some(CategoryId::new(usize::from(number(column)? < 0.5)))) // yes is the first category
            };
            let (rows, known) = &mut parts[fold][split];
            rows.push(&cells, Normalize::Always)?;
            known.push(truths.iter().map(category).collect::<Result<_>>()?);
        }
    }
    let folds = parts.into_iter().filter(|[train, ..]| train.0.n_rows() > 0).map(|parts| {
        let [train, valid, test] = parts.map(|(beliefs, truths)| Examples::new(beliefs, truths));
        Ok(Fold { train: train?, valid: valid?, test: test? })
    });
    Ok((model, folds.collect::<Result<_>>()?))
}
