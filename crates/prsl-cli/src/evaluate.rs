//! `prsl evaluate`: scores of a model and of its parts.

mod parts;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use prsl::infer::EngineSettings;
use prsl::metrics::Bootstrap;
use prsl::{Error, Limits, Model};
use prsl_data::LabeledReader;

use parts::Part;
pub use parts::{Parts, Scorer};
pub use report::{DIGITS, Scored, columns, title};

use crate::arguments::Question;
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
        let raw = model.without_calibrators();
        let reader = labeled::open(&raw, &question.tables, [beliefs, &self.truth], self.weights.as_deref())?;
        let progress = Progress::of("compiling the model and its parts", true);
        let settings = EngineSettings { limits: question.limits(), ..EngineSettings::default() };
        let mut parts = Parts::compile(model, self.engine, &settings)?;
        parts.whole().tell_doubts(self.engine);
        let text = labeled::threads(self.threads)?.install(|| {
            match &self.plots {
                None => parts.read(reader, progress, |_, _| Ok(()))?,
                Some(folder) => draw(&mut parts, reader, progress, settings.limits, folder)?,
            }
            Ok::<_, anyhow::Error>(self.report(model, &parts))
        })?;
        match self.format {
            Format::Text => output::print(&text)?,
            Format::Json => output::write(&text, None)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn report(&self, model: &Model, parts: &Parts) -> String {
        let bootstrap = Bootstrap { seed: self.seed, ..Bootstrap::default() };
        let evaluations = parts.evaluations();
        let labels = [&evaluations[0], &evaluations[evaluations.len() - 1]].map(|(_, it)| it.label_scores());
        // The text shows the intervals of the whole model only.
        let has_intervals =
            |part: Part| !self.no_intervals && (part == Part::Model || self.format == Format::Json);
        let n = evaluations.iter().filter(|(part, _)| has_intervals(*part)).count();
        let bar = StepBar::new("bootstrap intervals", n as u64);
        let mut n_done = 0;
        let mut scored = Vec::new();
        for (part, evaluation) in &evaluations {
            let observe = |share: f64| bar.set_share((n_done as f64 + share) / n as f64);
            let intervals = has_intervals(*part).then(|| evaluation.intervals_observed(&bootstrap, &observe));
            n_done += usize::from(intervals.is_some());
            scored.push((*part, Scored::new(evaluation, intervals)));
        }
        bar.finish();
        match self.format {
            Format::Json => {
                let object = report::Object::new(model, &scored, &labels[1]);
                serde_json::to_string_pretty(&object).expect("writing to memory does not fail") + "\n"
            }
            Format::Text => {
                let labels = labels.each_ref().map(Vec::as_slice);
                let text = report::text(model, &scored, labels, self.digits.map(usize::from));
                text + &labeled::weights_remark(self.weights.as_deref())
            }
        }
    }
}

/// Predicts all rows, and draws the figures.
fn draw(
    parts: &mut Parts,
    reader: LabeledReader,
    progress: Progress,
    limits: Limits,
    folder: &Path,
) -> Result<()> {
    let model = parts.whole().model().clone();
    let mut effects = match Effects::compile(&model, limits) {
        Err(error @ Error::TooCostly { .. }) => {
            let note = styled(style::NOTE, "note");
            output::complain(&format!("{note}: influence and weights of rules are not drawn: {error}\n"));
            None
        }
        effects => Some(effects?),
    };
    parts.read(reader, progress, |rows, truths| match &mut effects {
        None => Ok(()),
        Some(effects) => effects.add_influences(rows).and_then(|()| effects.add_gains(rows, truths)),
    })?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make folder `{}`", folder.display()))?;
    let [graph, reliability, influence, weights] = FIGURES.map(|name| folder.join(name));
    output::write(&figures::graph(&model), Some(&graph))?;
    output::write(&figures::reliability(&parts.titled()), Some(&reliability))?;
    if let Some(effects) = effects {
        output::write(&effects.influence(), Some(&influence))?;
        output::write(&effects.weights(), Some(&weights))?;
    }
    Ok(())
}
