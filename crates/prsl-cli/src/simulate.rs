//! `prsl simulate`: random models of any size, with beliefs and sampled truths, and random rows for a given model.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use prsl::calibrate::BeliefOrigin;
use prsl::infer::{Samples, Sampling};
use prsl::simulate::{RowSimulation, Simulation};
use prsl::{Assignment, BeliefMatrix, Engine, Engines, Label, LabelId, Model};
use prsl_data::{Column, ColumnKind, ColumnSpec, Format, TableWriter, Target};

use crate::arguments::MemoryLimit;
use crate::memory::Memory;
use crate::model::{self, ModelFile};
use crate::output;
use crate::progress::{counted, grouped};
use crate::style::{self, shell, styled};

/// Draw a random model of any size, with beliefs; or rows for a given model
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl simulate -o simulated
  prsl simulate --labels 30 --rules 40 --rows 10000 --seed 7 -o large
  prsl simulate --rows 1000 --sample -o study
  prsl simulate warehouse.prsl --rows 500 --missing-share 0.1 -o shifts

Without MODEL, models are drawn as in the simulation study of the pRSL paper: labels of 2 to 4 categories, noisy-or rules over 2 to 5 \
categories, inhibition probabilities of density 2(1 - x), and beliefs uniform over all distributions. The same \
arguments always draw the same files.

Writes model.prsl and beliefs.csv, with `--sample` also truth.csv: one joint sample of all labels for each row, from the \
posterior. `--memory` limits the number of rows, and the tables for exact samples; beyond that, samples are approximate.

With MODEL, writes beliefs.csv and truth.csv: data for a rule base that has none yet. Truths are joint samples of the \
rules and priors. Classifiers see the truth with normal noise, and report P(category | what they see) to three digits. \
With `--strength` D, a yes/no label with an even prior is predicted right with probability 0.76 for 1, 0.86 for 1.5 and \
0.92 for 2. On these rows, no program predicts better than the model itself.")]
pub struct Arguments {
    /// The model to draw rows for, `.prsl` text or JSON; `-` is standard input [default: draw a model, too]
    model: Option<PathBuf>,
    /// The number of labels
    #[arg(long, value_name = "J", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "model")]
    labels: u32,
    /// The number of rules [default: as many as labels]
    #[arg(long, value_name = "K", conflicts_with = "model")]
    rules: Option<u32>,
    /// The number of rows of beliefs
    #[arg(long, value_name = "N", default_value_t = 100)]
    rows: u32,
    /// Seed of the model and the rows
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// The folder for the files; created if necessary
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Also draw the category of every label for each row; with MODEL, it always is
    #[arg(long)]
    sample: bool,
    /// With MODEL: how well its classifiers see, from 0 [default: 1.5]
    #[arg(long, value_name = "D", requires = "model")]
    strength: Option<f64>,
    /// With MODEL: the share of missing beliefs, from 0 to 1 [default: 0]
    #[arg(long, value_name = "SHARE", requires = "model")]
    missing_share: Option<f64>,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    memory: MemoryLimit,
}

/// Minimum memory for rows in bytes, even below the memory limit, which is mainly for tables.
const ALWAYS: u64 = 64 << 20;

/// The files of a simulation.
struct Files {
    model: PathBuf,
    beliefs: PathBuf,
    truth: PathBuf,
}

/// A joint sample for each row, `None` for an impossible row, and the engine.
struct Truth {
    rows: Vec<Option<Assignment>>,
    engine: Engine,
}

impl Arguments {
    /// Draws, writes the files, and prints what to do with them.
    pub fn run(self) -> Result<ExitCode> {
        let files = Files::new(&self.output);
        match &self.model {
            None => self.draw_model(&files),
            Some(path) => self.draw_rows(path, &files),
        }?;
        Ok(ExitCode::SUCCESS)
    }

    fn draw_model(&self, files: &Files) -> Result<()> {
        self.check_files(files)?;
        // A label has up to four categories.
        self.check_memory(4.0 * f64::from(self.labels), f64::from(self.labels))?;
        let (model, rows) = self.simulation().draw()?;
        let truth = self.sample.then(|| self.truth(&model, &rows)).transpose()?;
        self.make_folder()?;
        output::write(&model.to_string(), Some(&files.model))?;
        write_beliefs(&model, &rows, &files.beliefs)?;
        if let Some(truth) = &truth {
            write_truth(&model, &truth.rows, &files.truth)?;
        }
        output::print(&summary(files, None, &model, &rows, truth.as_ref())?)
    }

    /// Draws rows for the model of a file.
    fn draw_rows(&self, path: &Path, files: &Files) -> Result<()> {
        let ModelFile { document, .. } = ModelFile::read(path)?;
        let model = document.model();
        self.refuse_to_overwrite(&[&files.beliefs, &files.truth])?;
        self.check_memory(model.n_categories() as f64, model.labels().len() as f64)?;
        let sampler = Engines::new(model).with_limits(self.memory.limits()).sampler()?;
        let (truths, rows) =
            self.row_simulation().draw(&sampler).with_context(|| format!("`{}`", model::name(path)))?;
        let truth = Truth { rows: truths.into_iter().map(Some).collect(), engine: sampler.engine() };
        self.make_folder()?;
        write_beliefs(model, &rows, &files.beliefs)?;
        write_truth(model, &truth.rows, &files.truth)?;
        output::print(&summary(files, Some(path), model, &rows, Some(&truth))?)
    }

    fn make_folder(&self) -> Result<()> {
        let folder = &self.output;
        fs::create_dir_all(folder).with_context(|| format!("cannot make folder `{}`", folder.display()))
    }

    fn row_simulation(&self) -> RowSimulation {
        let default = RowSimulation::default();
        RowSimulation {
            n_rows: self.rows as usize,
            strength: self.strength.unwrap_or(default.strength),
            missing: self.missing_share.unwrap_or(default.missing),
            seed: self.seed,
        }
    }

    fn simulation(&self) -> Simulation {
        let (n_labels, n_rules) = (self.labels as usize, self.rules.unwrap_or(self.labels) as usize);
        Simulation { n_labels, n_rules, n_rows: self.rows as usize, seed: self.seed }
    }

    /// Rejects more rows than fit the memory. A sample of a label is one number.
    fn check_memory(&self, n_categories: f64, n_labels: f64) -> Result<()> {
        let is_sampled = self.sample || self.model.is_some();
        let numbers = f64::from(self.rows) * (n_categories + if is_sampled { n_labels } else { 0.0 });
        let (needed, limit) = (Memory { bytes: (8.0 * numbers) as u64 }, self.memory.memory);
        if needed.bytes > limit.bytes.max(ALWAYS) {
            bail!(
                "the rows need up to {needed}, more than the limit of {limit}; draw fewer rows, or raise the limit with `--memory`"
            );
        }
        Ok(())
    }

    /// Refuses to overwrite files, and to leave a truth file that belongs to other beliefs.
    fn check_files(&self, files: &Files) -> Result<()> {
        self.refuse_to_overwrite(&[&files.model, &files.beliefs, &files.truth])?;
        if files.truth.exists() && !self.sample {
            bail!(
                "`{}` would not belong to the new beliefs; draw a new one with `--sample`, or remove it",
                files.truth.display()
            );
        }
        Ok(())
    }

    fn refuse_to_overwrite(&self, files: &[&PathBuf]) -> Result<()> {
        match files.iter().find(|file| file.exists()) {
            Some(file) if !self.force => {
                bail!("`{}` exists; name another folder, or overwrite it with `--force`", file.display())
            }
            _ => Ok(()),
        }
    }

    fn truth(&self, model: &Model, rows: &BeliefMatrix) -> Result<Truth> {
        let sampler = Engines::new(model).with_limits(self.memory.limits()).sampler()?;
        let sampling = Sampling { n_samples: 1, seed: self.seed, first_row: 0 };
        let first = |samples: Option<Samples>| samples.and_then(|samples| samples.into_iter().next());
        let samples = sampler.sample_batch(rows, &sampling)?.into_iter().enumerate();
        let drawn =
            samples.map(|(row, samples)| samples.map(first).with_context(|| format!("row {}", row + 1)));
        Ok(Truth { rows: drawn.collect::<Result<_>>()?, engine: sampler.engine() })
    }
}

impl Files {
    fn new(folder: &Path) -> Files {
        let [model, beliefs, truth] =
            ["model.prsl", "beliefs.csv", "truth.csv"].map(|name| folder.join(name));
        Files { model, beliefs, truth }
    }
}

/// Number of rows written at a time.
const CHUNK: usize = 1000;

/// Writes the beliefs of classifiers: a column per category, or the probability of yes for a yes/no label. Latent labels
/// have no columns, and missing beliefs no numbers.
fn write_beliefs(model: &Model, rows: &BeliefMatrix, path: &Path) -> Result<()> {
    let columns: Vec<BeliefColumn> = model.label_ids().flat_map(|id| belief_columns(model, id)).collect();
    let specs: Vec<_> =
        columns.iter().map(|column| ColumnSpec::new(column.name.as_str(), ColumnKind::Number)).collect();
    let mut table = TableWriter::create(Target::from(path), Format::Csv, &specs)?;
    for first in (0..rows.n_rows()).step_by(CHUNK) {
        let chunk = first..rows.n_rows().min(first + CHUNK);
        let cell = |row: usize, column: &BeliefColumn| {
            (rows.origin(row, column.label) != BeliefOrigin::Prior).then(|| rows.row(row)[column.index])
        };
        let numbers =
            columns.iter().map(|column| Column::Number(chunk.clone().map(|row| cell(row, column)).collect()));
        table.write(&numbers.collect::<Vec<_>>())?;
    }
    Ok(table.finish()?)
}

/// A column of beliefs.
struct BeliefColumn {
    name: String,
    label: LabelId,
    /// Position of the category in a row.
    index: usize,
}

fn belief_columns(model: &Model, id: LabelId) -> Vec<BeliefColumn> {
    let (label, block) = (model.label(id), model.block(id));
    if label.classifier().is_none() {
        return Vec::new();
    }
    if label.is_binary() {
        return vec![BeliefColumn { name: label.name().to_owned(), label: id, index: block.start }];
    }
    let name = |category: &String| format!("{}={category}", label.name());
    let named = label.categories().iter().map(name).zip(block);
    named.map(|(name, index)| BeliefColumn { name, label: id, index }).collect()
}

fn write_truth(model: &Model, truth: &[Option<Assignment>], path: &Path) -> Result<()> {
    let column = |label: &Label| ColumnSpec::new(label.name(), ColumnKind::Text);
    let columns: Vec<_> = model.labels().iter().map(column).collect();
    let mut table = TableWriter::create(Target::from(path), Format::Csv, &columns)?;
    for chunk in truth.chunks(CHUNK) {
        let column = |(id, label): (LabelId, &Label)| {
            let category = |row: &Assignment| label.category(row.category(id)).to_owned();
            Column::Text(chunk.iter().map(|row| row.as_ref().map(category)).collect())
        };
        table.write(&model.label_ids().zip(model.labels()).map(column).collect::<Vec<_>>())?;
    }
    Ok(table.finish()?)
}

/// The summary: files and next commands. `given` is the file of a given model.
fn summary(
    files: &Files,
    given: Option<&Path>,
    model: &Model,
    rows: &BeliefMatrix,
    truth: Option<&Truth>,
) -> Result<String> {
    let counted = |n: usize, one: &str| counted(n as u64, one);
    let mut text = String::new();
    let mut tell = |file: &Path, what: String| {
        writeln!(text, "{} {}", styled(style::GOOD, "wrote"), format_args!("{}: {what}", file.display()))
    };
    if given.is_none() {
        let (labels, rules) = (counted(model.labels().len(), "label"), counted(model.rules().len(), "rule"));
        tell(&files.model, format!("{labels}, {rules}"))?;
    }
    tell(&files.beliefs, format!("{} of beliefs", counted(rows.n_rows(), "row")))?;
    if let Some(truth) = truth {
        let (n_rows, n_possible) = (truth.rows.len(), truth.rows.iter().flatten().count());
        let what = if n_possible == n_rows {
            format!("{}, {}", counted(n_rows, "joint sample"), quality(truth.engine))
        } else {
            let (possible, rows) = (grouped(n_possible as u64), counted(n_rows, "row"));
            format!(
                "joint samples for {possible} of {rows}, as the rules leave nothing possible for the others"
            )
        };
        tell(&files.truth, what)?;
    }
    let (model, beliefs) = (shell(given.unwrap_or(&files.model)), shell(&files.beliefs));
    writeln!(text, "\nNext, predict and explain:\n")?;
    writeln!(text, "  prsl predict {model} {beliefs}")?;
    writeln!(text, "  prsl explain {model} {beliefs} --row 1")?;
    Ok(text)
}

fn quality(engine: Engine) -> &'static str {
    match engine {
        Engine::Gibbs => "approximate (Gibbs sampling), since exact ones take more than `--memory` allows",
        _ => "exact",
    }
}
