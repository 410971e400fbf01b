//! Which nacks fire when a synchronisation is over.
//!
//! A nack covers a range of leaves. When a leaf takes effect, all nacks fire that do not cover it; when the
//! synchronisation is given up, by a drop or a panic before a leaf took effect, all of them fire.

use std::ops::Range;

/// The nacks of one synchronisation.
#[derive(Default)]
pub(crate) struct Settlement {
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

impl Settlement {
    /// Adds a nack that covers nothing yet; returns its number.
    pub(crate) fn add(&mut self, nack: Box<dyn Nack>) -> usize {
        self.nacks.push(Covering { nack, covers: 0..0 });
        self.nacks.len() - 1
    }

    /// Says which leaves a nack covers.
    pub(crate) fn cover(&mut self, nack: usize, leaves: Range<usize>) {
        self.nacks[nack].covers = leaves;
    }

    /// Says which leaf is tried next, numbered in the whole tree.
    pub(crate) fn consider(&mut self, leaf: usize) {
        self.candidate = leaf;
    }

    /// The leaf that was tried took effect: fires the nacks of the others. Nothing fires after that.
    pub(crate) fn settle(&mut self) {
        for covering in std::mem::take(&mut self.nacks) {
            if !covering.covers.contains(&self.candidate) {
                covering.nack.fire();
            }
        }
    }
}

impl Drop for Settlement {
    fn drop(&mut self) {
        for covering in std::mem::take(&mut self.nacks) {
            covering.nack.fire();
        }
    }
}
