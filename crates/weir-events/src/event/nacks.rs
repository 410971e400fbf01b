//! Negative acknowledgements of a synchronisation.
//!
//! A nack covers a range of base events. When a base event takes effect, all nacks fire that do not cover it. When the
//! synchronisation is abandoned before that, by a drop or a panic, all nacks fire.

use std::ops::Range;

/// The nacks of one synchronisation.
#[derive(Default)]
pub(crate) struct NackSet {
    nacks: Vec<Covering>,
    candidate: usize,
}

struct Covering {
    nack: Box<dyn Nack>,
    covers: Range<usize>,
}

/// The receiver of a negative acknowledgement.
pub(crate) trait Nack: Send + Sync {
    fn fire(&self);
}

impl NackSet {
    /// Adds a nack that covers nothing yet, and returns its number.
    pub(crate) fn add(&mut self, nack: Box<dyn Nack>) -> usize {
        self.nacks.push(Covering { nack, covers: 0..0 });
        self.nacks.len() - 1
    }

    /// Sets the base events that a nack covers.
    pub(crate) fn cover(&mut self, nack: usize, base_events: Range<usize>) {
        self.nacks[nack].covers = base_events;
    }

    /// Sets the base event that is tried next, numbered in the whole tree.
    pub(crate) fn set_candidate(&mut self, base: usize) {
        self.candidate = base;
    }

    /// Fires the nacks that do not cover the candidate, which has taken effect. Nothing fires after that.
    #[inline]
    pub(crate) fn fire_losers(&mut self) {
        if !self.nacks.is_empty() {
            self.fire(|covers, candidate| !covers.contains(&candidate));
        }
    }

    #[cold]
    fn fire(&mut self, is_lost: fn(&Range<usize>, usize) -> bool) {
        for covering in std::mem::take(&mut self.nacks) {
            if is_lost(&covering.covers, self.candidate) {
                covering.nack.fire();
            }
        }
    }
}

impl Drop for NackSet {
    #[inline]
    fn drop(&mut self) {
        if !self.nacks.is_empty() {
            self.fire(|_, _| true);
        }
    }
}
