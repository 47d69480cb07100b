//! Rules of other programs, as models.
//!
//! | function | reads |
//! |---|---|
//! | [`r`] | rule strings of the R package, such as `A, B <- !C, D` |
//! | [`mulan`] | a Mulan label file: a nested label implies the label that it is nested in |
//! | [`dimacs`] | a formula in conjunctive normal form, in the format DIMACS |
//! | [`taxonomy`] | a table of children and their parents |
//!
//! Names become labels with the categories yes and no. Errors name file, line and column.
//!
//! ```
//! let model = prsl_data::import::r("rain, snow <- !sun, cold\n".as_bytes(), "rules.txt", None, 0.9)?;
//! assert_eq!(model.to_string(), "\
//! label rain
//! label snow
//! label sun
//! label cold
//!
//! rule 0.9: !sun & cold -> rain | snow
//! ");
//! # Ok::<(), prsl_data::Error>(())
//! ```

mod dimacs;
mod r;
mod taxonomy;

use std::io::Read;

use prsl::model::Atom;
use prsl::{Body, CategoryId, Formula, Label, LabelId, Model, Rule};

use crate::error::{Error, ImportProblem, Result};
use crate::mulan::MulanLabels;
use crate::source::Source;

pub use dimacs::dimacs;
pub use r::r;
pub use taxonomy::taxonomy;

/// Maximum length of a file, that of a model text.
const MAX_BYTES: usize = prsl::Document::MAX_BYTES;

/// Reads a Mulan label file as a model: each label is a yes/no label, and a nested label implies the one it is nested in.
///
/// ```
/// use prsl_data::{MulanLabels, import};
///
/// let xml = r#"<labels><label name="music"><label name="jazz"/></label></labels>"#;
/// let model = import::mulan(&MulanLabels::new(xml.as_bytes(), "music.xml")?)?;
/// assert_eq!(model.to_string(), "label music\nlabel jazz\n\nrule 1: jazz -> music\n");
/// # Ok::<(), prsl_data::Error>(())
/// ```
pub fn mulan(labels: &MulanLabels) -> Result<Model> {
    let names = labels.labels().iter().map(|label| label.name.clone());
    let parents = labels.labels().iter().enumerate();
    let edges = parents.filter_map(|(child, label)| Some((child, label.parent?)));
    build("label file", names, edges.map(|(child, parent)| (1.0, implication(child, parent))))
}

/// `child -> parent`.
fn implication(child: usize, parent: usize) -> Formula {
    yes(child).implies(yes(parent))
}

/// Yes of a yes/no label.
fn yes(label: usize) -> Formula {
    Formula::atom(Atom::new(LabelId::new(label), CategoryId::new(0)))
}

/// A model of yes/no labels and rules with their probabilities.
fn build(
    file: &str,
    names: impl IntoIterator<Item = String>,
    rules: impl IntoIterator<Item = (f64, Formula)>,
) -> Result<Model> {
    let labels = names.into_iter().map(Label::binary);
    let builder = labels.fold(Model::builder(), |builder, label| builder.add_label(label));
    let rules =
        rules.into_iter().map(|(probability, formula)| Rule::new(probability, Body::Formula(formula)));
    let builder = rules.fold(builder, |builder, rule| builder.add_rule(rule));
    builder.build().map_err(|cause| Error::Model { file: file.to_owned(), cause: Box::new(cause) })
}

/// The text of a file.
fn text(mut source: Source) -> Result<String> {
    source.skip_byte_order_mark()?;
    let mut bytes = Vec::new();
    loop {
        let buffer = source.fill()?;
        if buffer.is_empty() {
            break;
        }
        let length = buffer.len();
        bytes.extend_from_slice(buffer);
        source.consume(length);
        if bytes.len() > MAX_BYTES {
            return Err(Place::START.error(&source.name, ImportProblem::TooLong { limit: MAX_BYTES }));
        }
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let valid = std::str::from_utf8(valid).expect("it is valid up to there");
        let line = valid.matches('\n').count() as u64 + 1;
        let start = valid.rfind('\n').map_or(0, |newline| newline + 1);
        let column = valid[start..].chars().count() as u64 + 1;
        Place { line, column }.error(&source.name, ImportProblem::NotUtf8)
    })
}

fn text_of(reader: impl Read + Send + 'static, name: &str) -> Result<String> {
    text(Source::new(reader, name))
}

/// A place in a text; line and column count from 1.
#[derive(Clone, Copy)]
struct Place {
    line: u64,
    column: u64,
}

impl Place {
    const START: Place = Place { line: 1, column: 1 };

    /// The place of a part of a line.
    fn of(line: u64, text: &str, part: &str) -> Place {
        let offset = part.as_ptr() as usize - text.as_ptr() as usize;
        Place { line, column: text[..offset].chars().count() as u64 + 1 }
    }

    fn error(self, file: &str, problem: ImportProblem) -> Error {
        Error::Import {
            file: file.to_owned(),
            line: self.line,
            column: self.column,
            problem: Box::new(problem),
        }
    }
}
