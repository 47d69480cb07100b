//! Checkpoints of learning: a file with the progress of a run, from which another run can continue.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use prsl_data::Target;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Arguments;
use super::warnings::warn;

/// The name of a checkpoint in its folder.
pub(super) const CHECKPOINT: &str = "progress.json";

/// Writes checkpoints of one recipe.
pub(super) struct Checkpoints<'a> {
    folder: Option<&'a Path>,
    recipe: &'static str,
    has_failed: bool,
}

impl Checkpoints<'_> {
    /// Writes the progress. An error is only a warning, because it must not lose the learned model.
    pub(super) fn write(&mut self, progress: &impl Serialize) {
        let Some(folder) = self.folder else { return };
        let text = serde_json::to_string(&BTreeMap::from([(self.recipe, progress)]));
        let text = text.expect("writing to memory does not fail");
        let written = Target::from(folder.join(CHECKPOINT).as_path()).write_all(text.as_bytes());
        if let Err(error) = written
            && !std::mem::replace(&mut self.has_failed, true)
        {
            warn(&format!("{error}; learning goes on without a checkpoint"));
        }
    }
}

impl Arguments {
    pub(super) fn checkpoints(&self, recipe: &'static str) -> Checkpoints<'_> {
        Checkpoints { folder: self.checkpoint.as_deref(), recipe, has_failed: false }
    }

    /// The state to continue from. Checks before learning that the checkpoint can be read and written.
    pub(super) fn progress<T: DeserializeOwned>(&self, recipe: &str) -> Result<Option<T>> {
        let Some(folder) = &self.checkpoint else { return Ok(None) };
        let path = folder.join(CHECKPOINT);
        if !path.exists() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make folder `{}`", folder.display()))?;
            Target::from(path.as_path()).check()?;
            return Ok(None);
        }
        let name = path.display();
        if !self.resume {
            bail!(
                "`{name}` is the checkpoint of another run; continue it with --resume, or name another folder"
            );
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read `{name}`"))?;
        let incomplete = || format!("`{name}` is not a checkpoint of prsl, or it is incomplete");
        let recipes: BTreeMap<String, Value> = serde_json::from_str(&text).with_context(incomplete)?;
        match recipes.into_iter().next() {
            Some((other, progress)) if other == recipe => {
                serde_json::from_value(progress).map(Some).with_context(incomplete)
            }
            Some((other, _)) if ["clauses", "paper"].contains(&other.as_str()) => {
                bail!("`{name}` is a checkpoint of --recipe {other}; name another folder")
            }
            _ => Err(anyhow!(incomplete())),
        }
    }
}
