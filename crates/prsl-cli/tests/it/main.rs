//! Tests of the `prsl` command: arguments and files in; text, files and exit codes out.

mod calibrate;
mod cases;
mod check;
mod compare;
mod daily;
mod demo;
mod engines;
mod errors;
mod evaluate;
mod explain;
mod export;
mod files;
mod fmt;
mod help;
mod import;
mod learn;
mod learn_options;
mod learn_report;
mod memory;
mod pipes;
mod plot;
mod predict;
mod runner;
mod same_bits;
mod simulate;
mod tables;
