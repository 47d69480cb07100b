//! `prsl learn`: rules, calibrators and typical combinations from known truths.

mod checkpoint;
mod outcome;
mod rows;
mod run;
mod settings;
mod summary;
mod warnings;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use prsl::Model;
use prsl::learn::Examples;
use prsl::metrics::Bootstrap;
use rayon::ThreadPool;

use self::checkpoint::CHECKPOINT;
pub use self::outcome::{Learning, Likelihood, Outcome, Validated};
use self::run::Clock;
use self::settings::{Calibration, Count, PaperOptions, Recipe, RemovedOptions, folds, parsimony};
use crate::arguments::{MemoryLimit, TableOptions, seconds};
use crate::model::ModelFile;
use crate::progress::Spinner;
use crate::report::Report;
use crate::{calibrate, labeled, output, report};

/// Learn rules from beliefs and known truths, in addition to expert rules
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl learn beliefs.csv truth.csv -o learned.prsl
  prsl learn beliefs.csv truth.csv --base warehouse.prsl --report learned -o learned.prsl
  prsl learn beliefs.csv truth.csv --parsimony explain --rules 20 -o learned.prsl
  prsl learn train.parquet truth.parquet --valid-beliefs valid.parquet --valid-truth valid-truth.parquet -o learned.prsl
  prsl learn excel.csv truth.csv --delimiter ';' --decimal , --id image --weights weight -o learned.prsl
  prsl learn beliefs.csv truth.csv --max-seconds 60 --checkpoint run --resume -o learned.prsl
  prsl learn beliefs.csv truth.csv --recipe paper --rules 20 --calibrate platt -o learned.prsl

BELIEFS has columns `label=category`, or `label` alone for yes/no labels; a new model takes its labels from there, in their order. \
TRUTH has a column for each label, in any order, with the names of categories (for yes/no labels also 1 and 0, true and false), and \
a row for each row of BELIEFS. Empty cells are unknown. Use beliefs for rows that the classifiers were not trained on.

The recipe `clauses` adds readable rules one at a time, such as `sunset -> !urban`. Each time it adds the rule that increases the \
likelihood most, and refits all probabilities and calibrators. It stops when no rule gains more than its price, which `--parsimony` \
sets. It needs no validation set. Each learned rule has a comment in the model: its gain, how many rows break it, and how many \
would without the rule. A rule is `sure` if its gain exceeds the price at `--parsimony explain`.

The recipe `paper` learns as in the paper: a fixed number of noisy-or rules about any labels, at most J0 per rule, by ADAM with a \
sparsity prior. It learns no combinations. A validation set stops it, and selects the number of rules unless `--rules` gives it.

Rules of `--base` do not change. With `--learn-probabilities` their probabilities are learned, except those of rules that begin with \
`fixed`. There are warnings for rules of the base that the rows contradict, and for `expect` lines that fail in the learned model.

Ctrl-C and `--max-seconds` end with the best model so far, which may be the base with its calibrators. The model is written before \
cross-validation starts.")]
pub struct Arguments {
    /// The beliefs, `.csv`, `.csv.gz` or `.parquet`; `-` is CSV on standard input
    beliefs: PathBuf,
    /// The truths, `.csv`, `.csv.gz` or `.parquet`; `-` is CSV on standard input
    truth: PathBuf,
    /// The file for the learned model; JSON if its name ends in .json
    #[arg(short, long, value_name = "MODEL")]
    output: PathBuf,
    /// A model whose rules are kept
    #[arg(long, value_name = "MODEL")]
    base: Option<PathBuf>,
    /// The learning recipe
    #[arg(long, default_value = "clauses")]
    recipe: Recipe,
    /// The price of a rule: `predict` (0.25) is best for predictions, `explain` (1) keeps only rules that are surely
    /// there, or a multiple of the description length [default: predict]
    #[arg(long, value_name = "predict|explain|NUMBER", value_parser = parsimony)]
    parsimony: Option<f64>,
    /// The maximum number of learned rules. With `--recipe paper` the number of rules; `auto` selects 5, 10 or 20 by
    /// validation
    #[arg(long, value_name = "auto|N", default_value = "auto", value_parser = Count::parse)]
    rules: Count,
    /// Calibration of beliefs: `joint` with the rules, `none` (the base's calibrators apply), or before the rules by one of
    /// the other methods [default: joint; with `--recipe paper`, none]
    #[arg(
        long,
        value_name = "joint|none|auto|platt|isotonic|temperature|dirichlet|confusion",
        hide_possible_values = true
    )]
    calibrate: Option<Calibration>,
    /// Learn no typical combinations
    #[arg(long)]
    no_typical: bool,
    /// Learn the probabilities of the base's rules, except those of 0, 0.5 and 1
    #[arg(long, requires = "base")]
    learn_probabilities: bool,
    /// The column of TRUTH with the row weights
    #[arg(long, value_name = "COLUMN")]
    weights: Option<String>,
    /// The column of TRUTH with a key per row. Rows are learned from in an order that their keys decide, so that the model does
    /// not depend on their order in the files, and is the same as on a cluster
    #[arg(long, value_name = "COLUMN")]
    key: Option<String>,
    /// The beliefs of the validation set. With `--recipe clauses` it is only scored; the model does not depend on it
    #[arg(long, value_name = "FILE", requires = "valid_truth", conflicts_with = "valid_fraction")]
    valid_beliefs: Option<PathBuf>,
    /// The truths of the validation set
    #[arg(long, value_name = "FILE", requires = "valid_beliefs")]
    valid_truth: Option<PathBuf>,
    /// The number of folds of the cross-validation that follows learning; 0 for none [default: 5]
    #[arg(long, value_name = "K", value_parser = folds)]
    cv: Option<usize>,
    /// Seed of samples and folds, and with `--recipe paper` of initial values and batches
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// The number of threads [default: one per core]; does not change the model
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Stop after this time, with the best model so far
    #[arg(long, value_name = "S", value_parser = seconds)]
    max_seconds: Option<Duration>,
    /// Write checkpoints to this folder
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,
    /// Continue from the checkpoint, if there is one
    #[arg(long, requires = "checkpoint")]
    resume: bool,
    /// Write a report to this folder: report.html, a self-contained page, and its figures
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    #[command(flatten)]
    tables: TableOptions,
    #[command(flatten)]
    memory: MemoryLimit,
    #[command(flatten)]
    removed: RemovedOptions,
    #[command(flatten)]
    paper: PaperOptions,
}

impl Arguments {
    /// Reads, learns, writes the model, and prints a summary.
    pub fn run(self) -> Result<ExitCode> {
        let mut clock = Clock::new(self.max_seconds);
        self.check()?;
        self.check_files()?;
        let base = match &self.base {
            Some(path) => ModelFile::read(path)?.document.model().clone(),
            None => rows::new_model(&self.beliefs, &self.tables)?,
        };
        let (train, valid) = self.examples(&base)?;
        let spinner = Spinner::new("checking the rows");
        warnings::before(&base, &train)?;
        spinner.finish();
        self.report.as_deref().map_or(Ok(()), report::prepare)?;
        let threads = labeled::threads(self.threads)?;
        let start = clock.elapsed();
        let learning = threads.install(|| self.learn(&mut clock, &base, &train, valid.as_ref()))?;
        let duration = clock.elapsed() - start;
        output::write(&calibrate::text(learning.model(), &self.output), Some(&self.output))?;
        warnings::after(&learning, self.memory.limits())?;
        let outcome =
            threads.install(|| self.outcome(&mut clock, learning, &base, [Some(&train), valid.as_ref()]))?;
        self.write_report(&threads, &outcome)?;
        output::print_beside(&self.output, &self.summary(&outcome, duration))?;
        Ok(ExitCode::SUCCESS)
    }

    /// The learned model with its scores.
    fn outcome<'a>(
        &self,
        clock: &mut Clock,
        learning: Learning,
        base: &'a Model,
        [train, valid]: [Option<&'a Examples>; 2],
    ) -> Result<Outcome<'a>> {
        let train = train.expect("there are rows to learn from");
        let validated = self.cross_validate(clock, &learning, base, train);
        let mut outcome = Outcome {
            base,
            learning,
            train,
            valid,
            is_raw: self.is_raw(base),
            evaluated: Vec::new(),
            validated,
        };
        if valid.is_some() || self.report.is_some() {
            let spinner = Spinner::new("scoring the model, its base and the beliefs alone");
            let baseline = self.baseline(&outcome)?;
            let bootstrap = self.report.is_some().then(Bootstrap::default);
            outcome.evaluate(baseline.as_ref(), self.memory.limits(), bootstrap)?;
            spinner.finish();
        }
        Ok(outcome)
    }

    fn write_report(&self, threads: &ThreadPool, outcome: &Outcome<'_>) -> Result<()> {
        let Some(folder) = &self.report else { return Ok(()) };
        let spinner = Spinner::new("writing the report");
        threads.install(|| Report { outcome }.write(folder))?;
        spinner.finish();
        Ok(())
    }

    /// Rejects outputs that cannot be written, or that are also inputs.
    fn check_files(&self) -> Result<()> {
        let mut files = vec![("BELIEFS", self.beliefs.as_path()), ("TRUTH", self.truth.as_path())];
        files.extend(self.base.as_deref().map(|path| ("--base", path)));
        self.tables.check_bad_rows("learn")?;
        labeled::check("learn", files)?;
        let rows =
            [Some(&self.beliefs), Some(&self.truth), self.valid_beliefs.as_ref(), self.valid_truth.as_ref()];
        let rows: Vec<&Path> = rows.into_iter().flatten().map(PathBuf::as_path).collect();
        // The learned model may replace the base, whose rules it contains.
        output::prepare(&self.output, &rows)?;
        let inputs: Vec<&Path> = rows.iter().copied().chain(self.base.as_deref()).collect();
        let mut outputs = self.report.as_deref().map_or(Vec::new(), report::files);
        outputs.extend(self.checkpoint.as_deref().map(|folder| folder.join(CHECKPOINT)));
        output::spare(&inputs, &outputs.iter().map(PathBuf::as_path).collect::<Vec<_>>())
    }
}
