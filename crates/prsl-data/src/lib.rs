//! Tables of beliefs and truths for `prsl`, read and written as streams.
//!
//! | type | is |
//! |---|---|
//! | [`TableReader`] | a CSV or Parquet file, or Arrow's batches, read chunk by chunk |
//! | [`TableWriter`] | a CSV, JSON lines or Parquet file; an incomplete file is never visible |
//! | [`BeliefReader`] | a table as beliefs about the labels of a model |
//! | [`TruthReader`] | a table as true categories of the labels of a model |
//! | [`LabeledReader`] | beliefs and truths, read together |
//! | [`BadRow`] | a row that is not valid, if such rows are kept apart |
//! | [`ArffReader`] | an ARFF file, read row by row |
//! | [`MulanDataset`] | an ARFF file whose label attributes are named by a Mulan label file |
//! | [`import`] | rules of other programs, as models |
//!
//! Memory does not grow with the number of rows. Every error names its file, row and column.
//!
//! ```
//! use prsl_data::{Cell, TableReader};
//!
//! let mut table = TableReader::csv("weather=rain,alarm\n0.9,\n".as_bytes(), "beliefs.csv")?;
//! assert_eq!(table.columns(), ["weather=rain", "alarm"]);
//! while let Some(chunk) = table.read_chunk(1000)? {
//!     assert_eq!(chunk.cell(0, 0).number()?, Some(0.9));
//!     assert_eq!(chunk.cell(0, 1), Cell::Missing);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod arff;
mod arrays;
mod bad_rows;
mod beliefs;
mod cell;
mod columns;
mod csv;
mod dialect;
mod error;
mod ids;
pub mod import;
mod labeled;
mod mulan;
mod output;
mod parquet;
mod source;
mod table;
mod truths;
mod writer;

pub use arff::{ArffReader, ArffValue, Attribute, AttributeKind, parse_arff};
pub use bad_rows::BadRow;
pub use beliefs::{BeliefOptions, BeliefReader};
pub use cell::Cell;
pub use csv::MAX_RECORD_BYTES;
pub use dialect::CsvDialect;
pub use error::{
    ArffProblem, CellProblem, ColumnsProblem, CsvProblem, Error, HeaderProblem, ImportProblem, MulanProblem,
    Result, RowProblem, WriteProblem, XmlProblem,
};
pub use labeled::{LabeledReader, LabeledRows};
pub use mulan::{MulanDataset, MulanLabel, MulanLabels, MulanRow, parse_mulan_labels, read_mulan};
pub use output::Target;
pub use table::{Chunk, TableReader, parse_csv, parse_parquet};
pub use truths::{Key, RowColumns, TruthOptions, TruthReader};
pub use writer::{Column, ColumnKind, ColumnSpec, Format, TableWriter};
