//! `guard`: an event that is made anew for each synchronisation; `with_nack` is one that is told how that ends.

use super::forcing::Forcing;
use super::node::{Event, Node, Shape, Stake};
use super::placing::Placing;
use super::settlement::Settlement;

/// An event that `make` makes, and forces, where its leaves begin with this one.
pub(crate) fn guarded<T: 'static>(make: impl Fn(usize, &mut Forcing) -> Event<T> + Send + Sync + 'static) -> Event<T> {
    Event::of(Guard(make))
}

struct Guard<F>(F);

impl<T: 'static, F: Fn(usize, &mut Forcing) -> Event<T> + Send + Sync> Node<T> for Guard<F> {
    fn shape(&self) -> Shape {
        Shape { guarded: true, acts: true, ..Shape::LEAF }
    }

    fn force(&self, first: usize, forcing: &mut Forcing) -> Option<Event<T>> {
        Some((self.0)(first, forcing))
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
