//! Which nacks fire when a synchronisation is over.
//!
//! A nack covers a range of leaves. When a leaf takes effect, all nacks fire that do not cover it; when the
//! synchronisation is given up, by a drop or a panic before a leaf took effect, all of them fire.

use std::ops::Range;

use crate::signal::Signal;

/// The nacks of one synchronisation.
#[derive(Default)]
pub(crate) struct Settlement {
    nacks: Vec<Nack>,
    candidate: usize,
}

struct Nack {
    signal: Signal,
    covers: Range<usize>,
}

impl Settlement {
    /// Adds a nack that covers nothing yet; returns its number.
    pub(crate) fn add(&mut self, signal: Signal) -> usize {
        self.nacks.push(Nack { signal, covers: 0..0 });
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
        for nack in std::mem::take(&mut self.nacks) {
            if !nack.covers.contains(&self.candidate) {
                nack.signal.fire();
            }
        }
    }
}

impl Drop for Settlement {
    fn drop(&mut self) {
        for nack in std::mem::take(&mut self.nacks) {
            nack.signal.fire();
        }
    }
}
