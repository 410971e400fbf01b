//! Moments in the execution of a flow.

use super::ending_arms::EndingArms;
use super::io_call::{IoWait, WaitReason};
use crate::graph::NodeId;

/// A moment in the execution of a flow: after this many rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment {
    pub(super) round: u32,
    /// The last call before it, and the reason for which it comes after that call.
    pub(super) wait: Option<IoWait>,
}

impl Moment {
    pub(super) fn or_later(self, other: Moment) -> Moment {
        if other.round > self.round { other } else { self }
    }

    /// Returns the same moment with another reason.
    pub(super) fn because(mut self, why: impl FnOnce(WaitReason) -> WaitReason) -> Moment {
        self.wait = self.wait.map(|wait| IoWait { why: why(wait.why), ..wait });
        self
    }
}

/// The moments of a node.
#[derive(Clone)]
pub(super) struct NodeMoments {
    pub(super) begins: Moment,
    pub(super) ends: Moment,
    /// The moment at which all that its value is computed from is there.
    pub(super) value: Moment,
    /// The moments at which the parts of its elements are there, if it pairs the elements of two lists.
    pub(super) parts: Vec<Moment>,
}

/// The nodes of a graph that come before another.
pub(super) struct Seen<'a> {
    pub(super) moments: &'a [NodeMoments],
    pub(super) ending: &'a EndingArms,
}

impl Seen<'_> {
    pub(super) fn of(&self, id: NodeId) -> &NodeMoments {
        &self.moments[id.0 as usize]
    }
}
