//! Everything that can be wrong with what the library is given, as sentences for whoever can fix it.

use crate::calibrate::CalibrationProblem;
use crate::diagnostic::{Diagnostics, nearest, shortened};

/// The result of most functions of the library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What is wrong: the message says what was given, what was wanted, and where.
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
        /// What is wrong.
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
    /// A model text that is too large to be one.
    #[error(
        "the model text has {bytes} bytes, more than the limit of {limit}; split it or write larger rules as data"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },

    /// A name without characters.
    #[error("{what} has an empty name; give it at least one character")]
    EmptyName {
        /// Whose name.
        what: String,
    },
    /// Two labels of the same name.
    #[error("label `{label}` is declared twice; rename or remove one of them")]
    DuplicateLabel {
        /// The name.
        label: String,
    },
    /// Fewer than two categories.
    #[error("label `{label}` has {}, expected at least 2; a yes/no label is declared by its name alone", counted(*.n, "category", "categories"))]
    TooFewCategories {
        /// The label.
        label: String,
        /// How many it has.
        n: usize,
    },
    /// Two categories of the same name in one label.
    #[error("label `{label}` lists category `{category}` twice; rename or remove one of them")]
    DuplicateCategory {
        /// The label.
        label: String,
        /// The category.
        category: String,
    },
    /// A distribution of the wrong length.
    #[error("{what} for label `{label}` has {}, expected {wanted}, one for each category", counted(*.given, "number", "numbers"))]
    Length {
        /// "belief" or "prior".
        what: &'static str,
        /// The label.
        label: String,
        /// How many numbers were given.
        given: usize,
        /// How many categories there are.
        wanted: usize,
    },
    /// A number in a distribution that is not a probability.
    #[error("{what} for `{label}={category}` is {value}, expected a number from 0 to 1{}", percent_advice(*.value))]
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
    #[error("{what} for label `{label}` sums to {sum}, expected 1 within 1e-6{}", normalize_advice(.what))]
    Sum {
        /// "belief" or "prior".
        what: &'static str,
        /// The label.
        label: String,
        /// What it sums to.
        sum: f64,
    },
    /// A row that does not fit the model.
    #[error("a row has {}, expected {wanted}, one for each {each}", counted(*.given, what, &format!("{what}s")))]
    RowLength {
        /// What it has: "belief", "truth".
        what: &'static str,
        /// What there is one for: "category", "label".
        each: &'static str,
        /// How many it has.
        given: usize,
        /// How many were wanted.
        wanted: usize,
    },
    /// Not one for each row.
    #[error("{what} were given for {}, and there {}; give them for each row", counted(*.given, "row", "rows"), there_are(*.wanted))]
    RowCount {
        /// What was given: "truths".
        what: &'static str,
        /// How many were given.
        given: usize,
        /// How many rows there are.
        wanted: usize,
    },
    /// A row number beyond the last row.
    #[error("row {} was asked for, and there {}", row + 1, there_are(*.n_rows))]
    UnknownRow {
        /// The row, from 0.
        row: usize,
        /// How many there are.
        n_rows: usize,
    },
    /// A belief of zero everywhere.
    #[error("belief for label `{label}` is 0 in every category; leave all of them empty if nothing is known")]
    ZeroBelief {
        /// The label.
        label: String,
    },
    /// A belief about a label that no classifier speaks about.
    #[error(
        "label `{label}` is latent and takes no beliefs; remove `latent` from its declaration, or give an observed category"
    )]
    Latent {
        /// The label.
        label: String,
    },
    /// A label given twice in one instance's evidence.
    #[error("label `{label}` is given twice in the evidence; keep one of the two")]
    GivenTwice {
        /// The label.
        label: String,
    },
    /// A label that the model does not have.
    #[error("unknown label `{label}`{context}{}", did_you_mean(.suggestion))]
    UnknownLabel {
        /// The name looked for.
        label: String,
        /// Where it was used: empty, or " in ...".
        context: String,
        /// A label with a similar name.
        suggestion: Option<String>,
    },
    /// A category that the label does not have.
    #[error("unknown category `{category}` of label `{label}`{context}{}", did_you_mean(.suggestion))]
    UnknownCategory {
        /// The label.
        label: String,
        /// The name looked for.
        category: String,
        /// Where it was used: empty, or " in ...".
        context: String,
        /// A category with a similar name.
        suggestion: Option<String>,
    },
    /// A rule that the model does not have.
    #[error("unknown rule `{rule}`{}", did_you_mean(.suggestion))]
    UnknownRule {
        /// The name or number looked for.
        rule: String,
        /// A rule with a similar name.
        suggestion: Option<String>,
    },

    /// Two rules of the same name.
    #[error("two rules are named `{name}`; rename one of them")]
    DuplicateRule {
        /// The name.
        name: String,
    },
    /// A rule probability outside 0 to 1.
    #[error("rule `{rule}` has probability {value}, expected a number from 0 to 1")]
    RuleProbability {
        /// The rule.
        rule: String,
        /// The number.
        value: f64,
    },
    /// An inhibition probability outside 0 to 1.
    #[error("inhibition of `{atom}` in rule `{rule}` is {value}, expected a number from 0 to 1")]
    InhibitionProbability {
        /// The rule.
        rule: String,
        /// The category.
        atom: String,
        /// The number.
        value: f64,
    },
    /// The same category twice in a noisy-or.
    #[error("noisy-or rule `{rule}` names `{atom}` twice; keep one of the two")]
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
        "rule `{rule}` nests {depth} levels deep, more than the limit of {limit}; split it into several rules"
    )]
    TooDeep {
        /// The rule.
        rule: String,
        /// Its depth.
        depth: usize,
        /// The limit.
        limit: usize,
    },
    /// A cardinality out of range.
    #[error("rule `{rule}` counts {n} of {members} formulas; the number may be at most {members}")]
    Count {
        /// The rule.
        rule: String,
        /// The number asked for.
        n: usize,
        /// How many formulas are listed.
        members: usize,
    },
    /// A weight of a combination that is negative or no number.
    #[error("combination `{combination}` has weight {value}, expected a finite number of at least 0")]
    CombinationWeight {
        /// What is combined.
        combination: String,
        /// The number.
        value: f64,
    },
    /// The same combination twice.
    #[error("combination `{combination}` is stated twice; keep one of the two")]
    DuplicateCombination {
        /// What is combined.
        combination: String,
    },
    /// A combination without a category of a label that cannot be left out.
    #[error("a combination names no category of label `{label}`; add one")]
    IncompleteCombination {
        /// The label.
        label: String,
    },
    /// An atom over no category.
    #[error("rule `{rule}` has an atom of label `{label}` without a category; name at least one")]
    EmptyAtom {
        /// The rule.
        rule: String,
        /// The label.
        label: String,
    },

    /// No assignment has a positive weight.
    #[error("no assignment is possible: {}", conflict(.rules))]
    Impossible {
        /// A smallest set of rules that together exclude everything the evidence allows.
        rules: Vec<String>,
    },
    /// A setting out of its range.
    #[error("setting `{setting}` is {value}, expected {wanted}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// The number given.
        value: f64,
        /// What it may be.
        wanted: &'static str,
    },
    /// Rows that cannot be learned from as they are.
    #[error("{problem}")]
    Examples {
        /// What is wrong with them.
        problem: String,
    },
    /// Neither an assignment of positive weight was found, nor that there is none.
    #[error(
        "in {steps} steps neither a possible assignment to start sampling from was found nor a proof that there is none; weaken \
         rules of probability 0 or 1, or raise the memory limit so that the exact engine fits"
    )]
    NoStart {
        /// The steps that the search for a proof may take.
        steps: u64,
    },
    /// Neither an explanation of positive weight was found, nor that there is none.
    #[error(
        "no possible explanation was found, nor a proof that there is none; raise the limits of the search, or weaken rules of \
         probability 0 or 1"
    )]
    NoExplanation,
    /// A simulation of rules about nothing.
    #[error("a simulation with {} needs at least one label", counted(*.n_rules, "rule", "rules"))]
    NothingToSimulate {
        /// How many rules were asked for.
        n_rules: usize,
    },
    /// A label's calibrator that cannot be one.
    #[error("calibrator of label `{label}`: {problem}")]
    Calibrator {
        /// The label.
        label: String,
        /// What is wrong.
        problem: CalibrationProblem,
    },
    /// A calibrator, or the rows it is to be fitted to, cannot be used.
    #[error("cannot calibrate: {0}")]
    Calibration(CalibrationProblem),
    /// Exact inference is too expensive.
    #[error("{what} needs {needed}, more than the limit of {limit}; {advice}")]
    TooCostly {
        /// What was asked for.
        what: String,
        /// What it takes.
        needed: String,
        /// What is allowed.
        limit: String,
        /// The way out: begins with "raise the memory limit" exactly where that helps.
        advice: String,
    },
}

/// How the advice of a refusal begins that a higher memory limit lifts.
const RAISE_MEMORY: &str = "raise the memory limit";

impl Error {
    /// What kind of error it is, as a name for programs: `UnknownLabel`.
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
            Error::RowLength { .. } => "RowLength",
            Error::RowCount { .. } => "RowCount",
            Error::UnknownRow { .. } => "UnknownRow",
            Error::ZeroBelief { .. } => "ZeroBelief",
            Error::Latent { .. } => "Latent",
            Error::GivenTwice { .. } => "GivenTwice",
            Error::UnknownLabel { .. } => "UnknownLabel",
            Error::UnknownCategory { .. } => "UnknownCategory",
            Error::UnknownRule { .. } => "UnknownRule",
            Error::DuplicateRule { .. } => "DuplicateRule",
            Error::RuleProbability { .. } => "RuleProbability",
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
            Error::NoExplanation => "NoExplanation",
            Error::NothingToSimulate { .. } => "NothingToSimulate",
            Error::Calibrator { .. } => "Calibrator",
            Error::Calibration(_) => "Calibration",
            Error::Examples { .. } => "Examples",
            Error::CombinationWeight { .. } => "CombinationWeight",
            Error::DuplicateCombination { .. } => "DuplicateCombination",
            Error::IncompleteCombination { .. } => "IncompleteCombination",
        }
    }

    /// Whether it is a refusal that a higher memory limit lifts. Other refusals are about limits that nobody can raise.
    ///
    /// ```
    /// use prsl::{Enumeration, JunctionTree, Limits, Model};
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

    /// An unknown label, with the nearest known one.
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

    /// An unknown category, with the nearest known one.
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

fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn there_are(n_rows: usize) -> String {
    format!("{} {}", if n_rows == 1 { "is" } else { "are" }, counted(n_rows, "row", "rows"))
}

fn did_you_mean(name: &Option<String>) -> String {
    name.as_ref().map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

fn percent_advice(value: f64) -> &'static str {
    if value > 1.0 && value <= 100.0 { "; divide it by 100 if it is in percent" } else { "" }
}

fn normalize_advice(what: &str) -> &'static str {
    if what == "belief" { "; correct it, or ask for normalization" } else { "" }
}

fn place(line: usize, column: usize) -> String {
    if line == 0 { String::new() } else { format!(" (line {line}, column {column})") }
}

fn formula_message(diagnostics: &Diagnostics) -> String {
    let source = shortened(diagnostics.source());
    let sentences: Vec<_> = diagnostics
        .list()
        .iter()
        .map(|d| match &d.help {
            Some(help) => format!("{} in rule `{source}`; {help}", d.message),
            None => format!("{} in rule `{source}`", d.message),
        })
        .collect();
    sentences.join("; ")
}

fn conflict(rules: &[String]) -> String {
    match rules {
        [] => "the evidence excludes itself".to_owned(),
        [rule] => format!("rule `{rule}` excludes everything that the evidence allows"),
        rules => {
            let quoted: Vec<_> = rules.iter().map(|rule| format!("`{rule}`")).collect();
            format!("rules {} together exclude everything that the evidence allows", quoted.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Diagnostic;

    /// One of every kind: [`Error::kind`] does not compile when a kind is missing from it, and the test fails when a kind is
    /// missing from the list.
    fn one_of_each() -> Vec<Error> {
        let text = || "weather".to_owned();
        let wrong = || Diagnostic::new(7..11, "unknown category `rian`").with_help("did you mean `rain`?");
        let suggestion = Some("rain".to_owned());
        vec![
            Error::Text(Diagnostics::new("wet <- rian", vec![wrong()])),
            Error::Formula(Diagnostics::new("wet <- rian", vec![wrong()])),
            Error::Json { message: "expected `,` or `}`".to_owned(), line: 4, column: 42 },
            Error::Version { found: 2, known: 1 },
            Error::TooLarge { bytes: 20 << 20, limit: 16 << 20 },
            Error::EmptyName { what: "a label".to_owned() },
            Error::DuplicateLabel { label: text() },
            Error::TooFewCategories { label: text(), n: 1 },
            Error::DuplicateCategory { label: text(), category: "rain".to_owned() },
            Error::Length { what: "belief", label: text(), given: 3, wanted: 2 },
            Error::NotAProbability {
                what: "belief",
                label: text(),
                category: "rain".to_owned(),
                value: -0.1,
            },
            Error::NotAProbability {
                what: "belief",
                label: text(),
                category: "rain".to_owned(),
                value: 85.0,
            },
            Error::Sum { what: "belief", label: text(), sum: 0.93 },
            Error::Sum { what: "prior", label: text(), sum: 0.93 },
            Error::RowLength { what: "belief", each: "category", given: 3, wanted: 4 },
            Error::RowCount { what: "truths", given: 1, wanted: 2 },
            Error::UnknownRow { row: 4, n_rows: 2 },
            Error::ZeroBelief { label: text() },
            Error::Latent { label: text() },
            Error::GivenTwice { label: text() },
            Error::unknown_label("wether", "", ["weather"]),
            Error::unknown_category("weather", "rian", " in rule `wet <- rian`", ["sun", "rain"]),
            Error::UnknownRule { rule: "rian".to_owned(), suggestion },
            Error::DuplicateRule { name: "wets".to_owned() },
            Error::RuleProbability { rule: "wet <- rain".to_owned(), value: 1.5 },
            Error::InhibitionProbability {
                rule: "wets".to_owned(),
                atom: "rain".to_owned(),
                value: f64::NAN,
            },
            Error::RepeatedInhibition { rule: "wets".to_owned(), atom: "weather=rain".to_owned() },
            Error::EmptyNoisyOr { rule: "wets".to_owned() },
            Error::TooDeep { rule: "wets".to_owned(), depth: 300, limit: 256 },
            Error::Count { rule: "wets".to_owned(), n: 3, members: 2 },
            Error::EmptyAtom { rule: "wets".to_owned(), label: text() },
            Error::CombinationWeight { combination: "anger, sad".to_owned(), value: -1.0 },
            Error::DuplicateCombination { combination: "anger, sad".to_owned() },
            Error::IncompleteCombination { label: text() },
            Error::Impossible { rules: vec!["wet <- rain".to_owned()] },
            Error::Impossible { rules: vec!["wet <- rain".to_owned(), "dry <- rain".to_owned()] },
            Error::Setting { setting: "damping", value: 1.5, wanted: "a number from 0 to below 1" },
            Error::Examples { problem: "2 rows of truths for 3 rows of beliefs".to_owned() },
            Error::NoStart { steps: 50_000 },
            Error::NoExplanation,
            Error::NothingToSimulate { n_rules: 3 },
            Error::Calibrator { label: text(), problem: CalibrationProblem::TwoCategories { n: 3 } },
            Error::Calibration(CalibrationProblem::Rows { what: "truths", given: 3, wanted: 4 }),
            Error::TooCostly {
                what: "exact inference".to_owned(),
                needed: "2.3 GiB for tables of 1.5e8 entries".to_owned(),
                limit: "1.0 GiB".to_owned(),
                advice:
                    "raise the memory limit, or give the rules that tie many labels together fewer labels"
                        .to_owned(),
            },
        ]
    }

    const N_KINDS: usize = 41;

    #[test]
    fn catalogue() {
        let errors = one_of_each();
        let kinds: std::collections::BTreeSet<&str> = errors.iter().map(Error::kind).collect();
        assert_eq!(kinds.len(), N_KINDS, "every kind of error is in the catalogue");
        let messages: Vec<String> = errors.iter().map(Error::to_string).collect();
        insta::assert_snapshot!(messages.join("\n"));
    }
}
