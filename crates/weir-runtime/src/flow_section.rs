//! The section in which a flow runs while it is inside a body that a plan cuts.
//!
//! A plan may name nodes in the bodies of loops. Before such a node the flow *moves*: its frame yields
//! ([`Stage::Moves`](crate::frame)), and the engine puts it into the queue of the node's section, where it goes on. The
//! order of the flow's steps is the same with and without cuts, and so are its answers.

use std::cell::Cell;
use std::num::NonZeroU16;

/// The section of a node, from the view of its flow. Two bytes, because each flow has two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeSection(NonZeroU16);

impl NodeSection {
    /// The section of the node of the flow's own body around it.
    pub(crate) const OUTER: NodeSection = NodeSection(NonZeroU16::MAX);

    /// Returns a section of the plan; `None` if a plan has more than any engine can run.
    pub(crate) fn planned(index: usize) -> Option<NodeSection> {
        let number = u16::try_from(index + 1).ok().and_then(NonZeroU16::new);
        number.map(NodeSection).filter(|section| *section != NodeSection::OUTER)
    }

    /// Returns the index of the section in the plan; `None` for the section around the body.
    pub(crate) fn index(self) -> Option<usize> {
        (self != NodeSection::OUTER).then(|| usize::from(self.0.get()) - 1)
    }
}

impl Default for NodeSection {
    fn default() -> Self {
        NodeSection::OUTER
    }
}

/// The section whose threads run a call while its flow stays in another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallSection {
    pub section: NodeSection,
    /// The node of the flow's own body around the call.
    pub around: u32,
    pub queue: CallQueue,
}

/// The queue of a section in which a call waits for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallQueue {
    /// Any: the next call in the order of the rounds begins when this one has ended.
    Any,
    /// One for all calls of a flow, in the order in which they came there, so that the next one may follow at once. The threads of
    /// the section run them also if the flow is in that section.
    OfFlow,
    /// The same for the calls of all flows: they share a private state, which needs no lock then.
    OfState,
}

/// The section in which a flow runs, and the one in which it has to go on.
#[derive(Default)]
pub(crate) struct FlowSection {
    here: Cell<NodeSection>,
    wanted: Cell<Option<NodeSection>>,
}

impl FlowSection {
    /// Returns the section in which the flow runs.
    pub(crate) fn here(&self) -> NodeSection {
        self.here.get()
    }

    /// Asks the engine to let the flow go on in this section. If several of its bodies ask, in different sections, they
    /// have their turns in the order of the sections, beginning behind the present one, so that none is forgotten.
    #[cold]
    pub(crate) fn ask_for(&self, section: NodeSection) {
        let is_behind = |section: NodeSection| section <= self.here.get();
        let first = self.wanted.get().map_or(section, |other| {
            if (is_behind(section), section) < (is_behind(other), other) { section } else { other }
        });
        self.wanted.set(Some(first));
    }

    /// Moves the flow, if it stops, to the section that it has asked for; returns false if there is none.
    #[inline]
    pub(crate) fn moves(&self, stops: bool) -> bool {
        match self.wanted.take() {
            Some(section) if stops => {
                self.here.set(section);
                true
            }
            _ => false,
        }
    }

    /// Returns the flow to its own body, which is divided into segments.
    #[inline]
    pub(crate) fn leave_bodies(&self) {
        self.here.set(NodeSection::OUTER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_that_several_bodies_ask_for_have_their_turns() {
        let section = FlowSection::default();
        let mut order = Vec::new();
        for _ in 0..6 {
            for asked in [2, 0, 1].map(planned) {
                if asked != section.here() {
                    section.ask_for(asked);
                }
            }
            assert!(section.moves(true));
            order.push(section.here());
        }
        assert_eq!(order, [0, 1, 2, 0, 1, 2].map(planned));
        assert!(!section.moves(true), "nobody has asked");
        section.leave_bodies();
        assert_eq!(section.here(), NodeSection::OUTER);
    }

    #[test]
    fn sections_have_the_indices_of_the_plan() {
        assert_eq!([0, 7, 65_533].map(|index| planned(index).index()), [0, 7, 65_533].map(Some));
        assert_eq!((NodeSection::OUTER.index(), NodeSection::planned(65_534)), (None, None));
    }

    fn planned(index: usize) -> NodeSection {
        NodeSection::planned(index).expect("a small number")
    }
}
