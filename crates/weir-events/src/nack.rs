//! `with_nack`: an event that learns when it is not wanted any more.

use crate::event::Event;
use crate::event::forcing::Forcing;
use crate::event::guard::force_made;
use crate::event::node::{Node, Shape, Stake};
use crate::event::placing::Placing;
use crate::event::settlement::{Nack, Settlement};
use crate::signal::Signal;

/// Like [`guard`](fn@crate::guard), with an event that tells when this one is not wanted any more (`withNack`, Reppy 1999, §4.2.5).
///
/// The nack takes effect, from then on and for everybody, when and only when the synchronisation chose a branch
/// outside of this event or was given up: by a time limit, a drop, or a panic in a guard.
pub fn with_nack<T: 'static>(make: impl Fn(Event<()>) -> Event<T> + Send + Sync + 'static) -> Event<T> {
    Event::of(WithNack(make))
}

/// `with_nack(f)`.
struct WithNack<F>(F);

impl<T: 'static, F: Fn(Event<()>) -> Event<T> + Send + Sync> Node<T> for WithNack<F> {
    fn shape(&self) -> Shape {
        Shape { guarded: true, acts: true, ..Shape::LEAF }
    }

    fn force(&self, first: usize, forcing: &mut Forcing) -> Option<Event<T>> {
        let signal = Signal::new();
        let nack = forcing.settlement.add(Box::new(signal.clone()));
        let event = (self.0)(signal.fired());
        let forced = force_made(event, first, forcing);
        forcing.settlement.cover(nack, first..first + forced.node.shape().leaves);
        Some(forced)
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

impl Nack for Signal {
    fn fire(&self) {
        Signal::fire(self);
    }
}
