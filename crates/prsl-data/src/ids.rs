//! Columns that identify the rows of a table.

use crate::error::{ColumnsProblem, Error, Result, nearest};
use crate::table::{Chunk, TableReader};
use crate::writer::{Column, ColumnSpec};

/// The columns that identify rows, and their values in the rows that were read last.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    places: Vec<usize>,
    specs: Vec<ColumnSpec>,
    values: Vec<Column>,
}

impl Ids {
    /// Finds the columns of these names. Returns an error if one is missing.
    pub(crate) fn find(table: &TableReader, names: &[String]) -> Result<Ids> {
        if let Some(name) = names.iter().find(|name| !table.columns().contains(name)) {
            let suggestion = nearest(name, table.columns().iter().map(String::as_str)).map(str::to_owned);
            let problem = ColumnsProblem::NoId { column: name.clone(), suggestion };
            return Err(Error::Columns { file: table.name().to_owned(), problem });
        }
        Ok(Ids::among(table, names))
    }

    /// Finds those of the columns that the table has.
    pub(crate) fn among(table: &TableReader, names: &[String]) -> Ids {
        let mut ids = Ids::default();
        for name in names {
            let place = table.columns().iter().position(|column| column == name);
            if let Some(place) = place.filter(|place| !ids.places.contains(place)) {
                ids.places.push(place);
                ids.specs.push(ColumnSpec::new(name, table.id_kind(place)));
            }
        }
        ids
    }

    /// Their positions in the table.
    pub(crate) fn places(&self) -> &[usize] {
        &self.places
    }

    /// Their names and types.
    pub(crate) fn specs(&self) -> &[ColumnSpec] {
        &self.specs
    }

    /// Takes the values of these rows.
    pub(crate) fn read(&mut self, chunk: &Chunk) {
        let places = self.places.iter().zip(&self.specs);
        self.values = places.map(|(&place, spec)| chunk.id_column(place, spec.kind)).collect();
    }

    /// The values of the rows that were read last.
    pub(crate) fn values(&self) -> &[Column] {
        &self.values
    }
}
