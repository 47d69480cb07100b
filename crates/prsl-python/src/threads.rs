//! Threads of the library's work.
//!
//! Threads do not survive `fork`, but rayon's global pool does not notice: in a forked process it waits for them for
//! ever. So only the process that imported the package uses the global pool. Every other process gets its own pool.

use std::process;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::argument;

/// The process that imported the package.
static HOME: OnceLock<u32> = OnceLock::new();

/// The pool of a forked process, with the process's id.
static FORKED: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Records the current process as the one that imported the package.
pub fn remember_process() {
    HOME.get_or_init(process::id);
}

/// Runs work with the interpreter's lock released, on this number of threads; by default one per core.
pub fn detached<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    py.detach(|| with_threads(threads, work))
}

/// Runs work on this number of threads; by default one per core.
pub fn with_threads<T: Send>(threads: Option<usize>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    match threads {
        Some(threads) => Ok(pool(threads.max(1))?.install(work)),
        None if HOME.get() == Some(&process::id()) => Ok(work()),
        None => Ok(forked()?.install(work)),
    }
}

/// The pool of this forked process.
fn forked() -> PyResult<Arc<ThreadPool>> {
    let mut known = FORKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((owner, pool)) = &*known
        && *owner == process::id()
    {
        return Ok(Arc::clone(pool));
    }
    let own = Arc::new(pool(0)?);
    // The threads of an older pool do not exist in this process, so it must not be dropped.
    std::mem::forget(known.replace((process::id(), Arc::clone(&own))));
    Ok(own)
}

/// A new pool; 0 threads mean one per core.
fn pool(threads: usize) -> PyResult<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| argument(format!("cannot start {threads} threads: {error}")))
}
