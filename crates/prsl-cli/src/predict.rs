//! `prsl predict`: what the beliefs become under the rules.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::ValueEnum;
use clap::error::ErrorKind;
use prsl::engines::{self, EngineChoice, Explanations, LogEvidence, Marginals, Settings};
use prsl::{BeliefMatrix, LoopySettings, Model, Sampling, Schedule, SearchLimits, Status};
use prsl_data::{BeliefReader, Column, TableReader, TableWriter, Target};

use crate::arguments::{Question, seconds, usage};
use crate::failure::Refusal;
use crate::model::ModelFile;
use crate::output;
use crate::progress::{Progress, counted, grouped};
use crate::style::{self, shell, styled};
use crate::table::{Answers, Beliefs, Query};
use crate::verify::Verification;

/// Answer every row of a table: the beliefs that follow from the classifiers and the rules
#[derive(Debug, clap::Args)]
#[command(mut_arg("beliefs", |beliefs| beliefs.required(false).required_unless_present("explain_plan")))]
#[command(override_usage = "\
prsl predict [OPTIONS] <MODEL> <BELIEFS>
       prsl predict [OPTIONS] <MODEL> --explain-plan")]
#[command(after_help = "\
Examples:
  prsl predict warehouse.prsl beliefs.csv
  prsl predict warehouse.prsl beliefs.parquet -o posterior.parquet --memory 4GiB
  prsl predict warehouse.prsl beliefs.csv --query mpe --top 3 --format jsonl
  prsl predict warehouse.prsl beliefs.csv --query samples --samples 100 --seed 7
  prsl predict large.prsl beliefs.csv --engine loopy --schedule residual --verify 20
  prsl predict large.prsl --explain-plan
  gunzip -c beliefs.csv.gz | prsl predict warehouse.prsl - | head

Engines: `auto` takes the junction tree for marginals where it fits the memory and 2e9 multiply-adds a row, and loopy \
propagation otherwise; for the most probable explanation a cheap junction tree, or branch and bound, which proves what \
it finds. `exact` refuses where exact marginals do not fit. `--explain-plan` says which engine it is, and why.

Columns of `--query marginals`: `label=category` for each category, then log_evidence (the logarithm of the \
probability that all rules hold: how well beliefs and rules go together), engine, status. From loopy propagation it is \
log_evidence_bethe, which may be too small or too large, followed by sweeps and residual (the largest change of a \
marginal in the last sweep).

Columns of `--query mpe`: for each label its category in the most probable joint explanation, then log_weight, \
log_probability (empty where the exact evidence is not affordable, or takes more than 1e6 multiply-adds a row and \
neither `--engine exact` nor `--query both` asks to wait for it), optimal, gap (no explanation has a log_weight \
larger by more than this; empty if nothing is known), engine, status. With `--top`, row and rank come first, both from 1.

Columns of `--query both`: those of the marginals, then the explanation's categories as `mpe:LABEL`, then all last \
columns; mpe_engine is the engine of the explanation.

Columns of `--query samples`: row, sample (both from 1), the category of each label, engine, status.

The status is `ok`; `impossible` with empty cells where the hard rules exclude the row; `not_converged` where loopy \
propagation had not come to rest; `imprecise` where digits are lost to rounding; `not_proven` where a better \
explanation may exist. Where a label has the name of one of the other columns, that column gets the prefix `prsl_`.")]
pub struct Arguments {
    #[command(flatten)]
    question: Question,
    /// Write to this file instead of standard output; its name tells the format: .csv, .jsonl, .parquet
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What to ask for
    #[arg(long, default_value = "marginals")]
    query: QueryKind,
    /// How to find it
    #[arg(long, default_value = "auto")]
    engine: EngineKind,
    /// The format, where the name of the output does not tell it [default: csv]
    #[arg(long)]
    format: Option<Format>,
    /// The number of threads for inference [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// The N most probable explanations of each row, best first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
    /// The number of samples for each row [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    samples: Option<u32>,
    /// Another seed draws other samples, or other rows for `--verify` [default: 1]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Loopy: how often every rule speaks at most [default: 200, for explanations 30]
    #[arg(long, value_name = "N")]
    max_sweeps: Option<usize>,
    /// Loopy: the share of the old message in a new one, from 0 to below 1 [default: 0]
    #[arg(long, value_name = "X")]
    damping: Option<f64>,
    /// Loopy: in which order rules speak [default: sequential]
    #[arg(long)]
    schedule: Option<ScheduleKind>,
    /// Loopy: a row is done when no marginal changes by more than this [default: 1e-6]
    #[arg(long, value_name = "X")]
    tolerance: Option<f64>,
    /// Loopy: do not merge rules over the same labels
    #[arg(long)]
    no_merge: bool,
    /// The most time for branch and bound on a row, in seconds; with 0 it only guesses and tells the gap [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<Duration>,
    /// Answer K rows again by a more exact engine, and tell how far off the answers were
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    verify: Option<u32>,
    /// Only say which engine would be taken, and why; needs no beliefs
    #[arg(long)]
    explain_plan: bool,
}

/// What to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QueryKind {
    /// The probability of each category of each label
    Marginals,
    /// The most probable joint explanation: one category for each label
    Mpe,
    /// Marginals and the most probable joint explanation
    Both,
    /// Joint samples: one category for each label, drawn from the posterior
    Samples,
}

/// How to find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineKind {
    /// The best for the model: exact where that is affordable
    Auto,
    /// Exactly: along a junction tree, or by branch and bound
    Exact,
    /// Approximately, by loopy propagation
    Loopy,
    /// By going through all assignments: only for small models
    Enumeration,
}

impl From<EngineKind> for EngineChoice {
    fn from(engine: EngineKind) -> EngineChoice {
        match engine {
            EngineKind::Auto => EngineChoice::Auto,
            EngineKind::Exact => EngineChoice::Exact,
            EngineKind::Loopy => EngineChoice::Loopy,
            EngineKind::Enumeration => EngineChoice::Enumeration,
        }
    }
}

/// In which order rules speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScheduleKind {
    /// One after the other
    Sequential,
    /// All at once
    Flooding,
    /// Those first whose labels have changed most
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

/// The format of the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Comma-separated values
    Csv,
    /// One JSON object per line
    Jsonl,
    /// Parquet, for a file only
    Parquet,
}

impl From<Format> for prsl_data::Format {
    fn from(format: Format) -> prsl_data::Format {
        match format {
            Format::Csv => prsl_data::Format::Csv,
            Format::Jsonl => prsl_data::Format::JsonLines,
            Format::Parquet => prsl_data::Format::Parquet,
        }
    }
}

/// What is to be done, once the arguments are checked.
pub struct Prediction<'a> {
    /// The model.
    pub model: &'a Model,
    /// What to ask for, and whom.
    pub query: Query,
    /// The beliefs.
    pub beliefs: BeliefReader,
    /// Where the answers go.
    pub target: Target,
    /// The format of the answers.
    pub format: prsl_data::Format,
    /// The rows to be answered again, if any.
    pub verification: Option<Verification>,
}

/// What was done.
#[derive(Default)]
pub struct Summary {
    /// The number of rows.
    pub rows: u64,
    /// The number of rows with each status but `ok`.
    pub not_ok: BTreeMap<Status, u64>,
    /// The first impossible row, from 1.
    pub first_impossible: Option<u64>,
    /// The rows to be answered again, if any.
    pub verification: Option<Verification>,
}

impl Arguments {
    /// Answers all rows.
    pub fn run(self) -> Result<ExitCode> {
        self.question.check("predict")?;
        self.check_options()?;
        let format = self.output_format()?;
        let target = self.output.as_deref().map_or(Target::StandardOutput, Target::from);
        let to_terminal = matches!(target, Target::StandardOutput) && io::stdout().is_terminal();
        let file = ModelFile::read(&self.question.model)?;
        let model = file.document.model();
        let settings = self.settings();
        let threads = self.threads.map_or(0, usize::from); // 0: as many as there are cores
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.context("cannot start the threads")?;
        if self.explain_plan {
            output::print(&plan(&self.compile(model, &settings)?))?;
            return Ok(ExitCode::SUCCESS);
        }
        self.output.as_deref().map_or(Ok(()), |file| output::prepare(file, &[self.question.beliefs()]))?;
        let table = TableReader::open(self.question.beliefs())?;
        let beliefs = BeliefReader::new(model, table, self.question.options())?;
        let query = self.compile(model, &settings)?;
        self.tell_approximation(&query);
        let verification = self.verify.map(|wanted| Verification::new(wanted as usize, self.seed()));
        let prediction = Prediction { model, query, beliefs, target, format, verification };
        let mut summary = pool.install(|| prediction.run(Progress::new(!to_terminal)))?;
        let verification = summary.verification.take();
        self.tell(&summary);
        if let Some(verification) = verification {
            output::complain(&pool.install(|| verification.report(model, &settings))?);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn compile(&self, model: &Model, settings: &Settings) -> Result<Query> {
        let sampling =
            Sampling { n_samples: self.samples.unwrap_or(1) as usize, seed: self.seed(), first_row: 0 };
        let top = self.top.map(|n| n as usize);
        compile(model, self.query, self.engine, settings, top, sampling).map_err(|error| match error {
            prsl::Error::Setting { .. } => usage("predict", ErrorKind::ValueValidation, error),
            other => Refusal::of(other, model, self.other_engine()),
        })
    }

    /// The engine to take where this one is too costly.
    fn other_engine(&self) -> Option<&'static str> {
        match (self.engine, self.query) {
            (EngineKind::Enumeration, _) => Some("`--engine exact` takes the junction tree"),
            (EngineKind::Exact, QueryKind::Samples) => {
                Some("`--engine auto` draws approximate samples at any size")
            }
            (EngineKind::Exact, QueryKind::Marginals | QueryKind::Both) => {
                Some("`--engine loopy` approximates at any size")
            }
            _ => None,
        }
    }

    fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    fn settings(&self) -> Settings {
        let default = LoopySettings::default();
        let loopy = LoopySettings {
            schedule: self.schedule.map_or(default.schedule, Schedule::from),
            max_sweeps: self.max_sweeps.unwrap_or(default.max_sweeps),
            explanation_sweeps: self.max_sweeps.unwrap_or(default.explanation_sweeps),
            damping: self.damping.unwrap_or(default.damping),
            tolerance: self.tolerance.unwrap_or(default.tolerance),
            merge: !self.no_merge,
            ..default
        };
        Settings {
            limits: self.question.limits(),
            loopy,
            search: self.time_limit.map_or_else(SearchLimits::default, SearchLimits::within),
        }
    }

    /// Refuses options that would have no effect.
    fn check_options(&self) -> Result<()> {
        use EngineKind::{Auto, Exact, Loopy};
        use QueryKind::{Both, Marginals, Mpe, Samples};
        let explains = matches!(self.query, Mpe | Both);
        let samples = self.query == Samples;
        let loopy = self.engine == Loopy || (self.engine == Auto && matches!(self.query, Marginals | Both));
        let loopy = loopy && !samples;
        let searches = explains && matches!(self.engine, Auto | Exact);
        let for_loopy =
            "is for loopy propagation, which this query and engine do not use; add `--engine loopy`";
        let checks = [
            (self.top.is_some() && !explains, "--top", "is for `--query mpe` and `--query both`"),
            (
                self.top.is_some_and(|n| n > 1) && self.engine == Loopy,
                "--top",
                "is not for loopy propagation, which finds one explanation; use `--engine exact`",
            ),
            (self.samples.is_some() && !samples, "--samples", "is for `--query samples`"),
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

    /// Nobody should take an approximation for more than it is.
    fn tell_approximation(&self, query: &Query) {
        let Query::Beliefs(beliefs) = query else { return };
        let chosen = beliefs.marginals.as_ref().filter(|it| it.engine() == prsl::Engine::Loopy);
        if let Some(marginals) = chosen.filter(|_| self.engine == EngineKind::Auto) {
            let note = styled(style::NOTE, "note");
            let advice = if self.verify.is_none() { "; `--verify 20` estimates the error" } else { "" };
            output::complain(&format!("{note}: marginals are approximate, {}{advice}\n", marginals.reason()));
        }
    }

    /// The format that the name of the output tells, or else the one that was asked for, or else CSV.
    fn output_format(&self) -> Result<prsl_data::Format> {
        let asked = self.format.map(prsl_data::Format::from);
        let file = self.output.as_deref().filter(|path| path.as_os_str() != "-");
        let format = match (file.map(prsl_data::Format::from_path), asked) {
            (None, asked) => asked.unwrap_or(prsl_data::Format::Csv),
            (Some(Err(_)), Some(asked)) => asked,
            (Some(Err(error)), None) => {
                let message = format!("{error}; or say it with --format");
                return Err(usage("predict", ErrorKind::MissingRequiredArgument, message));
            }
            (Some(Ok(told)), Some(asked)) if told != asked => {
                let name = file.expect("its name told the format").display();
                let message =
                    format!("--format and the name of `{name}` tell different formats; change one of them");
                return Err(usage("predict", ErrorKind::ArgumentConflict, message));
            }
            (Some(Ok(told)), _) => told,
        };
        if file.is_none() && format == prsl_data::Format::Parquet {
            let message = prsl_data::Error::ParquetToStandardOutput;
            return Err(usage("predict", ErrorKind::MissingRequiredArgument, message));
        }
        Ok(format)
    }

    /// Sums up on standard error, unless that would only disturb.
    fn tell(&self, summary: &Summary) {
        let rows = counted(summary.rows, "row");
        let impossible_rows = summary.not_ok.get(&Status::Impossible).copied().unwrap_or(0);
        self.tell_doubts(summary, &rows);
        if let Some(first) = summary.first_impossible {
            let (impossible, are) =
                (grouped(impossible_rows), if impossible_rows == 1 { "is" } else { "are" });
            let (model, beliefs) = (shell(&self.question.model), shell(self.question.beliefs()));
            let why = format!("prsl explain {model} {beliefs} --row {first}");
            let heading = styled(style::WARNING, format_args!("{impossible} of {rows} {are} impossible"));
            output::complain(&format!(
                "{heading} under the hard rules; `{}` says why\n",
                styled(style::STRONG, why)
            ));
        } else if io::stderr().is_terminal() {
            let done = match &self.output {
                Some(path) => format!("{rows} written to {}\n", path.display()),
                None => format!("{rows} answered\n"),
            };
            output::complain(&styled(style::FAINT, done));
        }
    }

    /// Rows that have an answer, and not the best one.
    fn tell_doubts(&self, summary: &Summary, rows: &str) {
        let doubts = [
            (Status::NotConverged, "did not converge; more `--max-sweeps` or `--damping 0.5` may help"),
            (Status::Imprecise, "lost digits to rounding; a larger `--memory` avoids that"),
            (Status::NotProven, "got an explanation that is not proven to be the best"),
        ];
        for (status, what) in doubts {
            if let Some(&n) = summary.not_ok.get(&status) {
                let heading = styled(style::WARNING, format_args!("{} of {rows}", grouped(n)));
                output::complain(&format!("{heading} {what}\n"));
            }
        }
    }
}

/// Which engines are taken, and why.
fn plan(query: &Query) -> String {
    let line = |(what, reason): (&str, String)| format!("{what}: {reason}\n");
    query.reasons().into_iter().map(line).collect()
}

/// Some rows on their way, and which part of the table has been read with them.
type Read = prsl_data::Result<(BeliefMatrix, Option<f64>)>;

/// Chunks that wait for their turn: enough that nobody starves, few enough that memory does not grow.
const WAITING: usize = 2;

impl Prediction<'_> {
    /// Answers all rows while more are read and the answers are written.
    pub fn run(self, mut progress: Progress) -> Result<Summary> {
        let query = self.query;
        let (fewest, most) = chunk_rows(self.model, query.work());
        let chunk_rows = Arc::new(AtomicUsize::new(fewest));
        let wanted_rows = Arc::clone(&chunk_rows);
        let beliefs = self.beliefs;
        let mut summary = Summary { verification: self.verification, ..Summary::default() };
        thread::scope(|scope| {
            let (to_infer, chunks) = sync_channel(WAITING);
            let (to_write, answers) = sync_channel(WAITING);
            scope.spawn(move || read(beliefs, &wanted_rows, &to_infer));
            // Nothing is written before some rows have proved to be good.
            let mut chunks = chunks.into_iter().peekable();
            if let Some(Err(error)) = chunks.next_if(Result::is_err) {
                return Err(error.into());
            }
            let writer = TableWriter::create(self.target, self.format, &query.columns())?;
            let writing = scope.spawn(move || write(writer, &answers));
            for chunk in chunks {
                let (rows, part) = chunk?;
                let start = Instant::now();
                let answers = query.answer(&rows, summary.rows)?;
                let next = next_rows(chunk_rows.load(Ordering::Relaxed), start.elapsed());
                chunk_rows.store(next.clamp(fewest, most), Ordering::Relaxed);
                summary.add(&rows, &answers);
                if to_write.send(answers.columns).is_err() {
                    break; // the writer will say why it stopped
                }
                progress.update(summary.rows, part);
            }
            drop(to_write);
            let writer = writing.join().expect("writing does not panic")?;
            Ok::<_, anyhow::Error>(writer.finish()?)
        })?;
        progress.finish();
        Ok(summary)
    }
}

/// Compiles the engines that a query takes.
pub fn compile(
    model: &Model,
    query: QueryKind,
    engine: EngineKind,
    settings: &Settings,
    top: Option<usize>,
    sampling: Sampling,
) -> prsl::Result<Query> {
    let engine = engine.into();
    if query == QueryKind::Samples {
        let sampler = engines::sampler(model, engine, settings.limits)?;
        return Ok(Query::Samples(Box::new(sampler), sampling));
    }
    let marginals = (query != QueryKind::Mpe).then(|| Marginals::compile(model, engine, settings));
    let marginals = marginals.transpose()?;
    let best = (query != QueryKind::Marginals).then(|| Explanations::compile(model, engine, settings));
    let best = best.transpose()?;
    let log_evidence = match &best {
        Some(_) => LogEvidence::beside(marginals.as_ref(), model, engine, settings.limits)?,
        None => None,
    };
    Ok(Query::Beliefs(Box::new(Beliefs { model: model.clone(), marginals, best, log_evidence, top })))
}

/// Reads until the end, an error, or nobody wants more.
fn read(mut beliefs: BeliefReader, chunk_rows: &AtomicUsize, chunks: &SyncSender<Read>) {
    loop {
        let chunk = match beliefs.next_chunk(chunk_rows.load(Ordering::Relaxed)) {
            Ok(Some(rows)) => Ok((rows, beliefs.table().progress())),
            Ok(None) => break,
            Err(error) => Err(error),
        };
        let failed = chunk.is_err();
        if chunks.send(chunk).is_err() || failed {
            break;
        }
    }
}

fn write(mut writer: TableWriter, answers: &Receiver<Vec<Column>>) -> prsl_data::Result<TableWriter> {
    for columns in answers {
        writer.write(&columns)?;
    }
    Ok(writer)
}

/// The fewest and the most rows in a chunk: many, but few enough for memory (a few megabytes) and for a sign of life every
/// now and then.
pub fn chunk_rows(model: &Model, work: f64) -> (usize, usize) {
    const CELLS: f64 = 300_000.0;
    const WORK: f64 = 1e9;
    const AT_LEAST: f64 = 64.0; // so that all threads have rows, eight side by side
    const SLOW: f64 = 5e7; // a row of this much work is slow enough to keep a thread busy alone
    let most = (CELLS / model.n_categories().max(1) as f64).clamp(AT_LEAST, 8192.0);
    let fewest = if work >= SLOW { 16.0 } else { (WORK / work.max(1.0)).clamp(AT_LEAST, most) };
    (fewest as usize, most as usize)
}

/// Rows in the next chunk: more where they are done in no time, fewer where they take long.
fn next_rows(rows: usize, time: Duration) -> usize {
    match time.as_millis() {
        0..100 => rows * 2,
        100..1000 => rows,
        _ => rows / 2,
    }
}

impl Summary {
    fn add(&mut self, rows: &BeliefMatrix, answers: &Answers) {
        if let Some(verification) = &mut self.verification {
            verification.observe(rows, answers);
        }
        let first = answers.status.iter().position(|&status| status == Status::Impossible);
        self.first_impossible = self.first_impossible.or(first.map(|row| self.rows + row as u64 + 1));
        for &status in answers.status.iter().filter(|&&status| status != Status::Ok) {
            *self.not_ok.entry(status).or_default() += 1;
        }
        self.rows += rows.n_rows() as u64;
    }
}
