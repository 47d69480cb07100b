//! Floats as keys of heaps and maps.

use std::cmp::Ordering;

/// A number ordered by [`f64::total_cmp`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ordered(pub(crate) f64);

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ordered {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ordered {}
