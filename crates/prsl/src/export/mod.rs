//! Models for other programs: UAI, BIF and ProbLog for second opinions, Graphviz for the eye.
//!
//! Pure strings: whoever wants a file writes it. The same model and evidence always give the same text.

mod bif;
mod dot;
mod network;
mod problog;
mod uai;

use crate::error::Result;
use crate::evidence::Evidence;
use crate::infer::Limits;
use crate::model::Model;

pub use uai::export_uai_names;

/// A language that models are written in for other programs.
///
/// ```
/// use prsl::ExportFormat;
///
/// let extensions: Vec<_> = ExportFormat::ALL.iter().map(|format| format.extension()).collect();
/// assert_eq!(extensions, ["uai", "bif", "pl", "dot"]);
/// assert_eq!(ExportFormat::ProbLog.name(), "problog");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExportFormat {
    /// A Markov network in the format of the UAI inference competitions: beliefs and rules as factors.
    ///
    /// Rules over the same labels are multiplied into one factor, as some programs read only one for each scope.
    /// It has no names; [`export_uai_names`] tells what the numbers mean. A rule over many labels becomes a
    /// chain of auxiliary variables behind the labels. They leave marginals and the partition function as they
    /// are; the most probable explanation too, unless a noisy-or with q strictly between 0 and 1 is among them. Typical
    /// combinations are the states of one more such variable, with which a maximum counts them w times, not 1 + w times.
    Uai,
    /// A Bayesian network in the Interchange Format, read by most graphical-model software.
    ///
    /// Labels are roots; each rule is a node `R_1`, `R_2`, ... below its labels, **to be observed as `true`**; so is a node
    /// `T_1`, `T_2`, ... below each label where there are typical combinations.
    /// Names are made fit for the format, and comments say which stands for which.
    Bif,
    /// A ProbLog program that asks for the probability of every category given that all rules hold.
    ///
    /// ProbLog rounds numbers to 15 decimals when it reads them, so typical combinations of huge weights are refused.
    ProbLog,
    /// A picture for Graphviz: labels as boxes, rules as rounded boxes between them.
    ///
    /// The surer a rule, the thicker its outline; a double outline is a rule without exceptions, red one that
    /// more likely fails than holds, a dashed box a latent label, a note the typical combinations. An arrow leads from condition to conclusion.
    Dot,
}

impl ExportFormat {
    /// All formats.
    pub const ALL: [ExportFormat; 4] =
        [ExportFormat::Uai, ExportFormat::Bif, ExportFormat::ProbLog, ExportFormat::Dot];

    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            ExportFormat::Uai => "uai",
            ExportFormat::Bif => "bif",
            ExportFormat::ProbLog => "problog",
            ExportFormat::Dot => "dot",
        }
    }

    /// What names of such files end in, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            ExportFormat::ProbLog => "pl",
            other => other.name(),
        }
    }
}

/// The model and what is known of one instance in another language.
///
/// The beliefs of `evidence` become the labels' distributions; `Evidence::new()` stands for the priors. A formula
/// that has to be written as a table and is too large for one is an [`Error::TooCostly`](crate::Error::TooCostly);
/// clauses and noisy-or rules never are.
///
/// ```
/// use prsl::{Evidence, ExportFormat, Model};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let evidence = Evidence::new().belief("weather", [0.25, 0.75]);
/// assert_eq!(prsl::export(&model, &evidence, ExportFormat::ProbLog)?, r"% The distribution of each label given that every rule holds.
///
/// 0.25::label('weather','sun'). label('weather','rain') :- \+label('weather','sun').
/// 0.5::label('ground','dry'). label('ground','wet') :- \+label('ground','dry').
///
/// % rule 0.95: wet <- rain
/// node(1,3) :- label('ground','wet').
/// node(1,3) :- \+label('weather','rain').
/// 0.95::rule(1) :- node(1,3).
/// 0.05::rule(1) :- \+node(1,3).
/// evidence(rule(1)).
///
/// query(label('weather','sun')).
/// query(label('weather','rain')).
/// query(label('ground','dry')).
/// query(label('ground','wet')).
/// ");
/// # Ok::<(), prsl::Error>(())
/// ```
pub fn export(model: &Model, evidence: &Evidence, format: ExportFormat) -> Result<String> {
    export_within(model, evidence, format, Limits::default())
}

/// The same with tables that take at most so much memory; only UAI and BIF have any.
///
/// ```
/// use prsl::{Evidence, ExportFormat, Limits, Model};
///
/// let model = Model::parse("label a\nlabel b\nrule 0.9: a <-> b")?;
/// let limits = Limits { memory: 100 };
/// let error = prsl::export_within(&model, &Evidence::new(), ExportFormat::Uai, limits).unwrap_err();
/// assert_eq!(error.kind(), "TooCostly");
/// assert!(prsl::export_within(&model, &Evidence::new(), ExportFormat::ProbLog, limits).is_ok());
/// # Ok::<(), prsl::Error>(())
/// ```
pub fn export_within(
    model: &Model,
    evidence: &Evidence,
    format: ExportFormat,
    limits: Limits,
) -> Result<String> {
    let row = model.row(evidence)?;
    match format {
        ExportFormat::Uai => uai::write(model, &row, limits),
        ExportFormat::Bif => bif::write(model, &row, limits),
        ExportFormat::ProbLog => problog::write(model, &row),
        ExportFormat::Dot => Ok(dot::write(model, &row)),
    }
}

/// The shortest decimal that reads back as the same number, always with a point: some readers insist.
fn number(number: f64) -> String {
    let text = format!("{number:?}");
    match text.split_once('e') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0e{exponent}"),
        _ => text,
    }
}

/// 1 − p as people would write it: 0.05 for p = 0.95, not 0.050000000000000044.
///
/// Rounded only where that changes neither p nor, to twelve digits, 1 − p itself.
fn complement(p: f64) -> f64 {
    let exact = 1.0 - p;
    let rounded: f64 = format!("{exact:.16}").parse().expect("a number was just written");
    if 1.0 - rounded == p && (rounded - exact).abs() <= 1e-12 * exact { rounded } else { exact }
}
