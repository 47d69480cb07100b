//! Which name stands for what in a model.

use std::collections::HashMap;

use crate::diagnostic::nearest;
use crate::error::{Error, Result};
use crate::formula::Atom;
use crate::label::{CategoryId, Label, LabelId};

/// How many meanings of an ambiguous name are told.
const MAX_MEANINGS: usize = 8;

/// The names of a model's labels and categories, and what each may mean.
pub(crate) struct Names<'a> {
    labels: &'a [Label],
    label_ids: HashMap<&'a str, LabelId>,
    categories: HashMap<&'a str, Vec<Atom>>,
    category_ids: HashMap<(LabelId, &'a str), CategoryId>,
}

/// What a name that stands alone in a formula means.
pub(crate) enum Bare {
    /// Exactly one thing.
    Atom(Atom),
    /// Several things, the first of them spelled out.
    Ambiguous(Vec<String>),
    /// A label with more categories than yes and no.
    Label(LabelId),
    /// Nothing.
    Unknown,
}

impl<'a> Names<'a> {
    pub(crate) fn new(labels: &'a [Label]) -> Self {
        let mut label_ids = HashMap::new();
        let mut categories: HashMap<&str, Vec<Atom>> = HashMap::new();
        let mut category_ids = HashMap::new();
        for (index, label) in labels.iter().enumerate() {
            let id = LabelId::new(index);
            label_ids.entry(label.name()).or_insert(id);
            for (index, category) in label.categories().iter().enumerate() {
                categories.entry(category).or_default().push(Atom::new(id, CategoryId::new(index)));
                category_ids.entry((id, category.as_str())).or_insert(CategoryId::new(index));
            }
        }
        Self { labels, label_ids, categories, category_ids }
    }

    pub(crate) fn labels(&self) -> &'a [Label] {
        self.labels
    }

    pub(crate) fn label(&self, name: &str) -> Option<LabelId> {
        self.label_ids.get(name).copied()
    }

    pub(crate) fn category(&self, label: LabelId, name: &str) -> Option<CategoryId> {
        self.category_ids.get(&(label, name)).copied()
    }

    /// A label and its category; if there is none, the error suggests a similar one.
    pub(crate) fn find(
        &self,
        label: &str,
        category: &str,
        context: &dyn Fn() -> String,
    ) -> Result<(LabelId, CategoryId)> {
        let labels = || self.labels.iter().map(Label::name);
        let id = self.label(label).ok_or_else(|| Error::unknown_label(label, context(), labels()))?;
        let categories = || self.labels[id.index()].categories().iter().map(String::as_str);
        let unknown = || Error::unknown_category(label, category, context(), categories());
        Ok((id, self.category(id, category).ok_or_else(unknown)?))
    }

    /// How many names a misspelt one is compared with.
    pub(crate) fn n_bare(&self) -> usize {
        self.labels.len() + self.categories.len()
    }

    /// A bare category where it is unique, a bare binary label as its `yes`.
    pub(crate) fn bare(&self, name: &str) -> Bare {
        let as_label = self.label(name);
        let binary = as_label.filter(|id| self.labels[id.index()].is_binary());
        let yes = binary.map(|id| Atom::new(id, CategoryId::new(0)));
        let meanings: Vec<Atom> = yes
            .into_iter()
            .chain(self.categories.get(name).into_iter().flatten().cloned())
            .take(MAX_MEANINGS)
            .collect();
        match (&meanings[..], as_label) {
            ([], Some(label)) => Bare::Label(label),
            ([], None) => Bare::Unknown,
            ([atom], _) => Bare::Atom(atom.clone()),
            _ => Bare::Ambiguous(meanings.iter().map(|atom| self.qualified(atom)).collect()),
        }
    }

    /// `label=category` of an atom with one category.
    pub(crate) fn qualified(&self, atom: &Atom) -> String {
        let label = &self.labels[atom.label().index()];
        let category = atom.categories().first().map_or("", |&category| label.category(category));
        format!("{}={}", crate::text::print::name(label.name()), crate::text::print::name(category))
    }

    /// The nearest name that may stand alone in a formula.
    pub(crate) fn nearest_bare(&self, name: &str) -> Option<&'a str> {
        let labels = self.labels.iter().map(Label::name);
        nearest(
            name,
            self.categories
                .keys()
                .copied()
                .collect::<std::collections::BTreeSet<_>>()
                .into_iter()
                .chain(labels),
        )
    }

    pub(crate) fn nearest_label(&self, name: &str) -> Option<&'a str> {
        nearest(name, self.labels.iter().map(Label::name))
    }
}
