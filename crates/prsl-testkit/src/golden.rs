//! The models, inputs and answers of the authors' simulation study.

use std::io::Read;
use std::path::Path;

use prsl::{BeliefMatrix, Model, Normalize};
use serde::Deserialize;

/// One replication: a model, a hundred rows, and the authors' answers.
pub struct Golden {
    /// The file's stem: `almostLarge_01`.
    pub name: String,
    /// The model.
    pub model: Model,
    /// Its inputs.
    pub rows: BeliefMatrix,
    /// Marginals of every row, one number per category in the model's order.
    pub exact_marginals: Vec<Vec<f64>>,
    /// The exact most probable assignment of every row.
    pub exact_mpe: Vec<Vec<usize>>,
    /// The marginals of every row by the authors' loopy propagation.
    pub approx_marginals: Vec<Vec<f64>>,
    /// The assignment of every row by their loopy max-product; not available at 30 labels.
    pub approx_mpe: Option<Vec<Vec<usize>>>,
    /// Rows in which rounding determined their assignment.
    pub approx_mpe_unstable_rows: Vec<usize>,
    /// Their side experiment on other rows; available at 10 labels only.
    pub test: Option<GoldenTest>,
}

/// Rows of a side experiment, and the shares of rows in which the authors' assignments were the most probable ones.
pub struct GoldenTest {
    /// The rows.
    pub rows: BeliefMatrix,
    /// The share found by the most probable category of each exact marginal.
    pub by_exact_marginals: f64,
    /// The share found by loopy max-product.
    pub by_loopy: f64,
}

#[derive(Deserialize)]
struct File {
    labels: Vec<FileLabel>,
    rules: Vec<FileRule>,
    rule_prob: f64,
    inputs: Vec<Vec<f64>>,
    exact_marginal: Vec<Vec<f64>>,
    exact_mpe: Option<Vec<Vec<usize>>>,
    exact_mpe_by_elimination: Option<Vec<Vec<usize>>>,
    approx_marginal: Vec<Vec<f64>>,
    approx_mpe: Option<Vec<Vec<usize>>>,
    #[serde(default)]
    approx_mpe_unstable_rows: Vec<usize>,
    test_inputs: Option<Vec<Vec<f64>>>,
    mpe_match_test_rows: Option<FileMatch>,
}

#[derive(Deserialize)]
struct FileMatch {
    by_exact_marginals: f64,
    by_lbp_mpe: f64,
}

#[derive(Deserialize)]
struct FileLabel {
    name: String,
    categories: Vec<String>,
}

#[derive(Deserialize)]
struct FileRule {
    label: Vec<usize>,
    category: Vec<usize>,
    inhibition: Vec<f64>,
}

/// All replications whose names start with `prefix`, in order; empty, with a message, if the files are missing.
pub fn golden(prefix: &str) -> Vec<Golden> {
    let Some(folder) = crate::shared("golden/rslsim") else { return Vec::new() };
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder can be listed")
        .map(|entry| entry.expect("the folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "gz"))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)))
        .collect();
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Golden {
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the golden file can be opened");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("the golden file can be unpacked");
    let file: File = serde_json::from_str(&text).expect("the golden file has its documented fields");
    let mut builder = Model::builder();
    for label in &file.labels {
        builder = builder.label(&label.name, label.categories.iter().cloned());
    }
    for rule in &file.rules {
        let inhibitions = (0..rule.label.len()).map(|index| {
            let label = &file.labels[rule.label[index]];
            (label.name.as_str(), label.categories[rule.category[index]].as_str(), rule.inhibition[index])
        });
        builder = builder.noisy_or(inhibitions, file.rule_prob);
    }
    let model = builder.build().expect("golden models are valid");
    let rows = matrix(&model, &file.inputs);
    let test = file.test_inputs.zip(file.mpe_match_test_rows).map(|(inputs, shares)| GoldenTest {
        rows: matrix(&model, &inputs),
        by_exact_marginals: shares.by_exact_marginals,
        by_loopy: shares.by_lbp_mpe,
    });
    let name = path.file_name().expect("a file").to_string_lossy().trim_end_matches(".json.gz").to_owned();
    let exact_mpe = file.exact_mpe.or(file.exact_mpe_by_elimination).expect("every file has an exact MPE");
    Golden {
        name,
        model,
        rows,
        exact_marginals: file.exact_marginal,
        exact_mpe,
        approx_marginals: file.approx_marginal,
        approx_mpe: file.approx_mpe,
        approx_mpe_unstable_rows: file.approx_mpe_unstable_rows,
        test,
    }
}

fn matrix(model: &Model, inputs: &[Vec<f64>]) -> BeliefMatrix {
    let mut rows = BeliefMatrix::new(model);
    for input in inputs {
        let cells: Vec<Option<f64>> = input.iter().copied().map(Some).collect();
        rows.push(&cells, Normalize::Never).expect("golden inputs are distributions");
    }
    rows
}
