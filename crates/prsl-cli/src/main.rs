//! The `prsl` command.

fn main() {}
