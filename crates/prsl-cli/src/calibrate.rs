//! `prsl calibrate`: fits calibrators to known truths.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;
use prsl::calibrate::{CalibrationData, CalibrationMethod, Calibrator};
use prsl::learn::{Calibrated, Examples};
use prsl::metrics::LabelScores;
use prsl::{Error, Label, LabelId, Model};
use prsl_data::RowColumns;
use unicode_width::UnicodeWidthStr;

use crate::arguments::{MemoryLimit, TableOptions};
use crate::evaluate::Scorer;
use crate::labeled::{self, Rows};
use crate::model::ModelFile;
use crate::output;
use crate::progress::{Spinner, counted, grouped};
use crate::style::{self, styled};

/// Fit calibrators to known truths, so that a belief of 0.9 is right nine times in ten
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  prsl calibrate warehouse.prsl beliefs.csv truth.csv -o calibrated.prsl
  prsl calibrate warehouse.prsl beliefs.csv truth.csv --method platt --labels feet,alarm -o calibrated.prsl
  prsl calibrate warehouse.prsl beliefs.csv truth.csv --alone --method isotonic -o calibrated.prsl
  prsl calibrate warehouse.prsl excel.csv truth.csv --delimiter ';' --decimal , --id image -o calibrated.prsl
  prsl calibrate warehouse.json beliefs.parquet truth.parquet -o calibrated.json

TRUTH has a column for each label, in any order, with the names of categories (for yes/no labels also 1 and 0, \
true and false), and a row for each row of BELIEFS. Use rows that the classifiers were not trained on.

If the model has rules, all calibrators are fitted together beside them, so that the model as a whole explains the truths best. \
A rule shifts the beliefs about its labels, so a calibrator that is right by itself may be wrong beside the rule. `auto` is then \
`platt` for two categories, and a slope with a bias per category for more. `isotonic` and `confusion` are always fitted \
alone, and so are all calibrators with `--alone`, without rules, or if exact inference is too costly.

Alone, each label is fitted to the rows with a belief of its classifier and a known truth, and `auto` selects the kind with the \
smallest log loss in 5-fold cross-validation, or none. Fits use raw beliefs: existing calibrators of the fitted labels are \
replaced. `platt` is for labels of two categories; others get `dirichlet` instead.

The table shows the mean log loss of each label, before and after, on the rows used for fitting: that of the posterior beside \
rules, and that of the belief alone, there with the expected calibration error (15 bins). A truth of probability 0 counts as 1e-300.

The model is written as text, or as JSON if the name of the output ends in .json. Comments of a model text are lost.")]
pub struct Arguments {
    /// The model, `.prsl` text or JSON; `-` is standard input
    model: PathBuf,
    /// The beliefs, `.csv`, `.csv.gz` or `.parquet`; `-` is CSV on standard input
    beliefs: PathBuf,
    /// The truths, `.csv`, `.csv.gz` or `.parquet`; `-` is CSV on standard input
    truth: PathBuf,
    /// The file for the calibrated model
    #[arg(short, long, value_name = "MODEL")]
    output: PathBuf,
    /// The kind of calibrator
    #[arg(long, default_value = "auto")]
    method: Method,
    /// Only these labels, separated by commas; the others keep their calibrators [default: all]
    #[arg(long, value_name = "LABELS", value_delimiter = ',')]
    labels: Vec<String>,
    /// Fit each label by itself, as if there were no rules
    #[arg(long)]
    alone: bool,
    #[command(flatten)]
    tables: TableOptions,
    #[command(flatten)]
    memory: MemoryLimit,
}

/// The kind of calibrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    /// The best of the others, or none
    Auto,
    /// Log-odds times a slope plus an intercept, for labels of two categories
    Platt,
    /// A non-decreasing map for each category
    Isotonic,
    /// One temperature for all categories
    Temperature,
    /// A linear map of log beliefs
    Dirichlet,
    /// A confusion matrix: P(truth | classifier's category)
    Confusion,
}

impl From<Method> for CalibrationMethod {
    fn from(method: Method) -> CalibrationMethod {
        match method {
            Method::Auto => CalibrationMethod::Auto,
            Method::Platt => CalibrationMethod::Platt,
            Method::Isotonic => CalibrationMethod::Isotonic,
            Method::Temperature => CalibrationMethod::Temperature,
            Method::Dirichlet => CalibrationMethod::Dirichlet,
            Method::Confusion => CalibrationMethod::Confusion,
        }
    }
}

/// The calibrator of a label, and its scores.
struct Fit {
    label: String,
    calibrator: Calibrator,
    n_rows: usize,
    /// Before and after.
    log_loss: [f64; 2],
    calibration_error: [f64; 2],
}

impl Arguments {
    /// Fits, writes the model, and prints the scores.
    pub fn run(self) -> Result<ExitCode> {
        let files = [("MODEL", &self.model), ("BELIEFS", &self.beliefs), ("TRUTH", &self.truth)];
        self.tables.check_bad_rows("calibrate")?;
        labeled::check("calibrate", files.map(|(name, path)| (name, path.as_path())))?;
        output::prepare(&self.output, &[&self.beliefs, &self.truth])?;
        let file = ModelFile::read(&self.model)?;
        let model = file.document.model();
        let labels = self.chosen(model)?;
        let Rows { examples, .. } =
            labeled::read_raw(model, [&self.beliefs, &self.truth], &self.tables, RowColumns::default())?;
        let spinner = Spinner::new("fitting calibrators");
        let (calibrated, report) = match self.beside_rules(model, &labels, &examples, &spinner)? {
            Some(fitted) => fitted,
            None => self.fit_alone(model, &labels, &examples, &spinner)?,
        };
        spinner.finish();
        output::write(&text(&calibrated, &self.output), Some(&self.output))?;
        output::print_beside(&self.output, &report)?;
        Ok(ExitCode::SUCCESS)
    }

    fn fit_alone(
        &self,
        model: &Model,
        labels: &[LabelId],
        examples: &Examples,
        spinner: &Spinner,
    ) -> Result<(Model, String)> {
        let mut fits = Vec::new();
        for (n_done, &label) in labels.iter().enumerate() {
            let name = model.label(label).name();
            spinner.tell(format!("fitting label {} of {}: {name}", n_done + 1, labels.len()));
            fits.extend(self.fit(model, label, examples)?);
        }
        Ok((with_calibrators(model, &fits)?, report(&fits, &self.output)?))
    }

    /// Fits all labels together; `None` if they are to be fitted alone, after a note why.
    fn beside_rules(
        &self,
        model: &Model,
        labels: &[LabelId],
        examples: &Examples,
        spinner: &Spinner,
    ) -> Result<Option<(Model, String)>> {
        if self.alone || model.rules().is_empty() {
            return Ok(None);
        }
        let method = CalibrationMethod::from(self.method);
        if matches!(method, CalibrationMethod::Isotonic | CalibrationMethod::Confusion) {
            tell(
                style::NOTE,
                "note",
                &format!("`{method}` is fitted to each label by itself, as if there were no rules"),
            );
            return Ok(None);
        }
        for &label in labels {
            let (beliefs, truths, _) = examples.of_label(label);
            let n_categories = model.label(label).n_categories();
            warn(model.label(label), &CalibrationData::new(n_categories, &beliefs, &truths, None)?.counts());
            self.method_for(model.label(label));
        }
        let limits = self.memory.limits();
        let n_rules = counted(model.rules().len() as u64, "rule");
        spinner.tell(format!("fitting all calibrators beside {n_rules}"));
        let fitted = match examples.calibrated_beside_rules(model, method, labels, limits) {
            Err(refused @ Error::TooCostly { .. }) => {
                let why = format!("each label is fitted by itself, as if there were no rules: {refused}");
                tell(style::NOTE, "note", &why);
                return Ok(None);
            }
            fitted => fitted?,
        };
        if !model.typical().is_empty() {
            tell(style::NOTE, "note", "typical combinations were ignored while the calibrators were fitted");
        }
        if fitted.n_impossible > 0 {
            let excluded = counted(fitted.n_impossible as u64, "row");
            tell(
                style::WARNING,
                "warning",
                &format!("the rules exclude the truths of {excluded}, which were left out"),
            );
        }
        spinner.tell("scoring the rows before and after".to_owned());
        let score = |model: &Model| -> Result<Vec<LabelScores>> {
            let read = |rows: &Examples| rows.to_beliefs().calibrated_by(model);
            Ok(Scorer::score(model, examples, limits, read)?.label_scores())
        };
        let (before, after) = (score(&model.without_calibrators())?, score(&fitted.model)?);
        let report = report_beside_rules(&fitted, &[before, after], labels, &self.output);
        Ok(Some((fitted.model, report)))
    }

    /// The labels to be fitted.
    fn chosen(&self, model: &Model) -> Result<Vec<LabelId>> {
        if self.labels.is_empty() {
            let believed = |id: &LabelId| model.label(*id).classifier().is_some();
            return Ok(model.label_ids().filter(believed).collect());
        }
        let mut chosen =
            self.labels.iter().map(|name| model.find_label(name)).collect::<Result<Vec<_>, _>>()?;
        chosen.sort();
        chosen.dedup();
        Ok(chosen)
    }

    /// The method that suits a label, with a note if it is not the one that was asked for.
    fn method_for(&self, label: &Label) -> CalibrationMethod {
        let wanted = CalibrationMethod::from(self.method);
        let method = wanted.suited_to(label.n_categories());
        if method != wanted {
            let (name, n) = (label.name(), label.n_categories());
            tell(style::NOTE, "note", &format!("label `{name}` has {n} categories, so `{method}` is fitted"));
        }
        method
    }

    /// Fits one label; `None` without any row to fit it to.
    fn fit(&self, model: &Model, id: LabelId, examples: &Examples) -> Result<Option<Fit>> {
        let label = model.label(id);
        let (beliefs, truths, _) = examples.of_label(id);
        let data = CalibrationData::new(label.n_categories(), &beliefs, &truths, None)?;
        warn(label, &data.counts());
        if data.n_rows() == 0 {
            return Ok(None);
        }
        let method = self.method_for(label);
        let calibrator = data.fit(method)?;
        let raw = Calibrator::Identity;
        Ok(Some(Fit {
            label: label.name().to_owned(),
            n_rows: data.n_rows(),
            log_loss: [data.log_loss(&raw), data.log_loss(&calibrator)],
            calibration_error: [data.calibration_error(&raw), data.calibration_error(&calibrator)],
            calibrator,
        }))
    }
}

/// Warns about labels with too few informative rows.
fn warn(label: &Label, counts: &[usize]) {
    let name = label.name();
    let n_rows: usize = counts.iter().sum();
    let seen = |(_, count): &(&String, &usize)| **count > 0;
    let (seen, unseen): (Vec<_>, Vec<_>) = label.categories().iter().zip(counts).partition(seen);
    let quoted = |categories: &[(&String, &usize)]| {
        categories.iter().map(|(category, _)| format!("`{category}`")).collect::<Vec<_>>().join(", ")
    };
    let message = match seen[..] {
        [] => format!("label `{name}` has no row with both a belief and a truth, and is left as it is"),
        [_] => format!("label `{name}` is {} in all {}", quoted(&seen), counted(n_rows as u64, "row")),
        _ if !unseen.is_empty() => {
            format!("label `{name}` is never {} in {}", quoted(&unseen), counted(n_rows as u64, "row"))
        }
        _ => return,
    };
    tell(style::WARNING, "warning", &message);
}

fn tell(style: anstyle::Style, word: &str, message: &str) {
    output::complain(&format!("{}: {message}\n", styled(style, word)));
}

fn with_calibrators(model: &Model, fits: &[Fit]) -> Result<Model> {
    let builder =
        fits.iter().fold(model.edit(), |builder, fit| builder.calibrator(&fit.label, fit.calibrator.clone()));
    Ok(builder.build()?)
}

/// The model in the format given by the file name.
pub fn text(model: &Model, file: &Path) -> String {
    let json = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    if json { model.to_json() } else { model.to_string() }
}

fn report(fits: &[Fit], file: &Path) -> Result<String> {
    let mut text = String::new();
    if !fits.is_empty() {
        let header = ["label", "calibrator", "rows", "log loss", "calibration error"].map(str::to_owned);
        let lines: Vec<_> = std::iter::once(header).chain(fits.iter().map(cells)).collect();
        text = aligned(&lines) + "\n";
    }
    let n_calibrated = fits.iter().filter(|fit| fit.calibrator != Calibrator::Identity).count();
    Ok(text + &wrote(n_calibrated, fits.len(), file))
}

fn wrote(n_calibrated: usize, n_labels: usize, file: &Path) -> String {
    let labels = format!("{n_calibrated} of {}", counted(n_labels as u64, "label"));
    format!("{} {}: {labels} calibrated\n", styled(style::GOOD, "wrote"), output::name(file))
}

/// The scores of the model with its rules, before and after.
fn report_beside_rules(
    fitted: &Calibrated,
    scores: &[Vec<LabelScores>; 2],
    labels: &[LabelId],
    file: &Path,
) -> String {
    let is_fitted = |label: &&LabelId| scores[1][label.index()].known > 0;
    let labels: Vec<&LabelId> = labels.iter().filter(is_fitted).collect();
    let header = ["label", "calibrator", "rows", "log loss"].map(str::to_owned);
    let line = |&&label: &&LabelId| {
        let [before, after] = scores.each_ref().map(|scores| &scores[label.index()]);
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.4}"));
        let loss = format!("{} -> {}", number(before.log_loss), number(after.log_loss));
        let kind = kind(fitted.model.calibrator(label)).to_owned();
        [fitted.model.label(label).name().to_owned(), kind, grouped(after.known as u64), loss]
    };
    let lines: Vec<_> = std::iter::once(header).chain(labels.iter().map(line)).collect();
    let [before, after] = fitted.log_likelihood;
    let is_calibrated = |label: &&&LabelId| *fitted.model.calibrator(***label) != Calibrator::Identity;
    let n_calibrated = labels.iter().filter(is_calibrated).count();
    format!(
        "{}\nfitted together beside {}: joint log-likelihood {before:.4} -> {after:.4}\n{}",
        aligned(&lines),
        counted(fitted.model.rules().len() as u64, "rule"),
        wrote(n_calibrated, labels.len(), file)
    )
}

fn kind(calibrator: &Calibrator) -> &'static str {
    match calibrator {
        Calibrator::Identity => "none",
        calibrator => calibrator.kind(),
    }
}

fn cells(fit: &Fit) -> [String; 5] {
    let change = |[before, after]: [f64; 2]| format!("{before:.4} -> {after:.4}");
    let kind = kind(&fit.calibrator);
    let n_rows = grouped(fit.n_rows as u64);
    [fit.label.clone(), kind.to_owned(), n_rows, change(fit.log_loss), change(fit.calibration_error)]
}

/// Columns, names to the left and numbers to the right.
fn aligned<const N: usize>(lines: &[[String; N]]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].width()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for line in lines {
        for (column, cell) in line.iter().enumerate() {
            let gap = " ".repeat(widths[column] - cell.width());
            let cell = if column < 2 { format!("{cell}{gap}") } else { format!("{gap}{cell}") };
            text.push_str(if column == 0 { "" } else { "   " });
            text.push_str(&cell);
        }
        text.push('\n');
    }
    text
}
