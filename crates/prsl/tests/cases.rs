//! Runs the cases of `tests/cases` with every exact engine.

use std::collections::HashMap;
use std::path::Path;

use prsl::infer::{Enumeration, MaxProductTree};
use prsl::{BeliefMatrix, Error, Explainer, Explanation, JunctionTree, Model, Normalize, Posterior};

/// Tolerance for a number written without a decimal point or an exponent.
const ROUNDING: f64 = 1e-12;

/// A case file, in the format of `tests/cases/README.md`.
struct Case {
    model: Model,
    cells: Vec<Option<f64>>,
    possible: bool,
    /// (column, number, tolerance)
    marginals: Vec<(usize, f64, f64)>,
    log_evidence: Option<(f64, f64)>,
    /// The columns of the most probable assignment.
    mpe: Vec<usize>,
    conflict: Vec<String>,
}

impl Case {
    fn parse(text: &str) -> Self {
        let mut sections: HashMap<&str, Vec<&str>> = HashMap::new();
        let mut section = "";
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name;
                let again = sections.insert(section, Vec::new());
                assert!(again.is_none(), "section [{section}] twice");
            } else if section == "model" || !(line.starts_with('#') || line.trim().is_empty()) {
                sections.get_mut(section).expect("a section first").push(line);
            }
        }
        let mut take = |name: &str| sections.remove(name).unwrap_or_default();
        let model = Model::parse(&take("model").join("\n")).unwrap_or_else(|error| panic!("{error}"));
        let columns: HashMap<String, usize> = model
            .labels()
            .iter()
            .flat_map(|label| {
                label.categories().iter().map(move |category| format!("{}={category}", label.name()))
            })
            .enumerate()
            .map(|(index, column)| (column, index))
            .collect();
        let column = |name: &str| *columns.get(name).unwrap_or_else(|| panic!("no column `{name}`"));
        let mut cells = vec![None; model.n_categories()];
        for line in take("evidence") {
            let (name, value) = line.rsplit_once(' ').expect("a column and a number");
            cells[column(name)] = Some(value.parse().expect("a number"));
        }
        let case = Self {
            cells,
            possible: match take("status")[..] {
                ["possible"] => true,
                ["impossible"] => false,
                ref other => panic!("status {other:?}"),
            },
            marginals: take("marginals")
                .iter()
                .map(|line| {
                    let (name, value) = line.rsplit_once(' ').expect("a column and a number");
                    let (value, tolerance) = number(value);
                    (column(name), value, tolerance)
                })
                .collect(),
            log_evidence: take("log_evidence").first().map(|value| number(value)),
            mpe: take("mpe").iter().map(|name| column(name)).collect(),
            conflict: take("conflict").iter().map(|&rule| rule.to_owned()).collect(),
            model,
        };
        assert!(sections.is_empty(), "unknown sections {:?}", sections.keys());
        assert_eq!(
            case.possible,
            !case.marginals.is_empty(),
            "marginals exactly where something is possible"
        );
        assert_eq!(case.possible, case.log_evidence.is_some(), "ln Z exactly where something is possible");
        assert_eq!(case.possible, case.conflict.is_empty(), "a conflict exactly where nothing is possible");
        case
    }

    fn rows(&self) -> BeliefMatrix {
        let mut rows = BeliefMatrix::new(&self.model);
        rows.push(&self.cells, Normalize::Never).unwrap_or_else(|error| panic!("{error}"));
        rows
    }

    fn check_posterior(&self, engine: &str, answer: Result<Posterior, Error>) {
        match answer {
            Ok(posterior) => {
                assert!(self.possible, "{engine}: possible");
                self.check_marginals(engine, posterior.marginals());
                self.check_log_evidence(engine, posterior.log_evidence());
            }
            Err(Error::Impossible { rules }) => assert_eq!(rules, self.conflict, "{engine}"),
            Err(error) => panic!("{engine}: {error}"),
        }
    }

    fn check_marginals(&self, engine: &str, marginals: &[f64]) {
        for &(column, expected, tolerance) in &self.marginals {
            let actual = marginals[column];
            assert!(
                (actual - expected).abs() <= tolerance,
                "{engine}: column {column} is {actual}, not {expected}"
            );
        }
    }

    fn check_log_evidence(&self, engine: &str, actual: f64) {
        let (expected, tolerance) = self.log_evidence.expect("possible");
        assert!((actual - expected).abs() <= tolerance, "{engine}: ln Z is {actual}, not {expected}");
    }

    fn check_mpe(&self, engine: &str, assignment: Option<&[usize]>) {
        assert_eq!(assignment.is_some(), self.possible, "{engine}");
        for &column in &self.mpe {
            let id =
                self.model.label_ids().find(|&id| self.model.block(id).contains(&column)).expect("a column");
            let chosen = assignment.expect("possible")[id.index()];
            assert_eq!(
                self.model.block(id).start + chosen,
                column,
                "{engine}: {}",
                self.model.label(id).name()
            );
        }
    }

    fn check_explanation(&self, explanation: &Explanation) {
        assert_eq!(explanation.possible, self.possible, "{explanation}");
        let categories = || explanation.labels.iter().flat_map(|label| &label.categories);
        if let Some(after) = categories().map(|category| category.after).collect::<Option<Vec<f64>>>() {
            self.check_marginals("explainer", &after);
        }
        if !self.possible {
            let name = |rule: &prsl::explain::RuleExplanation| rule.name.clone().unwrap_or(rule.text.clone());
            assert_eq!(explanation.conflicts().map(name).collect::<Vec<_>>(), self.conflict);
            return;
        }
        self.check_log_evidence("explainer", explanation.log_evidence.expect("possible"));
        let best = explanation.best.as_ref().expect("affordable");
        let chosen = self.model.labels().iter().zip(&best.choices);
        let assignment: Vec<usize> = chosen
            .map(|(label, choice)| label.find_category(&choice.category).expect("the model's").index())
            .collect();
        self.check_mpe("explainer", Some(&assignment));
    }
}

/// A number, and half a unit of its last digit.
fn number(text: &str) -> (f64, f64) {
    let value: f64 = text.parse().expect("a number");
    let (digits, exponent) = text.split_once('e').unwrap_or((text, ""));
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    if decimals == 0 && exponent.is_empty() {
        return (value, ROUNDING);
    }
    let exponent: i32 = if exponent.is_empty() { 0 } else { exponent.parse().expect("an exponent") };
    (value, 0.5 * 10f64.powi(exponent - decimals as i32) * (1.0 + 1e-3))
}

fn run(text: &str) {
    let case = Case::parse(text);
    let rows = case.rows();
    let row = rows.row(0);
    let tree = JunctionTree::compile(&case.model).unwrap();
    case.check_posterior("junction tree", tree.infer(&row));
    let maximum = MaxProductTree::compile(&case.model).unwrap();
    let best = maximum.best(&row).ok();
    case.check_mpe("max-product", best.as_ref().map(|best| best.assignment.indices()));
    let enumeration = match Enumeration::compile(&case.model) {
        Ok(enumeration) => Some(enumeration),
        Err(Error::TooCostly { .. }) => None,
        Err(error) => panic!("{error}"),
    };
    if let Some(enumeration) = enumeration {
        case.check_posterior("enumeration", enumeration.infer(&row));
        let best = enumeration.top(&row, 1).unwrap().into_best();
        case.check_mpe("enumeration", best.as_ref().map(|best| best.assignment.indices()));
    }
    case.check_explanation(&Explainer::compile(&case.model).unwrap().explain(&row).unwrap());
}

#[test]
fn every_case_has_its_answer() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .expect("the cases")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "case"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 15, "only {} cases", paths.len());
    let fails = |path: &&std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("a readable case");
        let failed = std::panic::catch_unwind(|| run(&text)).is_err();
        if failed {
            eprintln!("... in {}", path.file_name().unwrap_or_default().display());
        }
        failed
    };
    let failed: Vec<_> = paths.iter().filter(fails).collect();
    assert!(failed.is_empty(), "{} of {} cases failed: see above", failed.len(), paths.len());
}

#[test]
fn numbers_are_right_to_the_last_digit_written() {
    assert_eq!(number("1").1, ROUNDING);
    let off = |text: &str, by: f64| (number(text).1 / by - 1.0).abs() < 1e-2;
    assert!(off("0.703", 5e-4));
    assert!(off("-1840.68", 5e-3));
    assert!(off("1.5e-200", 5e-202));
}
