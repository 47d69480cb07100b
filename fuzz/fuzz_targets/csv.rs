//! Any bytes as a CSV table of beliefs and truths: read, or refused with a readable error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prsl_data::TableReader;

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = prsl_data::parse_csv(bytes) {
        assert!(!error.to_string().is_empty());
    }
    prsl_fuzz::read_as_beliefs_and_truths(|| {
        TableReader::csv(std::io::Cursor::new(bytes.to_vec()), "fuzz.csv")
    });
});
