//! First-class events: values that describe a communication, to be combined before they are synchronised.
//!
//! Each file imports at most those declared before it here, and none imports this one.

pub(crate) mod nacks;
pub(crate) mod registration;
mod try_order;

pub(crate) mod guard_context;

pub(crate) mod node;

mod base;
mod choose;
pub(crate) mod guard;
mod wrap;

mod wrap_once;

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
    /// Returns this event with `action` applied to its value, in the thread or task that synchronises (`wrap`).
    ///
    /// The action runs after the commit, after all other branches have been withdrawn and their nacks have fired. If it
    /// panics, the commit stands.
    pub fn wrap<B: 'static>(&self, action: impl Fn(T) -> B + Send + Sync + 'static) -> Event<B> {
        Event::of(wrap::Wrap::new(self.clone(), action))
    }

    /// Like [`wrap`](Event::wrap) with an action that runs at most once and may consume what it has captured. After that the
    /// event never takes effect again.
    ///
    /// The action belongs to one synchronisation at a time: beside a synchronisation that waits, others never take effect.
    pub fn wrap_once<B: 'static>(&self, action: impl FnOnce(T) -> B + Send + 'static) -> Event<B> {
        wrap_once::wrap_once(self.clone(), action)
    }

    /// Returns a fair choice of this event and another one (`choose` of two).
    pub fn or(&self, other: &Event<T>) -> Event<T> {
        choose([self.clone(), other.clone()])
    }
}

/// Returns an event that takes effect at once (`alwaysEvt`).
pub fn always<T: Clone + Send + Sync + 'static>(value: T) -> Event<T> {
    Event::of(base::Always(value))
}

/// Returns an event that never takes effect (`never`).
pub fn never<T: 'static>() -> Event<T> {
    Event::of(base::Never)
}

/// Returns an event that `make` creates anew for each synchronisation, before any branch is tried (`guard`).
///
/// If `make` panics, the synchronisation is abandoned: nacks that were made before fire, and nothing stays queued.
pub fn guard<T: 'static>(make: impl Fn() -> Event<T> + Send + Sync + 'static) -> Event<T> {
    guard::guarded(move |first, context| guard::force_made(make(), first, context))
}

/// Returns an event that is exactly one of the branches (`choose`).
///
/// If several branches can take effect at once, each has the same chance; a choice inside a choice counts as its
/// branches. Without branches it is [`never()`].
pub fn choose<T: 'static>(branches: impl IntoIterator<Item = Event<T>>) -> Event<T> {
    Event::of(Choose::new(branches.into_iter().collect(), Preference::Fair))
}

/// Returns an event that is exactly one of the branches; if several can take effect at once, it is the first of them.
///
/// Only a choice between ready branches is biased: if all have to wait, the first to become ready is taken.
pub fn choose_biased<T: 'static>(branches: impl IntoIterator<Item = Event<T>>) -> Event<T> {
    Event::of(Choose::new(branches.into_iter().collect(), Preference::First))
}

/// Chooses fairly among events of different types: each branch gives its value a pattern, and all results have one type.
///
/// The whole is an [`Event`] again, so the expressions are closures that run for each synchronisation: what they capture
/// is moved into them.
///
/// ```
/// use std::time::Duration;
/// use weir_events::{Channel, after, choose};
///
/// let (numbers, words) = (Channel::<u32>::unbounded(), Channel::<String>::unbounded());
/// words.post("hello".to_owned()).unwrap();
/// let next = choose! {
///     number = numbers.recv() => number.map_or(0, |number| number as usize),
///     word = words.recv() => word.map_or(0, |word| word.len()),
///     () = after(Duration::from_secs(1)) => 0,
/// };
/// assert_eq!(next.sync(), 5);
/// ```
#[macro_export]
macro_rules! choose {
    ($($pattern:pat = $event:expr => $result:expr),+ $(,)?) => {
        $crate::choose([$($event.wrap(move |$pattern| $result)),+])
    };
}
