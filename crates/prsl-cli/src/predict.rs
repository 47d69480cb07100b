//! `prsl predict`: posteriors given beliefs and rules.

mod bad_rows;
mod messages;
mod people;
mod run;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;
use clap::error::ErrorKind;
use prsl::infer::{EngineChoice, EngineSettings, LoopySettings, Sampling, Schedule, SearchLimits};
use prsl::{Engines, Model, Status};
use prsl_data::Target;

pub use self::run::{Prediction, Summary, chunk_rows, next_rows};

use crate::arguments::{OnBadRow, Question, seconds, usage};
use crate::failure::Refusal;
use crate::model::ModelFile;
use crate::output;
use crate::progress::Progress;
use crate::table::{Beliefs, Query};
use crate::verify::Verification;

/// Predict every row of a table: the posterior given the beliefs and the rules
#[derive(Debug, clap::Args)]
#[command(mut_arg("beliefs", |beliefs| beliefs.required(false).required_unless_present("explain_plan")))]
#[command(override_usage = "\
prsl predict [OPTIONS] <MODEL> <BELIEFS>
       prsl predict [OPTIONS] <MODEL> --explain-plan")]
#[command(after_help = "\
Examples:
  prsl predict warehouse.prsl beliefs.csv
  prsl predict warehouse.prsl beliefs.csv --id image,frame --digits 4 -o posterior.csv.gz
  prsl predict warehouse.prsl excel.csv --delimiter ';' --decimal , --format csv
  prsl predict warehouse.prsl beliefs.csv --fail-on impossible -o posterior.csv
  prsl predict warehouse.prsl beliefs.csv --on-bad-row mark -o posterior.parquet
  prsl predict warehouse.prsl beliefs.parquet -o posterior.parquet --memory 4GiB
  prsl predict warehouse.prsl beliefs.csv --query mpe --top 3 --format jsonl
  prsl predict warehouse.prsl beliefs.csv --query samples --samples 100 --seed 7
  prsl predict large.prsl beliefs.csv --engine loopy --schedule residual --verify 20
  prsl predict large.prsl --explain-plan
  gunzip -c beliefs.csv.gz | prsl predict warehouse.prsl - | head

Engines: `auto` uses the cheaper of a junction tree and a circuit for marginals, if it fits the memory and takes at most 2e9 \
multiply-adds per row. Otherwise it uses loopy propagation. For the most probable assignment it uses a circuit or a junction tree \
if that is cheap, else branch and bound, which proves its answer. `exact` fails if exact marginals do not fit. \
`junction-tree` and `circuit` ask for one of them. `--explain-plan` prints the engine and the reason.

Formats: on a terminal the answers are a table that shows the most probable category of each label. In a pipe, in a file, or with \
`--format csv`, they are CSV with all columns, which begin with those of `--id`.

Columns of `--query marginals`: `label=category` for each category, then log_evidence, engine, status. log_evidence is \
the logarithm of the probability that all rules hold; it measures how well beliefs and rules agree. Loopy propagation \
has log_evidence_bethe instead, an estimate, followed by sweeps and residual (the largest change of a marginal in the \
last sweep).

Columns of `--query mpe`: the category of each label in the most probable assignment, then log_weight, \
log_probability, optimal, gap, engine, status. No assignment has a log_weight larger by more than the gap; the gap is \
empty if no bound is known. log_probability is empty if the exact evidence is too expensive: above 1e6 multiply-adds per row \
it is computed only with `--engine exact` or `--query both`. With `--top`, row and rank come first, both from 1.

Columns of `--query both`: those of the marginals, then the assignment's categories as `mpe:LABEL`, then the other \
columns; mpe_engine is the engine of the assignment.

Columns of `--query samples`: row, sample (both from 1), the category of each label, engine, status.

Status:
  ok
  impossible      the hard rules exclude the row; its cells are empty
  not_converged   loopy propagation did not converge
  imprecise       digits are lost to rounding
  not_proven      a better assignment may exist
  time_limit      `--time-limit` ended the search; another run may answer differently
  not_found       neither a possible assignment nor a proof of impossibility; cells are empty
  invalid         with `--on-bad-row mark`, the row cannot be read; cells are empty, and the last column, problem, says why

Memory does not grow with the number of rows: rows are read, answered and written at the same time, in their order.

If a label has the name of one of the other columns, that column gets the prefix `prsl_`.

A summary in one line goes to standard error. Exits with 4 if a row has a status that `--fail-on` names; the answers are written \
nevertheless.")]
pub struct Arguments {
    #[command(flatten)]
    question: Question,
    /// Write to this file instead of standard output; its ending determines the format: .csv, .jsonl, .parquet, or
    /// compressed .csv.gz, .jsonl.gz
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The query
    #[arg(long, default_value = "marginals")]
    query: QueryKind,
    /// The engine
    #[arg(long, default_value = "auto")]
    engine: EngineKind,
    /// The format, if the name of the output does not determine it [default: table on a terminal, else csv]
    #[arg(long)]
    format: Option<Format>,
    /// Round numbers to N digits after the decimal point [default: all digits; 3 in a table]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=17))]
    digits: Option<u8>,
    /// Exit with 4 if a row has one of these statuses, separated by commas; for example impossible,not_converged
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    fail_on: Vec<FailOn>,
    /// The number of threads for inference [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// The N most probable assignments of each row, best first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
    /// The number of samples for each row [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    samples: Option<u32>,
    /// Seed of the samples, and of the rows for `--verify` [default: 1]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Loopy: the maximum number of sweeps [default: 200, for assignments 30]
    #[arg(long, value_name = "N")]
    max_sweeps: Option<usize>,
    /// Loopy: the share of the old message in a new one, from 0 to below 1 [default: 0]
    #[arg(long, value_name = "X")]
    damping: Option<f64>,
    /// Loopy: the order in which rules send their messages [default: sequential]
    #[arg(long)]
    schedule: Option<ScheduleKind>,
    /// Loopy: a row has converged if no marginal changes by more than this [default: 1e-6]
    #[arg(long, value_name = "X")]
    tolerance: Option<f64>,
    /// Loopy: do not merge rules over the same labels
    #[arg(long)]
    no_merge: bool,
    /// Time limit of branch and bound per row in seconds; 0 returns the first solution and its gap. The default limit
    /// is 3e9 units of counted work, at most about 10 s, with the same answer on every machine
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<Duration>,
    /// Repeat K rows with a more exact engine, and report the errors
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    verify: Option<u32>,
    /// Only print the engine and the reason; needs no beliefs
    #[arg(long)]
    explain_plan: bool,
}

/// The query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QueryKind {
    /// The probability of each category of each label
    Marginals,
    /// The most probable assignment (MPE, the most probable explanation of the literature): one category for each label
    Mpe,
    /// Marginals and the most probable assignment
    Both,
    /// Joint samples: one category for each label, drawn from the posterior
    Samples,
}

/// The engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineKind {
    /// Chosen by cost: exact if affordable
    Auto,
    /// Exact: the cheaper of junction tree and circuit; branch and bound for assignments
    Exact,
    /// Exact by a junction tree
    JunctionTree,
    /// Exact by a circuit, for models with many hard rules
    Circuit,
    /// Approximate: loopy propagation
    Loopy,
    /// Sum over all assignments, for small models only
    Enumeration,
}

impl From<EngineKind> for EngineChoice {
    fn from(engine: EngineKind) -> EngineChoice {
        match engine {
            EngineKind::Auto => EngineChoice::Auto,
            EngineKind::Exact => EngineChoice::Exact,
            EngineKind::JunctionTree => EngineChoice::JunctionTree,
            EngineKind::Circuit => EngineChoice::Circuit,
            EngineKind::Loopy => EngineChoice::Loopy,
            EngineKind::Enumeration => EngineChoice::Enumeration,
        }
    }
}

/// The order in which rules send their messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScheduleKind {
    /// One after the other
    Sequential,
    /// All at once
    Flooding,
    /// Rules whose labels have changed most come first
    Residual,
}

impl From<ScheduleKind> for Schedule {
    fn from(schedule: ScheduleKind) -> Schedule {
        match schedule {
            ScheduleKind::Sequential => Schedule::Sequential,
            ScheduleKind::Flooding => Schedule::Flooding,
            ScheduleKind::Residual => Schedule::Residual,
        }
    }
}

/// A status of `--fail-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum FailOn {
    /// The hard rules exclude the row
    Impossible,
    /// Loopy propagation did not converge
    NotConverged,
    /// Digits are lost to rounding
    Imprecise,
    /// A better assignment may exist
    NotProven,
    /// The time limit ended the search
    TimeLimit,
    /// No assignment was found
    NotFound,
    /// The row is not valid, with `--on-bad-row mark`
    Invalid,
}

impl FailOn {
    /// The status of the library; `None` for rows that it does not see.
    fn status(self) -> Option<Status> {
        match self {
            FailOn::Impossible => Some(Status::Impossible),
            FailOn::NotConverged => Some(Status::NotConverged),
            FailOn::Imprecise => Some(Status::Imprecise),
            FailOn::NotProven => Some(Status::NotProven),
            FailOn::TimeLimit => Some(Status::TimeLimit),
            FailOn::NotFound => Some(Status::NotFound),
            FailOn::Invalid => None,
        }
    }
}

/// The format of the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people, on standard output only
    Table,
    /// Comma-separated values
    Csv,
    /// One JSON object per line
    Jsonl,
    /// Parquet, for a file only
    Parquet,
}

impl Format {
    /// The format of a table; `None` if it is for people.
    fn of_file(self) -> Option<prsl_data::Format> {
        match self {
            Format::Table => None,
            Format::Csv => Some(prsl_data::Format::Csv),
            Format::Jsonl => Some(prsl_data::Format::JsonLines),
            Format::Parquet => Some(prsl_data::Format::Parquet),
        }
    }
}

impl Arguments {
    /// Answers all rows.
    pub fn run(self) -> Result<ExitCode> {
        self.question.check("predict")?;
        self.check_options()?;
        let format = self.output_format()?;
        if let Some(file) = self.output.as_deref().filter(|_| !self.explain_plan) {
            output::prepare(file, &[&self.question.model, self.question.beliefs()])?;
        }
        let target = self.output.as_deref().map_or(Target::StandardOutput, Target::from);
        let to_terminal = matches!(target, Target::StandardOutput) && io::stdout().is_terminal();
        let file = ModelFile::read(&self.question.model)?;
        let model = file.document.model();
        let settings = self.settings();
        let threads = self.threads.map_or(0, usize::from); // 0: one per core
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.context("cannot start the threads")?;
        if self.explain_plan {
            output::print(&plan(&self.compile(model, &settings)?))?;
            return Ok(ExitCode::SUCCESS);
        }
        let beliefs = self.question.open_beliefs(model)?;
        let query = self.compile(model, &settings)?;
        let approximation = self.approximation(&query);
        let verification = self.verify.map(|wanted| Verification::new(wanted as usize, self.seed()));
        let digits = self.digits.map(usize::from);
        let marks = self.marks();
        let prediction = Prediction { model, query, beliefs, target, format, digits, verification, marks };
        let mut summary = pool.install(|| prediction.run(Progress::new(!to_terminal)))?;
        let verification = summary.verification.take();
        self.tell_approximation(&summary, approximation.as_deref());
        self.tell(&summary);
        if let Some(verification) = verification {
            output::complain(&pool.install(|| verification.report(model, &settings))?);
        }
        Ok(self.exit_code(&summary))
    }

    fn compile(&self, model: &Model, settings: &EngineSettings) -> Result<Query> {
        let sampling =
            Sampling { n_samples: self.samples.unwrap_or(1) as usize, seed: self.seed(), first_row: 0 };
        let top = self.top.map(|n| n as usize);
        compile(model, self.query, self.engine, settings, top, sampling).map_err(|error| match error {
            prsl::Error::Setting { .. } => usage("predict", ErrorKind::ValueValidation, error),
            other => Refusal::of(other, model, self.other_engine()),
        })
    }

    /// The advice if the requested engine is too costly.
    fn other_engine(&self) -> Option<&'static str> {
        match (self.engine, self.query) {
            (EngineKind::Enumeration, _) => Some("`--engine exact` uses a junction tree or a circuit"),
            (EngineKind::JunctionTree | EngineKind::Circuit, _) => {
                Some("`--engine auto` chooses an engine that fits")
            }
            (EngineKind::Exact, QueryKind::Samples) => {
                Some("`--engine auto` draws approximate samples at any size")
            }
            (EngineKind::Exact, QueryKind::Marginals | QueryKind::Both) => {
                Some("`--engine loopy` approximates at any size")
            }
            (EngineKind::Auto | EngineKind::Exact, QueryKind::Mpe) => {
                Some("`--engine loopy` guesses an assignment at any size")
            }
            _ => None,
        }
    }

    /// Whether rows that are not valid are in the output, too.
    fn marks(&self) -> bool {
        self.question.tables.on_bad_row == OnBadRow::Mark
    }

    fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    fn settings(&self) -> EngineSettings {
        let default = LoopySettings::default();
        let loopy = LoopySettings {
            schedule: self.schedule.map_or(default.schedule, Schedule::from),
            max_sweeps: self.max_sweeps.unwrap_or(default.max_sweeps),
            assignment_sweeps: self.max_sweeps.unwrap_or(default.assignment_sweeps),
            damping: self.damping.unwrap_or(default.damping),
            tolerance: self.tolerance.unwrap_or(default.tolerance),
            merge: !self.no_merge,
            ..default
        };
        EngineSettings {
            limits: self.question.limits(),
            loopy,
            search: self.time_limit.map_or_else(SearchLimits::default, SearchLimits::within),
        }
    }

    /// Rejects options that would have no effect.
    fn check_options(&self) -> Result<()> {
        use EngineKind::{Auto, Exact, Loopy};
        use QueryKind::{Both, Marginals, Mpe, Samples};
        let is_mpe = matches!(self.query, Mpe | Both);
        let samples = self.query == Samples;
        let loopy = self.engine == Loopy || (self.engine == Auto && matches!(self.query, Marginals | Both));
        let loopy = loopy && !samples;
        let searches = is_mpe && matches!(self.engine, Auto | Exact);
        let for_loopy =
            "is for loopy propagation, which this query and engine do not use; add `--engine loopy`";
        let checks = [
            (self.top.is_some() && !is_mpe, "--top", "is for `--query mpe` and `--query both`"),
            (
                self.top.is_some_and(|n| n > 1) && self.engine == Loopy,
                "--top",
                "is not for loopy propagation, which finds one assignment; use `--engine exact`",
            ),
            (self.samples.is_some() && !samples, "--samples", "is for `--query samples`"),
            (
                self.fail_on.contains(&FailOn::Invalid) && !self.marks(),
                "--fail-on invalid",
                "is for `--on-bad-row mark`; without it no row has this status",
            ),
            (
                self.seed.is_some() && !samples && self.verify.is_none(),
                "--seed",
                "is for `--query samples` and `--verify`",
            ),
            (self.max_sweeps.is_some() && !loopy, "--max-sweeps", for_loopy),
            (self.damping.is_some() && !loopy, "--damping", for_loopy),
            (self.schedule.is_some() && !loopy, "--schedule", for_loopy),
            (self.tolerance.is_some() && !loopy, "--tolerance", for_loopy),
            (self.no_merge && !loopy, "--no-merge", for_loopy),
            (
                self.time_limit.is_some() && !searches,
                "--time-limit",
                "is for branch and bound: `--query mpe` or `both` with `--engine auto` or `exact`",
            ),
            (self.verify.is_some() && samples, "--verify", "is not for `--query samples`"),
            (self.verify.is_some() && self.explain_plan, "--verify", "is not for `--explain-plan`"),
            (
                samples && !matches!(self.engine, Auto | Exact),
                "--query samples",
                "needs `--engine auto` or `exact`; no other engine draws samples",
            ),
        ];
        match checks.into_iter().find(|(wrong, ..)| *wrong) {
            Some((_, option, why)) => {
                Err(usage("predict", ErrorKind::ArgumentConflict, format!("`{option}` {why}")))
            }
            None => Ok(()),
        }
    }

    /// The format by the name of the output, or else the requested one, or else a table for people on a terminal, or else
    /// CSV. `None` is a table for people.
    fn output_format(&self) -> Result<Option<prsl_data::Format>> {
        let file = self.output.as_deref().filter(|path| path.as_os_str() != "-");
        let Some(file) = file else {
            let is_for_people = self.output.is_none() && io::stdout().is_terminal();
            let usual = if is_for_people { Format::Table } else { Format::Csv };
            let format = self.format.unwrap_or(usual).of_file();
            if format == Some(prsl_data::Format::Parquet) {
                let message = prsl_data::Error::ParquetToStandardOutput;
                return Err(usage("predict", ErrorKind::MissingRequiredArgument, message));
            }
            return Ok(format);
        };
        let asked = self.format.map(Format::of_file);
        if asked == Some(None) {
            let message = "`--format table` is for standard output; choose csv, jsonl or parquet for a file";
            return Err(usage("predict", ErrorKind::ArgumentConflict, message));
        }
        match (prsl_data::Format::from_path(file), asked.flatten()) {
            (Err(_), Some(asked)) => Ok(Some(asked)),
            (Err(error), None) => {
                let message = format!("{error}; or set --format");
                Err(usage("predict", ErrorKind::MissingRequiredArgument, message))
            }
            (Ok(named), Some(asked)) if named != asked => {
                let name = file.display();
                let message =
                    format!("--format and the name of `{name}` give different formats; change one of them");
                Err(usage("predict", ErrorKind::ArgumentConflict, message))
            }
            (Ok(named), _) => Ok(Some(named)),
        }
    }
}

/// The engines and the reasons, one line each.
fn plan(query: &Query) -> String {
    let line = |(what, reason): (&str, String)| format!("{what}: {reason}\n");
    query.reasons().into_iter().map(line).collect()
}

/// Compiles the engines of a query.
pub fn compile(
    model: &Model,
    query: QueryKind,
    engine: EngineKind,
    settings: &EngineSettings,
    top: Option<usize>,
    sampling: Sampling,
) -> prsl::Result<Query> {
    let engines = Engines::new(model).with_choice(engine.into()).with_settings(*settings);
    if query == QueryKind::Samples {
        let sampler = engines.sampler()?;
        return Ok(Query::Samples(Box::new(sampler), sampling));
    }
    let marginals = (query != QueryKind::Mpe).then(|| engines.marginals());
    let marginals = marginals.transpose()?;
    let best = (query != QueryKind::Marginals).then(|| engines.assignments());
    let best = best.transpose()?;
    let log_evidence = match &best {
        Some(_) => engines.log_evidence(marginals.as_ref())?,
        None => None,
    };
    Ok(Query::Beliefs(Box::new(Beliefs { model: model.clone(), marginals, best, log_evidence, top })))
}
