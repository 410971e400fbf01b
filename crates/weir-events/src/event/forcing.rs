//! Forcing: events that are made anew for each synchronisation, before anything is tried.

use super::Event;
use super::node::{Node, Shape, Stake};
use super::placing::Placing;
use super::settlement::Settlement;

/// What a synchronisation gathers while its guards run.
#[derive(Default)]
pub(crate) struct Forcing {
    pub(crate) settlement: Settlement,
    depth: usize,
}

/// Guards that make guards that make guards … : more than this many inside each other is taken for an endless event.
pub const GUARD_DEPTH_MAX: usize = 256;

impl Forcing {
    /// Forces an event that a guard has just made.
    pub(crate) fn force_made<T: 'static>(&mut self, event: Event<T>, first: usize) -> Event<T> {
        self.depth += 1;
        assert!(self.depth <= GUARD_DEPTH_MAX, "guards are nested deeper than {GUARD_DEPTH_MAX}");
        let forced = event.node.force(first, self).unwrap_or(event);
        self.depth -= 1;
        forced
    }
}

/// `guard(f)`.
pub(crate) struct Guard<F>(pub(crate) F);

impl<T: 'static, F: Fn() -> Event<T> + Send + Sync> Node<T> for Guard<F> {
    fn shape(&self) -> Shape {
        Shape { guarded: true, acts: true, ..Shape::LEAF }
    }

    fn force(&self, first: usize, forcing: &mut Forcing) -> Option<Event<T>> {
        let event = (self.0)();
        Some(forcing.force_made(event, first))
    }

    fn attempt(&self, _: usize, _: &mut Settlement) -> Option<T> {
        unreachable!("guards are forced before anything is tried")
    }

    fn place(&self, _: usize, _: &mut Placing<'_>) -> Option<Stake> {
        unreachable!("guards are forced before anything is placed")
    }

    fn redeem(&self, _: usize, _: Option<Stake>) -> T {
        unreachable!("guards are forced before anything takes effect")
    }
}
