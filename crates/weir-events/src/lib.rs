//! Events: composable communication, synchronous and asynchronous, for threads and tasks.
//!
//! An [`Event<T>`] is a communication as a value: it describes what may happen, can be stored, wrapped and chosen from
//! without knowing its parts, and happens only when a thread or task *synchronises* on it. An [`AsyncEvent<A, B>`] is a
//! communication that one thread starts and another one completes, and it composes just as well. Both use the same
//! [`Channel`]s, and both serve threads ([`sync`](Event::sync), [`sync_timeout`](Event::sync_timeout),
//! [`poll`](Event::poll)) and tasks of any executor (`.await`).
//!
//! ```
//! use std::time::Duration;
//! use weir_events::{Channel, after, choose};
//!
//! let answers = Channel::rendezvous();
//! let stop = weir_events::Signal::new();
//! let answer_in_time = choose([
//!     answers.recv().wrap(|answer| answer.unwrap_or("nobody is there any more")),
//!     after(Duration::from_millis(200)).wrap(|()| "too late"),
//!     stop.fired().wrap(|()| "we are closing"),
//! ]);
//! answers.post("42").unwrap();
//! assert_eq!(answer_in_time.sync(), "42");
//! assert_eq!(answer_in_time.sync(), "too late");
//! ```
//!
//! Sources: J. Reppy, *Concurrent Programming in ML* (1999), for events; L. Ziarek, K. Sivaramakrishnan and S.
//! Jagannathan, *Composable Asynchronous Events* (PLDI 2011), "the paper" below, for the asynchronous ones.
//! `GUIDE.md` in the package is the guide.
//!
//! # Guarantees
//!
//! A synchronisation that does not take effect, because another branch won, time ran out, a guard panicked or its
//! future was dropped, leaves no trace: no offer stays in any queue, no value is lost, and every nack fires. This holds
//! for sends and for receives. A future that is dropped after a peer has committed to it, but before it was polled
//! again, gives a received value back to its position in the channel.
//!
//! # Names
//!
//! | the paper and Concurrent ML | here |
//! |---|---|
//! | `channel ()` | [`Channel::rendezvous`] |
//! | `send`, `recv` | [`Channel::blocking_send`], [`Channel::blocking_recv`]; for tasks [`Channel::send_async`], [`Channel::recv_async`] |
//! | `sendEvt`, `recvEvt` | [`Channel::send`] ([`send_parcel`](Channel::send_parcel)), [`Channel::recv`] |
//! | `alwaysEvt`, `never`, `timeOutEvt`, `atTimeEvt` | [`always`], [`never()`], [`after`], [`at`] |
//! | `wrap`, `guard`, `choose`, `withNack` | [`Event::wrap`], [`guard()`], [`choose()`] ([`choose_biased`]), [`with_nack`] |
//! | `sync` | [`Event::sync`], `event.await` |
//! | `aSendEvt`, `aRecvEvt`, `aAlwaysEvt`, `aNever` | [`a_send`], [`a_recv`], [`a_always`], [`a_never`] |
//! | `sWrap`, `aWrap`, `aGuard` | [`AsyncEvent::s_wrap`], [`AsyncEvent::a_wrap`], [`a_guard`] |
//! | `aChoose`, `sChoose` | [`a_choose`], [`s_choose`] |
//! | `aTrans`, `sTrans` | [`AsyncEvent::a_trans`], [`s_trans`] |
//! | `callbackEvt`, `aSync` | [`AsyncEvent::callback`], [`AsyncEvent::a_sync`] |
//!
//! # The commit protocol
//!
//! A *waiter* is one synchronisation; its *commit state* is `WAITING`, `CLAIMED`, `COMMITTED(base event)` or
//! `ABANDONED`. A channel is a lock over a buffer and two queues of *offers* (a second lock lets receivers take from a
//! buffer beside the senders, which no offer sees; `channel/core.rs`). An offer names its waiter and base event and, to
//! send, holds the value; its result stays in its slot of the queue until the owner fetches it. A value in a parcel has
//! the parcel's lock. Locks are taken in the order channel, then parcel, and never two channels; no thread sleeps under
//! them (`lock.rs`). A task that just sends or receives has no waiter: it waits in the queue itself, where only the
//! holder of the channel's lock can take it. An *initiator*, which looks for a peer, takes such a task as it takes from
//! a buffer: a published initiator commits its own state alone.
//!
//! 1. **Force.** The owner runs all guards. It holds no lock. A panic here abandons the synchronisation.
//! 2. **Attempt.** For each base event in turn the owner takes the channel's lock and looks for a peer. No peer can see
//!    the owner yet, so one commit state decides: the owner moves the peer's from `WAITING` to `COMMITTED`
//!    (compare-and-exchange, acquire-release). If that succeeds it exchanges the value through the peer's slot in the
//!    queue, releases the lock, and wakes the peer. If the peer is `CLAIMED`, it waits for the end of the claim; if the
//!    peer is committed or abandoned, its offer is stale and is detached. A thread that only sends or receives on one
//!    buffered channel spins for a while if spinning has recently paid off (`adaptive_spin.rs`).
//! 3. **Publish.** If no base event succeeded, the owner visits the base events again. Under each channel's lock it
//!    looks once more for a peer and otherwise queues its offer, so no peer can slip in between. From the first queued
//!    offer on, others can commit the owner; to commit to a peer now, two states must change as one:
//!    1. own state `WAITING` → `CLAIMED` (compare-and-exchange, acquire-release); if that fails, a peer has committed
//!       the owner, and it goes to step 5;
//!    2. the peer's state `WAITING` → `COMMITTED`; if it succeeds, exchange the value and set the own state to
//!       `COMMITTED` (store, release);
//!    3. if the peer is stale, set the own state back to `WAITING` (store, release) and look on;
//!    4. if the peer is `CLAIMED` too: the one with the smaller identity keeps its claim and waits; the other one goes
//!       back to `WAITING` until the peer is not claimed, and begins again at 1.
//!
//!    A waiter never takes its own offer: identity is the waiter, not the thread or task.
//! 4. **Wait.** The owner parks, or its task returns `Pending`, until its state is `COMMITTED` (load, acquire). A timer
//!    commits the owner's state like a peer does. To give up, the owner moves its state from `WAITING` to `ABANDONED`;
//!    if that fails, the match stands.
//! 5. **Withdraw.** The owner removes the offers of all other base events from their queues, each under its channel's
//!    lock, and then fires the nacks that do not cover the winner.
//! 6. **Complete.** The owner takes the winner's result out of its queue under the channel's lock, releases that, and
//!    runs the wraps.
//!
//! It does not deadlock: a claim begins and ends under one channel's lock, and no other channel's lock is taken in
//! between; claimed waiters wait only for waiters with a greater identity. So every wait ends.
//!
//! It loses no value: the peer holds the channel's lock from before its commit until the exchange is done, and the
//! owner takes that lock after it has seen the commit. The lock orders the value, so the orderings on the commit state
//! need only order the commit itself; they are acquire and release all the same, so that a thread that sees a commit
//! sees everything before it.
//!
//! No user code (a clone, a waker, an action, a drop of a value) runs under one of these locks.
//!
//! The protocol is model-checked for two and three waiters (`tests/model.rs`, loom), with injected faults that the
//! model has to find, and stressed under ThreadSanitizer (`tests/stress.rs`).

mod actions;
mod adaptive_spin;
#[cfg(not(loom))]
mod adaptive_yield;
mod asynchronous;
mod backoff;
mod channel;
mod cooperative;
mod deprecated;
mod event;
mod exclusion;
mod future;
mod join;
mod lock;
mod mailbox;
mod multicast;
mod mutants;
mod nack;
mod oneshot;
mod pair;
mod primitives;
#[cfg(all(feature = "signals", unix))]
mod process_signal;
mod queue;
mod signal;
#[cfg(feature = "sink")]
mod sink;
#[cfg(feature = "stream")]
mod stream;
mod telemetry;
mod time;
mod timer_thread;
mod waiter;
mod watch;

pub use actions::{ActionTask, action_panics, action_threads, set_action_executor};
pub use asynchronous::{
    AsyncEvent, a_always, a_choose, a_guard, a_never, a_recv, a_send, a_send_parcel, s_choose, s_trans,
};
pub use channel::{Channel, Closed, Parcel, Receiving, SendError, Sending, TryRecvError, TrySendError};
#[expect(deprecated, reason = "the former names stay for a release")]
pub use deprecated::{ACTION_THREADS_MAX, Port, TryReceiveError, a_receive, halves};
pub use event::{Event, GUARD_DEPTH_MAX, Synchronisation, always, choose, choose_biased, guard, never, seed_choices};
pub use exclusion::{EventMutex, EventMutexGuard, Semaphore, SemaphorePermit};
pub use future::{Until, from_future, from_future_with, until};
pub use join::{EventJoinHandle, JoinError, spawn_thread};
pub use mailbox::Mailbox;
pub use multicast::{Multicast, MulticastPort};
pub use nack::with_nack;
pub use oneshot::{OneshotReceiver, OneshotSender, oneshot};
pub use pair::{Receiver, Sender, bounded, rendezvous, unbounded};
#[cfg(all(feature = "signals", unix))]
pub use process_signal::ProcessSignal;
pub use signal::Signal;
#[cfg(feature = "sink")]
pub use sink::ChannelSink;
#[cfg(feature = "stream")]
pub use stream::ChannelStream;
pub use time::{after, after_about, at};
pub use watch::{WatchReceiver, WatchSender, watch};

#[cfg(loom)]
pub use mutants::{Mutant, activate};

/// The guide; its examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../GUIDE.md")]
mod guide {}

/// The README; its example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
