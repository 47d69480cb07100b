//! Evidence about one instance.

use crate::error::{Error, Result};
use crate::expectation::{Expectation, Given};
use crate::model::Model;
use crate::syntax;

/// All inputs for one instance: beliefs and observed categories. Labels that are not mentioned are missing values.
///
/// Names are looked up when the evidence is used with a model. Unknown names are errors then, so a mistyped label is
/// never silently ignored.
///
/// ```
/// use prsl::{Evidence, Model};
///
/// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet\nrule 0.95: wet <- rain")?;
/// let evidence = Evidence::new().belief("weather", [0.1, 0.9]).observe("ground", "wet");
/// assert_eq!(model.row(&evidence)?[..], [0.1, 0.9, 0.0, 1.0]);
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
    Named(Vec<(String, Option<f64>)>),
    Observed(String),
}

impl Evidence {
    /// Evidence without any input: every label has its prior.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a classifier's distribution over a label's categories. For a yes/no label, one number suffices.
    pub fn belief(self, label: impl Into<String>, belief: impl IntoIterator<Item = f64>) -> Self {
        self.partial_belief(label, belief.into_iter().map(Some))
    }

    /// Adds a partial distribution. Missing numbers share the remaining probability equally.
    pub fn partial_belief(
        mut self,
        label: impl Into<String>,
        belief: impl IntoIterator<Item = Option<f64>>,
    ) -> Self {
        self.given.push((label.into(), Known::Belief(belief.into_iter().collect())));
        self
    }

    /// Adds a distribution by the names of its categories. Categories that are missing, or without a number, share the
    /// remaining probability equally.
    ///
    /// ```
    /// use prsl::{Evidence, Model};
    ///
    /// let model = Model::parse("label hands: high, centered, low")?;
    /// let evidence = Evidence::new().named_belief("hands", [("low", Some(0.5))]);
    /// assert_eq!(model.row(&evidence)?[..], [0.25, 0.25, 0.5]);
    /// let twice = Evidence::new().named_belief("hands", [("low", Some(0.5)), ("low", Some(0.4))]);
    /// assert_eq!(model.row(&twice).unwrap_err().to_string(), "category `low` of label `hands` is given twice in the evidence; keep one of the two");
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn named_belief<C: Into<String>>(
        mut self,
        label: impl Into<String>,
        belief: impl IntoIterator<Item = (C, Option<f64>)>,
    ) -> Self {
        let belief = belief.into_iter().map(|(category, value)| (category.into(), value)).collect();
        self.given.push((label.into(), Known::Named(belief)));
        self
    }

    /// Adds an observed category of a label.
    pub fn observe(mut self, label: impl Into<String>, category: impl Into<String>) -> Self {
        self.given.push((label.into(), Known::Observed(category.into())));
        self
    }

    /// The evidence as one cell per category of the model, in order; `None` if nothing is given. The second list
    /// tells for each label whether it is observed.
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
                // A missing value of a latent label is no belief.
                Known::Named(belief) if label.classifier().is_none() && has_number(belief) => {
                    return Err(Error::Latent { label: name.clone() });
                }
                Known::Named(belief) => {
                    let mut given = vec![false; block.len()];
                    for (category, value) in belief {
                        let place = model.find_category(id, category)?.index();
                        if std::mem::replace(&mut given[place], true) {
                            let (label, category) = (name.clone(), category.clone());
                            return Err(Error::CategoryGivenTwice { label, category });
                        }
                        block[place] = *value;
                    }
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

fn has_number(belief: &[(String, Option<f64>)]) -> bool {
    belief.iter().any(|(_, value)| value.is_some())
}

impl Model {
    /// Reads evidence as `expect` lines have it: categories, and beliefs `label ~ (p1, p2, ...)`, separated by commas.
    ///
    /// ```
    /// use prsl::{Evidence, Model};
    ///
    /// let model = Model::parse("label weather: sun, rain\nlabel ground: dry, wet")?;
    /// let evidence = model.parse_evidence("wet, weather ~ (0.1, 0.9)")?;
    /// assert_eq!(evidence, Evidence::new().observe("ground", "wet").belief("weather", [0.1, 0.9]));
    /// assert!(model.parse_evidence("wte").is_err());
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn parse_evidence(&self, text: &str) -> Result<Evidence> {
        Ok(self.evidence_of(&syntax::evidence(text, self.names())?))
    }

    /// The evidence of an expectation.
    pub fn expectation_evidence(&self, expectation: &Expectation) -> Evidence {
        self.evidence_of(&expectation.given)
    }

    fn evidence_of(&self, given: &[Given]) -> Evidence {
        given.iter().fold(Evidence::new(), |evidence, given| match given {
            Given::Observed(label, category) => {
                let label = self.label(*label);
                evidence.observe(label.name(), label.category(*category))
            }
            Given::Belief(label, belief) => {
                evidence.belief(self.label(*label).name(), belief.iter().copied())
            }
        })
    }
}
