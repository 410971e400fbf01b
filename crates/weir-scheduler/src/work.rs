//! What is done at ports, as far as the threads that do it know.

/// The index of a port. Items mostly go from lower to higher ones; a port waits for room only in a higher one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub usize);

/// What is done at the ports.
pub trait Work: Send + Sync + 'static {
    /// What goes through them.
    type Item: Send + 'static;

    /// Works on an item at a port, and says where it goes on; `None` where it is through. Of one port, one item is worked
    /// on at a time, in the order in which they were put in. It must not panic; it may block, and is then not counted
    /// among its crew's threads.
    ///
    /// Where the work of several ports is cheaper done in one go, it asks `ahead` for those that follow.
    fn run(&self, port: PortId, item: Self::Item, ahead: &mut impl Fusion) -> Option<(PortId, Self::Item)>;

    /// A thread has worked off a batch: what it kept back to do for all of it in one go is due.
    fn after_batch(&self) {}
}

/// Lets [`Work::run`] do the work of the ports that follow in one go, instead of yielding the item for each.
pub trait Fusion {
    /// Whether the item's work at this port, where it goes on after those asked for before, may be done now too. Who is
    /// told so does it, unless the item ends before.
    fn may_fuse(&mut self, port: PortId) -> bool;
}
