//! Which nacks fire when a synchronisation is over.
//!
//! A nack covers a range of base events. When a base event takes effect, all nacks fire that do not cover it; when the
//! synchronisation is given up, by a drop or a panic before a base event took effect, all of them fire.

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

/// What can be told that a branch is not wanted any more.
pub(crate) trait Nack: Send + Sync {
    fn fire(&self);
}

impl NackSet {
    /// Adds a nack that covers nothing yet; returns its number.
    pub(crate) fn add(&mut self, nack: Box<dyn Nack>) -> usize {
        self.nacks.push(Covering { nack, covers: 0..0 });
        self.nacks.len() - 1
    }

    /// Says which base events a nack covers.
    pub(crate) fn cover(&mut self, nack: usize, base_events: Range<usize>) {
        self.nacks[nack].covers = base_events;
    }

    /// Says which base event is tried next, numbered in the whole tree.
    pub(crate) fn set_candidate(&mut self, base: usize) {
        self.candidate = base;
    }

    /// The base event that was tried took effect: fires the nacks of the others. Nothing fires after that.
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
