//! Repetitions of a body: maps, folds and loops.

use weir_host::Argument;
use weir_ir::graph::NodeKind;

use super::{Body, EarlyOrder};

/// The kind of repetition of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Once for each element; the result is the list of results.
    Map,
    /// Once for each element, with states; the result is the last state, or a tuple of them.
    Fold {
        /// The number of states.
        states: u32,
    },
    /// With states, until it is done; the result is the last state, or a tuple of them.
    Loop {
        /// The number of states.
        states: u32,
        /// The maximum number of iterations.
        at_most: u64,
    },
}

impl Repeat {
    /// Returns the repetition that an operation is; `None` if it repeats nothing.
    pub(crate) fn of(kind: &NodeKind) -> Option<Repeat> {
        match kind {
            NodeKind::Map { .. } => Some(Repeat::Map),
            NodeKind::Fold { states, .. } => Some(Repeat::Fold { states: *states }),
            NodeKind::Loop { states, at_most, .. } => Some(Repeat::Loop { states: *states, at_most: *at_most }),
            _ => None,
        }
    }

    /// Returns the number of states that are handed from iteration to iteration.
    pub(crate) fn states(self) -> usize {
        match self {
            Repeat::Map => 0,
            Repeat::Fold { states } | Repeat::Loop { states, .. } => states as usize,
        }
    }

    /// Returns the number of inputs, and of the body's parameters, before the captured values.
    pub(crate) fn fixed(self) -> usize {
        match self {
            Repeat::Map => 1,
            Repeat::Fold { .. } => self.states() + 1,
            Repeat::Loop { .. } => self.states(),
        }
    }

    /// Returns true if an iteration yields a tuple of the next states.
    pub(crate) fn yields_tuple(self) -> bool {
        matches!(self, Repeat::Loop { .. }) || self.states() > 1
    }
}

/// The part of a step in a loop that goes through its list strip by strip (`frame/strips.rs`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StripRole {
    /// None.
    #[default]
    None,
    /// The `map` that makes the rows of each strip.
    Rows {
        /// The index of the step.
        map: u32,
        /// The index of the step of the `fold`.
        fold: u32,
        /// The number of elements of a strip.
        length: u32,
    },
    /// The `fold` over these rows.
    Folds {
        /// The index of the step of the `map`.
        map: u32,
        /// True if its state is a `Result`, and rounds behind an `Err` only yield it.
        may_be_left: bool,
    },
}

/// A map, fold or loop.
pub(crate) struct RepeatStep {
    /// The kind of repetition.
    pub repeat: Repeat,
    /// The node's inputs.
    pub inputs: Box<[Argument]>,
    /// The atomic steps around it, by the node that begins each: what they hold is held for the body too.
    pub within: Box<[u32]>,
    /// The body that is repeated.
    pub body: Body,
    /// The iteration orders around it that it leaves before its end.
    pub early_orders: Box<[EarlyOrder]>,
    /// Its part in a loop that goes through its list strip by strip.
    pub strip: StripRole,
    /// True if the body does more than compute, so that no further iteration begins in a frame that is to be given up.
    pub has_effects: bool,
    /// True if only computation follows in the text, as for [`Action::Release`](super::Action::Release).
    pub is_last_effect: bool,
    /// The slot of the output.
    pub out: u32,
}
