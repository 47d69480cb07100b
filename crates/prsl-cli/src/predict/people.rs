//! Answers as a table for people: the most probable category of each label, with its probability.

use std::fmt::Write as _;

use anyhow::Result;
use prsl::{Label, Model};
use prsl_data::{Column, ColumnSpec};
use unicode_width::UnicodeWidthStr;

use crate::output;
use crate::progress::counted;
use crate::style::{self, styled};

/// Columns that people do not need; `--format csv` has them.
const HIDDEN: [&str; 7] = ["engine", "mpe_engine", "optimal", "gap", "log_weight", "sweeps", "residual"];
/// Spaces between columns.
const GAP: usize = 2;
/// Default number of decimals.
const DIGITS: usize = 3;

/// A table that is printed in parts.
pub struct PeopleTable {
    columns: Vec<Shown>,
    /// Chosen when the first rows are printed.
    widths: Vec<usize>,
    /// The width of the terminal.
    limit: Option<usize>,
    digits: usize,
    n_hidden_labels: usize,
}

/// A column that is shown.
struct Shown {
    title: String,
    /// Whether it may be left out, if the terminal is narrow.
    is_label: bool,
    source: Source,
    /// The width of its longest cell, as far as it is known before the rows.
    width: usize,
}

/// Where a cell comes from.
enum Source {
    /// A column of the answers.
    Column(usize),
    /// The exponential of a column.
    Exponential(usize),
    /// The largest of the marginals that start at this column, and the names of their categories.
    Best(usize, Vec<String>),
}

impl PeopleTable {
    /// A table of these columns, of which the first `n_ids` identify the rows. After them, the marginals of all labels, if
    /// there are any, start at column `marginals`, and the categories of an assignment at column `assignment`.
    pub fn new(
        model: &Model,
        specs: &[ColumnSpec],
        n_ids: usize,
        [marginals, assignment]: [Option<usize>; 2],
        digits: Option<usize>,
        limit: Option<usize>,
    ) -> PeopleTable {
        let digits = digits.unwrap_or(DIGITS);
        let id = |index: usize| Shown::new(&specs[index].name, Source::Column(index));
        let mut columns: Vec<Shown> = (0..n_ids).map(id).collect();
        let mut at = n_ids;
        while at < specs.len() {
            if marginals == Some(at - n_ids) {
                for label in model.labels() {
                    columns.push(Shown::best(label, at, digits));
                    at += label.n_categories();
                }
                continue;
            }
            let label = assignment.and_then(|start| model.labels().get((at - n_ids).checked_sub(start)?));
            columns.extend(Shown::column(&specs[at].name, at, label));
            at += 1;
        }
        PeopleTable { columns, widths: Vec::new(), limit, digits, n_hidden_labels: 0 }
    }

    /// Prints rows, the first ones below a header.
    pub fn print(&mut self, columns: &[Column]) -> Result<()> {
        let n_rows = columns.first().map_or(0, Column::len);
        let cells =
            |shown: &Shown| (0..n_rows).map(|row| shown.source.cell(columns, row, self.digits)).collect();
        let mut cells: Vec<Vec<String>> = self.columns.iter().map(cells).collect();
        let mut text = String::new();
        if self.widths.is_empty() {
            self.fit(&mut cells);
            let titles = self.columns.iter().map(|shown| shown.title.as_str());
            let _ = writeln!(text, "{}", styled(style::STRONG, self.line(titles)));
        }
        for row in 0..n_rows {
            let _ = writeln!(text, "{}", self.line(cells.iter().map(|column| column[row].as_str())));
        }
        output::print(&text)
    }

    /// A note about labels that did not fit.
    pub fn note(&self) -> Option<String> {
        let n = self.n_hidden_labels;
        (n > 0).then(|| {
            let (labels, are) = (counted(n as u64, "label"), if n == 1 { "does" } else { "do" });
            format!("{labels} {are} not fit the terminal; `--format csv` has all of them")
        })
    }

    /// Chooses the widths, and leaves out labels from the end until the table fits the terminal.
    fn fit(&mut self, cells: &mut Vec<Vec<String>>) {
        let width = |(shown, cells): (&Shown, &Vec<String>)| {
            let longest = cells.iter().map(|cell| cell.width()).max().unwrap_or(0);
            longest.max(shown.width).max(shown.title.width())
        };
        let mut widths: Vec<usize> = self.columns.iter().zip(cells.iter()).map(width).collect();
        let total =
            |widths: &[usize]| widths.iter().map(|width| width + GAP).sum::<usize>().saturating_sub(GAP);
        while self.limit.is_some_and(|limit| total(&widths) > limit) {
            // At least one label is shown.
            let labels: Vec<usize> =
                (0..self.columns.len()).filter(|&index| self.columns[index].is_label).collect();
            let (Some(&last), true) = (labels.last(), labels.len() > 1) else { break };
            self.columns.remove(last);
            widths.remove(last);
            cells.remove(last);
            self.n_hidden_labels += 1;
        }
        self.widths = widths;
    }

    /// Cells in columns. Text is to the left and numbers are to the right.
    fn line<'c>(&self, cells: impl Iterator<Item = &'c str>) -> String {
        let mut line = String::new();
        for (index, (cell, shown)) in cells.zip(&self.columns).enumerate() {
            let gap = " ".repeat(self.widths[index].saturating_sub(cell.width()));
            line.push_str(if index == 0 { "" } else { "  " });
            match shown.is_number() {
                true => line.extend([gap.as_str(), cell]),
                false => line.extend([cell, gap.as_str()]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

impl Shown {
    /// The most probable category of a label.
    fn best(label: &Label, start: usize, digits: usize) -> Shown {
        let longest = label.categories().iter().map(|category| category.width()).max().unwrap_or(0);
        Shown {
            title: label.name().to_owned(),
            is_label: true,
            source: Source::Best(start, label.categories().to_vec()),
            width: longest + " 0.".len() + digits,
        }
    }

    /// Any other column; `label` if it has the categories of one.
    fn column(name: &str, index: usize, label: Option<&Label>) -> Option<Shown> {
        if let Some(label) = label {
            let width = label.categories().iter().map(|category| category.width()).max().unwrap_or(0);
            return Some(Shown {
                title: name.to_owned(),
                is_label: true,
                source: Source::Column(index),
                width,
            });
        }
        let ours = name.trim_start_matches("prsl_");
        if HIDDEN.contains(&ours) {
            return None;
        }
        Some(match ours {
            "log_probability" => Shown::new("probability", Source::Exponential(index)),
            "log_evidence" | "log_evidence_bethe" => {
                Shown::new(&ours.replace('_', " "), Source::Column(index))
            }
            _ => Shown::new(name, Source::Column(index)),
        })
    }

    /// A column that is not about a label.
    fn new(title: &str, source: Source) -> Shown {
        Shown { title: title.to_owned(), is_label: false, source, width: 0 }
    }

    fn is_number(&self) -> bool {
        let is_numeric = |title: &str| {
            ["row", "rank", "sample", "probability"].contains(&title) || title.starts_with("log evidence")
        };
        !self.is_label && is_numeric(&self.title)
    }
}

impl Source {
    fn cell(&self, columns: &[Column], row: usize, digits: usize) -> String {
        let number = |index: usize| match &columns[index] {
            Column::Number(values) => values[row],
            _ => None,
        };
        let text = match self {
            Source::Column(index) => match &columns[*index] {
                Column::Number(values) => values[row].map(|value| format!("{value:.digits$}")),
                column => column.text(row),
            },
            Source::Exponential(index) => number(*index).map(|value| format!("{:.digits$}", value.exp())),
            Source::Best(start, categories) => {
                let marginals: Option<Vec<f64>> =
                    (0..categories.len()).map(|it| number(start + it)).collect();
                marginals.map(|marginals| {
                    let best = (1..marginals.len())
                        .fold(0, |best, it| if marginals[it] > marginals[best] { it } else { best });
                    format!("{} {:.digits$}", categories[best], marginals[best])
                })
            }
        };
        text.map_or("-".to_owned(), |text| text.replace(['\n', '\r', '\t'], " "))
    }
}

/// The width of the terminal, if standard output is one.
pub fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0))
}

#[cfg(test)]
mod tests {
    use prsl_data::ColumnKind;

    use super::*;

    fn table(limit: Option<usize>) -> (PeopleTable, Vec<Column>) {
        let model = Model::parse("label feet: gait, standing\nlabel alarm").expect("a model");
        let number = |name: &str| ColumnSpec::new(name, ColumnKind::Number);
        let specs = [
            ColumnSpec::new("row", ColumnKind::Integer),
            number("feet=gait"),
            number("feet=standing"),
            number("alarm=yes"),
            number("alarm=no"),
            ColumnSpec::new("engine", ColumnKind::Text),
            ColumnSpec::new("status", ColumnKind::Text),
        ];
        let text = |texts: [&str; 2]| Column::Text(texts.map(|text| Some(text.to_owned())).to_vec());
        let columns = vec![
            Column::Integer(vec![Some(9), Some(10)]),
            Column::Number(vec![Some(0.25), None]),
            Column::Number(vec![Some(0.75), None]),
            Column::Number(vec![Some(0.5), None]),
            Column::Number(vec![Some(0.5), None]),
            text(["junction_tree", "junction_tree"]),
            text(["ok", "impossible"]),
        ];
        (PeopleTable::new(&model, &specs, 1, [Some(0), None], Some(2), limit), columns)
    }

    fn lines(limit: Option<usize>) -> (Vec<String>, Option<String>) {
        let (mut table, columns) = table(limit);
        let cells = |shown: &Shown| (0..2).map(|row| shown.source.cell(&columns, row, 2)).collect();
        let mut cells: Vec<Vec<String>> = table.columns.iter().map(cells).collect();
        table.fit(&mut cells);
        let rows = (0..2).map(|row| table.line(cells.iter().map(|column| column[row].as_str())));
        let titles = table.line(table.columns.iter().map(|shown| shown.title.as_str()));
        (std::iter::once(titles).chain(rows).collect(), table.note())
    }

    #[test]
    fn labels_have_their_most_probable_category() {
        let (lines, note) = lines(None);
        assert_eq!(
            lines,
            [
                "row  feet           alarm     status",
                "  9  standing 0.75  yes 0.50  ok",
                " 10  -              -         impossible",
            ]
        );
        assert_eq!(note, None);
    }

    #[test]
    fn narrow_terminals_show_fewer_labels() {
        let (lines, note) = lines(Some(30));
        assert_eq!(lines[1], "  9  standing 0.75  ok");
        assert_eq!(
            note.as_deref(),
            Some("1 label does not fit the terminal; `--format csv` has all of them")
        );
    }
}
