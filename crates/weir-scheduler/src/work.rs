//! Work: the interface between the scheduler and the code that runs at its ports.

use std::num::NonZeroUsize;

use crate::platform::SchedulerPlatform;

/// The index of a port. Items usually go from lower to higher ports; a port waits for room only in a higher one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub usize);

/// The code that runs at the ports.
pub trait Work: Send + Sync + 'static {
    /// An item that passes the ports.
    type Item: Send + 'static;

    /// The platform that the work runs on: [`StdPlatform`](crate::StdPlatform), except in tests.
    type WorkPlatform: SchedulerPlatform;

    /// Runs an item at a port.
    ///
    /// A port runs one item at a time, in the order of submission. The call must not panic. It may block, and its
    /// thread then no longer counts as one of the pool's.
    ///
    /// An implementation that can run consecutive ports more cheaply in one call asks `fusion` for them.
    fn run(&self, port: PortId, item: Self::Item, fusion: &mut impl Fusion) -> RunOutcome<Self::Item>;

    /// Returns the platform that the work runs on.
    fn platform(&self) -> &Self::WorkPlatform;

    /// Called with the items of a batch, in the order in which they are run next, each by [`run`](Work::run). Some of their work
    /// may be done here, for several of them at once. Returns the number of items for which it was, if the batch is to end
    /// behind them because the others would take much longer.
    fn before_batch(&self, _port: PortId, _items: &mut [Self::Item]) -> Option<NonZeroUsize> {
        None
    }

    /// Called by a thread that has run a batch: effects that were deferred to the end of the batch are due.
    fn after_batch(&self) {}

    /// Called by a thread of a pool before it sleeps, and when it ends. Pools have the numbers of their places in the list with
    /// which the scheduler was started.
    fn before_sleep(&self, _pool: usize) {}

    /// Called by a thread of a pool when it begins, and after it has slept.
    fn after_sleep(&self, _pool: usize) {}
}

/// The outcome of running an item at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome<T> {
    /// The item is finished.
    Finished,
    /// The item goes on at this port, at once if its thread may run it there.
    Next(PortId, T),
    /// The item has computed for as long as it may: it goes on at this port when the other items there have had their
    /// turn. The port may have any number of such items: they have left it room when they were first taken.
    Yields(PortId, T),
}

impl<T> RunOutcome<T> {
    /// Returns the item and the port at which it goes on, unless it is finished.
    #[must_use]
    pub fn remaining(self) -> Option<(PortId, T)> {
        match self {
            RunOutcome::Next(port, item) | RunOutcome::Yields(port, item) => Some((port, item)),
            RunOutcome::Finished => None,
        }
    }
}

/// An item and its next port, or `None` if it is finished.
impl<T> From<Option<(PortId, T)>> for RunOutcome<T> {
    fn from(next: Option<(PortId, T)>) -> Self {
        next.map_or(RunOutcome::Finished, |(port, item)| RunOutcome::Next(port, item))
    }
}

/// Permission to run consecutive ports within one call of [`Work::run`].
pub trait Fusion {
    /// Returns whether the caller may run the item at this port too, after the ports that it asked for before. If so,
    /// it must run it, unless the item finishes before.
    fn may_fuse(&mut self, port: PortId) -> bool;
}
