//! Any bytes as an ARFF file and as a Mulan label file: read, or refused with a readable error.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = prsl_data::parse_arff(bytes) {
        assert!(!error.to_string().is_empty());
    }
    if let Err(error) = prsl_data::parse_mulan_labels(bytes) {
        assert!(!error.to_string().is_empty());
    }
});
