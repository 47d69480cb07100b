//! The labels of a model, and the table that finds labels and categories by their names.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;

use crate::calibrator::Calibrator;
use crate::diagnostic::nearest;
use crate::error::{Error, Result};
use crate::formula::Atom;
use crate::label::{CategoryId, Label, LabelId};
use crate::notation::{name, numbered};

/// Maximum number of meanings that the message about an ambiguous name lists.
const MAX_MEANINGS: usize = 8;

/// The labels of a model in order, with a table of their names and those of their categories.
///
/// A model builds it once and shares it with every model that is edited from it, as long as the labels stay the same.
/// The table has one entry per distinct name, even if many labels have a category of that name.
#[derive(Clone)]
pub(crate) struct Names {
    labels: Vec<Label>,
    /// Positions among all categories at which each label's categories start, and where the last label's end.
    offsets: Vec<usize>,
    meanings: HashMap<Box<str>, Meanings>,
    /// The number of distinct names of categories.
    n_category_names: usize,
}

/// Everything that one name may mean.
#[derive(Clone, Default)]
struct Meanings {
    /// The first label of this name.
    label: Option<LabelId>,
    /// The first category of this name. Most names have no other, so `others` usually allocates nothing.
    category: Option<(LabelId, CategoryId)>,
    /// The other categories of this name, ascending.
    others: Vec<(LabelId, CategoryId)>,
}

impl Meanings {
    fn categories(&self) -> impl Iterator<Item = (LabelId, CategoryId)> {
        self.category.into_iter().chain(self.others.iter().copied())
    }

    /// The first category of this name in one label.
    fn category_of(&self, label: LabelId) -> Option<CategoryId> {
        match self.category {
            Some((first, category)) if first == label => Some(category),
            _ => {
                let place = self.others.partition_point(|&(other, _)| other < label);
                self.others.get(place).filter(|(found, _)| *found == label).map(|&(_, category)| category)
            }
        }
    }
}

/// What a name without its label means in a formula.
pub(crate) enum Bare {
    /// One category.
    Atom(Atom),
    /// Several categories, the first [`MAX_MEANINGS`] of them qualified by their labels.
    Ambiguous(Vec<String>),
    /// A label that is not a yes/no label.
    Label(LabelId),
    /// Nothing.
    Unknown,
}

impl Names {
    /// The labels of a model that is complete. Returns an error if a label is malformed or declared twice.
    pub(crate) fn new(labels: Vec<Label>) -> Result<Self> {
        let names = Self::unchecked(labels);
        names.check()?;
        Ok(names)
    }

    /// The same without checks, for labels that are checked elsewhere.
    pub(crate) fn unchecked(labels: Vec<Label>) -> Self {
        let mut names = Self::default();
        names.labels.reserve(labels.len());
        names.offsets.reserve(labels.len());
        names.meanings.reserve(labels.len());
        labels.into_iter().for_each(|label| names.push(label));
        names
    }

    /// Checks that every label is well formed and that no two have the same name.
    pub(crate) fn check(&self) -> Result<()> {
        for (index, label) in self.labels.iter().enumerate() {
            label.check()?;
            if self.label(label.name()) != Some(LabelId::new(index)) {
                return Err(Error::DuplicateLabel { label: label.name().to_owned() });
            }
        }
        Ok(())
    }

    /// Adds a label. If its name is taken, the name still refers to the first label.
    pub(crate) fn push(&mut self, label: Label) {
        let id = LabelId::new(self.labels.len());
        self.meanings_mut(label.name()).label.get_or_insert(id);
        for (index, category) in label.categories().iter().enumerate() {
            let meanings = self.meanings_mut(category);
            let meaning = (id, CategoryId::new(index));
            if meanings.category.is_none() {
                meanings.category = Some(meaning);
                self.n_category_names += 1;
            } else {
                meanings.others.push(meaning);
            }
        }
        self.offsets.push(self.n_categories() + label.n_categories());
        self.labels.push(label);
    }

    fn meanings_mut(&mut self, name: &str) -> &mut Meanings {
        if !self.meanings.contains_key(name) {
            self.meanings.insert(Box::from(name), Meanings::default());
        }
        self.meanings.get_mut(name).expect("it has just been inserted")
    }

    /// Replaces a label by one with the same name and categories.
    pub(crate) fn replace(&mut self, id: LabelId, label: Label) {
        let before = &mut self.labels[id.index()];
        debug_assert!(before.name() == label.name() && before.categories() == label.categories());
        *before = label;
    }

    /// Sets the calibrator of a label.
    pub(crate) fn set_calibrator(&mut self, id: LabelId, calibrator: Calibrator) {
        let label = self.labels[id.index()].clone().with_calibrator(calibrator);
        self.replace(id, label);
    }

    /// The labels, in order.
    pub(crate) fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// The number of categories of all labels together.
    pub(crate) fn n_categories(&self) -> usize {
        self.offsets[self.labels.len()]
    }

    /// The positions of a label's categories among all categories.
    pub(crate) fn block(&self, label: LabelId) -> Range<usize> {
        self.offsets[label.index()]..self.offsets[label.index() + 1]
    }

    /// The label called `name`.
    pub(crate) fn label(&self, name: &str) -> Option<LabelId> {
        self.meanings.get(name)?.label
    }

    /// The category called `name` of a label.
    pub(crate) fn category(&self, label: LabelId, name: &str) -> Option<CategoryId> {
        self.meanings.get(name)?.category_of(label)
    }

    /// The label called `name`. The error names the `context` and suggests a similar label.
    pub(crate) fn find_label(&self, name: &str, context: &dyn Fn() -> String) -> Result<LabelId> {
        let known = || self.labels.iter().map(Label::name);
        self.label(name).ok_or_else(|| Error::unknown_label(name, context(), known()))
    }

    /// The category called `name` of a label. The error names the `context` and suggests a similar category.
    pub(crate) fn find_category(
        &self,
        label: LabelId,
        name: &str,
        context: &dyn Fn() -> String,
    ) -> Result<CategoryId> {
        let unknown = || Error::unknown_label(&numbered(label.index()), context(), []);
        let declared = self.labels.get(label.index()).ok_or_else(unknown)?;
        let known = || declared.categories().iter().map(String::as_str);
        self.category(label, name)
            .ok_or_else(|| Error::unknown_category(declared.name(), name, context(), known()))
    }

    /// A label and its category by their names.
    pub(crate) fn find(
        &self,
        label: &str,
        category: &str,
        context: &dyn Fn() -> String,
    ) -> Result<(LabelId, CategoryId)> {
        let id = self.find_label(label, context)?;
        Ok((id, self.find_category(id, category, context)?))
    }

    /// The number of names that a misspelt one is compared with.
    pub(crate) fn n_bare(&self) -> usize {
        self.labels.len() + self.n_category_names
    }

    /// The meaning of a name without its label: a category if it is unique, or the `yes` of a yes/no label.
    pub(crate) fn bare(&self, name: &str) -> Bare {
        let mut atoms = self.bare_atoms(name);
        match (atoms.next(), atoms.next()) {
            (None, _) => self.label(name).map_or(Bare::Unknown, Bare::Label),
            (Some((label, category)), None) => Bare::Atom(Atom::new(label, category)),
            (Some(_), Some(_)) => {
                let meanings = self.bare_atoms(name).take(MAX_MEANINGS);
                Bare::Ambiguous(meanings.map(|(label, category)| self.qualified(label, category)).collect())
            }
        }
    }

    /// Whether a name without its label means this category and nothing else.
    pub(crate) fn is_only_meaning(&self, name: &str, label: LabelId, category: CategoryId) -> bool {
        let mut atoms = self.bare_atoms(name);
        atoms.next() == Some((label, category)) && atoms.next().is_none()
    }

    fn bare_atoms(&self, name: &str) -> impl Iterator<Item = (LabelId, CategoryId)> {
        let meanings = self.meanings.get(name);
        let label = meanings.and_then(|meanings| meanings.label);
        let yes = label.filter(|id| self.labels[id.index()].is_binary()).map(|id| (id, CategoryId::new(0)));
        yes.into_iter().chain(meanings.into_iter().flat_map(Meanings::categories))
    }

    /// `label=category`
    pub(crate) fn qualified(&self, label: LabelId, category: CategoryId) -> String {
        let label = &self.labels[label.index()];
        format!("{}={}", name(label.name()), name(label.category(category)))
    }

    /// The known name that is nearest to a misspelt one, among labels and categories.
    pub(crate) fn nearest_bare(&self, name: &str) -> Option<&str> {
        // Sorted, so that the suggestion does not depend on the order in the table.
        let named = self.meanings.iter().filter(|(_, meanings)| meanings.category.is_some());
        let categories: BTreeSet<&str> = named.map(|(name, _)| &**name).collect();
        nearest(name, categories.into_iter().chain(self.labels.iter().map(Label::name)))
    }

    /// The label whose name is nearest to a misspelt one.
    pub(crate) fn nearest_label(&self, name: &str) -> Option<&str> {
        nearest(name, self.labels.iter().map(Label::name))
    }
}

impl Default for Names {
    /// No labels.
    fn default() -> Self {
        Self { labels: Vec::new(), offsets: vec![0], meanings: HashMap::new(), n_category_names: 0 }
    }
}

impl PartialEq for Names {
    /// Whether the labels are the same. The table follows from them.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.labels == other.labels
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.labels).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let labels = vec![
            Label::binary("alarm"),
            Label::new("weather", ["sun", "rain"]),
            Label::binary("fire"),
            Label::new("forecast", ["rain", "snow", "alarm"]),
        ];
        Names::new(labels).expect("they are well formed")
    }

    fn meanings(names: &Names, name: &str) -> Vec<String> {
        match names.bare(name) {
            Bare::Atom(atom) => vec![names.qualified(atom.label(), atom.categories()[0])],
            Bare::Ambiguous(meanings) => meanings,
            Bare::Label(label) => vec![format!("label {}", label.index())],
            Bare::Unknown => Vec::new(),
        }
    }

    #[test]
    fn names_mean_what_is_called_so() {
        let names = names();
        assert_eq!(meanings(&names, "sun"), ["weather=sun"]);
        assert_eq!(meanings(&names, "fire"), ["fire=yes"]);
        assert_eq!(meanings(&names, "rain"), ["weather=rain", "forecast=rain"]);
        assert_eq!(meanings(&names, "alarm"), ["alarm=yes", "forecast=alarm"]);
        assert_eq!(meanings(&names, "no"), ["alarm=no", "fire=no"]);
        assert_eq!(meanings(&names, "forecast"), ["label 3"]);
        assert!(meanings(&names, "hail").is_empty());
        assert_eq!(names.n_bare(), 4 + 6);
        assert_eq!(names.nearest_bare("snwo"), Some("snow"));
    }

    #[test]
    fn categories_are_found_in_their_label_only() {
        let names = names();
        for (index, label) in names.labels().iter().enumerate() {
            for name in ["yes", "no", "sun", "rain", "snow", "alarm", "weather", "hail"] {
                let found = names.category(LabelId::new(index), name);
                assert_eq!(found, label.find_category(name), "{name} of {}", label.name());
            }
        }
        assert_eq!(names.block(LabelId::new(3)), 6..9);
        assert!(names.find_category(LabelId::new(4), "yes", &String::new).is_err());
    }

    #[test]
    fn a_name_that_is_taken_keeps_its_meaning() {
        let mut names = names();
        names.push(Label::new("weather", ["sun", "storm"]));
        assert_eq!(names.label("weather"), Some(LabelId::new(1)));
        assert_eq!(names.category(LabelId::new(4), "storm"), Some(CategoryId::new(1)));
        assert_eq!(names.check(), Err(Error::DuplicateLabel { label: "weather".to_owned() }));
    }
}
