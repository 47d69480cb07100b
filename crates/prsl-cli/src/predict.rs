//! `prsl predict`: what the beliefs become under the rules.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anyhow::{Context, Result};
use clap::ValueEnum;
use clap::error::ErrorKind;
use prsl::{BeliefMatrix, Limits, Model};
use prsl_data::{BeliefReader, Column, TableReader, TableWriter, Target};

use crate::arguments::{Question, usage};
use crate::model::ModelFile;
use crate::output;
use crate::progress::{Progress, grouped};
use crate::style::{self, shell, styled};
use crate::table::{Marginals, Mpe, Query};

/// Answer every row of a table: the beliefs that follow from the classifiers and the rules
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl predict warehouse.prsl beliefs.csv
  prsl predict warehouse.prsl beliefs.parquet -o posterior.parquet --memory 4GiB
  prsl predict warehouse.prsl beliefs.csv --query mpe --format jsonl
  gunzip -c beliefs.csv.gz | prsl predict warehouse.prsl - | head

Columns of `--query marginals`: `label=category` for each category, then log_evidence (the logarithm of the \
probability that all rules hold: how well beliefs and rules go together), engine, status.

Columns of `--query mpe`: for each label its category in the most probable joint explanation, then log_weight, \
log_probability (empty where it is not affordable), optimal, engine, status.

A row that the hard rules exclude has the status `impossible` and empty cells, all others have `ok`. Where a label \
has the name of one of the last columns, that column gets the prefix `prsl_`.")]
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
}

/// What to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QueryKind {
    /// The probability of each category of each label
    Marginals,
    /// The most probable joint explanation: one category for each label
    Mpe,
}

/// How to find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineKind {
    /// The best for the model; at present always `exact`
    Auto,
    /// Exactly, along a junction tree
    Exact,
    /// By going through all assignments: only for small models
    Enumeration,
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
    /// What to ask for.
    pub query: QueryKind,
    /// How to find it.
    pub engine: EngineKind,
    /// What it may take.
    pub limits: Limits,
    /// The beliefs.
    pub beliefs: BeliefReader,
    /// Where the answers go.
    pub target: Target,
    /// The format of the answers.
    pub format: prsl_data::Format,
}

/// What was done.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of rows.
    pub rows: u64,
    /// The number of impossible rows.
    pub impossible: u64,
    /// The first impossible row, from 1.
    pub first_impossible: Option<u64>,
}

impl Arguments {
    /// Answers all rows.
    pub fn run(self) -> Result<ExitCode> {
        self.question.check("predict")?;
        let format = self.output_format()?;
        let target = self.output.as_deref().map_or(Target::StandardOutput, Target::from);
        let to_terminal = matches!(target, Target::StandardOutput) && io::stdout().is_terminal();
        let file = ModelFile::read(&self.question.model)?;
        let table = TableReader::open(&self.question.beliefs)?;
        let prediction = Prediction {
            model: file.document.model(),
            query: self.query,
            engine: self.engine,
            limits: self.question.limits(),
            beliefs: BeliefReader::new(file.document.model(), table, self.question.options())?,
            target,
            format,
        };
        let threads = self.threads.map_or(0, usize::from); // 0: as many as there are cores
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.context("cannot start the threads")?;
        let summary = pool.install(|| prediction.run(Progress::new(!to_terminal)))?;
        self.tell(&summary);
        Ok(ExitCode::SUCCESS)
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
        let rows = match summary.rows {
            1 => "1 row".to_owned(),
            n => format!("{} rows", grouped(n)),
        };
        if let Some(first) = summary.first_impossible {
            let (impossible, are) =
                (grouped(summary.impossible), if summary.impossible == 1 { "is" } else { "are" });
            let (model, beliefs) = (shell(&self.question.model), shell(&self.question.beliefs));
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
}

/// Some rows on their way, and which part of the table has been read with them.
type Read = prsl_data::Result<(BeliefMatrix, Option<f64>)>;

/// Chunks that wait for their turn: enough that nobody starves, few enough that memory does not grow.
const WAITING: usize = 2;

impl Prediction<'_> {
    /// Answers all rows while more are read and the answers are written.
    pub fn run(self, mut progress: Progress) -> Result<Summary> {
        let query = compile(self.model, self.query, self.engine, self.limits)?;
        let chunk_rows = chunk_rows(self.model, query.work());
        let beliefs = self.beliefs;
        let mut summary = Summary::default();
        thread::scope(|scope| {
            let (to_infer, chunks) = sync_channel(WAITING);
            let (to_write, answers) = sync_channel(WAITING);
            scope.spawn(move || read(beliefs, chunk_rows, &to_infer));
            // Nothing is written before some rows have proved to be good.
            let mut chunks = chunks.into_iter().peekable();
            if let Some(Err(error)) = chunks.next_if(Result::is_err) {
                return Err(error);
            }
            let writer = TableWriter::create(self.target, self.format, &query.columns())?;
            let writing = scope.spawn(move || write(writer, &answers));
            for chunk in chunks {
                let (rows, part) = chunk?;
                let answers = query.answer(&rows);
                summary.add(rows.n_rows(), &answers.impossible);
                if to_write.send(answers.columns).is_err() {
                    break; // the writer will say why it stopped
                }
                progress.update(summary.rows, part);
            }
            drop(to_write);
            let writer = writing.join().expect("writing does not panic")?;
            writer.finish()
        })?;
        progress.finish();
        Ok(summary)
    }
}

fn compile(
    model: &Model,
    query: QueryKind,
    engine: EngineKind,
    limits: Limits,
) -> prsl::Result<Box<dyn Query>> {
    Ok(match (query, engine) {
        (QueryKind::Marginals, EngineKind::Enumeration) => Box::new(Marginals::enumeration(model)?),
        (QueryKind::Marginals, _) => Box::new(Marginals::exact(model, limits)?),
        (QueryKind::Mpe, EngineKind::Enumeration) => Box::new(Mpe::enumeration(model)?),
        (QueryKind::Mpe, _) => Box::new(Mpe::exact(model, limits)?),
    })
}

/// Reads until the end, an error, or nobody wants more.
fn read(mut beliefs: BeliefReader, chunk_rows: usize, chunks: &SyncSender<Read>) {
    loop {
        let chunk = match beliefs.next_chunk(chunk_rows) {
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

/// Rows in a chunk: many, but few enough for memory (a few megabytes) and for a sign of life every now and then.
fn chunk_rows(model: &Model, work: f64) -> usize {
    const CELLS: f64 = 300_000.0;
    const WORK: f64 = 1e9;
    const AT_LEAST: f64 = 64.0; // so that all threads have rows, eight side by side
    let rows = (CELLS / model.n_categories().max(1) as f64).min(WORK / work.max(1.0));
    rows.clamp(AT_LEAST, 8192.0) as usize
}

impl Summary {
    fn add(&mut self, n_rows: usize, impossible: &[usize]) {
        let first = impossible.first().map(|&row| self.rows + row as u64 + 1);
        self.first_impossible = self.first_impossible.or(first);
        self.impossible += impossible.len() as u64;
        self.rows += n_rows as u64;
    }
}
