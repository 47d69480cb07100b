//! Tables as true categories of the labels of a model.

use prsl::{CategoryId, Label, Model, Truth};

use crate::columns::{Columns, Meaning, Names, check_missing, find_category, not_a_category};
use crate::error::{CellProblem, ColumnsProblem, Error, Result};
use crate::table::{Cell, TableReader};

/// Options of a [`TruthReader`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TruthOptions {
    /// Skip columns that are not labels of the model, instead of rejecting them.
    pub ignore_extra: bool,
}

/// Reads a table as true categories: one column per label with names of categories; empty cells are unknown.
///
/// For labels with the categories yes and no, `1` and `true` are yes, `0` and `false` no. A missing column is a
/// column of empty cells.
///
/// ```
/// use prsl::Model;
/// use prsl_data::{TableReader, TruthOptions, TruthReader};
///
/// let model = Model::parse("label hands: high, centered, low\nlabel alarm")?;
/// let table = TableReader::csv("alarm,hands\n1,low\nno,\n".as_bytes(), "truth.csv")?;
/// let mut truths = TruthReader::new(&model, table, TruthOptions::default())?;
/// let rows = truths.next_chunk(1000)?.expect("there are rows");
/// assert_eq!(rows, [[Some(2), Some(0)], [None, Some(1)]]);
/// assert!(truths.next_chunk(1000)?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TruthReader {
    model: Model,
    table: TableReader,
    columns: Columns,
    /// The column of weights, and the weights read so far.
    weights: Option<(usize, Vec<f64>)>,
}

impl TruthReader {
    /// Finds the labels among the columns.
    pub fn new(model: &Model, mut table: TableReader, options: TruthOptions) -> Result<TruthReader> {
        check_missing(model, &table)?;
        let columns = Names::of_labels(model).resolve(table.columns(), options.ignore_extra, table.name())?;
        table.select(&columns.iter().map(|(column, _)| *column).collect::<Vec<_>>())?;
        Ok(TruthReader { model: model.clone(), table, columns, weights: None })
    }

    /// The same with a column of row weights: numbers of 0 or more.
    ///
    /// ```
    /// use prsl::Model;
    /// use prsl_data::{TableReader, TruthOptions, TruthReader};
    ///
    /// let model = Model::parse("label alarm")?;
    /// let table = TableReader::csv("alarm,weight\n1,2.5\nno,0\n".as_bytes(), "truth.csv")?;
    /// let mut truths = TruthReader::weighted(&model, table, TruthOptions::default(), "weight")?;
    /// truths.next_chunk(1000)?;
    /// assert_eq!(truths.weights(), Some(&[2.5, 0.0][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn weighted(
        model: &Model,
        mut table: TableReader,
        options: TruthOptions,
        column: &str,
    ) -> Result<TruthReader> {
        check_missing(model, &table)?;
        let mut names = table.columns().to_vec();
        let Some(weights) = names.iter().position(|name| name == column) else {
            let problem = ColumnsProblem::NoWeights { column: column.to_owned() };
            return Err(Error::Columns { file: table.name().to_owned(), problem });
        };
        names.remove(weights);
        let mut columns = Names::of_labels(model).resolve(&names, options.ignore_extra, table.name())?;
        columns.iter_mut().filter(|(column, _)| *column >= weights).for_each(|(column, _)| *column += 1);
        table.select(&columns.iter().map(|(column, _)| *column).chain([weights]).collect::<Vec<_>>())?;
        Ok(TruthReader { model: model.clone(), table, columns, weights: Some((weights, Vec::new())) })
    }

    /// The weights of all rows read so far, if there is a column of weights.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_ref().map(|(_, weights)| &weights[..])
    }

    /// The table, for its name and progress.
    pub fn table(&self) -> &TableReader {
        &self.table
    }

    /// The next rows, at least one and at most `max_rows` of them, or `None` at the end.
    pub fn next_chunk(&mut self, max_rows: usize) -> Result<Option<Vec<Truth>>> {
        let Some(chunk) = self.table.read_chunk(max_rows)? else { return Ok(None) };
        let mut rows = vec![Truth::unknown(self.model.labels().len()); chunk.n_rows()];
        let wrong = |index: usize, column: usize, problem: CellProblem| Error::Cell {
            file: self.table.name().to_owned(),
            row: chunk.first_row() + index as u64,
            column: self.table.columns()[column].clone(),
            problem: Box::new(problem),
        };
        for (index, row) in rows.iter_mut().enumerate() {
            for &(column, meaning) in &self.columns {
                let Meaning::Label(label) = meaning else { continue };
                let truth = category(self.model.label(label), chunk.cell(index, column));
                row.set(label, truth.map_err(|problem| wrong(index, column, problem))?);
            }
            if let Some((column, weights)) = &mut self.weights {
                let weight = weight(chunk.cell(index, *column));
                weights.push(weight.map_err(|problem| wrong(index, *column, problem))?);
            }
        }
        Ok(Some(rows))
    }
}

/// The weight of a row.
fn weight(cell: Cell<'_>) -> std::result::Result<f64, CellProblem> {
    match cell.number()? {
        Some(weight) if weight >= 0.0 => Ok(weight),
        Some(weight) => Err(CellProblem::NotAWeight { value: weight.to_string() }),
        None => Err(CellProblem::NotAWeight { value: "nothing".to_owned() }),
    }
}

/// The category that a cell names.
fn category(label: &Label, cell: Cell<'_>) -> std::result::Result<Option<CategoryId>, CellProblem> {
    let (yes, no) = (CategoryId::new(0), CategoryId::new(1));
    if cell == Cell::Missing {
        return Ok(None);
    }
    if let Some(category) = find_category(label, cell) {
        return Ok(Some(category));
    }
    if !label.is_binary() {
        return Err(not_a_category(label, cell, ""));
    }
    match cell {
        Cell::Text(text) if text.eq_ignore_ascii_case("true") => Ok(Some(yes)),
        Cell::Text(text) if text.eq_ignore_ascii_case("false") => Ok(Some(no)),
        cell => match cell.number() {
            Ok(Some(1.0)) => Ok(Some(yes)),
            Ok(Some(0.0)) => Ok(Some(no)),
            _ => Err(not_a_category(label, cell, ", 1 or 0, true or false")),
        },
    }
}
