//! The `prsl` command: check rules, predict, explain, evaluate and learn.

mod arguments;
mod calibrate;
mod check;
mod compare;
mod completions;
mod demo;
mod evaluate;
mod explain;
mod export;
mod failure;
mod figures;
mod fmt;
mod import;
mod labeled;
mod learn;
mod lsp;
mod memory;
mod model;
mod output;
mod plot;
mod predict;
mod progress;
mod report;
mod schema;
mod serve;
mod simulate;
mod style;
mod table;
mod verify;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match arguments::Arguments::parse().run() {
        Ok(exit) => exit,
        Err(error) => failure::report(&error),
    }
}
