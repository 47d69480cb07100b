//! Models that requests brought along, kept compiled for the next question about the same text.
//!
//! The page asks several questions about an edited text: the situation, the reasons, the graph. Each kept model is the
//! answer to one text with its changed rules, compared as a whole, so that a request never gets another one's model.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use prsl::Error;

use crate::api::types::RuleEdit;
use crate::served::Served;
use crate::settings::PostedLimits;

/// A text with changed rules.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    /// The text of the model.
    pub(crate) text: String,
    /// The changed rules by their numbers.
    pub(crate) rules: BTreeMap<usize, RuleEdit>,
}

/// The models of recent requests, the last one first.
pub(crate) struct PostedModels {
    models: Mutex<VecDeque<Arc<Kept>>>,
    limits: PostedLimits,
}

/// A model that is compiled once. A second request for it waits for the first.
struct Kept {
    question: Question,
    model: OnceLock<Result<Arc<Served>, Error>>,
}

impl Kept {
    /// Bytes of memory that it holds.
    fn memory(&self) -> u64 {
        match self.model.get() {
            Some(Ok(served)) => served.memory(),
            _ => 0,
        }
    }
}

impl PostedModels {
    pub(crate) fn new(limits: PostedLimits) -> Self {
        Self { models: Mutex::default(), limits }
    }

    /// The model of a question, and whether it was there already. If not, it is compiled. Errors are kept, too: the same
    /// text has the same error.
    pub(crate) fn find(
        &self,
        question: Question,
        compile: impl FnOnce(&Question) -> Result<Served, Error>,
    ) -> Result<(Arc<Served>, bool), Error> {
        let kept = self.first(question);
        let mut is_kept = true;
        let model = kept.model.get_or_init(|| {
            is_kept = false;
            compile(&kept.question).map(Arc::new)
        });
        let model = model.as_ref().map(Arc::clone).map_err(Error::clone);
        self.trim();
        Ok((model?, is_kept))
    }

    /// Drops the models that were not asked for longest, until the others are within the limits. A model that a request
    /// still uses lives until its answer. Engines grow with the questions, so this runs after answers, too.
    pub(crate) fn trim(&self) {
        let mut models = self.lock();
        models.truncate(self.limits.kept);
        let mut left = self.limits.memory;
        let fits = |kept: &Arc<Kept>| {
            let rest = left.checked_sub(kept.memory());
            left = rest.unwrap_or(0);
            rest.is_some()
        };
        let n_kept = models.iter().map(fits).take_while(|fits| *fits).count();
        models.truncate(n_kept);
    }

    /// The entry of a question, which becomes the first one.
    fn first(&self, question: Question) -> Arc<Kept> {
        let mut models = self.lock();
        let place = models.iter().position(|kept| kept.question == question);
        let kept = match place.and_then(|place| models.remove(place)) {
            Some(kept) => kept,
            None => Arc::new(Kept { question, model: OnceLock::new() }),
        };
        models.push_front(Arc::clone(&kept));
        kept
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Kept>>> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use prsl::Document;

    use super::*;
    use crate::served::Trust;

    fn question(text: &str) -> Question {
        Question { text: text.to_owned(), rules: BTreeMap::new() }
    }

    fn compiled(question: &Question) -> Result<Served, Error> {
        Served::compile("posted", Document::read(&question.text)?, Trust::Request(PostedLimits::default()))
    }

    /// Whether each of these texts was kept when it was asked for.
    fn kept(models: &PostedModels, texts: &[&str]) -> Vec<bool> {
        texts.iter().map(|text| models.find(question(text), compiled).expect("a model").1).collect()
    }

    #[test]
    fn the_last_models_are_kept() {
        let models = PostedModels::new(PostedLimits { kept: 2, ..PostedLimits::default() });
        let asked = ["label a", "label b", "label a", "label c", "label a", "label b"];
        assert_eq!(kept(&models, &asked), [false, false, true, false, true, false]);
        assert_eq!(models.lock().len(), 2);
    }

    #[test]
    fn changed_rules_are_another_question() {
        let models = PostedModels::new(PostedLimits::default());
        let text = "label a\nrule 0.9: a";
        assert_eq!(kept(&models, &[text]), [false]);
        let rules = BTreeMap::from([(1, RuleEdit::Probability(0.7))]);
        let changed = Question { rules, ..question(text) };
        assert!(!models.find(changed.clone(), compiled).expect("a model").1);
        assert!(models.find(changed, compiled).expect("a model").1);
    }

    #[test]
    fn kept_models_stay_within_the_memory_of_one() {
        let (small, large) = ("label a", "label b\n".to_owned() + &"# a long text\n".repeat(100));
        let size = compiled(&question(&large)).expect("a model").memory();
        let models = PostedModels::new(PostedLimits { memory: size + 1, ..PostedLimits::default() });
        assert_eq!(kept(&models, &[small, &large, &large, small]), [false, false, true, false]);
        let held: u64 = models.lock().iter().map(|kept| kept.memory()).sum();
        assert!(held <= size, "{held} of {size} bytes");
        let none = PostedModels::new(PostedLimits { memory: 1, ..PostedLimits::default() });
        assert_eq!(kept(&none, &[small, small]), [false, false]);
    }

    #[test]
    fn engines_that_were_compiled_later_count() {
        let models = PostedModels::new(PostedLimits::default());
        let (served, _) =
            models.find(question("label a\nlabel b\nrule 0.9: a -> b"), compiled).expect("a model");
        let before = served.memory();
        served.explainer().expect("an explanation");
        assert!(served.memory() > before);
    }

    #[test]
    fn errors_are_kept_and_take_no_memory() {
        let models = PostedModels::new(PostedLimits::default());
        let wrong = question("label a\nrule 0.9: b");
        let first = models.find(wrong.clone(), compiled).err();
        let second = models.find(wrong, |_| unreachable!("it was compiled before")).err();
        assert!(first.is_some() && first == second);
    }
}
