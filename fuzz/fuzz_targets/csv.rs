//! Any bytes as a CSV table of beliefs and truths: read, or refused with a readable error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prsl::Model;
use prsl_data::{BeliefOptions, BeliefReader, TableReader, TruthOptions, TruthReader};

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = prsl_data::parse_csv(bytes) {
        assert!(!error.to_string().is_empty());
    }
    let model =
        Model::parse("label a\nlabel b: x, y, z\nlabel \"c,d\": \"1\", \"2\" latent").expect("a model");
    let table = || TableReader::csv(std::io::Cursor::new(bytes.to_vec()), "fuzz.csv");
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
                let known = row.iter().zip(model.labels());
                assert!(known.into_iter().all(|(c, label)| c.is_none_or(|c| c < label.n_categories())));
            }
        }
    }
});
