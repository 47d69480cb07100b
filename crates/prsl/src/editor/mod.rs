//! For editors of model texts: keywords, and the names in a text that may have errors.
//!
//! ```
//! use prsl::editor::Outline;
//!
//! // The last line is not complete yet.
//! let text = "label weather: sun, rain\nlabel ground: dry, wet\nrule 0.9: weather=";
//! let outline = Outline::new(text);
//! let suggested: Vec<String> = outline.suggestions(text.len()).list.into_iter().map(|it| it.text).collect();
//! assert_eq!(suggested, ["sun", "rain"]);
//! ```

mod outline;
mod suggest;

pub use outline::Outline;
pub use suggest::{Suggestion, SuggestionKind, Suggestions};

use crate::notation::{self, MPE, NONE, RESERVED, STATEMENTS};
use crate::syntax::lex;
use crate::text;

/// The words of the text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Keywords {
    /// Words that begin a statement, at the start of a line.
    pub statements: &'static [&'static str],
    /// Words that are names only in quotes.
    pub reserved: &'static [&'static str],
    /// The kinds of calibrators, behind `calibrate LABEL`. Elsewhere they are names.
    pub calibrators: &'static [&'static str],
    /// Words with a meaning in some places: `mpe` behind `=>`, and `none` in `typical` lines. Elsewhere they are names.
    pub contextual: &'static [&'static str],
}

/// The words of the text format. Definitions of its syntax for editors are tested against them.
pub const KEYWORDS: Keywords = Keywords {
    statements: &STATEMENTS,
    reserved: &RESERVED,
    calibrators: &text::CALIBRATORS,
    contextual: &[MPE, NONE],
};

/// A name as it is written in a model text: in quotes if it needs them.
///
/// ```
/// assert_eq!(prsl::editor::name("feet"), "feet");
/// assert_eq!(prsl::editor::name("left foot"), "\"left foot\"");
/// ```
pub fn name(name: &str) -> String {
    notation::name(name)
}

/// All spellings of the signs of the text format, longest first: `<->` is not `<-` and `>`.
pub fn signs() -> impl Iterator<Item = &'static str> {
    lex::SIGNS.iter().map(|(spelling, _)| *spelling)
}
