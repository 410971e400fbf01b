//! Rounds ahead: a range of the list of a loop, which all forks of the loop share.
//!
//! Whoever begins the rounds takes its elements out, so that no thread does that for the others. Packed elements are copied under
//! a lock for reading, so that many threads do it at once; others are moved, which needs the list alone.

use std::sync::Arc;

use parking_lot::RwLock;
use weir_host::Elements;

/// The elements of rounds ahead.
#[derive(Clone)]
pub(super) struct RoundsAhead {
    list: Arc<RwLock<Elements>>,
    from: usize,
    to: usize,
}

impl RoundsAhead {
    /// Returns the rounds of the elements from a position on.
    pub(super) fn new(list: Elements, from: usize) -> RoundsAhead {
        let to = list.len();
        RoundsAhead { list: Arc::new(RwLock::new(list)), from, to }
    }

    /// Returns their number.
    pub(super) fn len(&self) -> usize {
        self.to - self.from
    }

    /// Begins so many elements before.
    pub(super) fn begin_before(&mut self, count: usize) {
        self.from -= count;
    }

    /// Cuts off parts for so many forks, the last one first. All parts, and what is left, are about as long.
    pub(super) fn cut_off(&mut self, forks: usize) -> Vec<RoundsAhead> {
        let cut = (1..=forks).rev().map(|shares| {
            let from = self.from + self.len() * shares / (shares + 1);
            let to = std::mem::replace(&mut self.to, from);
            RoundsAhead { list: Arc::clone(&self.list), from, to }
        });
        cut.collect()
    }

    /// Moves the elements out, unless they are packed.
    pub(super) fn take(&self) -> Elements {
        let is_copied = self.list.read().is_packed();
        if is_copied { self.copy() } else { self.list.write().take_range(self.from, self.to) }
    }

    /// Returns copies of the elements.
    pub(super) fn copy(&self) -> Elements {
        self.list.read().range(self.from, self.to)
    }
}
