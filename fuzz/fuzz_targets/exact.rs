//! Exact inference on small models with extreme numbers, generated from any bytes. Marginals and ln Z are precise.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prsl_testkit::{Bytes, check_marginals, extreme_model};

fuzz_target!(|bytes: &[u8]| {
    let extreme = extreme_model(&mut Bytes(bytes));
    if let Err(wrong) = check_marginals(&extreme) {
        panic!("{wrong}\n{}{:?}", extreme.model, extreme.rows.values());
    }
});
