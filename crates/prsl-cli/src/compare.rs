//! `prsl compare`: two models on the same rows.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, ensure};
use prsl::Model;
use prsl::infer::EngineSettings;
use prsl::metrics::{Bootstrap, Comparison, Difference, Evaluation, Metric, RowDifference};
use prsl_data::{LabeledReader, RowColumns};
use serde::Serialize;

use crate::arguments::{MemoryLimit, TableOptions};
use crate::check::Format;
use crate::evaluate::{self, Scored, Scorer};
use crate::model::ModelFile;
use crate::predict::{EngineKind, chunk_rows};
use crate::progress::{Progress, counted};
use crate::style::{self, styled};
use crate::{labeled, output};

/// Compare two models on the same rows: paired differences of all scores
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl compare expert.prsl learned.prsl beliefs.csv truth.csv
  prsl compare expert.prsl learned.prsl beliefs.parquet truth.parquet --rows 20
  prsl compare expert.prsl learned.prsl beliefs.csv truth.csv --format json

Both models answer the same rows, so their scores vary together, and the interval of the difference is narrower than those of \
the scores. An interval that does not contain 0 means that the difference is hardly by chance. Intervals are 95 % bootstrap \
intervals (1,000 resamples of the rows). `prsl evaluate --help` defines the scores.

Rows are those whose log-likelihood differs most: that of all known labels together, or the sum over labels with loopy \
propagation.")]
pub struct Arguments {
    /// The first model, `.prsl` text or JSON
    first: PathBuf,
    /// The second model; differences are its scores less those of the first
    second: PathBuf,
    /// The beliefs, `.csv`, `.csv.gz` or `.parquet`
    beliefs: PathBuf,
    /// The truths, `.csv`, `.csv.gz` or `.parquet`
    truth: PathBuf,
    /// Number of rows that are shown
    #[arg(long, value_name = "N", default_value_t = 5)]
    rows: usize,
    /// The output format
    #[arg(long, default_value = "text")]
    format: Format,
    /// The engine of both models
    #[arg(long, default_value = "auto")]
    engine: EngineKind,
    /// Seed of the bootstrap intervals
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    tables: TableOptions,
    #[command(flatten)]
    memory: MemoryLimit,
    /// The number of threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl Arguments {
    /// Scores both models, and prints the differences.
    pub fn run(self) -> Result<ExitCode> {
        for (name, path) in [("BELIEFS", &self.beliefs), ("TRUTH", &self.truth)] {
            ensure!(
                path != Path::new("-"),
                "{name} cannot be `-`, because it is read once for each model; name a file"
            );
        }
        labeled::check("compare", [("FIRST", self.first.as_path()), ("SECOND", &self.second)])?;
        let files = [ModelFile::read(&self.first)?, ModelFile::read(&self.second)?];
        let text = labeled::threads(self.threads)?.install(|| {
            let [first, second] = files.each_ref().map(|file| self.score(file.document.model()));
            let evaluations = [first?, second?];
            let bootstrap = Bootstrap { seed: self.seed, ..Bootstrap::default() };
            let compared = evaluations[0].compare(&evaluations[1], &bootstrap)?;
            Ok::<_, anyhow::Error>(self.report(&evaluations, &compared))
        })?;
        match self.format {
            Format::Text => output::print(&text)?,
            Format::Json => output::write(&text, None)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Predicts all rows with a model.
    fn score(&self, model: &Model) -> Result<Evaluation> {
        let settings = EngineSettings { limits: self.memory.limits(), ..EngineSettings::default() };
        let mut scorer = Scorer::compile(model, self.engine, &settings)?;
        scorer.tell_doubts(self.engine);
        let beliefs = self.tables.open_beliefs(model, &self.beliefs)?;
        let truths = self.tables.open_truths(model, &self.truth, RowColumns::default())?;
        let mut reader = LabeledReader::new(beliefs, truths);
        let (_, most) = chunk_rows(model, scorer.work());
        let (mut progress, mut n_rows) = (Progress::new(true), 0);
        while let Some((rows, truths)) = reader.next_chunk(most)? {
            scorer.add(&rows, &truths)?;
            n_rows += truths.len() as u64;
            progress.update(n_rows, reader.progress());
        }
        progress.finish();
        Ok(scorer.evaluation)
    }

    fn report(&self, evaluations: &[Evaluation; 2], compared: &Comparison) -> String {
        match self.format {
            Format::Json => {
                let object = Object::new(evaluations, compared, self.rows);
                serde_json::to_string_pretty(&object).expect("writing to memory does not fail") + "\n"
            }
            Format::Text => text(evaluations, compared, self.rows),
        }
    }
}

/// Tables for people.
fn text(evaluations: &[Evaluation; 2], compared: &Comparison, n_rows: usize) -> String {
    let scored = evaluations.each_ref().map(|evaluation| Scored::new(evaluation, None));
    let header = ["", "first", "second", "difference", "95 % interval"].map(str::to_owned).to_vec();
    let mut lines = vec![header];
    for metric in Metric::ALL {
        let [[first, _], [second, _]] = scored.each_ref().map(|scored| scored.shown(metric));
        let mut line = vec![evaluate::title(metric).to_owned(), first, second];
        if let Some(Difference { difference, interval: [low, high], .. }) = compared.get(metric) {
            let is_clear = low > 0.0 || high < 0.0;
            let is_better = (difference > 0.0) == metric.higher_is_better();
            let shown = format!("{difference:+.4}");
            line.push(match (is_clear, is_better) {
                (true, true) => styled(style::GOOD, shown),
                (true, false) => styled(style::WARNING, shown),
                (false, _) => shown,
            });
            line.push(format!("[{low:+.4}, {high:+.4}]"));
        }
        lines.push(line);
    }
    let n_known = compared.rows.len();
    let mut text =
        styled(style::STRONG, format_args!("{} with known truths", counted(n_known as u64, "row")));
    text += "\n\n";
    text += &evaluate::columns(&lines);
    let _ = writeln!(text, "\nrows that differ most, by log-likelihood");
    let mut lines = vec![["row", "first", "second", "difference"].map(str::to_owned).to_vec()];
    for row in compared.rows.iter().take(n_rows) {
        let [first, second] = row.log_likelihoods.map(|value| format!("{value:.3}"));
        lines.push(vec![(row.row + 1).to_string(), first, second, format!("{:+.3}", row.difference())]);
    }
    text + &evaluate::columns(&lines)
}

#[derive(Serialize)]
struct Object {
    rows: usize,
    differences: Vec<Line>,
    largest: Vec<Row>,
}

/// One score of both models.
#[derive(Serialize)]
struct Line {
    score: &'static str,
    first: Option<f64>,
    second: Option<f64>,
    difference: Option<f64>,
    interval: Option<[f64; 2]>,
}

#[derive(Serialize)]
struct Row {
    row: usize,
    first: f64,
    second: f64,
}

impl Object {
    fn new(evaluations: &[Evaluation; 2], compared: &Comparison, n_rows: usize) -> Self {
        let scores = evaluations.each_ref().map(Evaluation::scores);
        let line = |metric: Metric| {
            let difference = compared.get(metric);
            Line {
                score: metric.name(),
                first: scores[0].get(metric),
                second: scores[1].get(metric),
                difference: difference.map(|it| it.difference),
                interval: difference.map(|it| it.interval),
            }
        };
        let row = |row: &RowDifference| {
            let [first, second] = row.log_likelihoods;
            Row { row: row.row + 1, first, second }
        };
        Self {
            rows: compared.rows.len(),
            differences: Metric::ALL.map(line).into(),
            largest: compared.rows.iter().take(n_rows).map(row).collect(),
        }
    }
}
