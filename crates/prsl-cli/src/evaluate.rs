//! `prsl evaluate`: scores of a model and of its parts.

mod parts;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use prsl::infer::EngineSettings;
use prsl::metrics::{Bootstrap, Evaluation, LabelScores, Reliability};
use prsl::{BeliefMatrix, Error, Limits, Model, Truth};
use prsl_data::LabeledReader;

use parts::{Part, Rows};
pub use parts::{Parts, Scorer};
pub use report::{DIGITS, Scored, columns, title};

use crate::arguments::{Question, TableOptions};
use crate::check::Format;
use crate::figures::{self, Effects};
use crate::model::ModelFile;
use crate::predict::EngineKind;
use crate::progress::{Progress, StepBar};
use crate::style::{self, styled};
use crate::{labeled, output};

/// Score predictions against known truths: those of the model, and of its parts alone
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl evaluate warehouse.prsl beliefs.csv truth.csv
  prsl evaluate warehouse.prsl beliefs.parquet truth.parquet --format json
  prsl evaluate warehouse.prsl beliefs.csv truth.csv --plots figures
  prsl evaluate warehouse.prsl beliefs.csv truth.csv --weights weight --no-intervals
  prsl evaluate warehouse.prsl beliefs.csv truth.csv --id image --digits 2
  prsl evaluate large.prsl beliefs.csv truth.csv --engine loopy --threads 4

TRUTH has a column for each label, in any order, with the names of categories (for yes/no labels also 1 and 0, true and \
false), and a row for each row of BELIEFS. Empty cells and missing columns are unknown. A row counts with its known labels.

The model is compared with its parts: the beliefs as given, the beliefs with the model's calibrators, and its expert rules (those \
that were not learned) with the beliefs as given. Parts that the model does not have are left out.

Joint accuracy: the share of rows in which the most probable assignment is right for all known labels. Label by label: \
the same with the most probable category of each label. Hamming loss: the share of known labels whose most probable \
category is wrong. Joint log-likelihood: ln of the joint probability of all known labels of a row. Label by label: the \
sum of the labels' log probabilities. F1 is that of yes for yes/no labels, and of each category for other labels. \
Calibration error: the mean difference between probabilities and frequencies, in 15 bins per category. A truth of \
probability 0 scores ln 1e-300 and is counted as impossible. Intervals are 95 % bootstrap intervals: quantiles of the scores of \
1,000 resamples of the rows, shifted so that their mean is the score. AUC: the probability that a row in which a category is \
true gets a higher posterior than one in which it is not.

With `--weights`, a row of weight 2 counts as two rows, and one of weight 0 not at all. Intervals resample rows, each with its \
weight. Numbers of rows are not weighted. The figures of rules by `--plots` ignore weights.

The joint log-likelihood needs exact inference; with loopy propagation it is missing (null).")]
pub struct Arguments {
    #[command(flatten)]
    question: Question,
    /// The truths, `.csv`, `.csv.gz` or `.parquet`; `-` is CSV on standard input
    truth: PathBuf,
    /// The output format
    #[arg(long, default_value = "text")]
    format: Format,
    /// The engine
    #[arg(long, default_value = "auto")]
    engine: EngineKind,
    /// The column of TRUTH with the row weights, as for `prsl learn`
    #[arg(long, value_name = "COLUMN")]
    weights: Option<String>,
    /// Round the scores of the text to N digits after the decimal point [default: 4]; JSON has all digits
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=17))]
    digits: Option<u8>,
    /// Leave out the bootstrap intervals, which take most of the time
    #[arg(long)]
    no_intervals: bool,
    /// Seed of the bootstrap intervals
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Draw figures into this folder: graph.svg, reliability.svg, influence.svg, weights.svg
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// The number of threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// The figures of `--plots`.
const FIGURES: [&str; 4] = ["graph.svg", "reliability.svg", "influence.svg", "weights.svg"];

impl Arguments {
    /// Predicts all rows, and scores the predictions.
    pub fn run(self) -> Result<ExitCode> {
        let question = &self.question;
        let (model, beliefs) = (question.model.as_path(), question.beliefs());
        question.tables.check_bad_rows("evaluate")?;
        labeled::check("evaluate", [("MODEL", model), ("BELIEFS", beliefs), ("TRUTH", &self.truth)])?;
        if let Some(folder) = &self.plots {
            let figures = FIGURES.map(|name| folder.join(name));
            output::spare(&[model, beliefs, &self.truth], &figures.each_ref().map(PathBuf::as_path))?;
        }
        let file = ModelFile::read(&question.model)?;
        let model = file.document.model();
        let mut rows = Files::new(model, &question.tables, [beliefs, &self.truth], self.weights.as_deref())?;
        let progress = Progress::of("compiling the model and its parts", true);
        let settings = EngineSettings { limits: question.limits(), ..EngineSettings::default() };
        let parts = Parts::compile(model, self.engine, &settings)?;
        progress.finish();
        parts.whole().tell_doubts(self.engine);
        let text = labeled::threads(self.threads)?.install(|| {
            let results = match &self.plots {
                None => parts.score(&mut rows, |_, _| Ok(()), |part, it| self.reduce(part, &it))?,
                Some(folder) => self.draw(model, parts, &mut rows, settings.limits, folder)?,
            };
            Ok::<_, anyhow::Error>(self.report(model, results))
        })?;
        match self.format {
            Format::Text => output::print(&text)?,
            Format::Json => output::write(&text, None)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// What is kept of the evaluation of a part.
    fn reduce(&self, part: Part, evaluation: &Evaluation) -> Reduced {
        // The text shows the intervals of the whole model only.
        let has_intervals = !self.no_intervals && (part == Part::Model || self.format == Format::Json);
        let intervals = has_intervals.then(|| {
            let bootstrap = Bootstrap { seed: self.seed, ..Bootstrap::default() };
            let bar = StepBar::new(&format!("{}: bootstrap intervals", part.title()), 1);
            let intervals = evaluation.intervals_observed(&bootstrap, &|share| bar.set_share(share));
            bar.finish();
            intervals
        });
        let has_labels = part == Part::Model || part == Part::Beliefs && self.format == Format::Text;
        Reduced {
            scored: Scored::new(evaluation, intervals),
            labels: if has_labels { evaluation.label_scores() } else { Vec::new() },
            reliability: self.plots.is_some().then(|| figures::reliability(evaluation)),
        }
    }

    fn report(&self, model: &Model, results: Vec<(Part, Reduced)>) -> String {
        let (mut scored, mut labels) = (Vec::new(), Vec::new());
        for (part, reduced) in results {
            scored.push((part, reduced.scored));
            labels.push(reduced.labels);
        }
        let (first, last) = (&labels[0], &labels[labels.len() - 1]);
        match self.format {
            Format::Json => {
                let object = report::Object::new(model, &scored, last);
                serde_json::to_string_pretty(&object).expect("writing to memory does not fail") + "\n"
            }
            Format::Text => {
                let text = report::text(model, &scored, [first, last], self.digits.map(usize::from));
                text + &labeled::weights_remark(self.weights.as_deref())
            }
        }
    }

    /// Predicts all rows, and draws the figures.
    fn draw(
        &self,
        model: &Model,
        parts: Parts,
        rows: &mut Files<'_>,
        limits: Limits,
        folder: &Path,
    ) -> Result<Vec<(Part, Reduced)>> {
        let mut effects = match Effects::compile(model, limits) {
            Err(error @ Error::TooCostly { .. }) => {
                let note = styled(style::NOTE, "note");
                output::complain(&format!("{note}: influence and weights of rules are not drawn: {error}\n"));
                None
            }
            effects => Some(effects?),
        };
        let observe = |rows: &BeliefMatrix, truths: &[Truth]| match &mut effects {
            None => Ok(()),
            Some(effects) => effects.add_influences(rows).and_then(|()| effects.add_gains(rows, truths)),
        };
        let mut results = parts.score(rows, observe, |part, it| self.reduce(part, &it))?;
        let series = results.iter_mut().filter_map(|(part, it)| Some((part.title(), it.reliability.take()?)));
        let reliability_diagram = figures::reliability_diagram(series.collect());
        fs::create_dir_all(folder).with_context(|| format!("cannot make folder `{}`", folder.display()))?;
        let [graph, reliability, influence, weights] = FIGURES.map(|name| folder.join(name));
        output::write(&figures::graph(model), Some(&graph))?;
        output::write(&reliability_diagram, Some(&reliability))?;
        if let Some(effects) = effects {
            output::write(&effects.influence(), Some(&influence))?;
            output::write(&effects.weights(), Some(&weights))?;
        }
        Ok(results)
    }
}

/// What is kept of the evaluation of a part: a few numbers per label.
struct Reduced {
    scored: Scored,
    /// Empty if they are not shown.
    labels: Vec<LabelScores>,
    /// `None` if it is not drawn.
    reliability: Option<Reliability>,
}

/// The tables of beliefs and truths. They are opened at once, so that what is wrong with their columns is said before any
/// model is compiled.
pub struct Files<'a> {
    model: Model,
    tables: &'a TableOptions,
    paths: [&'a Path; 2],
    weights: Option<&'a str>,
    opened: Option<LabeledReader>,
}

impl<'a> Files<'a> {
    /// Opens the tables, optionally with a column of weights. Their beliefs are raw.
    pub fn new(
        model: &Model,
        tables: &'a TableOptions,
        paths: [&'a Path; 2],
        weights: Option<&'a str>,
    ) -> Result<Files<'a>> {
        let model = model.without_calibrators();
        let opened = Some(labeled::open(&model, tables, paths, weights)?);
        Ok(Files { model, tables, paths, weights, opened })
    }
}

impl Rows for Files<'_> {
    /// Standard input and other pipes can be read only once.
    fn can_be_read_again(&self) -> bool {
        let is_file = |path: &&Path| fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
        self.paths.iter().all(|path| *path != Path::new("-") && is_file(path))
    }

    fn open(&mut self) -> Result<LabeledReader> {
        match self.opened.take() {
            Some(reader) => Ok(reader),
            None => labeled::open(&self.model, self.tables, self.paths, self.weights),
        }
    }
}
