//! Any bytes as the body of a request. The first byte chooses the path. Every request gets an answer, and none of the
//! server's own errors.
#![no_main]

#[path = "../../crates/prsl-server/tests/it/fuzzing/request.rs"]
mod request;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| request::send(input));
