//! `prsl compare`: two models on the same rows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, ensure};
use prsl::Model;
use prsl::infer::EngineSettings;
use prsl::metrics::{Bootstrap, Comparison, Difference, Evaluation, Metric, RowDifference};
use prsl_data::ColumnSpec;
use serde::Serialize;

use crate::arguments::{MemoryLimit, TableOptions};
use crate::check::Format;
use crate::evaluate::{self, Scored, Scorer};
use crate::model::ModelFile;
use crate::predict::{EngineKind, chunk_rows, next_rows};
use crate::progress::{Progress, StepBar, counted};
use crate::style::{self, styled};
use crate::{labeled, output};

/// Compare two models on the same rows: paired differences of all scores
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl compare expert.prsl learned.prsl beliefs.csv truth.csv
  prsl compare expert.prsl learned.prsl beliefs.parquet truth.parquet --rows 20
  prsl compare expert.prsl learned.prsl beliefs.csv truth.csv --id image --weights weight
  prsl compare expert.prsl learned.prsl beliefs.csv truth.csv --format json

Both models answer the same rows, so their scores vary together, and the interval of the difference is narrower than those of \
the scores. An interval that does not contain 0 means that the difference is hardly by chance. Intervals are 95 % bootstrap \
intervals (1,000 resamples of the rows). `prsl evaluate --help` defines the scores.

With `--weights`, a row of weight 2 counts as two rows, and one of weight 0 not at all. Columns of `--id` are shown beside the \
rows.

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
    /// The column of TRUTH with the row weights, as for `prsl learn`
    #[arg(long, value_name = "COLUMN")]
    weights: Option<String>,
    /// Round the scores of the text to N digits after the decimal point [default: 4]; JSON has all digits
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=17))]
    digits: Option<u8>,
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
        self.tables.check_bad_rows("compare")?;
        labeled::check("compare", [("FIRST", self.first.as_path()), ("SECOND", &self.second)])?;
        let files = [ModelFile::read(&self.first)?, ModelFile::read(&self.second)?];
        let text = labeled::threads(self.threads)?.install(|| {
            let (first, ids) = self.score(files[0].document.model())?;
            let (second, _) = self.score(files[1].document.model())?;
            let evaluations = [first, second];
            let bootstrap = Bootstrap { seed: self.seed, ..Bootstrap::default() };
            let bar = StepBar::new("bootstrap intervals", 1);
            let compared =
                evaluations[0].compare_observed(&evaluations[1], &bootstrap, &|share| bar.set_share(share));
            bar.finish();
            Ok::<_, anyhow::Error>(self.report(&evaluations, &compared?, &ids))
        })?;
        match self.format {
            Format::Text => output::print(&text)?,
            Format::Json => output::write(&text, None)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Predicts all rows with a model. Also returns the ids of the rows.
    fn score(&self, model: &Model) -> Result<(Evaluation, Ids)> {
        let settings = EngineSettings { limits: self.memory.limits(), ..EngineSettings::default() };
        let mut progress = Progress::of("compiling the model", true);
        let mut scorer = Scorer::compile(model, self.engine, &settings)?;
        scorer.tell_doubts(self.engine);
        let files = [self.beliefs.as_path(), &self.truth];
        let mut reader = labeled::open(model, &self.tables, files, self.weights.as_deref())?;
        let mut ids = Ids { columns: reader.id_columns().to_vec(), values: Vec::new(), skipped: Vec::new() };
        let (fewest, most) = chunk_rows(model, scorer.work());
        let mut wanted = fewest;
        while let Some((rows, truths)) = reader.next_chunk(wanted)? {
            let start = Instant::now();
            let weights = reader.weights().map(|weights| &weights[weights.len() - truths.len()..]);
            scorer.add(&rows, &truths, weights)?;
            let of_row =
                |row: usize| reader.ids().iter().map(|column| column.text(row).unwrap_or_default()).collect();
            ids.values.extend((0..truths.len()).map(of_row));
            wanted = next_rows(wanted, start.elapsed()).clamp(fewest, most);
            progress.update(ids.values.len() as u64, reader.progress());
        }
        progress.finish();
        labeled::check_weights(&reader)?;
        labeled::tell_skipped_by(&reader);
        ids.skipped = reader.skipped().to_vec();
        Ok((scorer.evaluation, ids))
    }

    fn report(&self, evaluations: &[Evaluation; 2], compared: &Comparison, ids: &Ids) -> String {
        match self.format {
            Format::Json => {
                let object = Object::new(evaluations, compared, self.rows, ids);
                serde_json::to_string_pretty(&object).expect("writing to memory does not fail") + "\n"
            }
            Format::Text => {
                let scores = text(evaluations, compared, self.digits.map(usize::from));
                let remark = labeled::weights_remark(self.weights.as_deref());
                scores + &rows(compared, self.rows, ids) + &remark
            }
        }
    }
}

/// The columns that identify rows, and their values in every row.
struct Ids {
    columns: Vec<ColumnSpec>,
    values: Vec<Vec<String>>,
    /// The rows that were skipped, counted from 1.
    skipped: Vec<u64>,
}

impl Ids {
    /// The number of a row in the table, counted from 1.
    fn number(&self, row: usize) -> u64 {
        labeled::number(&self.skipped, row)
    }
}

/// The scores of both models and their differences, for people.
fn text(evaluations: &[Evaluation; 2], compared: &Comparison, digits: Option<usize>) -> String {
    let scored = evaluations.each_ref().map(|evaluation| Scored::new(evaluation, None));
    let header = ["", "first", "second", "difference", "95 % interval"].map(str::to_owned).to_vec();
    let mut lines = vec![header];
    for metric in Metric::ALL {
        let [[first, _], [second, _]] = scored.each_ref().map(|scored| scored.shown(metric, digits));
        let mut line = vec![evaluate::title(metric).to_owned(), first, second];
        if let Some(Difference { difference, interval: [low, high], .. }) = compared.get(metric) {
            let digits = digits.unwrap_or(evaluate::DIGITS);
            let is_clear = low > 0.0 || high < 0.0;
            let is_better = (difference > 0.0) == metric.higher_is_better();
            let shown = format!("{difference:+.digits$}");
            line.push(match (is_clear, is_better) {
                (true, true) => styled(style::GOOD, shown),
                (true, false) => styled(style::WARNING, shown),
                (false, _) => shown,
            });
            line.push(format!("[{low:+.digits$}, {high:+.digits$}]"));
        }
        lines.push(line);
    }
    let n_known = compared.rows.len();
    let heading = styled(style::STRONG, format_args!("{} with known truths", counted(n_known as u64, "row")));
    format!("{heading}\n\n{}", evaluate::columns(&lines))
}

/// The rows that differ most, for people.
fn rows(compared: &Comparison, n_rows: usize, ids: &Ids) -> String {
    let names = ids.columns.iter().map(|column| column.name.clone());
    let header = ["first", "second", "difference"].map(str::to_owned);
    let mut lines: Vec<Vec<String>> =
        vec![["row".to_owned()].into_iter().chain(names).chain(header).collect()];
    for row in compared.rows.iter().take(n_rows) {
        let [first, second] = row.log_likelihoods.map(|value| format!("{value:.3}"));
        let mut line = vec![ids.number(row.row).to_string()];
        line.extend(ids.values[row.row].iter().cloned());
        line.extend([first, second, format!("{:+.3}", row.difference())]);
        lines.push(line);
    }
    format!("\nrows that differ most, by log-likelihood\n{}", evaluate::columns(&lines))
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
    row: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    id: BTreeMap<String, String>,
    first: f64,
    second: f64,
}

impl Object {
    fn new(evaluations: &[Evaluation; 2], compared: &Comparison, n_rows: usize, ids: &Ids) -> Self {
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
            let names = ids.columns.iter().map(|column| column.name.clone());
            let id = names.zip(ids.values[row.row].iter().cloned()).collect();
            Row { row: ids.number(row.row), id, first, second }
        };
        Self {
            rows: compared.rows.len(),
            differences: Metric::ALL.map(line).into(),
            largest: compared.rows.iter().take(n_rows).map(row).collect(),
        }
    }
}
