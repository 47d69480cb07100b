//! Tables as beliefs about the labels of a model.

use prsl::{BeliefMatrix, LabelId, Model, Normalize};

use crate::bad_rows::{BadRow, marked};
use crate::cell::Cell;
use crate::columns::{Columns, Meaning, Names, check_missing, find_category, not_a_category};
use crate::error::{CellProblem, ColumnsProblem, Error, Result, RowProblem};
use crate::ids::Ids;
use crate::table::{Chunk, TableReader};
use crate::writer::{Column, ColumnSpec};

/// Options of a [`BeliefReader`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BeliefOptions {
    /// Divide the beliefs about each label by their sum, instead of rejecting those that do not sum to 1. A belief
    /// above 1 in the only given category, such as 85 for 85 %, is always rejected.
    pub normalize: bool,
    /// Skip columns that the model does not know, instead of rejecting them.
    pub ignore_extra: bool,
}

/// Reads a table as beliefs about the labels of a model.
///
/// | column | cells |
/// |---|---|
/// | `label=category` | beliefs |
/// | a category that only one label has, if no label has that name | beliefs |
/// | a label with the categories yes and no | beliefs in yes, or observed categories |
/// | any other label | observed categories |
///
/// Empty cells of a partly given label share the rest of the probability. A label without any cell takes its prior,
/// and a missing column counts as empty cells. Beliefs are calibrated by the model's calibrators; observed categories
/// and priors are not. Use [`Model::without_calibrators`] to read raw beliefs.
///
/// ```
/// use prsl::Model;
/// use prsl_data::{BeliefOptions, BeliefReader, TableReader};
///
/// let model = Model::parse("label hands: high, centered, low\nlabel alarm prior 0.1")?;
/// let table = TableReader::csv("hands=high,alarm\n0.5,yes\n0.2,\n".as_bytes(), "beliefs.csv")?;
/// let mut beliefs = BeliefReader::new(&model, table, BeliefOptions::default())?;
/// let rows = beliefs.next_chunk(1000)?.expect("there are rows");
/// assert_eq!(rows.row(0)[..], [0.5, 0.25, 0.25, 1.0, 0.0]);
/// assert_eq!(rows.row(1)[..], [0.2, 0.4, 0.4, 0.1, 0.9]);
/// assert!(beliefs.next_chunk(1000)?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BeliefReader {
    model: Model,
    table: TableReader,
    columns: Columns,
    normalize: Normalize,
    ids: Ids,
    /// The rows read last, those that are not valid included, and these.
    n_read: usize,
    bad_rows: Vec<BadRow>,
}

impl BeliefReader {
    /// Matches the columns with the labels and categories of the model.
    pub fn new(model: &Model, table: TableReader, options: BeliefOptions) -> Result<BeliefReader> {
        BeliefReader::with_ids(model, table, options, &[])
    }

    /// The same with columns that identify the rows. They are no beliefs, and may be of any type.
    ///
    /// ```
    /// use prsl::Model;
    /// use prsl_data::{BeliefOptions, BeliefReader, Column, TableReader};
    ///
    /// let model = Model::parse("label alarm")?;
    /// let table = TableReader::csv("image,alarm\n007.jpg,0.9\n".as_bytes(), "beliefs.csv")?;
    /// let ids = ["image".to_owned()];
    /// let mut beliefs = BeliefReader::with_ids(&model, table, BeliefOptions::default(), &ids)?;
    /// beliefs.next_chunk(1000)?;
    /// assert_eq!(beliefs.ids(), [Column::Text(vec![Some("007.jpg".to_owned())])]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_ids(
        model: &Model,
        mut table: TableReader,
        options: BeliefOptions,
        ids: &[String],
    ) -> Result<BeliefReader> {
        check_missing(model, &table)?;
        let ids = Ids::find(&table, ids)?;
        let names = Names::new(model);
        if let Some(known) = ids.specs().iter().find(|id| names.knows(&id.name)) {
            let problem = ColumnsProblem::IdIsLabel { column: known.name.clone() };
            return Err(Error::Columns { file: table.name().to_owned(), problem });
        }
        let columns = names.resolve(&table, ids.places(), options.ignore_extra)?;
        let places: Vec<usize> = columns.iter().map(|(column, _)| *column).collect();
        table.select_with_ids(&places, ids.places())?;
        let normalize = if options.normalize { Normalize::Always } else { Normalize::Never };
        Ok(BeliefReader {
            model: model.clone(),
            table,
            columns,
            normalize,
            ids,
            n_read: 0,
            bad_rows: Vec::new(),
        })
    }

    /// Keeps rows that are not valid apart ([`BeliefReader::bad_rows`]), instead of returning an error at the first one.
    ///
    /// Such a row has the wrong number of cells, a cell that is not UTF-8 or cannot be read, or beliefs that are no
    /// distribution. A file that is damaged or cut off is always an error.
    ///
    /// ```
    /// use prsl::Model;
    /// use prsl_data::{BeliefOptions, BeliefReader, TableReader};
    ///
    /// let model = Model::parse("label alarm")?;
    /// let table = TableReader::csv("alarm\n0.9\n1.3\n0.2\n".as_bytes(), "beliefs.csv")?;
    /// let reader = BeliefReader::new(&model, table, BeliefOptions::default())?;
    /// let mut reader = reader.with_bad_rows_apart();
    /// let rows = reader.next_chunk(1000)?.expect("there are rows");
    /// assert_eq!(rows.values(), [0.9, 1.0 - 0.9, 0.2, 0.8]);
    /// let [bad] = reader.bad_rows() else { panic!("one row is not valid") };
    /// assert_eq!((bad.place(), bad.row()), (1, 2));
    /// assert!(bad.error().to_string().starts_with("`beliefs.csv`, row 2: "));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_bad_rows_apart(mut self) -> BeliefReader {
        self.table.keep_bad_rows();
        self
    }

    /// The rows among those read last that are not valid, in order, if they are kept apart.
    pub fn bad_rows(&self) -> &[BadRow] {
        &self.bad_rows
    }

    /// The number of rows read last, those that are not valid included.
    pub fn n_read(&self) -> usize {
        self.n_read
    }

    /// The columns that identify the rows.
    pub fn id_columns(&self) -> &[ColumnSpec] {
        self.ids.specs()
    }

    /// The values of these columns in the rows that were read last, those that are not valid included.
    pub fn ids(&self) -> &[Column] {
        self.ids.values()
    }

    /// The table, for its name and progress.
    pub fn table(&self) -> &TableReader {
        &self.table
    }

    /// The next rows, at least one and at most `max_rows` of them, or `None` at the end.
    ///
    /// If rows that are not valid are kept apart, they count, but are not in the matrix, which may then be empty.
    pub fn next_chunk(&mut self, max_rows: usize) -> Result<Option<BeliefMatrix>> {
        let Some(mut chunk) = self.table.read_chunk(max_rows)? else { return Ok(None) };
        self.ids.read(&chunk);
        self.n_read = chunk.n_rows();
        self.bad_rows = chunk.take_bad_rows();
        let is_bad = marked(self.n_read, &self.bad_rows);
        let mut matrix = BeliefMatrix::new(&self.model);
        let mut row = Row::new(&self.model);
        for index in (0..self.n_read).filter(|&index| !is_bad[index]) {
            row.clear();
            match self.push(&chunk, index, &mut row, &mut matrix) {
                Ok(()) => {}
                Err(error) if self.table.keeps_bad_rows() => {
                    self.bad_rows.push(BadRow::new(index, chunk.first_row() + index as u64, error));
                }
                Err(error) => return Err(error),
            }
        }
        self.bad_rows.sort_by_key(BadRow::place);
        Ok(Some(matrix))
    }

    /// Appends a row of the table to the matrix.
    fn push(&self, chunk: &Chunk, index: usize, row: &mut Row, matrix: &mut BeliefMatrix) -> Result<()> {
        self.fill(chunk, index, row)?;
        let observed: Vec<bool> = row.observed.iter().map(Option::is_some).collect();
        matrix.push_with_observed(&row.cells, &observed, self.normalize).map_err(|cause| Error::Row {
            file: self.table.name().to_owned(),
            row: chunk.first_row() + index as u64,
            problem: RowProblem::Belief(Box::new(cause)),
        })
    }

    /// Reads the cells of a row.
    fn fill(&self, chunk: &Chunk, index: usize, row: &mut Row) -> Result<()> {
        let number = chunk.first_row() + index as u64;
        for &(column, meaning) in &self.columns {
            let cell = chunk.cell(index, column);
            if cell == Cell::Missing {
                continue;
            }
            self.take(column, meaning, cell, row).map_err(|problem| Error::Cell {
                file: self.table.name().to_owned(),
                row: number,
                column: self.table.columns()[column].clone(),
                problem: Box::new(problem),
            })?;
            self.check_only_one(meaning.label(), row).map_err(|problem| Error::Row {
                file: self.table.name().to_owned(),
                row: number,
                problem,
            })?;
        }
        Ok(())
    }

    fn take(
        &self,
        column: usize,
        meaning: Meaning,
        cell: Cell<'_>,
        row: &mut Row,
    ) -> std::result::Result<(), CellProblem> {
        let id = meaning.label();
        let label = self.model.label(id);
        let (start, decimal) = (self.model.block(id).start, self.table.decimal());
        let place = match meaning {
            Meaning::Category(_, category) => start + category.index(),
            Meaning::Label(_) => match (cell, find_category(label, cell)) {
                (_, Some(category)) => {
                    row.observed[id.index()] = Some(column);
                    row.cells[self.model.block(id)].fill(Some(0.0));
                    row.cells[start + category.index()] = Some(1.0);
                    return Ok(());
                }
                (Cell::Text(text), None) if label.is_binary() && cell.number_with(decimal).is_err() => {
                    let also = " or the probability of `yes`";
                    return Err(not_a_category(label, Cell::Text(text), also));
                }
                _ if label.is_binary() => start,
                _ => return Err(not_a_category(label, cell, "")),
            },
        };
        let value = cell.number_with(decimal)?.expect("only cells that are not missing get here");
        if value < 0.0 {
            return Err(CellProblem::Negative { value });
        }
        if label.classifier().is_none() {
            let cause = prsl::Error::Latent { label: label.name().to_owned() };
            return Err(CellProblem::Latent(Box::new(cause)));
        }
        row.believed[id.index()] = Some(column);
        row.cells[place] = Some(value);
        Ok(())
    }

    fn check_only_one(&self, label: LabelId, row: &Row) -> std::result::Result<(), RowProblem> {
        if let (Some(observed), Some(believed)) = (row.observed[label.index()], row.believed[label.index()]) {
            let column = |column: usize| self.table.columns()[column].clone();
            let (observed, believed) = (column(observed), column(believed));
            let label = self.model.label(label).name().to_owned();
            return Err(RowProblem::ObservedAndBelieved { label, observed, believed });
        }
        Ok(())
    }
}

impl Meaning {
    fn label(self) -> LabelId {
        match self {
            Meaning::Label(label) | Meaning::Category(label, _) => label,
        }
    }
}

/// A parsed row: a cell per category, and for each label the column of its observation or belief.
struct Row {
    cells: Vec<Option<f64>>,
    observed: Vec<Option<usize>>,
    believed: Vec<Option<usize>>,
}

impl Row {
    fn new(model: &Model) -> Row {
        let n_labels = model.labels().len();
        Row {
            cells: vec![None; model.n_categories()],
            observed: vec![None; n_labels],
            believed: vec![None; n_labels],
        }
    }

    fn clear(&mut self) {
        self.cells.fill(None);
        self.observed.fill(None);
        self.believed.fill(None);
    }
}
