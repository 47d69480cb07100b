//! Asks now and then whether to stop, during work that has no steps of its own.

use std::ops::ControlFlow;

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
