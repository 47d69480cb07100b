//! The Rust examples of the pages in `docs/`, as doc tests.

#[doc = include_str!("../../../docs/how-to/rust.md")]
pub struct InARustProgram;
