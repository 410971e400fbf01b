//! What an event is made of: a tree whose leaves are base events, asked in the same order by every synchronisation.
//!
//! Words: the *leaves* of an event are its base events, numbered from left to right; *forcing* runs the guards and
//! gives a tree without any; an *attempt* tries one leaf without waiting; a *stake* is what a waiting synchronisation
//! has placed for one leaf, to be redeemed if the leaf takes effect and withdrawn if another does.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::forcing::Forcing;
use super::placing::Placing;
use super::settlement::Settlement;
use crate::queue::Ticket;

/// A communication that may take effect once per synchronisation, and then yields a `T` (the paper's `'a Event`, §2).
///
/// An event is a value: it can be stored, cloned (cheaply), wrapped and chosen from, by people who do not know what is
/// inside. Nothing happens before it is synchronised, by a thread with [`sync`](Event::sync),
/// [`sync_timeout`](Event::sync_timeout) or [`poll`](Event::poll), or by a task with `.await`. Synchronising twice is
/// two independent synchronisations.
///
/// An event that loses a choice, runs out of time or is dropped leaves nothing behind and loses no value.
#[must_use = "an event does nothing until it is synchronised"]
pub struct Event<T> {
    pub(crate) node: Arc<dyn Node<T>>,
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
    pub(crate) fn of(node: impl Node<T> + 'static) -> Self {
        Event { node: Arc::new(node) }
    }

    pub(crate) fn shape(&self) -> Shape {
        self.node.shape()
    }
}

/// One node of an event.
///
/// Leaf numbers are relative to the node: `0..self.shape().leaves`.
pub(crate) trait Node<T>: Send + Sync {
    /// How large it is and what is in it.
    fn shape(&self) -> Shape;

    /// Runs the guards inside; `None` if there are none. `first` is the number of its first leaf in the whole tree.
    fn force(&self, first: usize, forcing: &mut Forcing) -> Option<Event<T>> {
        let _ = (first, forcing);
        None
    }

    /// Tries one leaf on behalf of a synchronisation that has published nothing. On success the leaf has taken effect;
    /// it settles, so that the nacks of the others fire, before any wrap runs.
    fn attempt(&self, leaf: usize, settlement: &mut Settlement) -> Option<T>;

    /// Places what makes the leaf reachable for peers; may find that it can take effect at once, and commits the party
    /// then. `None`: nothing needs to be taken back.
    fn place(&self, leaf: usize, placing: &mut Placing<'_>) -> Option<Stake>;

    /// Another leaf took effect or the synchronisation was given up: takes back what was placed, as if it had never been.
    fn withdraw(&self, leaf: usize, stake: Stake) {
        let _ = (leaf, stake);
    }

    /// The leaf took effect but nobody wants it any more. True if it could be undone without a loss.
    fn retract(&self, leaf: usize, stake: Option<Stake>) -> bool {
        let _ = (leaf, stake);
        true
    }

    /// The value of the leaf that took effect, with all wraps run.
    fn redeem(&self, leaf: usize, stake: Option<Stake>) -> T;

    /// Looks again at a leaf that asked for it with [`Placing::look_again`]; may commit the party.
    fn look(&self, leaf: usize, placing: &mut Placing<'_>) {
        let _ = (leaf, placing);
    }

    /// The order in which to try the leaves, where it is not simply fair.
    fn arrange(&self, first: usize) -> Vec<usize> {
        (first..first + self.shape().leaves).collect()
    }
}

/// The size of a tree, and which special nodes are in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shape {
    /// How many leaves; not meaningful while there are guards.
    pub(crate) leaves: usize,
    /// Guards are in it, or `with_nack`.
    pub(crate) guarded: bool,
    /// A biased choice is in it.
    pub(crate) biased: bool,
    /// It runs foreign code when it takes effect.
    pub(crate) acts: bool,
}

impl Shape {
    /// One base event.
    pub(crate) const LEAF: Shape = Shape { leaves: 1, guarded: false, biased: false, acts: false };

    /// Of several side by side.
    pub(crate) fn beside(self, other: Shape) -> Shape {
        Shape {
            leaves: self.leaves + other.leaves,
            guarded: self.guarded || other.guarded,
            biased: self.biased || other.biased,
            acts: self.acts || other.acts,
        }
    }
}

/// What a synchronisation has placed for one leaf; everything that becomes of it goes back to that leaf.
pub(crate) enum Stake {
    /// A place in a channel's queue.
    Place(Ticket),
    /// Something that the leaf alone knows the type of.
    Own(Box<dyn Any + Send + Sync>),
}

impl Stake {
    pub(crate) fn place(self) -> Ticket {
        match self {
            Stake::Place(ticket) => ticket,
            Stake::Own(_) => unreachable!("a leaf gets the stake back that it placed"),
        }
    }

    /// Gets a stake back in its own type.
    pub(crate) fn recover<S: 'static>(self) -> S {
        match self {
            Stake::Own(stake) => *stake.downcast().expect("a leaf gets the stake back that it placed"),
            Stake::Place(_) => unreachable!("a leaf gets the stake back that it placed"),
        }
    }
}
