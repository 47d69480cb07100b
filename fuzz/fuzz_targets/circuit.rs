//! Circuits of small models with extreme numbers, generated from any bytes. Marginals, ln Z, agreement and best
//! assignments are precise, and no sample is impossible.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prsl_testkit::{Bytes, check_circuit, extreme_model};

fuzz_target!(|bytes: &[u8]| {
    let extreme = extreme_model(&mut Bytes(bytes));
    if let Err(wrong) = check_circuit(&extreme) {
        panic!("{wrong}\n{}{:?}", extreme.model, extreme.rows.values());
    }
});
