//! Limits of learning: the user's time, and questions whether to stop during work that has no steps of its own.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// A time limit that is asked for after each step.
///
/// ```
/// use std::time::Duration;
/// use prsl::learn::TimeLimit;
///
/// assert!(TimeLimit::new(None).allows_a_step());
/// assert!(!TimeLimit::new(Some(Duration::ZERO)).allows_a_step());
/// ```
#[derive(Clone, Debug)]
pub struct TimeLimit {
    start: Instant,
    most: Option<Duration>,
    /// When the last step ended.
    last: Option<Duration>,
    longest: Duration,
}

impl TimeLimit {
    /// Starts now.
    pub fn new(most: Option<Duration>) -> Self {
        Self { start: Instant::now(), most, last: None, longest: Duration::ZERO }
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Whether the next step would end in time, should it take as long as the longest so far.
    pub fn allows_a_step(&mut self) -> bool {
        let now = self.elapsed();
        let step = now - self.last.replace(now).unwrap_or(now);
        self.longest = self.longest.max(step);
        self.most.is_none_or(|most| now.saturating_add(self.longest) < most)
    }
}

/// Counted work between two questions, in operations on numbers: a fraction of a second.
const INTERVAL: usize = 1 << 25;

/// Counts work, and asks after each [`INTERVAL`] of it whether to stop.
pub(crate) struct Watch<'a> {
    ask: &'a mut dyn FnMut() -> ControlFlow<()>,
    work: usize,
    is_over: bool,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(ask: &'a mut dyn FnMut() -> ControlFlow<()>) -> Self {
        Self { ask, work: 0, is_over: false }
    }

    /// Adds work that was done; whether there may be more.
    pub(crate) fn goes_on(&mut self, work: usize) -> bool {
        self.work = self.work.saturating_add(work);
        if !self.is_over && self.work >= INTERVAL {
            self.work = 0;
            self.is_over = (self.ask)().is_break();
        }
        !self.is_over
    }

    /// Whether the answer was to stop.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }
}

/// Work that is never stopped.
pub(crate) fn never() -> impl FnMut() -> ControlFlow<()> {
    || ControlFlow::Continue(())
}
