//! What the search for one row may take: counted work, and the clock only where a user asks for it.

use std::time::Instant;

use super::SearchLimits;
use crate::posterior::SearchEnd;

/// Work of the first bound and the first guesses, which every row gets whatever its limit.
const FIRST_WORK: u64 = 100_000_000;
/// Work between two looks at the clock, which is slow.
const LOOK: u64 = 1_000_000;

/// Work done, and how much there may be.
pub(crate) struct Budget {
    limits: SearchLimits,
    spent: u64,
    limit: u64,
    deadline: Option<Instant>,
    next_look: u64,
    is_late: bool,
    is_full: bool,
}

impl Budget {
    /// For the first bound.
    pub(super) fn first(limits: SearchLimits) -> Self {
        Self {
            limits,
            spent: 0,
            limit: limits.work.max(FIRST_WORK),
            deadline: limits.time.and_then(|time| Instant::now().checked_add(time)),
            next_look: LOOK,
            is_late: false,
            is_full: false,
        }
    }

    /// From now on only what the limits allow.
    pub(super) fn start_search(&mut self) {
        self.limit = self.limits.work;
    }

    /// Counts work that was done.
    pub(super) fn spend(&mut self, work: u64) {
        self.spent = self.spent.saturating_add(work);
        if self.spent >= self.next_look {
            self.next_look = self.spent.saturating_add(LOOK);
            self.is_late |= self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        }
    }

    /// Ends the search for want of memory.
    pub(super) fn give_up(&mut self) {
        self.is_full = true;
    }

    /// Whether nothing more may be done.
    pub(super) fn is_spent(&self) -> bool {
        self.is_late || self.is_full || self.spent >= self.limit
    }

    /// How a search ended that was not complete.
    pub(super) fn end(&self) -> SearchEnd {
        if self.is_late { SearchEnd::TimeLimit } else { SearchEnd::WorkLimit }
    }
}
