//! Errors in the library's input, as sentences for the person who can correct it.

mod calibration;
mod message;
#[cfg(test)]
mod tests;

pub use calibration::CalibrationProblem;
pub(crate) use calibration::within;

use crate::diagnostic::{Diagnostics, nearest, quoted};
use message::{
    conflict, counted, did_you_mean, foreign, formula_message, normalize_advice, percent_advice, place,
    there_are,
};

/// The result of most functions of the library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error. The message states what was given, what was expected, and where.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A model text has errors, all of them listed.
    #[error("{0}")]
    Text(Diagnostics),
    /// A rule given as text has errors.
    #[error("{}", formula_message(.0))]
    Formula(Diagnostics),
    /// A model in JSON has an error.
    #[error("the model is not valid JSON for prsl{}: {message}", place(*.line, *.column))]
    Json {
        /// The problem.
        message: String,
        /// Line, from 1; 0 if unknown.
        line: usize,
        /// Column, from 1; 0 if unknown.
        column: usize,
    },
    /// A model written by a newer prsl.
    #[error("the model has format version {found}, and this prsl reads up to {known}; install a newer prsl")]
    Version {
        /// The version in the file.
        found: u64,
        /// The newest version known here.
        known: u64,
    },
    /// A model text above the size limit.
    #[error(
        "the model text has {bytes} bytes, more than the limit of {limit}; split it or write larger rules as data"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },

    /// An empty name.
    #[error("{what} has an empty name; give it at least one character")]
    EmptyName {
        /// The item without a name.
        what: String,
    },
    /// Two labels of the same name.
    #[error("label {label} is declared twice; rename or remove one of them", label = quoted(.label))]
    DuplicateLabel {
        /// The name.
        label: String,
    },
    /// Fewer than two categories.
    #[error("label {label} has {}, expected at least 2; a yes/no label is declared by its name alone", counted(*.n, "category", "categories"), label = quoted(.label))]
    TooFewCategories {
        /// The label.
        label: String,
        /// Number of categories.
        n: usize,
    },
    /// Two categories of the same name in one label.
    #[error("label {label} lists category {category} twice; rename or remove one of them", label = quoted(.label), category = quoted(.category))]
    DuplicateCategory {
        /// The label.
        label: String,
        /// The category.
        category: String,
    },
    /// A distribution of the wrong length.
    #[error("{what} for label {label} has {}, expected {wanted}, one for each category", counted(*.given, "number", "numbers"), label = quoted(.label))]
    Length {
        /// "belief" or "prior".
        what: &'static str,
        /// The label.
        label: String,
        /// Number of values given.
        given: usize,
        /// Number of categories.
        wanted: usize,
    },
    /// A number in a distribution that is not a probability.
    #[error("{what} for {atom} is {value}, expected a number from 0 to 1{}", percent_advice(*.value), atom = quoted(format!("{label}={category}")))]
    NotAProbability {
        /// "belief" or "prior".
        what: &'static str,
        /// The label.
        label: String,
        /// The category.
        category: String,
        /// The number.
        value: f64,
    },
    /// A distribution that does not sum to one.
    #[error("{what} for label {label} sums to {sum}, expected 1 within 1e-6{}", normalize_advice(.what), label = quoted(.label))]
    Sum {
        /// "belief" or "prior".
        what: &'static str,
        /// The label.
        label: String,
        /// The sum.
        sum: f64,
    },
    /// Rows of a model whose labels are not those of the engine's model.
    #[error("the rows are of another model than the engine: {}; make the rows with the engine's model", foreign(*.given, *.wanted, .label.as_deref()))]
    ForeignRow {
        /// Number of labels of the rows.
        given: usize,
        /// Number of labels of the engine's model.
        wanted: usize,
        /// The first label of the rows that differs, if any.
        label: Option<String>,
    },
    /// A row of the wrong length.
    #[error("a row has {}, expected {wanted}, one for each {each}", counted(*.given, what, &format!("{what}s")))]
    RowLength {
        /// The items of the row: "belief" or "truth".
        what: &'static str,
        /// The items expected one for each: "category" or "label".
        each: &'static str,
        /// Number of items given.
        given: usize,
        /// Number of items expected.
        wanted: usize,
    },
    /// A list that does not have one item for each row.
    #[error("{what} were given for {}, and there {}; give them for each row", counted(*.given, "row", "rows"), there_are(*.wanted))]
    RowCount {
        /// The items given: "truths".
        what: &'static str,
        /// Number of items given.
        given: usize,
        /// Number of rows.
        wanted: usize,
    },
    /// A row number beyond the last row.
    #[error("row {} was asked for, and there {}", row + 1, there_are(*.n_rows))]
    UnknownRow {
        /// The row, from 0.
        row: usize,
        /// Number of rows.
        n_rows: usize,
    },
    /// A belief that is 0 in every category.
    #[error("belief for label {label} is 0 in every category; leave all of them empty if nothing is known", label = quoted(.label))]
    ZeroBelief {
        /// The label.
        label: String,
    },
    /// A belief about a latent label, which has no classifier.
    #[error(
        "label {label} is latent and takes no beliefs; remove `latent` from its declaration, or give an observed category", label = quoted(.label))]
    Latent {
        /// The label.
        label: String,
    },
    /// A label given twice in one instance's evidence.
    #[error("label {label} is given twice in the evidence; keep one of the two", label = quoted(.label))]
    GivenTwice {
        /// The label.
        label: String,
    },
    /// A category given twice in one belief.
    #[error("category {category} of label {label} is given twice in the evidence; keep one of the two", category = quoted(.category), label = quoted(.label))]
    CategoryGivenTwice {
        /// The label.
        label: String,
        /// The category.
        category: String,
    },
    /// A label that the model does not have.
    #[error("unknown label {label}{context}{}", did_you_mean(.suggestion), label = quoted(.label))]
    UnknownLabel {
        /// The unknown name.
        label: String,
        /// The place where it was used: empty, or " in ...".
        context: String,
        /// A label with a similar name.
        suggestion: Option<String>,
    },
    /// A category that the label does not have.
    #[error("unknown category {category} of label {label}{context}{}", did_you_mean(.suggestion), category = quoted(.category), label = quoted(.label))]
    UnknownCategory {
        /// The label.
        label: String,
        /// The unknown name.
        category: String,
        /// The place where it was used: empty, or " in ...".
        context: String,
        /// A category with a similar name.
        suggestion: Option<String>,
    },
    /// A rule that the model does not have.
    #[error("unknown rule {rule}{}", did_you_mean(.suggestion), rule = quoted(.rule))]
    UnknownRule {
        /// The unknown name or number.
        rule: String,
        /// A rule with a similar name.
        suggestion: Option<String>,
    },

    /// Two rules of the same name.
    #[error("two rules are named {name}; rename one of them", name = quoted(.name))]
    DuplicateRule {
        /// The name.
        name: String,
    },
    /// A rule probability outside 0 to 1.
    #[error("rule {rule} has probability {value}, expected a number from 0 to 1", rule = quoted(.rule))]
    RuleProbability {
        /// The rule.
        rule: String,
        /// The number.
        value: f64,
    },
    /// An impossible number in the note about how a rule was learned.
    #[error("rule {rule} has a note about learning with {what} = {value}, expected {wanted}", rule = quoted(.rule))]
    LearnedNote {
        /// The rule.
        rule: String,
        /// The name of the number.
        what: &'static str,
        /// The number.
        value: f64,
        /// The expected range.
        wanted: String,
    },
    /// An inhibition probability outside 0 to 1.
    #[error("inhibition of {atom} in rule {rule} is {value}, expected a number from 0 to 1", atom = quoted(.atom), rule = quoted(.rule))]
    InhibitionProbability {
        /// The rule.
        rule: String,
        /// The category.
        atom: String,
        /// The number.
        value: f64,
    },
    /// The same category twice in a noisy-or.
    #[error("noisy-or rule {rule} names {atom} twice; keep one of the two", rule = quoted(.rule), atom = quoted(.atom))]
    RepeatedInhibition {
        /// The rule.
        rule: String,
        /// The category.
        atom: String,
    },
    /// A noisy-or that names no category.
    #[error("a noisy-or rule names no category; give at least one with its inhibition probability")]
    EmptyNoisyOr {
        /// The rule.
        rule: String,
    },
    /// A formula that nests too deeply.
    #[error(
        "rule {rule} nests {depth} levels deep, more than the limit of {limit}; split it into several rules", rule = quoted(.rule))]
    TooDeep {
        /// The rule.
        rule: String,
        /// Its depth.
        depth: usize,
        /// The limit.
        limit: usize,
    },
    /// A cardinality that is out of range.
    #[error("rule {rule} counts {n} of {members} formulas; the number may be at most {members}", rule = quoted(.rule))]
    Count {
        /// The rule.
        rule: String,
        /// The number to be counted.
        n: usize,
        /// Number of formulas in the list.
        members: usize,
    },
    /// A weight of a combination that is negative or not a number.
    #[error("combination {combination} has weight {value}, expected a finite number of at least 0", combination = quoted(.combination))]
    CombinationWeight {
        /// The combination.
        combination: String,
        /// The number.
        value: f64,
    },
    /// The same combination twice.
    #[error("combination {combination} is stated twice; keep one of the two", combination = quoted(.combination))]
    DuplicateCombination {
        /// The combination.
        combination: String,
    },
    /// A combination that needs a category of another label.
    #[error("a combination names no category of label {label}; add one", label = quoted(.label))]
    IncompleteCombination {
        /// The label.
        label: String,
    },
    /// An atom without a category.
    #[error("rule {rule} has an atom of label {label} without a category; name at least one", rule = quoted(.rule), label = quoted(.label))]
    EmptyAtom {
        /// The rule.
        rule: String,
        /// The label.
        label: String,
    },

    /// No assignment has a positive weight.
    #[error("no assignment is possible: {}", conflict(.rules))]
    Impossible {
        /// A minimal set of rules that together exclude all assignments that the evidence allows.
        rules: Vec<String>,
    },
    /// A setting that is out of range.
    #[error("setting `{setting}` is {value}, expected {wanted}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// The number given.
        value: f64,
        /// The allowed range.
        wanted: &'static str,
    },
    /// Rows that cannot be used for learning.
    #[error("{problem}")]
    Examples {
        /// The problem.
        problem: String,
    },
    /// Sums over rows that do not add up.
    #[error("{problem}")]
    Sums {
        /// The problem.
        problem: String,
    },
    /// Sampling found no possible assignment to start from, and could not prove the row impossible.
    #[error(
        "in {steps} steps neither a possible assignment to start sampling from was found nor a proof that there is none; weaken \
         rules of probability 0 or 1, or raise the memory limit so that the exact engine fits"
    )]
    NoStart {
        /// The step limit of the SAT solver.
        steps: u64,
    },
    /// The search found no possible assignment, and could not prove the row impossible.
    #[error(
        "no possible assignment was found, nor a proof that there is none; raise the limits of the search, or weaken rules of \
         probability 0 or 1"
    )]
    NoAssignment,
    /// A simulation with rules and without labels.
    #[error("a simulation with {} needs at least one label", counted(*.n_rules, "rule", "rules"))]
    NothingToSimulate {
        /// Number of rules.
        n_rules: usize,
    },
    /// An invalid calibrator of a label.
    #[error("calibrator of label {label}: {problem}", label = quoted(.label))]
    Calibrator {
        /// The label.
        label: String,
        /// The problem.
        problem: CalibrationProblem,
    },
    /// An invalid calibrator, or rows to which a calibrator cannot be fitted.
    #[error("cannot calibrate: {0}")]
    Calibration(CalibrationProblem),
    /// A computation that exceeds a limit.
    #[error("{what} needs {needed}, more than the limit of {limit}; {advice}")]
    TooCostly {
        /// The computation.
        what: String,
        /// The cost.
        needed: String,
        /// The limit.
        limit: String,
        /// Advice. It begins with "raise the memory limit" exactly if that helps.
        advice: String,
    },
}

/// The beginning of an advice to raise the memory limit.
const RAISE_MEMORY: &str = "raise the memory limit";

impl Error {
    /// The kind of error as an identifier, such as `UnknownLabel`.
    pub fn kind(&self) -> &'static str {
        match self {
            Error::Text(_) => "Text",
            Error::Formula(_) => "Formula",
            Error::Json { .. } => "Json",
            Error::Version { .. } => "Version",
            Error::TooLarge { .. } => "TooLarge",
            Error::EmptyName { .. } => "EmptyName",
            Error::DuplicateLabel { .. } => "DuplicateLabel",
            Error::TooFewCategories { .. } => "TooFewCategories",
            Error::DuplicateCategory { .. } => "DuplicateCategory",
            Error::Length { .. } => "Length",
            Error::NotAProbability { .. } => "NotAProbability",
            Error::Sum { .. } => "Sum",
            Error::ForeignRow { .. } => "ForeignRow",
            Error::RowLength { .. } => "RowLength",
            Error::RowCount { .. } => "RowCount",
            Error::UnknownRow { .. } => "UnknownRow",
            Error::ZeroBelief { .. } => "ZeroBelief",
            Error::Latent { .. } => "Latent",
            Error::GivenTwice { .. } => "GivenTwice",
            Error::CategoryGivenTwice { .. } => "CategoryGivenTwice",
            Error::UnknownLabel { .. } => "UnknownLabel",
            Error::UnknownCategory { .. } => "UnknownCategory",
            Error::UnknownRule { .. } => "UnknownRule",
            Error::DuplicateRule { .. } => "DuplicateRule",
            Error::RuleProbability { .. } => "RuleProbability",
            Error::LearnedNote { .. } => "LearnedNote",
            Error::InhibitionProbability { .. } => "InhibitionProbability",
            Error::RepeatedInhibition { .. } => "RepeatedInhibition",
            Error::EmptyNoisyOr { .. } => "EmptyNoisyOr",
            Error::TooDeep { .. } => "TooDeep",
            Error::Count { .. } => "Count",
            Error::EmptyAtom { .. } => "EmptyAtom",
            Error::Impossible { .. } => "Impossible",
            Error::TooCostly { .. } => "TooCostly",
            Error::Setting { .. } => "Setting",
            Error::NoStart { .. } => "NoStart",
            Error::NoAssignment => "NoAssignment",
            Error::NothingToSimulate { .. } => "NothingToSimulate",
            Error::Calibrator { .. } => "Calibrator",
            Error::Calibration(_) => "Calibration",
            Error::Examples { .. } => "Examples",
            Error::Sums { .. } => "Sums",
            Error::CombinationWeight { .. } => "CombinationWeight",
            Error::DuplicateCombination { .. } => "DuplicateCombination",
            Error::IncompleteCombination { .. } => "IncompleteCombination",
        }
    }

    /// Whether a higher memory limit would help. Other limits are fixed.
    ///
    /// ```
    /// use prsl::infer::Enumeration;
    /// use prsl::{JunctionTree, Limits, Model};
    ///
    /// let text = (0..30).map(|label| format!("label l{label}\nrule 0.9: l0 xor l{label}\n")).collect::<String>();
    /// let model = Model::parse(&text)?;
    /// let refused = JunctionTree::compile_within(&model, Limits { memory: 100 }).err().expect("too little memory");
    /// assert!(refused.yields_to_memory());
    /// let refused = Enumeration::compile(&model).err().expect("too many assignments");
    /// assert!(!refused.yields_to_memory());
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn yields_to_memory(&self) -> bool {
        matches!(self, Error::TooCostly { advice, .. } if advice.starts_with(RAISE_MEMORY))
    }

    /// An error for an unknown label, with a suggestion of a similar one.
    pub fn unknown_label<'a>(
        label: &str,
        context: impl Into<String>,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        Error::UnknownLabel {
            label: label.to_owned(),
            context: context.into(),
            suggestion: nearest(label, known).map(str::to_owned),
        }
    }

    /// An error for an unknown category, with a suggestion of a similar one.
    pub fn unknown_category<'a>(
        label: &str,
        category: &str,
        context: impl Into<String>,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        Error::UnknownCategory {
            label: label.to_owned(),
            category: category.to_owned(),
            context: context.into(),
            suggestion: nearest(category, known).map(str::to_owned),
        }
    }
}
