//! The tree behind an event: its leaves are base events, numbered from left to right.
//!
//! *Forcing* runs the guards and yields a tree without any. An *attempt* tries one base event without waiting. A
//! *registration* is the entry that a waiting synchronisation has placed for one base event, to be completed if that
//! base event takes effect and withdrawn if another does.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::guard_context::GuardContext;
use super::nacks::NackSet;
use super::registration::RegistrationContext;
use crate::queue::QueueTicket;

/// A communication that may take effect once per synchronisation and then yields a `T` (the paper's `'a Event`, §2).
///
/// An event is a value: it can be stored, cloned (cheaply), wrapped and chosen from, without knowing its parts. Nothing
/// happens before it is synchronised, by a thread with [`sync`](Event::sync), [`sync_timeout`](Event::sync_timeout) or
/// [`poll`](Event::poll), or by a task with `.await`. Synchronising it twice makes two independent synchronisations.
///
/// An event that loses a choice, times out or is dropped before its commit leaves nothing behind and loses no value.
#[must_use = "an event does nothing until it is synchronised"]
pub struct Event<T> {
    pub(crate) node: Arc<dyn EventNode<T>>,
}

impl<T> Clone for Event<T> {
    fn clone(&self) -> Self {
        Event { node: self.node.clone() }
    }
}

impl<T> fmt::Debug for Event<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Event").field("shape", &self.node.shape()).finish()
    }
}

impl<T> Event<T> {
    pub(crate) fn of(node: impl EventNode<T> + 'static) -> Self {
        Event { node: Arc::new(node) }
    }

    pub(crate) fn shape(&self) -> EventShape {
        self.node.shape()
    }
}

/// One node of an event.
///
/// Base events are numbered relative to the node: `0..self.shape().base_events`.
pub(crate) trait EventNode<T>: Send + Sync {
    /// Returns the size of the tree and its properties.
    fn shape(&self) -> EventShape;

    /// Runs the guards inside and returns the tree without them, or `None` if there are none. `first` is the index of
    /// the node's first base event in the whole tree.
    fn force_guards(&self, first: usize, context: &mut GuardContext) -> Option<Event<T>> {
        let _ = (first, context);
        None
    }

    /// Tries one base event on behalf of a synchronisation that has published nothing. If it takes effect, it fires the
    /// nacks of the others before any wrap runs.
    fn attempt(&self, base: usize, nacks: &mut NackSet) -> Option<T>;

    /// Makes the base event reachable for peers. It may find that it can take effect at once, and commits the waiter
    /// then. Returns `None` if nothing has to be withdrawn.
    fn register(&self, base: usize, context: &mut RegistrationContext<'_>) -> Option<Registration>;

    /// Withdraws a registration, because another base event took effect or the synchronisation was abandoned.
    fn withdraw(&self, base: usize, registration: Registration) {
        let _ = (base, registration);
    }

    /// Discards the result of the base event that took effect, because the synchronisation was dropped before it fetched
    /// the result: a sent value stays sent, a received value goes back to its position.
    fn discard(&self, base: usize, registration: Option<Registration>) {
        let _ = (base, registration);
    }

    /// Returns the value of the base event that took effect, after running all wraps.
    fn complete(&self, base: usize, registration: Option<Registration>) -> T;

    /// Checks again a base event that asked for it with [`RegistrationContext::recheck_on_wake`]; may commit the
    /// waiter.
    fn recheck(&self, base: usize, context: &mut RegistrationContext<'_>) {
        let _ = (base, context);
    }

    /// Returns the order in which to try the base events, if it is not simply fair.
    fn try_order(&self, first: usize) -> Vec<usize> {
        (first..first + self.shape().base_events).collect()
    }
}

/// The size of a tree and its properties.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EventShape {
    /// Number of base events; meaningless while there are guards.
    pub(crate) base_events: usize,
    /// True if it contains guards, or `with_nack`.
    pub(crate) guarded: bool,
    /// True if it contains a biased choice.
    pub(crate) biased: bool,
    /// True if it runs user code when it takes effect.
    pub(crate) acts: bool,
}

impl EventShape {
    /// One base event.
    pub(crate) const BASE_EVENT: EventShape = EventShape { base_events: 1, guarded: false, biased: false, acts: false };

    /// Combines the shapes of two branches.
    pub(crate) fn beside(self, other: EventShape) -> EventShape {
        EventShape {
            base_events: self.base_events + other.base_events,
            guarded: self.guarded || other.guarded,
            biased: self.biased || other.biased,
            acts: self.acts || other.acts,
        }
    }
}

/// The entry of a waiting synchronisation for one base event, returned to that base event in the end.
pub(crate) enum Registration {
    /// An entry in a channel's queue.
    Ticket(QueueTicket),
    /// A value whose type only the base event knows.
    Own(Box<dyn Any + Send + Sync>),
}

impl Registration {
    pub(crate) fn ticket(self) -> QueueTicket {
        match self {
            Registration::Ticket(ticket) => ticket,
            Registration::Own(_) => unreachable!("a base gets the registration back that it placed"),
        }
    }

    /// Returns a registration in its own type.
    pub(crate) fn recover<S: 'static>(self) -> S {
        match self {
            Registration::Own(registration) => {
                *registration.downcast().expect("a base gets the registration back that it placed")
            }
            Registration::Ticket(_) => unreachable!("a base gets the registration back that it placed"),
        }
    }
}
