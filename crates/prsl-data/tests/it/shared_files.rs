//! The real datasets, if they are available.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use prsl_data::{ArffValue, AttributeKind, Cell, TableReader, read_mulan};

/// The folder of the datasets, next to the workspace.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")).join(name);
    if !folder.is_dir() {
        eprintln!("skipped: the datasets are not at {}", folder.display());
        return None;
    }
    Some(folder)
}

struct Expected {
    name: &'static str,
    rows: usize,
    numeric: usize,
    nominal: usize,
    labels: usize,
    cardinality: f64,
    label_sets: usize,
    unlabeled: usize,
    rarest: usize,
}

/// The table of the datasets' own description.
#[rustfmt::skip]
const DATASETS: [Expected; 6] = [
    Expected { name: "emotions", rows: 593, numeric: 72, nominal: 0, labels: 6, cardinality: 1.868, label_sets: 27, unlabeled: 0, rarest: 148 },
    Expected { name: "yeast", rows: 2417, numeric: 103, nominal: 0, labels: 14, cardinality: 4.237, label_sets: 198, unlabeled: 0, rarest: 34 },
    Expected { name: "birds", rows: 645, numeric: 258, nominal: 2, labels: 19, cardinality: 1.014, label_sets: 133, unlabeled: 294, rarest: 6 },
    Expected { name: "medical", rows: 978, numeric: 0, nominal: 1449, labels: 45, cardinality: 1.245, label_sets: 94, unlabeled: 0, rarest: 1 },
    Expected { name: "enron", rows: 1702, numeric: 0, nominal: 1001, labels: 53, cardinality: 3.378, label_sets: 753, unlabeled: 0, rarest: 1 },
    Expected { name: "mediamill2k", rows: 2000, numeric: 120, nominal: 0, labels: 101, cardinality: 4.394, label_sets: 798, unlabeled: 75, rarest: 0 },
];

#[test]
fn mulan_datasets_are_as_described() {
    let Some(folder) = folder("mulan") else { return };
    for expected in DATASETS {
        let plain = folder.join(format!("{}.arff", expected.name));
        let arff = if plain.exists() { plain } else { folder.join(format!("{}.arff.gz", expected.name)) };
        let mut dataset = read_mulan(&arff, &folder.join(format!("{}.xml", expected.name))).unwrap();
        let numeric = dataset.features().filter(|feature| feature.kind == AttributeKind::Numeric).count();
        assert_eq!(numeric, expected.numeric, "{}", expected.name);
        assert_eq!(dataset.features().count() - numeric, expected.nominal, "{}", expected.name);
        assert_eq!(dataset.labels().len(), expected.labels, "{}", expected.name);

        let mut rows = Vec::new();
        while let Some(row) = dataset.next_row().unwrap() {
            assert!(row.features.iter().all(|value| *value != ArffValue::Missing));
            rows.push(
                row.labels.iter().map(|label| label.expect("all labels are known")).collect::<Vec<_>>(),
            );
        }
        let count = |row: &Vec<bool>| row.iter().filter(|&&label| label).count();
        let per_label = |label: usize| rows.iter().filter(|row| row[label]).count();
        assert_eq!(rows.len(), expected.rows, "{}", expected.name);
        let cardinality = rows.iter().map(count).sum::<usize>() as f64 / rows.len() as f64;
        assert!((cardinality - expected.cardinality).abs() < 0.00051, "{} {cardinality}", expected.name);
        assert_eq!(rows.iter().collect::<HashSet<_>>().len(), expected.label_sets, "{}", expected.name);
        assert_eq!(
            rows.iter().filter(|row| count(row) == 0).count(),
            expected.unlabeled,
            "{}",
            expected.name
        );
        assert_eq!((0..expected.labels).map(per_label).min(), Some(expected.rarest), "{}", expected.name);
    }
}

#[test]
fn belief_files_are_as_described() {
    let Some(folder) = folder("beliefs") else { return };
    for expected in DATASETS {
        let folds = if ["emotions", "birds", "yeast"].contains(&expected.name) { 10 } else { 5 };
        let mut table = TableReader::open(&folder.join(format!("{}.parquet", expected.name))).unwrap();
        assert_eq!(table.rows_hint(), Some((expected.rows * folds) as u64), "{}", expected.name);
        assert_eq!(table.columns().len(), 3 + 2 * expected.labels, "{}", expected.name);
        let column = |name: &str| table.columns().iter().position(|column| column == name).unwrap();
        let split = column("split");
        let starts_with = |prefix: &str| -> Vec<usize> {
            (0..table.columns().len()).filter(|&index| table.columns()[index].starts_with(prefix)).collect()
        };
        let (beliefs, truths) = (starts_with("belief_"), starts_with("true_"));
        assert_eq!((beliefs.len(), truths.len()), (expected.labels, expected.labels));

        let (mut n_rows, mut n_test, mut n_labels) = (0, 0, 0.0);
        while let Some(chunk) = table.read_chunk(1000).unwrap() {
            assert_eq!(chunk.first_row(), n_rows as u64 + 1);
            n_rows += chunk.n_rows();
            for row in 0..chunk.n_rows() {
                let number = |column: usize| chunk.cell(row, column).number().unwrap().expect("a number");
                assert!(beliefs.iter().all(|&column| (0.0..=1.0).contains(&number(column))));
                if chunk.cell(row, split) == Cell::Text("test") {
                    n_test += 1;
                    n_labels += truths.iter().map(|&column| number(column)).sum::<f64>();
                }
            }
        }
        assert_eq!((n_rows, n_test), (expected.rows * folds, expected.rows), "{}", expected.name);
        let cardinality = n_labels / n_test as f64;
        assert!((cardinality - expected.cardinality).abs() < 0.00051, "{} {cardinality}", expected.name);
        assert_eq!(table.progress(), Some(1.0));
    }
}
