//! Loopy propagation on small models with extreme numbers, generated from any bytes. It is exact on trees, never NaN,
//! and never calls a possible row impossible.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prsl_testkit::{Bytes, check_loopy, extreme_model};

fuzz_target!(|bytes: &[u8]| {
    let extreme = extreme_model(&mut Bytes(bytes));
    if let Err(wrong) = check_loopy(&extreme) {
        panic!("{wrong}\n{}{:?}", extreme.model, extreme.rows.values());
    }
});
