//! Checkpoints of learning: a file with the progress of a run, from which another run can continue.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use prsl::learn::Progress;
use prsl_data::Target;

use super::Arguments;

/// The name of a checkpoint in its folder.
pub(super) const CHECKPOINT: &str = "progress.json";

pub(super) fn write_checkpoint(folder: &Path, progress: &Progress) -> Result<()> {
    let text = serde_json::to_string(progress).expect("writing to memory does not fail");
    Ok(Target::from(folder.join(CHECKPOINT).as_path()).write_all(text.as_bytes())?)
}

impl Arguments {
    /// The initial state. Checks before learning that the checkpoint can be read and written.
    pub(super) fn progress(&self) -> Result<Progress> {
        let Some(folder) = &self.checkpoint else { return Ok(Progress::new()) };
        let path = folder.join(CHECKPOINT);
        if !path.exists() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make folder `{}`", folder.display()))?;
            Target::from(path.as_path()).check()?;
            return Ok(Progress::new());
        }
        if !self.resume {
            bail!(
                "`{}` is the checkpoint of another run; continue it with --resume, or name another folder",
                path.display()
            );
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        serde_json::from_str(&text)
            .with_context(|| format!("`{}` is not a checkpoint of prsl, or it is incomplete", path.display()))
    }
}
