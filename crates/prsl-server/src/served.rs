//! A model with its compiled engines.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

use prsl::infer::{AssignmentEngine, EngineSettings, Engines, LogEvidence, MarginalEngine, SearchLimits};
use prsl::{Document, Error, Explainer, Limits, Model, Result};

use crate::settings::PostedLimits;

/// A model that answers requests. It never changes; another version of the file is another value.
pub(crate) struct Served {
    /// Its name.
    pub(crate) name: String,
    /// A digest of its text.
    pub(crate) version: String,
    /// The text and the model.
    pub(crate) document: Document,
    /// The engine for marginals.
    pub(crate) marginals: MarginalEngine,
    engines: Engines,
    assignments: OnceLock<Result<AssignmentEngine>>,
    log_evidence: OnceLock<Result<Option<LogEvidence>>>,
    explainer: OnceLock<Result<Explainer>>,
}

/// Bytes of a text and its model per byte of the text, roughly.
const PARSED: u64 = 20;

/// Limits of the engines of a model.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trust {
    /// The owner of the service chose the model. Its engines may take this much memory.
    Owner(u64),
    /// A request brought the model along.
    Request(PostedLimits),
}

impl Trust {
    fn settings(self) -> EngineSettings {
        let (memory, search) = match self {
            Trust::Owner(memory) => (memory, SearchLimits::default()),
            Trust::Request(limits) => {
                (limits.memory, SearchLimits { work: limits.work as u64, ..SearchLimits::default() })
            }
        };
        EngineSettings { limits: Limits { memory }, search, ..EngineSettings::default() }
    }
}

/// What a request wants from a model that it brought along. It decides how often the plan runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// Marginals and assignments of one row.
    Predict,
    /// The same without each rule.
    Explain,
}

impl Served {
    /// Compiles the engine for marginals. The others are compiled when they are first needed.
    pub(crate) fn compile(name: &str, document: Document, trust: Trust) -> Result<Self> {
        let engines = Engines::new(document.model()).with_settings(trust.settings());
        let marginals = engines.marginals()?;
        Ok(Self {
            name: name.to_owned(),
            version: version(document.source()),
            document,
            marginals,
            engines,
            assignments: OnceLock::new(),
            log_evidence: OnceLock::new(),
            explainer: OnceLock::new(),
        })
    }

    /// Compiles the engines for marginals and for assignments, so that no request waits for them. A refused engine for
    /// assignments is an error of the requests that need it.
    pub(crate) fn compile_ahead(name: &str, document: Document, trust: Trust) -> Result<Self> {
        let served = Self::compile(name, document, trust)?;
        let _ = served.assignments();
        Ok(served)
    }

    /// Compiles a model that a request brought along. Returns an error if its plan is too costly, before it runs.
    pub(crate) fn compile_posted(document: Document, limits: PostedLimits, purpose: Purpose) -> Result<Self> {
        let served = Self::compile("posted", document, Trust::Request(limits))?;
        served.check_purpose(limits, purpose)?;
        Ok(served)
    }

    /// Returns an error if the plan is too costly for what a request wants.
    pub(crate) fn check_purpose(&self, limits: PostedLimits, purpose: Purpose) -> Result<()> {
        let n_passes = match purpose {
            Purpose::Predict => 1.0,
            Purpose::Explain => 1.0 + self.model().rules().len() as f64,
        };
        check_work(self.marginals.work() * n_passes, limits)
    }

    /// Bytes of memory that it holds: its engines as counted for their limit, and its text and model as estimated.
    pub(crate) fn memory(&self) -> u64 {
        let text = self.document.source().len() as u64;
        self.engines.memory() + PARSED * text
    }

    /// The model.
    pub(crate) fn model(&self) -> &Model {
        self.document.model()
    }

    /// The engine for most probable assignments.
    pub(crate) fn assignments(&self) -> Result<&AssignmentEngine> {
        self.assignments.get_or_init(|| self.engines.assignments()).as_ref().map_err(Error::clone)
    }

    /// The engine for ln Z if only assignments are asked for.
    pub(crate) fn log_evidence(&self) -> Result<Option<&LogEvidence>> {
        let engine = self.log_evidence.get_or_init(|| self.engines.log_evidence(None));
        engine.as_ref().map(Option::as_ref).map_err(Error::clone)
    }

    /// The engine for explanations.
    pub(crate) fn explainer(&self) -> Result<&Explainer> {
        let explainer = self.explainer.get_or_init(|| Explainer::compile_with(&self.engines));
        explainer.as_ref().map_err(Error::clone)
    }
}

/// Returns an error if a plan takes more work than a request may ask for.
pub(crate) fn check_work(work: f64, limits: PostedLimits) -> Result<()> {
    if work <= limits.work {
        return Ok(());
    }
    Err(Error::TooCostly {
        what: "the model".to_owned(),
        needed: format!("{work:.1e} multiply-adds"),
        limit: format!("{:.1e} for a model in a request", limits.work),
        advice: "remove rules, or let the service load the model from a file".to_owned(),
    })
}

/// A digest of a model text, to tell versions apart. It is no protection against forgery.
pub(crate) fn version(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
