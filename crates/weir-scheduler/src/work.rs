//! Work: the interface between the scheduler and the code that runs at its ports.

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

    /// Runs an item at a port. Returns the item and its next port, or `None` if it is finished.
    ///
    /// A port runs one item at a time, in the order of submission. The call must not panic. It may block, and its
    /// thread then no longer counts as one of the pool's.
    ///
    /// An implementation that can run consecutive ports more cheaply in one call asks `fusion` for them.
    fn run(&self, port: PortId, item: Self::Item, fusion: &mut impl Fusion) -> Option<(PortId, Self::Item)>;

    /// Returns the platform that the work runs on.
    fn platform(&self) -> &Self::WorkPlatform;

    /// Called by a thread that has run a batch: effects that were deferred to the end of the batch are due.
    fn after_batch(&self) {}
}

/// Permission to run consecutive ports within one call of [`Work::run`].
pub trait Fusion {
    /// Returns whether the caller may run the item at this port too, after the ports that it asked for before. If so,
    /// it must run it, unless the item finishes before.
    fn may_fuse(&mut self, port: PortId) -> bool;
}
