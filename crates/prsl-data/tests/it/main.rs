//! Tests of the tables from outside, in one binary so that they link once.

mod arff;
mod beliefs;
mod csv;
mod mulan;
mod parquet;
mod properties;
mod shared_files;
mod writer;
