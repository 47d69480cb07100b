//! Samples of small models with extreme numbers, generated from any bytes. Their frequencies agree with their
//! probabilities, and no sample is impossible.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prsl_testkit::{Bytes, check_samples, extreme_model};

fuzz_target!(|bytes: &[u8]| {
    let extreme = extreme_model(&mut Bytes(bytes));
    if let Err(wrong) = check_samples(&extreme) {
        panic!("{wrong}\n{}{:?}", extreme.model, extreme.rows.values());
    }
});
