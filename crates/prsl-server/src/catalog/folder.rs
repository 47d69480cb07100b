//! The folder of models: listing, and writing with old versions kept.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use axum::http::StatusCode;
use prsl_data::Target;

use crate::problem::Problem;
use crate::startup::StartError;

/// The folder below the folder of models that keeps old versions.
const OLD_VERSIONS: &str = ".versions";

/// A folder of models.
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Opens a folder that exists.
    pub(super) fn open(path: &Path) -> Result<Self, StartError> {
        let absolute = path.canonicalize().and_then(|path| fs::read_dir(&path).map(|_| path));
        match absolute {
            Ok(path) => Ok(Self { path }),
            Err(cause) => Err(StartError::Read { file: path.display().to_string(), cause }),
        }
    }

    /// The model files in the folder, in order.
    pub(super) fn list(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_model = |path: &PathBuf| {
            let ending = path.extension().and_then(|ending| ending.to_str());
            matches!(ending, Some("prsl" | "json")) && path.is_file()
        };
        let mut paths: Vec<PathBuf> = entries.filter(is_model).collect();
        paths.sort();
        paths
    }

    /// Whether a file is in the folder.
    pub(super) fn holds(&self, path: &Path) -> bool {
        path.parent() == Some(&self.path)
    }

    /// The file of a new model, given a valid name.
    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.prsl"))
    }

    /// Writes a model file at once, and keeps the version before.
    pub(super) fn replace(&self, name: &str, path: &Path, text: &str) -> Result<(), Problem> {
        self.keep(name, path).map_err(|error| failed(&error))?;
        Target::File(path.to_path_buf()).write_all(text.as_bytes()).map_err(|error| failed(&error))
    }

    /// Removes a model file, and keeps it as an old version.
    pub(super) fn remove(&self, name: &str, path: &Path) -> Result<(), Problem> {
        self.keep(name, path).and_then(|()| fs::remove_file(path)).map_err(|error| failed(&error))
    }

    /// Copies a file to the old versions: `.versions/NAME/000001.prsl` is the oldest.
    fn keep(&self, name: &str, path: &Path) -> io::Result<()> {
        let text = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            text => text?,
        };
        let folder = self.path.join(OLD_VERSIONS).join(name);
        fs::create_dir_all(&folder)?;
        let number = |entry: fs::DirEntry| entry.path().file_stem()?.to_str()?.parse::<u64>().ok();
        let last = fs::read_dir(&folder)?.flatten().filter_map(number).max().unwrap_or(0);
        let kept = folder.join(format!("{:06}.prsl", last + 1));
        Target::File(kept).write_all(&text).map_err(|error| io::Error::other(error.to_string()))
    }
}

/// A write that failed. The reason is in the log only.
fn failed(error: &dyn std::error::Error) -> Problem {
    tracing::error!(%error, "cannot write a model");
    Problem::internal()
}

/// A model that was named at the start is not changed by requests.
pub(super) fn read_only(name: &str) -> Problem {
    let detail = format!(
        "model `{name}` was named when the service started, so requests do not change it; change its file"
    );
    Problem::new(StatusCode::FORBIDDEN, "ReadOnly", detail)
}

/// The version that a request expects is not the one that is served.
pub(super) fn changed(name: &str) -> Problem {
    let detail = format!(
        "model `{name}` is not the version that `If-Match` names; read it again, and repeat the change"
    );
    Problem::new(StatusCode::PRECONDITION_FAILED, "Changed", detail)
}
