//! First-class events: values that describe a communication, to be combined before anybody synchronises on them.
//!
//! Each file imports those named before it here at the most, and none imports this one.

pub(crate) mod nacks;
pub(crate) mod registration;
mod try_order;

pub(crate) mod guard_context;

pub(crate) mod node;

mod base;
mod choose;
pub(crate) mod guard;
mod wrap;

mod pending;

mod synchronise;

use choose::{Choose, Preference};
pub use guard_context::GUARD_DEPTH_MAX;
pub use node::Event;
pub(crate) use synchronise::CommittedSync;
pub use synchronise::Synchronisation;
pub(crate) use try_order::below as random_below;
pub use try_order::seed_choices;

impl<T: 'static> Event<T> {
    /// The same event with `action` applied to its value, in the thread or task that synchronises (`wrap`).
    ///
    /// The action runs after the commit, when all other branches have been withdrawn and their nacks have fired. If it
    /// panics the commit stands.
    pub fn wrap<B: 'static>(&self, action: impl Fn(T) -> B + Send + Sync + 'static) -> Event<B> {
        Event::of(wrap::Wrap::new(self.clone(), action))
    }

    /// This event or the other, whichever can take effect; a fair choice (`choose` of two).
    pub fn or(&self, other: &Event<T>) -> Event<T> {
        choose([self.clone(), other.clone()])
    }
}

/// An event that takes effect at once (`alwaysEvt`).
pub fn always<T: Clone + Send + Sync + 'static>(value: T) -> Event<T> {
    Event::of(base::Always(value))
}

/// An event that never takes effect (`never`).
pub fn never<T: 'static>() -> Event<T> {
    Event::of(base::Never)
}

/// An event made anew by `make` for each synchronisation, before anything is tried (`guard`).
///
/// If `make` panics the synchronisation is given up: nacks made before fire, nothing stays queued.
pub fn guard<T: 'static>(make: impl Fn() -> Event<T> + Send + Sync + 'static) -> Event<T> {
    guard::guarded(move |first, context| guard::force_made(make(), first, context))
}

/// Exactly one of the branches takes effect (`choose`).
///
/// Of branches that can take effect at once each has the same chance; a choice inside a choice counts as its branches.
/// Without branches it is [`never()`].
pub fn choose<T: 'static>(branches: impl IntoIterator<Item = Event<T>>) -> Event<T> {
    Event::of(Choose::new(branches.into_iter().collect(), Preference::Fair))
}

/// Exactly one of the branches takes effect; of those that can at once, the one named first.
///
/// Only a choice between branches that are ready is biased: if all have to wait, the first to become ready is taken.
pub fn choose_biased<T: 'static>(branches: impl IntoIterator<Item = Event<T>>) -> Event<T> {
    Event::of(Choose::new(branches.into_iter().collect(), Preference::First))
}
