//! Assignments: one category for every label.

use crate::label::{CategoryId, LabelId};

/// One category for every label of a model.
///
/// ```
/// use prsl::infer::MaxProductTree;
/// use prsl::{Evidence, Model};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let best = MaxProductTree::compile(&model)?.best(&Evidence::new().observe("weather", "rain"))?;
/// let ground = model.find_label("ground")?;
/// assert_eq!(model.label(ground).category(best.assignment.category(ground)), "wet");
/// assert_eq!(model.assignment_text(&best.assignment), "weather=rain, ground=wet");
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Assignment {
    indices: Vec<usize>,
}

impl Assignment {
    /// The assignment of categories by their positions in the labels' lists, the first label first.
    pub fn from_indices(indices: impl Into<Vec<usize>>) -> Self {
        Self { indices: indices.into() }
    }

    /// The category of a label.
    ///
    /// # Panics
    ///
    /// If the assignment has no such label.
    pub fn category(&self, label: LabelId) -> CategoryId {
        CategoryId::new(self.indices[label.index()])
    }

    /// The categories of all labels, in order.
    pub fn categories(&self) -> impl ExactSizeIterator<Item = CategoryId> + '_ {
        self.indices.iter().map(|&index| CategoryId::new(index))
    }

    /// The positions of the categories in the labels' lists, the first label first.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }
}

impl FromIterator<CategoryId> for Assignment {
    fn from_iter<T: IntoIterator<Item = CategoryId>>(categories: T) -> Self {
        Self { indices: categories.into_iter().map(CategoryId::index).collect() }
    }
}

impl From<Vec<usize>> for Assignment {
    fn from(indices: Vec<usize>) -> Self {
        Self { indices }
    }
}

impl<const N: usize> PartialEq<[usize; N]> for Assignment {
    fn eq(&self, indices: &[usize; N]) -> bool {
        self.indices == indices
    }
}
