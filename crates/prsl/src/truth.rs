//! Truths: the known categories of one row.

use crate::assignment::Assignment;
use crate::label::{CategoryId, LabelId};

/// The true category of each label of a model in one row, if it is known.
///
/// ```
/// use prsl::{Model, Truth};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet")?;
/// let (weather, ground) = (model.find_label("weather")?, model.find_label("ground")?);
/// let mut truth = Truth::unknown(2);
/// truth.set(weather, Some(model.find_category(weather, "rain")?));
/// assert_eq!(truth, [Some(1), None]);
/// assert_eq!(truth.category(ground), None);
/// assert_eq!(truth.n_known(), 1);
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Truth {
    indices: Vec<Option<usize>>,
}

impl Truth {
    /// A row without any known category.
    pub fn unknown(n_labels: usize) -> Self {
        Self { indices: vec![None; n_labels] }
    }

    /// The categories by their positions in the labels' lists, the first label first; `None` if unknown.
    pub fn from_indices(indices: impl Into<Vec<Option<usize>>>) -> Self {
        Self { indices: indices.into() }
    }

    /// Number of labels, known or not.
    pub fn n_labels(&self) -> usize {
        self.indices.len()
    }

    /// The category of a label; `None` if unknown.
    ///
    /// # Panics
    ///
    /// If there is no such label.
    pub fn category(&self, label: LabelId) -> Option<CategoryId> {
        self.indices[label.index()].map(CategoryId::new)
    }

    /// Sets the category of a label.
    ///
    /// # Panics
    ///
    /// If there is no such label.
    pub fn set(&mut self, label: LabelId, category: Option<CategoryId>) {
        self.indices[label.index()] = category.map(CategoryId::index);
    }

    /// The categories of all labels, in order.
    pub fn categories(&self) -> impl ExactSizeIterator<Item = Option<CategoryId>> + '_ {
        self.indices.iter().map(|index| index.map(CategoryId::new))
    }

    /// The labels with a known category, in order.
    pub fn known(&self) -> impl Iterator<Item = (LabelId, CategoryId)> + '_ {
        let cell =
            |(label, index): (usize, &Option<usize>)| Some((LabelId::new(label), CategoryId::new((*index)?)));
        self.indices.iter().enumerate().filter_map(cell)
    }

    /// Number of labels with a known category.
    pub fn n_known(&self) -> usize {
        self.indices.iter().flatten().count()
    }

    /// The assignment; `None` unless the categories of all labels are known.
    pub fn assignment(&self) -> Option<Assignment> {
        self.categories().collect()
    }

    /// The positions of the categories in the labels' lists, the first label first; `None` if unknown.
    pub fn indices(&self) -> &[Option<usize>] {
        &self.indices
    }
}

impl FromIterator<Option<CategoryId>> for Truth {
    fn from_iter<T: IntoIterator<Item = Option<CategoryId>>>(categories: T) -> Self {
        let index = |category: Option<CategoryId>| category.map(CategoryId::index);
        Self { indices: categories.into_iter().map(index).collect() }
    }
}

impl From<&Assignment> for Truth {
    fn from(assignment: &Assignment) -> Self {
        assignment.categories().map(Some).collect()
    }
}

impl<const N: usize> PartialEq<[Option<usize>; N]> for Truth {
    fn eq(&self, indices: &[Option<usize>; N]) -> bool {
        self.indices == indices
    }
}
