//! The models that are served, and the files that they come from.

mod folder;
mod stamp;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use prsl::Document;

use self::folder::Folder;
use self::stamp::Stamp;
use crate::problem::Problem;
use crate::served::{Served, Trust};
use crate::startup::StartError;

/// The model that is served if no other one is named: the worked example of the paper, `examples/warehouse.prsl`.
pub const EXAMPLE: &str = include_str!("warehouse.prsl");

/// The models by name. Requests take an [`Arc`] of a model and keep it, so a replaced model finishes its requests.
pub(crate) struct Catalog {
    models: RwLock<BTreeMap<String, Entry>>,
    /// Held while files are read or written, so that only one thread does either.
    files: Mutex<Files>,
    trust: Trust,
}

/// One name: the version that is served, and the error of a newer one that cannot be.
#[derive(Clone, Default)]
struct Entry {
    served: Option<Arc<Served>>,
    failure: Option<String>,
}

/// The files behind the names.
struct Files {
    /// The folder that is watched, if any.
    folder: Option<Folder>,
    known: BTreeMap<String, KnownFile>,
}

struct KnownFile {
    path: PathBuf,
    /// The state of the file that was last read.
    read: Option<Stamp>,
    /// A state that was seen once. A file is read when two looks in a row see the same state, so that a file that is
    /// still being written is not.
    seen: Option<Stamp>,
}

/// The state of a model for `/readyz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelState {
    /// The name.
    pub(crate) name: String,
    /// The version that is served, if any.
    pub(crate) version: Option<String>,
    /// Why the newest file is not served, if so.
    pub(crate) failure: Option<String>,
}

/// What a look at the files changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A new version is served.
    Loaded(String),
    /// A file cannot be served; the old version stays.
    Failed(String, String),
    /// A file is gone, and so is its model.
    Removed(String),
}

impl Catalog {
    /// Loads model files, which must be valid, and all models of a folder. A broken file in the folder is reported by
    /// [`Self::states`], but does not stop the service.
    pub(crate) fn open(models: &[PathBuf], folder: Option<&Path>, trust: Trust) -> Result<Self, StartError> {
        let folder = folder.map(Folder::open).transpose()?;
        let files = Mutex::new(Files { folder, known: BTreeMap::new() });
        let catalog = Self { models: RwLock::default(), files, trust };
        for path in models {
            let file = path.display().to_string();
            let name = model_name(path).ok_or_else(|| StartError::Name { file: file.clone() })?;
            let mut files = catalog.files();
            if let Some(first) = files.known.get(&name) {
                let first = first.path.display().to_string();
                return Err(StartError::SameName { name, first, second: file });
            }
            let read = Stamp::of(path);
            catalog.install(&name, Some(load_or_stop(&name, path, trust)?), None);
            files.known.insert(name, KnownFile { path: path.clone(), read, seen: read });
        }
        if catalog.is_without_files() {
            let example =
                Document::read(EXAMPLE).and_then(|it| Served::compile_ahead("warehouse", it, trust));
            let failed = |cause| StartError::Model { file: "warehouse".to_owned(), cause: Box::new(cause) };
            catalog.install("warehouse", Some(example.map_err(failed)?), None);
        }
        for change in catalog.refresh_settled(true) {
            if let Change::Failed(name, failure) = change {
                tracing::error!(model = name, failure, "the model cannot be served");
            }
        }
        Ok(catalog)
    }

    /// Whether neither a file nor a folder was named.
    fn is_without_files(&self) -> bool {
        let files = self.files();
        files.folder.is_none() && files.known.is_empty()
    }

    /// The model called `name`.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<Served>, Problem> {
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
        match models.get(name) {
            Some(Entry { served: Some(served), .. }) => Ok(Arc::clone(served)),
            _ => {
                let known: Vec<String> = models.keys().cloned().collect();
                Err(Problem::unknown_model(name, &known))
            }
        }
    }

    /// All models that are served, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Served>> {
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
        models.values().filter_map(|entry| entry.served.clone()).collect()
    }

    /// The state of every name.
    pub(crate) fn states(&self) -> Vec<ModelState> {
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
        let state = |(name, entry): (&String, &Entry)| ModelState {
            name: name.clone(),
            version: entry.served.as_ref().map(|served| served.version.clone()),
            failure: entry.failure.clone(),
        };
        models.iter().map(state).collect()
    }

    /// Looks at all files, and loads those that have changed.
    pub(crate) fn refresh(&self) -> Vec<Change> {
        self.refresh_settled(false)
    }

    /// The same; `at_once` loads a file at the first look.
    fn refresh_settled(&self, at_once: bool) -> Vec<Change> {
        let mut files = self.files();
        files.discover();
        let mut changes = Vec::new();
        let mut gone = Vec::new();
        for (name, file) in &mut files.known {
            let Some(now) = Stamp::of(&file.path) else {
                gone.push(name.clone());
                continue;
            };
            let is_settled = at_once || file.seen == Some(now);
            file.seen = Some(now);
            if file.read == Some(now) || !is_settled {
                continue;
            }
            file.read = Some(now);
            let loaded = load(name, &file.path, self.trust);
            if Stamp::of(&file.path) != Some(now) {
                file.read = None; // it changed while it was read
                continue;
            }
            changes.push(match loaded {
                Ok(served) => {
                    self.install(name, Some(served), None);
                    Change::Loaded(name.clone())
                }
                Err(failure) => {
                    self.install(name, None, Some(failure.clone()));
                    Change::Failed(name.clone(), failure)
                }
            });
        }
        for name in gone {
            if let Some(change) = self.lose(&mut files, &name) {
                changes.push(change);
            }
        }
        changes
    }

    /// A file is gone. In the folder that is a deletion; a file that was named at the start keeps its model.
    fn lose(&self, files: &mut Files, name: &str) -> Option<Change> {
        let file = files.known.get_mut(name)?;
        if files.folder.as_ref().is_some_and(|folder| folder.holds(&file.path)) {
            files.known.remove(name);
            self.write_models().remove(name);
            return Some(Change::Removed(name.to_owned()));
        }
        file.read.take()?; // reported once
        let failure = format!("`{}` is gone", file.path.display());
        self.install(name, None, Some(failure.clone()));
        Some(Change::Failed(name.to_owned(), failure))
    }

    /// Writes a model that has been compiled, and serves it from now on. `expected` is the version that the caller has
    /// seen, if it matters.
    pub(crate) fn put(&self, served: Served, expected: Option<&str>) -> Result<Arc<Served>, Problem> {
        let name = served.name.clone();
        let mut files = self.files();
        self.check_version(&name, expected)?;
        let path = files.writable_path(&name)?;
        files.folder()?.replace(&name, &path, served.document.source())?;
        let served = Arc::new(served);
        let read = Stamp::of(&path);
        files.known.insert(name.clone(), KnownFile { path, read, seen: read });
        self.write_models().insert(name, Entry { served: Some(Arc::clone(&served)), failure: None });
        Ok(served)
    }

    /// Deletes a model and its file. The folder keeps the old version.
    pub(crate) fn delete(&self, name: &str, expected: Option<&str>) -> Result<(), Problem> {
        let mut files = self.files();
        if !files.known.contains_key(name) {
            let known: Vec<String> = files.known.keys().cloned().collect();
            return Err(Problem::unknown_model(name, &known));
        }
        self.check_version(name, expected)?;
        let path = files.writable_path(name)?;
        files.folder()?.remove(name, &path)?;
        files.known.remove(name);
        self.write_models().remove(name);
        Ok(())
    }

    fn check_version(&self, name: &str, expected: Option<&str>) -> Result<(), Problem> {
        let Some(expected) = expected else { return Ok(()) };
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
        let current = models.get(name).and_then(|entry| entry.served.as_ref());
        match current {
            Some(served) if expected == "*" || served.version == expected => Ok(()),
            _ => Err(folder::changed(name)),
        }
    }

    /// Serves a new version, or notes why it cannot be served.
    fn install(&self, name: &str, served: Option<Served>, failure: Option<String>) {
        let mut models = self.write_models();
        let entry = models.entry(name.to_owned()).or_default();
        if let Some(served) = served {
            entry.served = Some(Arc::new(served));
        }
        entry.failure = failure;
    }

    fn files(&self) -> std::sync::MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_models(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<String, Entry>> {
        self.models.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files {
    /// Adds the files of the folder that are not known yet.
    fn discover(&mut self) {
        let Some(folder) = &self.folder else { return };
        for path in folder.list() {
            if let Some(name) = model_name(&path)
                && !self.known.contains_key(&name)
            {
                self.known.insert(name, KnownFile { path, read: None, seen: None });
            }
        }
    }

    fn folder(&self) -> Result<&Folder, Problem> {
        self.folder.as_ref().ok_or_else(Problem::internal)
    }

    /// The file of a model that requests may write: in the folder, not one that was named at the start.
    fn writable_path(&self, name: &str) -> Result<PathBuf, Problem> {
        let folder = self.folder()?;
        match self.known.get(name) {
            Some(file) if !folder.holds(&file.path) => Err(folder::read_only(name)),
            Some(file) => Ok(file.path.clone()),
            None => Ok(folder.path_of(name)),
        }
    }
}

/// The name of a model: its file's name without the ending. `None` if it is no valid name.
fn model_name(path: &Path) -> Option<String> {
    let name = path.file_stem()?.to_str()?;
    is_model_name(name).then(|| name.to_owned())
}

/// Whether a text can be a model's name. Such a name is never a path.
pub(crate) fn is_model_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    !name.is_empty() && name.len() <= 100 && !name.starts_with('.') && name.bytes().all(is_allowed)
}

/// Reads and compiles a file. The error is a sentence.
fn load(name: &str, path: &Path, trust: Trust) -> Result<Served, String> {
    load_or_stop(name, path, trust).map_err(|error| error.to_string())
}

fn load_or_stop(name: &str, path: &Path, trust: Trust) -> Result<Served, StartError> {
    let file = path.display().to_string();
    let read = |cause| StartError::Read { file: file.clone(), cause };
    let size = fs::metadata(path).map_err(read)?.len();
    if size > Document::MAX_BYTES as u64 {
        let cause = prsl::Error::TooLarge { bytes: size as usize, limit: Document::MAX_BYTES };
        return Err(StartError::Model { file, cause: Box::new(cause) });
    }
    let text = fs::read_to_string(path).map_err(read)?;
    let compiled = Document::read(&text).and_then(|document| Served::compile_ahead(name, document, trust));
    compiled.map_err(|error| match error {
        prsl::Error::Text(diagnostics) => StartError::Text { file, diagnostics },
        cause => StartError::Model { file, cause: Box::new(cause) },
    })
}
