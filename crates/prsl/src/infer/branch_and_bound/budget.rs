//! The budget of one row's search: counted work, and time only if the user sets a time limit.

use std::time::Instant;

use super::SearchLimits;
use crate::posterior::SearchEnd;

/// Minimum work for the first bound and the first solutions. Every row gets it, whatever its limit.
const FIRST_WORK: u64 = 100_000_000;
/// Work between two readings of the clock. Reading it after each update would slow down the search.
const CLOCK_INTERVAL: u64 = 1_000_000;

/// Work done so far, and its limit.
pub(crate) struct Budget {
    limits: SearchLimits,
    spent: u64,
    limit: u64,
    deadline: Option<Instant>,
    next_reading: u64,
    is_over_time: bool,
    is_full: bool,
}

impl Budget {
    /// A budget for the first bound and the first solutions.
    pub(super) fn first(limits: SearchLimits) -> Self {
        Self {
            limits,
            spent: 0,
            limit: limits.work.max(FIRST_WORK),
            deadline: limits.time.and_then(|time| Instant::now().checked_add(time)),
            next_reading: CLOCK_INTERVAL,
            is_over_time: false,
            is_full: false,
        }
    }

    /// Applies the user's work limit from now on.
    pub(super) fn start_search(&mut self) {
        self.limit = self.limits.work;
    }

    /// Counts work that was done.
    pub(super) fn spend(&mut self, work: u64) {
        self.spent = self.spent.saturating_add(work);
        if self.spent >= self.next_reading {
            self.next_reading = self.spent.saturating_add(CLOCK_INTERVAL);
            self.is_over_time |= self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        }
    }

    /// Stops the search because the trail is full.
    pub(super) fn give_up(&mut self) {
        self.is_full = true;
    }

    /// Whether the search must stop.
    pub(super) fn is_spent(&self) -> bool {
        self.is_over_time || self.is_full || self.spent >= self.limit
    }

    /// The reason why a search stopped before its end.
    pub(super) fn end(&self) -> SearchEnd {
        if self.is_over_time { SearchEnd::TimeLimit } else { SearchEnd::WorkLimit }
    }
}
