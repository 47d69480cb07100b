//! `prsl learn`: rules, calibrators and typical combinations from known truths.

mod checkpoint;
mod summary;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::error::ErrorKind;
use prsl::calibrate::CalibrationMethod;
use prsl::learn::{Calibrating, Examples, Gradients, Learned, Learner, Paper, Progress};
use prsl::{Label, Model};
use prsl_data::TableReader;

use self::checkpoint::{CHECKPOINT, write_checkpoint};
use crate::arguments::{MemoryLimit, TableOptions, seconds, usage};
use crate::model::ModelFile;
use crate::progress::StepBar;
use crate::report::Report;
use crate::style::{self, styled};
use crate::{calibrate, labeled, output, report};

/// Default share of rows in the validation set.
pub const VALID_FRACTION: f64 = 0.1;

/// Learn rules from beliefs and known truths, in addition to expert rules
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl learn beliefs.csv truth.csv -o learned.prsl
  prsl learn beliefs.csv truth.csv --base warehouse.prsl --report learned -o learned.prsl
  prsl learn train.parquet truth.parquet --valid-beliefs valid.parquet --valid-truth valid-truth.parquet -o learned.prsl
  prsl learn beliefs.csv truth.csv --width 3 --rules 1 --max-seconds 60 --checkpoint run -o learned.prsl
  prsl learn more.csv more-truth.csv --base learned.prsl --relearn -o again.prsl
  prsl learn beliefs.csv truth.csv --recipe paper --rules 20 --calibrate platt -o learned.prsl

BELIEFS has columns `label=category`, or `label` alone for yes/no labels; a new model takes its labels from there, in their order. \
TRUTH has a column for each label, in any order, with the names of categories (for yes/no labels also 1 and 0, true and false), and \
a row for each row of BELIEFS. Empty cells are unknown. Use beliefs for rows that the classifiers were not trained on.

The recipe `thin` learns noisy-or rules about small groups of labels, typical combinations of all labels, and a calibrator for each \
classifier. Gradients are exact. The groups form a tree of small treewidth, so that exact inference is cheap at any number of labels. \
The validation set determines the width of the groups, their number of rules, and when to stop. The recipe `paper` learns as in the \
paper: rules about any labels, at most J0 per rule, with a sparsity prior, without combinations and calibrators.

Rules of `--base` do not change. With `--learn-probabilities` their probabilities are learned. With `--relearn` its noisy-or rules and \
combinations are the initial values. Rules that begin with `fixed` never change.

Learned rules are sorted by their gain on the validation set. Ctrl-C and `--max-seconds` end with the best model so far, which may be \
the base with its calibrators.

`--memory` limits the tables of the groups, and the table of correlations between labels (8 bytes per pair). Sizes that need more are \
skipped, or refused if they were requested.")]
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
    /// The beliefs of the validation set
    #[arg(long, value_name = "FILE", requires = "valid_truth", conflicts_with = "valid_fraction")]
    valid_beliefs: Option<PathBuf>,
    /// The truths of the validation set
    #[arg(long, value_name = "FILE", requires = "valid_beliefs")]
    valid_truth: Option<PathBuf>,
    /// The share of rows in the validation set, drawn at random, unless one is given
    #[arg(long, value_name = "SHARE", default_value_t = VALID_FRACTION)]
    valid_fraction: f64,
    /// The learning recipe
    #[arg(long, default_value = "thin")]
    recipe: Recipe,
    /// The number of rules per group of labels, or in total with `--recipe paper`; `auto` uses the validation set
    #[arg(long, value_name = "auto|K", default_value = "auto", value_parser = Count::parse)]
    rules: Count,
    /// The number of labels per group minus one; `auto` uses the validation set
    #[arg(long, value_name = "auto|W", default_value = "auto", value_parser = Count::parse)]
    width: Count,
    /// The number of rules about all labels, at most 10; each doubles the time. `auto` uses one if it improves validation
    #[arg(long, value_name = "auto|N", default_value = "auto", value_parser = up_to_ten)]
    wide: Count,
    /// Calibration of beliefs: `joint` with the rules (unless validation is clearly better without), `none` (the base's
    /// calibrators apply), or before the rules by one of the other methods [default: joint; with `--recipe paper`, none]
    #[arg(
        long,
        value_name = "joint|none|auto|platt|isotonic|temperature|dirichlet|confusion",
        hide_possible_values = true
    )]
    calibrate: Option<Calibration>,
    /// The kind of gradients
    #[arg(long, default_value = "exact")]
    gradients: GradientsChoice,
    /// Learn no typical combinations
    #[arg(long)]
    no_typical: bool,
    /// Learn the probabilities of the base's rules, except those of 0, 0.5 and 1; each stays on its side of 0.5
    #[arg(long, requires = "base")]
    learn_probabilities: bool,
    /// Use the base's noisy-or rules and combinations as initial values, instead of keeping them
    #[arg(long, requires = "base")]
    relearn: bool,
    /// The column of TRUTH with the row weights
    #[arg(long, value_name = "COLUMN")]
    weights: Option<String>,
    /// The maximum number of optimizer steps per candidate [default: 2000, or 40 epochs if that is more; with `--recipe paper`, 1000]
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// The batch size [default: 40; with `--recipe paper`, 20]
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// The learning rate [default: 0.003; with `--recipe paper`, 0.001]
    #[arg(long, value_name = "R")]
    learning_rate: Option<f64>,
    /// With `--recipe paper`: the maximum number of labels per rule
    #[arg(long, value_name = "N", default_value_t = Paper::default().labels_per_rule)]
    j0: usize,
    /// With `--recipe paper`: the hardness of the soft minimum of a label's inhibition probabilities
    #[arg(long, value_name = "A", default_value_t = Paper::default().alpha)]
    alpha: f64,
    /// With `--recipe paper`: the prior probability that this minimum is below 0.1
    #[arg(long, value_name = "G", default_value_t = Paper::default().gamma_0)]
    gamma0: f64,
    /// With `--recipe paper`: the prior probability that this minimum is above 0.9
    #[arg(long, value_name = "G", default_value_t = Paper::default().gamma_1)]
    gamma1: f64,
    /// With `--recipe paper`: the decay of this prior's weight per step
    #[arg(long, value_name = "L", default_value_t = Paper::default().lambda)]
    lambda: f64,
    /// Seed of initial values and batches
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
}

/// A number, or `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    Auto,
    Number(usize),
}

impl Count {
    fn parse(text: &str) -> Result<Count, String> {
        match text {
            "auto" => Ok(Count::Auto),
            _ => text.parse().map(Count::Number).map_err(|_| "a number or `auto` is needed".to_owned()),
        }
    }

    fn number(self) -> Option<usize> {
        match self {
            Count::Auto => None,
            Count::Number(number) => Some(number),
        }
    }
}

/// The calibration of beliefs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Calibration(Calibrating);

impl std::str::FromStr for Calibration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "joint" => Ok(Self(Calibrating::Joint)),
            "none" => Ok(Self(Calibrating::Given)),
            _ => {
                let method: Result<CalibrationMethod, _> = text.parse();
                let names = CalibrationMethod::ALL.map(CalibrationMethod::name).join(", ");
                let method = method.map_err(|_| format!("expected joint, none, or one of {names}"))?;
                Ok(Self(Calibrating::Alone(method)))
            }
        }
    }
}

/// The learning recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Recipe {
    /// Rules about groups of labels in a tree of small treewidth: exact at any number of labels
    Thin,
    /// Rules about any labels, as in the paper
    Paper,
}

/// The kind of gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum GradientsChoice {
    /// Exact
    Exact,
    /// By loopy propagation, with `--recipe paper`; learning then exploits the errors of the approximation
    Loopy,
}

fn up_to_ten(text: &str) -> Result<Count, String> {
    match Count::parse(text) {
        Ok(Count::Number(11..)) | Err(_) => Err("a number from 0 to 10 or `auto` is needed".to_owned()),
        count => count,
    }
}

impl Arguments {
    /// Reads, learns, writes the model, and prints a summary.
    pub fn run(self) -> Result<ExitCode> {
        let mut files = vec![("BELIEFS", self.beliefs.as_path()), ("TRUTH", self.truth.as_path())];
        files.extend(self.base.as_deref().map(|path| ("--base", path)));
        labeled::check("learn", files)?;
        let rows =
            [Some(&self.beliefs), Some(&self.truth), self.valid_beliefs.as_ref(), self.valid_truth.as_ref()];
        let rows: Vec<&Path> = rows.into_iter().flatten().map(PathBuf::as_path).collect();
        // The learned model may replace the base, whose rules it contains.
        output::prepare(&self.output, &rows)?;
        self.spare_inputs(&rows)?;
        if !(self.valid_fraction > 0.0 && self.valid_fraction < 1.0) {
            let message =
                format!("--valid-fraction is {}, expected a number between 0 and 1", self.valid_fraction);
            return Err(usage("learn", ErrorKind::InvalidValue, message));
        }
        self.check()?;
        let base = match &self.base {
            Some(path) => ModelFile::read(path)?.document.model().clone(),
            None => new_model(&self.beliefs)?,
        };
        let (train, valid) = self.examples(&base)?;
        warn(&base, &train);
        self.report.as_deref().map_or(Ok(()), report::prepare)?;
        let progress = self.progress()?;
        let learner = self.learner();
        let start = Instant::now();
        let threads = labeled::threads(self.threads)?;
        let learned = threads.install(|| self.learn(&learner, progress, &base, &train, &valid))?;
        output::write(&calibrate::text(&learned.model, &self.output), Some(&self.output))?;
        if let Some(folder) = &self.report {
            let limits = self.memory.limits();
            let report = Report { base: &base, learned: &learned, train: &train, valid: &valid, limits };
            threads.install(|| report.write(folder))?;
        }
        let summary = self.summary(&base, &learned, [&train, &valid], start.elapsed());
        output::print_beside(&self.output, &summary)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Rejects folders in which the report or the checkpoint would overwrite an input.
    fn spare_inputs(&self, rows: &[&Path]) -> Result<()> {
        let inputs: Vec<&Path> = rows.iter().copied().chain(self.base.as_deref()).collect();
        let mut outputs = self.report.as_deref().map_or(Vec::new(), report::files);
        outputs.extend(self.checkpoint.as_deref().map(|folder| folder.join(CHECKPOINT)));
        output::spare(&inputs, &outputs.iter().map(PathBuf::as_path).collect::<Vec<_>>())
    }

    fn examples(&self, base: &Model) -> Result<(Examples, Examples)> {
        let all = self.read(base, &self.beliefs, &self.truth)?;
        match (&self.valid_beliefs, &self.valid_truth) {
            (Some(beliefs), Some(truth)) => Ok((all, self.read(base, beliefs, truth)?)),
            _ => Ok(all.split(self.valid_fraction, self.seed)),
        }
    }

    fn read(&self, base: &Model, beliefs: &Path, truth: &Path) -> Result<Examples> {
        let rows = labeled::read_raw(base, [beliefs, truth], &self.tables, self.weights.as_deref())?;
        let examples = Examples::new(rows.beliefs, rows.truths)?;
        Ok(match rows.weights {
            Some(weights) => {
                examples.with_weights(weights).with_context(|| format!("`{}`", truth.display()))?
            }
            None => examples,
        })
    }

    fn learner(&self) -> Learner {
        let default = match self.recipe {
            Recipe::Thin => Learner::default(),
            Recipe::Paper => Learner::paper(),
        };
        let default = Learner { relearn: self.relearn, ..default };
        let default = default.sized(self.rules.number(), self.width.number(), self.wide.number());
        Learner {
            steps: self.steps.or(default.steps),
            batch: self.batch.unwrap_or(default.batch),
            learning_rate: self.learning_rate.unwrap_or(default.learning_rate),
            typical: default.typical && !self.no_typical,
            calibrate: self.calibrate.map_or(default.calibrate, |Calibration(calibrate)| calibrate),
            learn_probabilities: self.learn_probabilities,
            gradients: match self.gradients {
                GradientsChoice::Exact => Gradients::Exact,
                GradientsChoice::Loopy => Gradients::Loopy,
            },
            paper: Paper {
                labels_per_rule: self.j0,
                alpha: self.alpha,
                gamma_0: self.gamma0,
                gamma_1: self.gamma1,
                lambda: self.lambda,
                ..default.paper
            },
            memory: self.memory.limits().memory,
            seed: self.seed,
            ..default
        }
    }

    /// Rejects incompatible options, and warns of options that are not recommended.
    fn check(&self) -> Result<()> {
        let is_paper = self.recipe == Recipe::Paper;
        let is_loopy = self.gradients == GradientsChoice::Loopy;
        let conflict = match () {
            () if is_paper && self.width != Count::Auto => {
                "--width is for --recipe thin; with --recipe paper, --j0 says how many labels a rule has at most"
            }
            () if is_paper && self.wide.number().is_some_and(|n| n > 0) => "--wide is for --recipe thin",
            () if is_loopy && !is_paper => {
                "--gradients loopy is for --recipe paper; a thin tree is always exact"
            }
            () if is_loopy && self.relearn => "--relearn needs exact gradients",
            () => "",
        };
        if !conflict.is_empty() {
            return Err(usage("learn", ErrorKind::ArgumentConflict, conflict.to_owned()));
        }
        if is_loopy {
            complain(
                "gradients by loopy propagation are those of an approximation, whose errors learning exploits; \
                 its log-likelihoods are approximate, too. Use exact gradients where you can",
            );
        }
        Ok(())
    }

    /// Learns, with a progress bar, until done or stopped.
    fn learn(
        &self,
        learner: &Learner,
        progress: Progress,
        base: &Model,
        train: &Examples,
        valid: &Examples,
    ) -> Result<Learned> {
        let stop = stop_on_interrupt();
        let start = Instant::now();
        let n_steps = learner.n_steps(train);
        let mut bar = StepBar::new(n_steps.saturating_mul(learner.max_candidates()) as u64);
        let mut is_told = false;
        let learned = learner.learn_observed(base, train, valid, progress, &mut |progress| {
            let done = progress.n_done().saturating_mul(n_steps).saturating_add(progress.step());
            bar.update(done as u64, &describe(progress));
            // The learned model is worth more than the checkpoint.
            if let Some(folder) = &self.checkpoint
                && let Err(error) = write_checkpoint(folder, progress)
                && !std::mem::replace(&mut is_told, true)
            {
                complain(&format!("{error}; learning goes on without a checkpoint"));
            }
            let is_late = self.max_seconds.is_some_and(|most| start.elapsed() >= most);
            if is_late || stop.load(Ordering::Relaxed) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        bar.finish();
        Ok(learned?)
    }
}

/// The labels named by the columns of a table of beliefs.
fn new_model(beliefs: &Path) -> Result<Model> {
    if beliefs == Path::new("-") {
        bail!(
            "a new model takes its labels from BELIEFS, which then has to be a file, not `-`; or name a model with --base"
        );
    }
    let table = TableReader::open(beliefs)?;
    let mut labels: Vec<(String, Vec<String>)> = Vec::new();
    for column in table.columns() {
        let (name, category) = match column.split_once('=') {
            Some((name, category)) => (name.trim(), Some(category.trim().to_owned())),
            None => (column.trim(), None),
        };
        let at = labels.iter().position(|(label, _)| label == name).unwrap_or_else(|| {
            labels.push((name.to_owned(), Vec::new()));
            labels.len() - 1
        });
        labels[at].1.extend(category);
    }
    let label = |(name, categories): (String, Vec<String>)| match &categories[..] {
        [] => Label::binary(name),
        [yes] if yes == prsl::model::YES => Label::binary(name),
        _ => Label::new(name, categories),
    };
    let builder =
        labels.into_iter().map(label).fold(Model::builder(), |builder, label| builder.add_label(label));
    builder.build().with_context(|| format!("the columns of `{}` are no labels", beliefs.display()))
}

/// Warns about labels with too few informative rows.
fn warn(model: &Model, train: &Examples) {
    for (at, label) in model.labels().iter().enumerate() {
        let mut counts = vec![0; label.n_categories()];
        train
            .truths()
            .iter()
            .filter_map(|truth| truth.indices()[at])
            .for_each(|category| counts[category] += 1);
        let seen = counts.iter().filter(|count| **count > 0).count();
        let message = match seen {
            0 => format!(
                "label `{}` has no known truth; it is learned as a latent label, from the other labels",
                label.name()
            ),
            1 => {
                let only = counts.iter().position(|count| *count > 0).expect("one is seen");
                format!(
                    "label `{}` is always `{}` in the rows to learn from",
                    label.name(),
                    label.categories()[only]
                )
            }
            _ => continue,
        };
        complain(&message);
    }
}

fn complain(message: &str) {
    output::complain(&format!("{}: {message}\n", styled(style::WARNING, "warning")));
}

fn describe(progress: &Progress) -> String {
    let Some(look) = progress.last_look() else { return String::new() };
    let training = look.training.map_or(String::new(), |training| format!("training {training:.3}, "));
    let size = progress.size().map_or(String::new(), |size| format!("{size}: "));
    format!("{size}{training}validation {:.3}", look.validation)
}

/// Becomes true when the user presses Ctrl-C; a second time ends the program at once.
fn stop_on_interrupt() -> &'static AtomicBool {
    static STOP: AtomicBool = AtomicBool::new(false);
    // Only one handler can be installed; a second call finds it.
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    &STOP
}
