//! Events: composable communication, synchronous and asynchronous, for threads and tasks.

mod asynchronous;
mod channel;
mod event;
mod future;
mod mailbox;
mod multicast;
mod mutants;
mod party;
mod primitives;
mod queue;
mod signal;
mod time;

pub use asynchronous::{
    ACTION_THREADS_MAX, AsyncEvent, a_always, a_choose, a_guard, a_never, a_receive, a_send, a_send_parcel,
    action_panics, action_threads, s_choose, s_trans,
};
pub use channel::{Channel, Closed, Parcel, Receiving, SendError, Sending, TryReceiveError, TrySendError};
pub use event::{
    Event, GUARD_DEPTH_MAX, Synchronisation, always, choose, choose_biased, guard, never, seed_choices, with_nack,
};
pub use future::{from_future, from_future_with};
pub use mailbox::Mailbox;
pub use multicast::{Multicast, Port};
pub use signal::Signal;
pub use time::{after, at};

#[cfg(loom)]
pub use mutants::{Mutant, activate};
