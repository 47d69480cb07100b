//! The files of the demo.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use prsl_data::Target;

use crate::style::shell;

/// The paths of the files.
pub struct Files {
    folder: PathBuf,
    /// The three rules.
    pub model: PathBuf,
    /// A shift of a few rows.
    pub beliefs: PathBuf,
    /// The predictions with the three rules.
    pub predictions: PathBuf,
    /// Rows to learn from.
    pub shifts: [PathBuf; 2],
    /// Test rows.
    pub tomorrow: [PathBuf; 2],
    /// The same without the camera's beliefs.
    pub without_camera: PathBuf,
    /// The learned model.
    pub learned: PathBuf,
    /// The same with one more label.
    pub strain: PathBuf,
    /// A figure that the demo suggests to draw.
    pub graph: PathBuf,
}

impl Files {
    /// The files in a folder.
    pub fn new(folder: &Path) -> Files {
        let file = |name: &str| folder.join(name);
        Files {
            folder: folder.to_owned(),
            model: file("warehouse.prsl"),
            beliefs: file("beliefs.csv"),
            predictions: file("predictions.csv"),
            shifts: ["shifts-beliefs.csv", "shifts-truth.csv"].map(file),
            tomorrow: ["tomorrow-beliefs.csv", "tomorrow-truth.csv"].map(file),
            without_camera: file("tomorrow-without-camera.csv"),
            learned: file("learned.prsl"),
            strain: file("strain.prsl"),
            graph: file("graph.svg"),
        }
    }

    /// Writes files, unless one of them exists with other content.
    pub fn write(&self, contents: &[(&Path, &[u8])]) -> Result<()> {
        for (path, content) in contents {
            check_unchanged(path, content)?;
        }
        let folder = &self.folder;
        fs::create_dir_all(folder).with_context(|| format!("cannot make folder `{}`", folder.display()))?;
        for (path, content) in contents {
            Target::from(*path).write_all(content)?;
        }
        Ok(())
    }
}

/// Two paths as they are typed in a shell.
pub fn both([beliefs, truth]: &[PathBuf; 2]) -> String {
    format!("{} {}", shell(beliefs), shell(truth))
}

/// Refuses to overwrite a file with other content.
fn check_unchanged(path: &Path, content: &[u8]) -> Result<()> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot read `{}`", path.display())),
        Ok(found) if found == content => Ok(()),
        Ok(_) => bail!(
            "`{}` is there already and differs from the demo's; name another folder, as in `prsl demo demo2`",
            path.display()
        ),
    }
}
