//! Tests of the public interface, in one binary so that they are linked once.

mod arff;
mod bad_rows;
mod beliefs;
mod csv;
mod dialect;
mod ids;
mod import;
mod keys;
mod mulan;
mod parquet;
mod properties;
mod shared_files;
mod writer;
