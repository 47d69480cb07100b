//! The state that all requests share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::catalog::{Catalog, Change};
use crate::input::Buffers;
use crate::measure::Metrics;
use crate::posted::PostedModels;
use crate::served::{Served, Trust};
use crate::settings::Settings;
use crate::startup::StartError;
use crate::work::Workers;

/// Models, settings, queues and metrics of a service. Cloning copies a reference.
#[derive(Clone)]
pub struct Service {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    catalog: Catalog,
    posted: PostedModels,
    workers: Workers,
    buffers: Buffers,
    metrics: Metrics,
    is_draining: AtomicBool,
}

impl Service {
    /// Loads the models: files, which must be valid, and all models of a folder. Without either, the worked example of
    /// the paper is served as `warehouse`.
    ///
    /// ```
    /// use prsl_server::{Service, Settings, app};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let model = folder.path().join("weather.prsl");
    /// std::fs::write(&model, "label rain\nlabel wet\nrule 0.95: rain -> wet\n")?;
    /// let router = app(Service::open(&[model], None, Settings::default())?);
    /// # drop(router);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(models: &[PathBuf], folder: Option<&Path>, settings: Settings) -> Result<Self, StartError> {
        if settings.writable && folder.is_none() {
            return Err(StartError::NoFolder);
        }
        let catalog = Catalog::open(models, folder, Trust::Owner(settings.memory))?;
        let posted = PostedModels::new(settings.limits.posted);
        let workers = Workers::new(&settings.limits);
        let buffers = Buffers::new(&settings.limits);
        let (metrics, is_draining) = (Metrics::new(), AtomicBool::new(false));
        Ok(Self {
            inner: Arc::new(Inner { settings, catalog, posted, workers, buffers, metrics, is_draining }),
        })
    }

    /// The names of the models that are served.
    pub fn model_names(&self) -> Vec<String> {
        self.catalog().all().iter().map(|served| served.name.clone()).collect()
    }

    /// Looks at all model files, and loads those that have changed. This takes as long as compiling them.
    pub fn refresh(&self) {
        for change in self.catalog().refresh() {
            match &change {
                Change::Loaded(model) => tracing::info!(model, "a new version of the model is served"),
                Change::Failed(model, failure) => {
                    tracing::error!(model, failure, "the file cannot be served; the old version stays");
                }
                Change::Removed(model) => tracing::info!(model, "the file and its model are gone"),
            }
            self.metrics().count_reload(&change);
        }
    }

    /// Announces the end: `/readyz` says so, and every connection is closed after its next answer.
    pub fn drain(&self) {
        self.inner.is_draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.inner.is_draining.load(Ordering::Relaxed)
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.inner.catalog
    }

    pub(crate) fn posted(&self) -> &PostedModels {
        &self.inner.posted
    }

    pub(crate) fn workers(&self) -> &Workers {
        &self.inner.workers
    }

    pub(crate) fn buffers(&self) -> &Buffers {
        &self.inner.buffers
    }

    /// Counts one row of a model.
    pub(crate) fn count_row(&self, served: &Served, possible: bool) {
        let status = if possible { "ok" } else { "impossible" };
        self.metrics().count_rows(&served.name, served.marginals.engine().name(), status, 1);
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }
}
