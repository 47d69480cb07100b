//! Export to other programs: UAI, BIF and ProbLog for inference, Graphviz for pictures.
//!
//! [`Model::export`] returns a string, and writes no files. The same model and evidence always give the same text.

mod bif;
mod dot;
mod network;
mod problog;
mod uai;

use crate::error::Result;
use crate::evidence::Evidence;
use crate::infer::Limits;
use crate::model::Model;

/// A format of other programs.
///
/// ```
/// use prsl::export::ExportFormat;
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
    /// Rules over the same labels are multiplied into one factor, because some programs read only one factor per scope.
    /// The format has no names; [`Model::export_uai_names`] maps its numbers to names. A rule over many labels becomes a
    /// chain of auxiliary variables after the labels. They do not change marginals and the partition function, nor
    /// the most probable explanation, unless a noisy-or with q strictly between 0 and 1 is among them. Typical
    /// combinations are the states of one more such variable; a maximum weights them by w instead of 1 + w.
    Uai,
    /// A Bayesian network in the Interchange Format, which most graphical-model software reads.
    ///
    /// Labels are roots; each rule is a node `R_1`, `R_2`, ... below its labels, **to be observed as `true`**; so is a node
    /// `T_1`, `T_2`, ... below each label if there are typical combinations.
    /// Names are converted to identifiers of the format; comments list the original names.
    Bif,
    /// A ProbLog program that queries the probability of every category, given that all rules hold.
    ///
    /// ProbLog rounds numbers to 15 decimals when it reads them, so typical combinations of very large weights are rejected.
    ProbLog,
    /// A graph for Graphviz: labels as boxes, rules as rounded boxes between them.
    ///
    /// A thicker outline is a more certain rule, a double outline a hard rule, and a red outline a rule that
    /// fails more often than it holds. A dashed box is a latent label, and a note lists the typical combinations. Arrows
    /// lead from condition to conclusion.
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

    /// The file extension, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            ExportFormat::ProbLog => "pl",
            other => other.name(),
        }
    }
}

impl Model {
    /// The model with the evidence of one instance in another format.
    ///
    /// The beliefs of `evidence` become the labels' distributions; `Evidence::new()` gives the priors. A formula
    /// whose table is needed and too large is an [`Error::TooCostly`](crate::Error::TooCostly);
    /// clauses and noisy-or rules never are.
    ///
    /// ```
    /// use prsl::export::ExportFormat;
    /// use prsl::{Evidence, Model};
    ///
    /// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
    /// let evidence = Evidence::new().belief("weather", [0.25, 0.75]);
    /// assert_eq!(model.export(&evidence, ExportFormat::ProbLog)?, r"% The distribution of each label given that every rule holds.
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
    pub fn export(&self, evidence: &Evidence, format: ExportFormat) -> Result<String> {
        self.export_within(evidence, format, Limits::default())
    }

    /// The same with a memory limit for tables; only UAI and BIF have tables.
    ///
    /// ```
    /// use prsl::export::ExportFormat;
    /// use prsl::{Evidence, Limits, Model};
    ///
    /// let model = Model::parse("label a\nlabel b\nrule 0.9: a <-> b")?;
    /// let limits = Limits { memory: 100 };
    /// let error = model.export_within(&Evidence::new(), ExportFormat::Uai, limits).unwrap_err();
    /// assert_eq!(error.kind(), "TooCostly");
    /// assert!(model.export_within(&Evidence::new(), ExportFormat::ProbLog, limits).is_ok());
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn export_within(&self, evidence: &Evidence, format: ExportFormat, limits: Limits) -> Result<String> {
        let row = self.row(evidence)?;
        match format {
            ExportFormat::Uai => uai::write(self, &row, limits),
            ExportFormat::Bif => bif::write(self, &row, limits),
            ExportFormat::ProbLog => problog::write(self, &row),
            ExportFormat::Dot => Ok(dot::write(self, &row)),
        }
    }

    /// The names of the variables and states of [`ExportFormat::Uai`].
    ///
    /// One line per state, in columns separated by tabs: `label`, or `auxiliary` for a variable that is not a
    /// label; the number of the variable; the number of the state; the label; the category. Names are quoted
    /// as in a model file if necessary.
    ///
    /// ```
    /// use prsl::Model;
    ///
    /// let model = Model::parse("label weather: sun, rain\nlabel \"wet ground\"\nrule 0.95: rain -> \"wet ground\"")?;
    /// assert_eq!(model.export_uai_names()?, "\
    /// label\t0\t0\tweather\tsun
    /// label\t0\t1\tweather\train
    /// label\t1\t0\t\"wet ground\"\tyes
    /// label\t1\t1\t\"wet ground\"\tno
    /// ");
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn export_uai_names(&self) -> Result<String> {
        uai::names(self)
    }
}

/// The shortest decimal that reads back as the same number, always with a point, which some readers require.
fn number(number: f64) -> String {
    let text = format!("{number:?}");
    match text.split_once('e') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0e{exponent}"),
        _ => text,
    }
}

/// 1 − p without rounding noise: 0.05 for p = 0.95, not 0.050000000000000044.
///
/// Rounded only if that changes neither p nor the first twelve digits of 1 − p.
fn complement(p: f64) -> f64 {
    let exact = 1.0 - p;
    let rounded: f64 = format!("{exact:.16}").parse().expect("a number was just written");
    if 1.0 - rounded == p && (rounded - exact).abs() <= 1e-12 * exact { rounded } else { exact }
}
