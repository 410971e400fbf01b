//! `with_nack`: an event that learns that it was not chosen.

use crate::event::Event;
use crate::event::guard::{force_made, guarded};
use crate::event::nacks::Nack;
use crate::signal::Signal;

/// Like [`guard`](fn@crate::guard); `make` also receives an event that takes effect if this one is not chosen
/// (`withNack`, Reppy 1999, §4.2.5).
///
/// The nack takes effect, permanently and for every synchronisation on it, if and only if the synchronisation chose a
/// branch outside of this event or was abandoned: by a time limit, a drop before the commit, or a panic in a guard.
pub fn with_nack<T: 'static>(make: impl Fn(Event<()>) -> Event<T> + Send + Sync + 'static) -> Event<T> {
    guarded(move |first, context| {
        let signal = Signal::new();
        let nack = context.nacks.add(Box::new(signal.clone()));
        let forced = force_made(make(signal.fired()), first, context);
        context.nacks.cover(nack, first..first + forced.node.shape().base_events);
        forced
    })
}

impl Nack for Signal {
    fn fire(&self) {
        Signal::fire(self);
    }
}
