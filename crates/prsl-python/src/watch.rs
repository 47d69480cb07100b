//! Learning that can be watched and ended: reports for an observer in Python, Ctrl-C and a time limit.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use prsl::learn::paper::{Evaluation, PaperProgress};
use prsl::learn::{Phase, Progress, TimeLimit};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::errors::Failure;
use crate::threads::with_threads;

/// Time between two checks for signals, and between two reports of progress. A tenth of a second feels immediate.
const INTERVAL: Duration = Duration::from_millis(100);

/// What the observer in Python is told.
#[derive(Clone, Copy)]
pub enum Report {
    Clauses { phase: &'static str, n_rules: usize, n_passes: u64, gain: Option<f64> },
    Paper { n_done: usize, n_rules: Option<usize>, step: usize, last: Option<Evaluation> },
}

impl Report {
    pub fn clauses(progress: &Progress) -> Self {
        Report::Clauses {
            phase: phase_name(progress.phase()),
            n_rules: progress.n_rules(),
            n_passes: progress.n_passes(),
            gain: progress.last_gain(),
        }
    }

    pub fn paper(progress: &PaperProgress) -> Self {
        Report::Paper {
            n_done: progress.n_done(),
            n_rules: progress.n_rules(),
            step: progress.step(),
            last: progress.last(),
        }
    }

    pub fn n_passes(&self) -> u64 {
        match self {
            Report::Clauses { n_passes, .. } => *n_passes,
            Report::Paper { .. } => 0,
        }
    }

    pub fn in_phase(self, phase: Phase) -> Self {
        match self {
            Report::Clauses { n_rules, n_passes, gain, .. } => {
                Report::Clauses { phase: phase_name(phase), n_rules, n_passes, gain }
            }
            Report::Paper { .. } => self,
        }
    }

    /// Calls the observer. Returns whether to go on.
    fn show(&self, py: Python<'_>, observe: &Py<PyAny>) -> PyResult<bool> {
        let answer = match *self {
            Report::Clauses { phase, n_rules, n_passes, gain } => {
                observe.call1(py, (phase, n_rules, n_passes, gain))
            }
            Report::Paper { n_done, n_rules, step, last } => {
                let training = last.and_then(|evaluation| evaluation.training);
                let validation = last.map(|evaluation| evaluation.validation);
                observe.call1(py, (n_done, n_rules, step, training, validation))
            }
        };
        answer?.is_truthy(py)
    }
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Calibrating => "calibrating",
        Phase::Adding => "adding rules",
        Phase::Judging(_) => "judging rules",
        _ => "learning",
    }
}

/// Receives reports from the learner, and answers whether to go on.
pub type Tell<'a> = dyn FnMut(Report) -> ControlFlow<()> + Send + 'a;

/// Learns on a thread of its own. The calling thread handles signals and calls the observer: Python handles signals only
/// on its main thread, and the learner calls its observer on any thread of its pool.
///
/// The first Ctrl-C ends learning with the best model so far, as on the command line. The second one raises
/// `KeyboardInterrupt`. Returns also whether Ctrl-C was pressed.
pub fn watched<T: Send>(
    py: Python<'_>,
    (mut limit, threads): (TimeLimit, Option<usize>),
    observe: Option<&Py<PyAny>>,
    learn: impl FnOnce(&mut Tell<'_>) -> prsl::Result<T> + Send,
) -> PyResult<(T, bool)> {
    let is_over = AtomicBool::new(false);
    let is_over = &is_over;
    let (learned, is_interrupted) = py.detach(|| {
        let (sender, reports) = channel();
        thread::scope(|scope| {
            let worker = scope.spawn(move || {
                let mut shown: Option<Instant> = None;
                let mut tell = move |report: Report| {
                    if shown.is_none_or(|time| time.elapsed() >= INTERVAL) {
                        shown = Some(Instant::now());
                        // It fails only if nobody listens any more.
                        let _ = sender.send(report);
                    }
                    if limit.allows_a_step() && !is_over.load(Ordering::Relaxed) {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                };
                with_threads(threads, move || learn(&mut tell))
            });
            let listened = listen(&reports, is_over, observe);
            let learned = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            Ok::<_, PyErr>((learned?, listened?))
        })
    })?;
    Ok((learned.map_err(Failure::from)?, is_interrupted))
}

/// Handles signals and reports until the learner ends. Returns whether Ctrl-C was pressed. Afterward the observer is not
/// called any more.
fn listen(reports: &Receiver<Report>, is_over: &AtomicBool, observe: Option<&Py<PyAny>>) -> PyResult<bool> {
    let mut is_interrupted = false;
    let mut error = None;
    loop {
        let report = match reports.recv_timeout(INTERVAL) {
            Ok(report) => Some(report),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if error.is_some() {
            continue;
        }
        let goes_on = Python::attach(|py| {
            py.check_signals()?;
            match (report, observe) {
                (Some(report), Some(observe)) if !is_interrupted => report.show(py, observe),
                _ => Ok(true),
            }
        });
        if !matches!(goes_on, Ok(true)) {
            is_over.store(true, Ordering::Relaxed);
        }
        match goes_on {
            Err(raised) if !is_interrupted && is_interrupt(&raised) => is_interrupted = true,
            other => error = other.err(),
        }
    }
    error.map_or(Ok(is_interrupted), Err)
}

/// Whether Ctrl-C raised it, here or in the observer.
fn is_interrupt(raised: &PyErr) -> bool {
    Python::attach(|py| raised.is_instance_of::<PyKeyboardInterrupt>(py))
}
