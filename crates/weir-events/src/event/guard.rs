//! `guard`: an event that is made anew for each synchronisation.

use super::forcing::Forcing;
use super::node::{Event, Node, Shape, Stake};
use super::placing::Placing;
use super::settlement::Settlement;

/// `guard(f)`.
pub(crate) struct Guard<F>(pub(crate) F);

impl<T: 'static, F: Fn() -> Event<T> + Send + Sync> Node<T> for Guard<F> {
    fn shape(&self) -> Shape {
        Shape { guarded: true, acts: true, ..Shape::LEAF }
    }

    fn force(&self, first: usize, forcing: &mut Forcing) -> Option<Event<T>> {
        let event = (self.0)();
        Some(force_made(event, first, forcing))
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

/// Forces an event that a guard has just made.
pub(crate) fn force_made<T: 'static>(event: Event<T>, first: usize, forcing: &mut Forcing) -> Event<T> {
    forcing.enter();
    let forced = event.node.force(first, forcing).unwrap_or(event);
    forcing.leave();
    forced
}
