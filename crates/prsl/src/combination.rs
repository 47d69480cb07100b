//! Typical combinations: whole assignments that weigh more than the rules alone say.

use crate::diagnostic::shortened;
use crate::error::{Error, Result};
use crate::label::{CategoryId, Label, LabelId};
use crate::model::numbered;
use crate::names::Names;
use crate::text::print;

/// All combinations of a model have at most this many categories together.
pub(crate) const MAX_CATEGORIES: usize = 1 << 24;

/// The category `no` of a yes/no label, which a combination need not name.
const NO: usize = 1;

/// One category for every label, and how much more such an assignment weighs.
///
/// All combinations of a model together are one factor
///
/// ```text
/// S(y) = 1 + Σₛ wₛ [y = s]
/// ```
///
/// which multiplies the weight of the combination s by 1 + wₛ and leaves everything else alone.
///
/// ```
/// use prsl::Model;
///
/// let model = Model::parse("label anger\nlabel joy\nlabel sad\ntypical 3: anger, sad")?;
/// let combination = &model.typical()[0];
/// assert_eq!(combination.weight(), 3.0);
/// assert_eq!(combination.categories(), [0, 1, 0]); // yes, no, yes
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Combination {
    weight: f64,
    categories: Vec<usize>,
}

impl Combination {
    /// A combination of a category for every label, by their positions, with its weight w ≥ 0.
    pub fn new(weight: f64, categories: impl Into<Vec<usize>>) -> Self {
        Self { weight, categories: categories.into() }
    }

    /// The weight w: the combination counts 1 + w times.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// The category of every label, as positions in the labels' lists.
    pub fn categories(&self) -> &[usize] {
        &self.categories
    }

    /// ln (1 + w).
    pub fn log_factor(&self) -> f64 {
        self.weight.ln_1p()
    }
}

/// The combinations of a model, no two of them the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Combinations {
    list: Vec<Combination>,
    /// Positions in the list, sorted by what is combined.
    order: Vec<usize>,
}

impl Combinations {
    /// Checks each of them, and that none is stated twice.
    pub(crate) fn new(labels: &[Label], list: Vec<Combination>) -> Result<Self> {
        // Only an error needs names.
        let text = |combination: &Combination| {
            shortened(&print::combination(&Names::new(labels), &combination.categories))
        };
        check_size(labels, list.len())?;
        for combination in &list {
            check_categories(labels, &combination.categories)?;
            if !(combination.weight >= 0.0 && combination.weight.is_finite()) {
                let (combination, value) = (text(combination), combination.weight);
                return Err(Error::CombinationWeight { combination, value });
            }
        }
        let mut order: Vec<usize> = (0..list.len()).collect();
        order.sort_by(|&a, &b| list[a].categories.cmp(&list[b].categories));
        let twice = order.windows(2).find(|pair| list[pair[0]].categories == list[pair[1]].categories);
        if let Some(pair) = twice {
            return Err(Error::DuplicateCombination { combination: text(&list[pair[0]]) });
        }
        Ok(Self { list, order })
    }

    pub(crate) fn list(&self) -> &[Combination] {
        &self.list
    }

    /// The place of the combination that an assignment is, if it is one.
    pub(crate) fn find(&self, assignment: &[usize]) -> Option<usize> {
        let compare = |&place: &usize| self.list[place].categories.as_slice().cmp(assignment);
        self.order.binary_search_by(compare).ok().map(|found| self.order[found])
    }
}

/// That so many combinations are not too many.
pub(crate) fn check_size(labels: &[Label], n_combinations: usize) -> Result<()> {
    if labels.len().saturating_mul(n_combinations) <= MAX_CATEGORIES {
        return Ok(());
    }
    Err(Error::TooCostly {
        what: format!("a model of {n_combinations} combinations"),
        needed: format!("a category of {} labels for each", labels.len()),
        limit: format!("{MAX_CATEGORIES} categories in all"),
        advice: "keep those of the largest weights".to_owned(),
    })
}

/// A category that there is for every label that there is.
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

/// The labels that a combination has to name: all but yes/no labels that are `no`.
pub(crate) fn named(labels: &[Label], categories: &[usize]) -> Vec<(LabelId, CategoryId)> {
    let is_named = |&label: &usize| !(labels[label].is_binary() && categories[label] == NO);
    let named = (0..labels.len()).filter(is_named);
    named.map(|label| (LabelId::new(label), CategoryId::new(categories[label]))).collect()
}

/// A category for every label: where none is given, `no` of a yes/no label; the first other label is an error.
pub(crate) fn completed(labels: &[Label], given: &[Option<usize>]) -> Result<Vec<usize>, LabelId> {
    let complete = |(index, label): (usize, &Label)| match given[index] {
        Some(category) => Ok(category),
        None if label.is_binary() => Ok(NO),
        None => Err(LabelId::new(index)),
    };
    labels.iter().enumerate().map(complete).collect()
}

/// The combinations of one model with the ids of another, found by name.
pub(crate) fn transfer(
    list: Vec<Combination>,
    origin: &[Label],
    target: &[Label],
) -> Result<Vec<Combination>> {
    let names = Names::new(target);
    let places: Vec<Option<LabelId>> = origin.iter().map(|label| names.label(label.name())).collect();
    let transfer_one = |combination: Combination| {
        let context = || {
            let text = print::combination(&Names::new(origin), &combination.categories);
            format!(" in combination `{}`", shortened(&text))
        };
        let mut given = vec![None; target.len()];
        for (label, category) in named(origin, &combination.categories) {
            let (label, place) = (&origin[label.index()], places[label.index()]);
            let category = label.category(category);
            let known = target.iter().map(Label::name);
            let place = place.ok_or_else(|| Error::unknown_label(label.name(), context(), known))?;
            let known = || target[place.index()].categories().iter().map(String::as_str);
            let id = names
                .category(place, category)
                .ok_or_else(|| Error::unknown_category(label.name(), category, context(), known()))?;
            given[place.index()] = Some(id.index());
        }
        let categories = completed(target, &given).map_err(|label| Error::IncompleteCombination {
            label: target[label.index()].name().to_owned(),
        })?;
        Ok(Combination { weight: combination.weight, categories })
    };
    list.into_iter().map(transfer_one).collect()
}
