//! The state of a file, to notice that it has changed.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// Size, time of the last change, and on Unix the file itself, since a renamed file may be older than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    size: u64,
    modified: Option<SystemTime>,
    identity: (u64, i64, i64),
}

impl Stamp {
    /// The state of a file; `None` if there is none.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self { size: metadata.len(), modified: metadata.modified().ok(), identity: identity(&metadata) })
    }
}

/// The number of the file, and the time at which anything about it changed.
#[cfg(unix)]
fn identity(metadata: &fs::Metadata) -> (u64, i64, i64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn identity(_: &fs::Metadata) -> (u64, i64, i64) {
    (0, 0, 0)
}
