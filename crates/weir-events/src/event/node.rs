//! What an event is made of: a tree whose base events are base events, asked in the same order by every synchronisation.
//!
//! Words: the *base events* of an event are its base events, numbered from left to right; *forcing* runs the guards and
//! gives a tree without any; an *attempt* tries one base event without waiting; a *registration* is what a waiting synchronisation
//! has placed for one base event, to be redeemed if the base event takes effect and withdrawn if another does.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::guard_context::GuardContext;
use super::nacks::NackSet;
use super::registration::RegistrationContext;
use crate::queue::QueueTicket;

/// A communication that may take effect once per synchronisation, and then yields a `T` (the paper's `'a Event`, §2).
///
/// An event is a value: it can be stored, cloned (cheaply), wrapped and chosen from, by people who do not know what is
/// inside. Nothing happens before it is synchronised, by a thread with [`sync`](Event::sync),
/// [`sync_timeout`](Event::sync_timeout) or [`poll`](Event::poll), or by a task with `.await`. Synchronising twice is
/// two independent synchronisations.
///
/// An event that loses a choice, runs out of time or is dropped base events nothing behind and loses no value.
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
/// Leaf numbers are relative to the node: `0..self.shape().base events`.
pub(crate) trait EventNode<T>: Send + Sync {
    /// How large it is and what is in it.
    fn shape(&self) -> EventShape;

    /// Runs the guards inside; `None` if there are none. `first` is the number of its first base event in the whole tree.
    fn force_guards(&self, first: usize, context: &mut GuardContext) -> Option<Event<T>> {
        let _ = (first, context);
        None
    }

    /// Tries one base event on behalf of a synchronisation that has published nothing. On success the base event has taken effect;
    /// it settles, so that the nacks of the others fire, before any wrap runs.
    fn attempt(&self, base: usize, nacks: &mut NackSet) -> Option<T>;

    /// Places what makes the base event reachable for peers; may find that it can take effect at once, and commits the waiter
    /// then. `None`: nothing needs to be taken back.
    fn register(&self, base: usize, context: &mut RegistrationContext<'_>) -> Option<Registration>;

    /// Another base event took effect or the synchronisation was given up: takes back what was placed, as if it had never been.
    fn withdraw(&self, base: usize, registration: Registration) {
        let _ = (base, registration);
    }

    /// The base event took effect but nobody wants it any more. True if it could be undone without a loss.
    fn undo_commit(&self, base: usize, registration: Option<Registration>) -> bool {
        let _ = (base, registration);
        true
    }

    /// The value of the base event that took effect, with all wraps run.
    fn complete(&self, base: usize, registration: Option<Registration>) -> T;

    /// Looks again at a base event that asked for it with [`RegistrationContext::look_again`]; may commit the waiter.
    fn recheck(&self, base: usize, context: &mut RegistrationContext<'_>) {
        let _ = (base, context);
    }

    /// The order in which to try the base events, where it is not simply fair.
    fn try_order(&self, first: usize) -> Vec<usize> {
        (first..first + self.shape().base_events).collect()
    }
}

/// The size of a tree, and which special nodes are in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EventShape {
    /// How many base events; not meaningful while there are guards.
    pub(crate) base_events: usize,
    /// Guards are in it, or `with_nack`.
    pub(crate) guarded: bool,
    /// A biased choice is in it.
    pub(crate) biased: bool,
    /// It runs foreign code when it takes effect.
    pub(crate) acts: bool,
}

impl EventShape {
    /// One base event.
    pub(crate) const BASE_EVENT: EventShape = EventShape { base_events: 1, guarded: false, biased: false, acts: false };

    /// Of several side by side.
    pub(crate) fn beside(self, other: EventShape) -> EventShape {
        EventShape {
            base_events: self.base_events + other.base_events,
            guarded: self.guarded || other.guarded,
            biased: self.biased || other.biased,
            acts: self.acts || other.acts,
        }
    }
}

/// What a synchronisation has placed for one base event; everything that becomes of it goes back to that base event.
pub(crate) enum Registration {
    /// A place in a channel's queue.
    Ticket(QueueTicket),
    /// Something that the base event alone knows the type of.
    Own(Box<dyn Any + Send + Sync>),
}

impl Registration {
    pub(crate) fn ticket(self) -> QueueTicket {
        match self {
            Registration::Ticket(ticket) => ticket,
            Registration::Own(_) => unreachable!("a base gets the registration back that it placed"),
        }
    }

    /// Gets a registration back in its own type.
    pub(crate) fn recover<S: 'static>(self) -> S {
        match self {
            Registration::Own(registration) => {
                *registration.downcast().expect("a base gets the registration back that it placed")
            }
            Registration::Ticket(_) => unreachable!("a base gets the registration back that it placed"),
        }
    }
}
