//! Matches the columns of a table with the labels and categories of a model.

use std::collections::HashMap;

use prsl::{CategoryId, Label, LabelId, Model};

use crate::cell::Cell;
use crate::error::{CellProblem, ColumnsProblem, Error, Result, is_missing_code, listed, nearest, shown};
use crate::table::TableReader;

/// The subject of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Meaning {
    /// A label: an observed category, or the probability of yes.
    Label(LabelId),
    /// One category of a label.
    Category(LabelId, CategoryId),
}

/// The columns that are used, with their position in the table.
pub(crate) type Columns = Vec<(usize, Meaning)>;

/// The names of a model that columns can have.
pub(crate) struct Names<'a> {
    model: &'a Model,
    labels: HashMap<&'a str, LabelId>,
    categories: HashMap<&'a str, Vec<(LabelId, CategoryId)>>,
    /// Whether columns may be named by categories, or only by labels.
    with_categories: bool,
}

impl<'a> Names<'a> {
    /// All names of the model.
    pub(crate) fn new(model: &'a Model) -> Names<'a> {
        let mut categories: HashMap<_, Vec<_>> = HashMap::new();
        for id in model.label_ids() {
            for (index, category) in model.label(id).categories().iter().enumerate() {
                categories.entry(category.as_str()).or_default().push((id, CategoryId::new(index)));
            }
        }
        Names { categories, with_categories: true, ..Names::of_labels(model) }
    }

    /// The names of labels only.
    pub(crate) fn of_labels(model: &'a Model) -> Names<'a> {
        let labels = model.label_ids().map(|id| (model.label(id).name(), id)).collect();
        Names { model, labels, categories: HashMap::new(), with_categories: false }
    }

    /// Finds the meaning of each column, except those that are `aside`. Rejects unknown, ambiguous and duplicate columns.
    /// The index of a data frame is skipped, unless the model has a label of that name.
    pub(crate) fn resolve(
        &self,
        table: &TableReader,
        aside: &[usize],
        ignore_extra: bool,
    ) -> Result<Columns> {
        let n_index = table.index_columns().len();
        let is_index = |index: usize| index < n_index && !self.knows(&table.columns()[index]);
        let used = (0..table.columns().len()).filter(|index| !aside.contains(index) && !is_index(*index));
        let used: Vec<usize> = used.collect();
        let names: Vec<String> = used.iter().map(|&index| table.columns()[index].clone()).collect();
        let mut columns = self.try_resolve(&names, ignore_extra).map_err(|problem| {
            let problem = match (problem, table.other_delimiter()) {
                (ColumnsProblem::Unknown { .. } | ColumnsProblem::NoneKnown { .. }, Some(delimiter)) => {
                    ColumnsProblem::OtherDelimiter { delimiter }
                }
                (problem, _) => problem,
            };
            Error::Columns { file: table.name().to_owned(), problem }
        })?;
        columns.iter_mut().for_each(|(index, _)| *index = used[*index]);
        Ok(columns)
    }

    /// Whether a column has a meaning.
    pub(crate) fn knows(&self, column: &str) -> bool {
        !self.meanings(column).is_empty()
    }

    fn try_resolve(
        &self,
        columns: &[String],
        ignore_extra: bool,
    ) -> std::result::Result<Columns, ColumnsProblem> {
        let mut resolved = Vec::new();
        let mut seen = HashMap::new();
        let mut unknown = Vec::new();
        for (index, column) in columns.iter().enumerate() {
            match self.meanings(column)[..] {
                [] => unknown.push(column),
                [meaning] => {
                    if let Some(first) = seen.insert(self.canonical(meaning), index) {
                        let (first, second) = (columns[first].clone(), column.clone());
                        return Err(ColumnsProblem::Same { first, second });
                    }
                    resolved.push((index, meaning));
                }
                ref several => {
                    let meanings = several.iter().map(|meaning| self.describe(*meaning)).collect();
                    return Err(ColumnsProblem::Ambiguous { column: column.clone(), meanings });
                }
            }
        }
        if resolved.is_empty() && !self.model.labels().is_empty() {
            return Err(ColumnsProblem::NoneKnown { columns: self.with_suggestions(&unknown) });
        }
        match ignore_extra || unknown.is_empty() {
            true => Ok(resolved),
            false => Err(ColumnsProblem::Unknown { columns: self.with_suggestions(&unknown) }),
        }
    }

    /// All meanings of the name.
    fn meanings(&self, name: &str) -> Vec<Meaning> {
        let label = self.labels.get(name).copied();
        let mut meanings: Vec<_> = label.map(Meaning::Label).into_iter().collect();
        if !self.with_categories {
            return meanings;
        }
        for (place, _) in name.match_indices('=') {
            let Some(&label) = self.labels.get(&name[..place]) else { continue };
            let category = self.model.label(label).find_category(&name[place + 1..]);
            meanings.extend(category.map(|category| Meaning::Category(label, category)));
        }
        if label.is_none()
            && let Some(categories) = self.categories.get(name)
        {
            meanings.extend(categories.iter().map(|&(label, category)| Meaning::Category(label, category)));
        }
        meanings
    }

    /// A key that is equal for columns of the same meaning: the probability of yes has two names.
    fn canonical(&self, meaning: Meaning) -> Meaning {
        match meaning {
            Meaning::Label(label) if self.with_categories && self.model.label(label).is_binary() => {
                Meaning::Category(label, CategoryId::new(0))
            }
            other => other,
        }
    }

    fn describe(&self, meaning: Meaning) -> String {
        match meaning {
            Meaning::Label(label) => format!("label `{}`", shown(self.model.label(label).name())),
            Meaning::Category(label, category) => {
                let label = self.model.label(label);
                format!("category `{}` of label `{}`", shown(label.category(category)), shown(label.name()))
            }
        }
    }

    /// Each unknown column with the most similar known name.
    fn with_suggestions(&self, columns: &[&String]) -> Vec<(String, Option<String>)> {
        const MAX_SUGGESTIONS: usize = 50; // comparing all pairs of names is slow
        let mut known: Vec<String> =
            self.model.labels().iter().map(|label| label.name().to_owned()).collect();
        if self.with_categories {
            for label in self.model.labels() {
                known
                    .extend(label.categories().iter().map(|category| format!("{}={category}", label.name())));
            }
            let unique = self.categories.iter().filter(|(_, categories)| categories.len() == 1);
            known.extend(unique.map(|(name, _)| (*name).to_owned()));
        }
        known.sort();
        let suggest = |(index, column): (usize, &&String)| {
            let known = known.iter().map(String::as_str);
            let suggestion = if index < MAX_SUGGESTIONS { nearest(column, known) } else { None };
            ((*column).clone(), suggestion.map(str::to_owned))
        };
        columns.iter().enumerate().map(suggest).collect()
    }
}

/// Rejects texts for missing values that are categories of the model: no cell could contain these categories.
pub(crate) fn check_missing(model: &Model, table: &TableReader) -> Result<()> {
    for label in model.labels() {
        if let Some(code) = table.missing().find(|code| label.find_category(code).is_some()) {
            let problem =
                ColumnsProblem::MissingIsCategory { code: code.to_owned(), label: label.name().to_owned() };
            return Err(Error::Columns { file: table.name().to_owned(), problem });
        }
    }
    Ok(())
}

/// The category named by a cell. A number names the category with the same spelling.
pub(crate) fn find_category(label: &Label, cell: Cell<'_>) -> Option<CategoryId> {
    match cell {
        Cell::Missing => None,
        Cell::Text(text) => label.find_category(text),
        Cell::Number(value) => label.find_category(&value.to_string()),
    }
}

/// The error that a cell names no category. `also` lists other allowed values.
pub(crate) fn not_a_category(label: &Label, cell: Cell<'_>, also: &str) -> CellProblem {
    const MAX_LISTED: usize = 6;
    let text = match cell {
        Cell::Missing => String::new(),
        Cell::Text(text) => text.to_owned(),
        Cell::Number(value) => value.to_string(),
    };
    let categories = label.categories();
    let mut expected = listed(&categories[..categories.len().min(MAX_LISTED)], ", ");
    if categories.len() > MAX_LISTED {
        expected.push_str(&format!(" or another of its {} categories", categories.len()));
    }
    expected.push_str(also);
    // A code for a missing value is not a misspelled category.
    let suggestion = match is_missing_code(&text) {
        true => None,
        false => nearest(&text, categories.iter().map(String::as_str)).map(str::to_owned),
    };
    CellProblem::NotACategory { text, label: label.name().to_owned(), expected, suggestion }
}
