//! Figures for prsl, as SVG that needs nothing from elsewhere: no scripts, no fonts, no files.
//!
//! | type | shows |
//! |---|---|
//! | [`ReliabilityDiagram`] | how often what was predicted came true, before and after the rules |
//! | [`LearningCurve`] | scores over the steps of learning, and the best step |
//! | [`BarChart`] | a number for each rule, such as how much it moves the answers |
//! | [`RuleGraph`] | which rules tie which labels together |
//!
//! Every figure has a title and a description for those who do not see it, brings its own background, and follows the reader's
//! choice of a light or a dark one. The same figure is always the same text.
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
