//! Tests of the `prsl` command: arguments and files in; text, files and exit codes out.

mod calibrate;
mod cases;
mod check;
mod compare;
mod demo;
mod engines;
mod errors;
mod evaluate;
mod explain;
mod export;
mod files;
mod fmt;
mod help;
mod learn;
mod learn_options;
mod learn_report;
mod memory;
mod pipes;
mod plot;
mod predict;
mod runner;
mod serve;
mod simulate;
mod tables;
