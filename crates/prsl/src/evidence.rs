//! What is known of one instance.

use crate::error::{Error, Result};
use crate::model::Model;

/// All we know of one instance: beliefs, observed categories, and gaps for everything not mentioned.
///
/// Names are looked up when the evidence meets a model, and one that the model does not know is an error then:
/// evidence about a mistyped label is never silently ignored.
///
/// ```
/// use prsl::{Evidence, Model};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let evidence = Evidence::new().belief("weather", [0.1, 0.9]).observe("ground", "wet");
/// assert_eq!(model.row(&evidence)?, [0.1, 0.9, 0.0, 1.0]);
/// assert!(model.row(&Evidence::new().observe("grund", "wet")).is_err());
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    given: Vec<(String, Known)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Known {
    Belief(Vec<Option<f64>>),
    Observed(String),
}

impl Evidence {
    /// Nothing known: every label at its prior.
    pub fn new() -> Self {
        Self::default()
    }

    /// A classifier's distribution over a label's categories; one number is enough for a yes/no label.
    pub fn belief(self, label: impl Into<String>, belief: impl IntoIterator<Item = f64>) -> Self {
        self.partial_belief(label, belief.into_iter().map(Some))
    }

    /// A distribution with gaps, which share the remaining mass equally.
    pub fn partial_belief(
        mut self,
        label: impl Into<String>,
        belief: impl IntoIterator<Item = Option<f64>>,
    ) -> Self {
        self.given.push((label.into(), Known::Belief(belief.into_iter().collect())));
        self
    }

    /// The label is known to take this category.
    pub fn observe(mut self, label: impl Into<String>, category: impl Into<String>) -> Self {
        self.given.push((label.into(), Known::Observed(category.into())));
        self
    }

    /// The evidence as one cell per category of the model, in order, `None` where nothing is said; and for each label whether
    /// it is observed.
    pub(crate) fn cells(&self, model: &Model) -> Result<(Vec<Option<f64>>, Vec<bool>)> {
        let mut cells = vec![None; model.n_categories()];
        let mut seen = vec![false; model.labels().len()];
        let mut observed = seen.clone();
        for (name, known) in &self.given {
            let id = model.find_label(name)?;
            let label = model.label(id);
            if std::mem::replace(&mut seen[id.index()], true) {
                return Err(Error::GivenTwice { label: name.clone() });
            }
            let block = &mut cells[model.block(id)];
            match known {
                Known::Observed(category) => {
                    let category = model.find_category(id, category)?;
                    observed[id.index()] = true;
                    block.fill(Some(0.0));
                    block[category.index()] = Some(1.0);
                }
                Known::Belief(_) if label.classifier().is_none() => {
                    return Err(Error::Latent { label: name.clone() });
                }
                Known::Belief(belief) if belief.len() == block.len() => block.copy_from_slice(belief),
                Known::Belief(belief) if belief.len() == 1 && label.is_binary() => block[0] = belief[0],
                Known::Belief(belief) => {
                    return Err(Error::Length {
                        what: "belief",
                        label: name.clone(),
                        given: belief.len(),
                        wanted: block.len(),
                    });
                }
            }
        }
        Ok((cells, observed))
    }
}
