//! Branch and bound on small models with extreme numbers, generated from any bytes. The best assignments are proven,
//! and their weights agree with enumeration.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prsl_testkit::{Bytes, check_search, extreme_model};

fuzz_target!(|bytes: &[u8]| {
    let extreme = extreme_model(&mut Bytes(bytes));
    if let Err(wrong) = check_search(&extreme) {
        panic!("{wrong}\n{}{:?}", extreme.model, extreme.rows.values());
    }
});
