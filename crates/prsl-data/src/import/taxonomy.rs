//! Taxonomies: tables of children and their parents.

use std::collections::{HashMap, HashSet};

use prsl::Model;

use super::{build, implication};
use crate::cell::Cell;
use crate::error::{CellProblem, ColumnsProblem, Error, Result};
use crate::table::TableReader;

/// Number of rows read at a time.
const CHUNK_ROWS: usize = 4096;

/// Reads a taxonomy: a table with the columns `child` and `parent`. Each name is a yes/no label, and each child implies its
/// parents. A row without a parent is a root. A child may have several parents, one per row.
///
/// ```
/// use prsl_data::{TableReader, import};
///
/// let table = TableReader::csv("child,parent\nanimal,\ndog,animal\n".as_bytes(), "taxonomy.csv")?;
/// let model = import::taxonomy(table)?;
/// assert_eq!(model.to_string(), "label animal\nlabel dog\n\nrule 1: dog -> animal\n");
/// # Ok::<(), prsl_data::Error>(())
/// ```
pub fn taxonomy(mut table: TableReader) -> Result<Model> {
    let columns = ["child", "parent"]
        .map(|name| table.columns().iter().position(|column| column.trim().eq_ignore_ascii_case(name)));
    let [Some(child), Some(parent)] = columns else {
        let problem = match table.other_delimiter() {
            Some(delimiter) => ColumnsProblem::OtherDelimiter { delimiter },
            None => ColumnsProblem::NotATaxonomy { columns: table.columns().to_vec() },
        };
        return Err(Error::Columns { file: table.name().to_owned(), problem });
    };
    table.select(&[child, parent])?;
    let mut taxonomy = Taxonomy::default();
    while let Some(chunk) = table.read_chunk(CHUNK_ROWS)? {
        for row in 0..chunk.n_rows() {
            let [name, above] = [child, parent].map(|column| named(chunk.cell(row, column)));
            taxonomy.add(name, above).map_err(|(is_parent, problem)| Error::Cell {
                file: table.name().to_owned(),
                row: chunk.first_row() + row as u64,
                column: table.columns()[if is_parent { parent } else { child }].clone(),
                problem: Box::new(problem),
            })?;
        }
    }
    taxonomy.check_cycles().map_err(|problem| Error::Columns { file: table.name().to_owned(), problem })?;
    let edges = taxonomy.edges.iter().map(|&(child, parent)| (1.0, implication(child, parent)));
    build(table.name(), taxonomy.names.clone(), edges)
}

/// The name in a cell.
fn named(cell: Cell<'_>) -> Option<String> {
    match cell {
        Cell::Missing => None,
        Cell::Text(text) => Some(text.trim().to_owned()).filter(|name| !name.is_empty()),
        Cell::Number(number) => Some(number.to_string()),
    }
}

#[derive(Default)]
struct Taxonomy {
    names: Vec<String>,
    places: HashMap<String, usize>,
    /// Pairs of a child and a parent.
    edges: Vec<(usize, usize)>,
    seen: HashSet<(usize, usize)>,
}

impl Taxonomy {
    /// Adds a row. An error tells whether it is about the parent.
    fn add(
        &mut self,
        child: Option<String>,
        parent: Option<String>,
    ) -> std::result::Result<(), (bool, CellProblem)> {
        let Some(child) = child else { return Err((false, CellProblem::NoName)) };
        if parent.as_ref() == Some(&child) {
            return Err((true, CellProblem::OwnParent { name: child }));
        }
        let child = self.place(child);
        let Some(parent) = parent else { return Ok(()) };
        let edge = (child, self.place(parent));
        if self.seen.insert(edge) {
            self.edges.push(edge);
        }
        Ok(())
    }

    fn place(&mut self, name: String) -> usize {
        let next = self.names.len();
        let place = *self.places.entry(name.clone()).or_insert(next);
        if place == next {
            self.names.push(name);
        }
        place
    }

    /// Returns an error if a name is above itself. Removes names without children until none is left.
    fn check_cycles(&self) -> std::result::Result<(), ColumnsProblem> {
        let mut n_children = vec![0_usize; self.names.len()];
        let mut parents = vec![Vec::new(); self.names.len()];
        for &(child, parent) in &self.edges {
            n_children[parent] += 1;
            parents[child].push(parent);
        }
        let mut free: Vec<usize> = (0..self.names.len()).filter(|&name| n_children[name] == 0).collect();
        while let Some(name) = free.pop() {
            for &parent in &parents[name] {
                n_children[parent] -= 1;
                if n_children[parent] == 0 {
                    free.push(parent);
                }
            }
        }
        let Some(start) = n_children.iter().position(|&n| n > 0) else { return Ok(()) };
        Err(ColumnsProblem::Cycle { names: self.cycle(start, &n_children, &parents) })
    }

    /// The names of a cycle. Every name that has children left leads to one: its left children, one after the other.
    fn cycle(&self, start: usize, n_children: &[usize], parents: &[Vec<usize>]) -> Vec<String> {
        let mut child_of = HashMap::new();
        for (child, above) in parents.iter().enumerate().filter(|(child, _)| n_children[*child] > 0) {
            above.iter().for_each(|&parent| {
                child_of.entry(parent).or_insert(child);
            });
        }
        let (mut path, mut at) = (Vec::new(), start);
        let mut steps: HashMap<usize, usize> = HashMap::new();
        while let Some(&below) = child_of.get(&at) {
            if let Some(&first) = steps.get(&at) {
                return path[first..].iter().map(|&place: &usize| self.names[place].clone()).collect();
            }
            steps.insert(at, path.len());
            path.push(at);
            at = below;
        }
        vec![self.names[start].clone()]
    }
}
