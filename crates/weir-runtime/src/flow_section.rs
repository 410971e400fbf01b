//! The section in which a flow runs while it is inside a body that a plan cuts.
//!
//! A plan may name nodes in the bodies of loops. Before such a node the flow *moves*: its frame yields
//! ([`Stage::Moves`](crate::frame)), and the engine puts it into the queue of the node's section, where it goes on. The
//! order of the flow's steps is the same with and without cuts, and so are its answers.

use std::cell::Cell;

/// The section of a node, from the view of its flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NodeSection {
    /// The section of the node of the flow's own body around it.
    #[default]
    Outer,
    /// A section of the plan, by its index.
    Planned(u16),
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
        self.here.set(NodeSection::Outer);
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
            for asked in [2, 0, 1].map(NodeSection::Planned) {
                if asked != section.here() {
                    section.ask_for(asked);
                }
            }
            assert!(section.moves(true));
            order.push(section.here());
        }
        assert_eq!(order, [0, 1, 2, 0, 1, 2].map(NodeSection::Planned));
        assert!(!section.moves(true), "nobody has asked");
        section.leave_bodies();
        assert_eq!(section.here(), NodeSection::Outer);
    }
}
