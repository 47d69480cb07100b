//! Figures for prsl, as self-contained SVG: no scripts, no fonts, no files.
//!
//! | type | shows |
//! |---|---|
//! | [`ReliabilityDiagram`] | predicted probabilities against observed frequencies, with and without the rules |
//! | [`LearningCurve`] | scores over optimizer steps, and the best step |
//! | [`BarChart`] | a number for each rule, such as its influence on the posterior |
//! | [`RuleGraph`] | which rules connect which labels |
//!
//! Every figure has a title and a description for screen readers, and its own background. It follows the reader's
//! choice of a light or a dark theme. The same figure is always the same text.
//!
//! ```
//! use prsl_plot::{Bar, BarChart};
//!
//! let chart = BarChart {
//!     title: "Influence of each rule".to_owned(),
//!     x_label: "mean of the largest change of a marginal".to_owned(),
//!     bars: vec![Bar { name: "wet <- rain".to_owned(), value: Some(0.31) }],
//! };
//! let svg = chart.to_svg();
//! assert!(svg.starts_with("<svg ") && svg.contains("wet &lt;- rain"));
//! ```
#![forbid(unsafe_code)]

mod axis;
mod bars;
mod curve;
mod graph;
mod layout;
mod reliability;
mod svg;

pub use bars::{Bar, BarChart};
pub use curve::{LearningCurve, Series};
pub use graph::RuleGraph;
pub use reliability::ReliabilityDiagram;
pub use svg::escape;
