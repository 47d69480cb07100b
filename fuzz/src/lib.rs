//! Functions shared by fuzz targets.

use prsl::Model;
use prsl_data::{BeliefOptions, BeliefReader, Result, TableReader, TruthOptions, TruthReader};

/// Reads a table as beliefs and as truths of a small model, and checks the results.
pub fn read_as_beliefs_and_truths(table: impl Fn() -> Result<TableReader>) {
    let model =
        Model::parse("label a\nlabel b: x, y, z\nlabel \"c,d\": \"1\", \"2\" latent").expect("a model");
    if let Ok(mut reader) =
        table().and_then(|table| BeliefReader::new(&model, table, BeliefOptions::default()))
    {
        while let Ok(Some(rows)) = reader.next_chunk(3) {
            for row in 0..rows.n_rows() {
                for label in model.label_ids() {
                    let sum: f64 = rows.row(row)[model.block(label)].iter().sum();
                    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
                }
            }
        }
    }
    if let Ok(mut reader) = table().and_then(|table| TruthReader::new(&model, table, TruthOptions::default()))
    {
        while let Ok(Some(rows)) = reader.next_chunk(3) {
            for row in rows {
                assert!(row.known().all(|(label, c)| c.index() < model.label(label).n_categories()));
            }
        }
    }
}
