//! The typical combinations of a model: checked, and found by assignment.

use crate::combination::{Combination, check_size};
use crate::diagnostic::shortened;
use crate::error::{Error, Result};
use crate::label::Label;
use crate::names::Names;
use crate::notation::numbered;
use crate::syntax::print;

/// The typical combinations of a model, all of them different.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Combinations {
    list: Vec<Combination>,
    /// Positions in the list, sorted by the categories of the combinations.
    order: Vec<usize>,
}

impl Combinations {
    /// Checks each combination, and that no two are the same.
    pub(crate) fn new(names: &Names, list: Vec<Combination>) -> Result<Self> {
        let labels = names.labels();
        let text =
            |combination: &Combination| shortened(&print::combination(names, combination.categories()));
        check_size(labels, list.len())?;
        for combination in &list {
            check_categories(labels, combination.categories())?;
            if !(combination.weight() >= 0.0 && combination.weight().is_finite()) {
                let (combination, value) = (text(combination), combination.weight());
                return Err(Error::CombinationWeight { combination, value });
            }
        }
        let mut order: Vec<usize> = (0..list.len()).collect();
        order.sort_by(|&a, &b| list[a].categories().cmp(list[b].categories()));
        let twice = order.windows(2).find(|pair| list[pair[0]].categories() == list[pair[1]].categories());
        if let Some(pair) = twice {
            return Err(Error::DuplicateCombination { combination: text(&list[pair[0]]) });
        }
        Ok(Self { list, order })
    }

    /// The combinations in the order of the model file.
    pub(crate) fn list(&self) -> &[Combination] {
        &self.list
    }

    /// The position of the combination that equals an assignment.
    pub(crate) fn find(&self, assignment: &[usize]) -> Option<usize> {
        let compare = |&place: &usize| self.list[place].categories().cmp(assignment);
        self.order.binary_search_by(compare).ok().map(|found| self.order[found])
    }
}

/// Checks that every label has a category, and that the category exists.
fn check_categories(labels: &[Label], categories: &[usize]) -> Result<()> {
    let context = " in a combination";
    if categories.len() > labels.len() {
        return Err(Error::unknown_label(&numbered(labels.len()), context, []));
    }
    if let Some(label) = labels.get(categories.len()) {
        return Err(Error::IncompleteCombination { label: label.name().to_owned() });
    }
    match labels.iter().zip(categories).find(|(label, category)| **category >= label.n_categories()) {
        Some((label, category)) => {
            Err(Error::unknown_category(label.name(), &numbered(*category), context, []))
        }
        None => Ok(()),
    }
}
