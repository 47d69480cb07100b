//! What takes time, on a thread of its own: inference for hovers, and checks. Counted work bounds both.

use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::SyncSender;
use std::sync::{Condvar, Mutex, PoisonError};

use prsl::lint::{self, Diagnostic, Finding};
use prsl::{Document, Engines, Error, Evidence, Limits, Posterior};

use super::server::Event;

/// Limits of the analysis of a text.
#[derive(Clone, Copy, Debug)]
pub struct AnalysisLimits {
    /// Memory for inference.
    pub memory: Limits,
    /// Multiply-adds for the marginals of a text, and as many for all its expectations together.
    pub work: f64,
}

/// A text to analyze.
#[derive(Debug)]
pub struct Job {
    /// The document.
    pub uri: String,
    /// Its revision, which the outcomes repeat.
    pub revision: u64,
    /// Its text.
    pub text: String,
}

/// What the analysis of a text found. Every text has both outcomes, in this order.
#[derive(Debug)]
pub enum Outcome {
    /// What hovers need; `None` if the text is not a model.
    Understood(Option<Box<Understood>>),
    /// The errors of the text, or the findings about the model.
    Checked(Vec<Finding>),
}

/// A model and its answers without evidence.
#[derive(Debug)]
pub struct Understood {
    /// The model with its text.
    pub document: Document,
    /// The engine for marginals and the reason for the choice; or why there is none.
    pub inference: Result<String, String>,
    /// The posterior without evidence; or why there is none.
    pub posterior: Result<Posterior, String>,
}

/// The texts that wait for analysis. A newer text of a document replaces an older one.
#[derive(Debug, Default)]
pub struct Queue {
    jobs: Mutex<VecDeque<Job>>,
    added: Condvar,
}

impl Queue {
    /// Adds a text.
    pub fn push(&self, job: Job) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.retain(|waiting| waiting.uri != job.uri);
        jobs.push_back(job);
        self.added.notify_one();
    }

    /// Waits for a text.
    fn pop(&self) -> Job {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(job) = jobs.pop_front() {
                return job;
            }
            jobs = self.added.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Analyzes texts until nobody takes the outcomes.
pub fn run(queue: &Queue, limits: AnalysisLimits, outcomes: &SyncSender<Event>) {
    let mut is_taken = true;
    while is_taken {
        let Job { uri, revision, text } = queue.pop();
        let mut tell = |outcome: Outcome| {
            is_taken &= outcomes.send(Event::Analyzed { uri: uri.clone(), revision, outcome }).is_ok();
        };
        let analyzed = panic::catch_unwind(AssertUnwindSafe(|| analyze(&text, limits, &mut tell)));
        if analyzed.is_err() {
            // The message of the panic is on standard error. Requests that wait for the outcomes get an answer.
            tell(Outcome::Understood(None));
            tell(Outcome::Checked(Vec::new()));
        }
    }
}

fn analyze(text: &str, limits: AnalysisLimits, tell: &mut impl FnMut(Outcome)) {
    match Document::parse(text) {
        Ok(document) => {
            let understood = understand(document.clone(), limits);
            tell(Outcome::Understood(Some(Box::new(understood))));
            tell(Outcome::Checked(lint::check_affordable(&document, limits.memory, limits.work)));
        }
        Err(error) => {
            tell(Outcome::Understood(None));
            tell(Outcome::Checked(errors(&error, text)));
        }
    }
}

/// The errors of a text as findings. Errors that are not about a part of the text are about its start.
fn errors(error: &Error, text: &str) -> Vec<Finding> {
    match error {
        Error::Text(diagnostics) => {
            diagnostics.list().iter().map(|error| Finding::of_syntax_error(error, text)).collect()
        }
        other => vec![Finding::of_syntax_error(&Diagnostic::new(0..0, other.to_string()), text)],
    }
}

/// Infers the posterior without evidence, unless that is too costly.
fn understand(document: Document, limits: AnalysisLimits) -> Understood {
    let engine = Engines::new(document.model()).with_limits(limits.memory).marginals();
    let engine = engine.map_err(|error| error.to_string());
    let posterior = engine.as_ref().map_err(String::clone).and_then(|engine| {
        if engine.work() > limits.work {
            let (needed, limit) = (engine.work(), limits.work);
            return Err(format!(
                "inference takes {needed:.1e} multiply-adds, more than the limit of {limit:.1e} for editors"
            ));
        }
        engine.infer(&Evidence::new()).map_err(|error| error.to_string())
    });
    Understood { inference: engine.map(|engine| engine.reason().to_owned()), posterior, document }
}
