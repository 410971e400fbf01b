//! The turns that a flow has used up, the level of the queue at which it waits for the next, and the queue that it comes from.

use std::num::NonZeroU32;

use super::multilevel_queue::LEVELS;

/// The number of turns with which a flow comes to each level. Chosen by judgement: a turn takes up to half a millisecond, and
/// flows whose lengths differ by a factor of eight do not differ much for those that wait for them.
const LEVEL_TURNS: [u32; LEVELS] = [1, 32, 256, 2_048, 16_384];

/// The turns of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowTurns {
    /// The number of turns that the flow has used up.
    taken: u32,
    /// The queue that it has just come from: a number made of the section and of whether the flow had had a turn.
    waited_in: Option<NonZeroU32>,
}

impl FlowTurns {
    /// Counts a turn; returns the level that the flow comes to, if that is another one.
    pub(crate) fn count(&mut self) -> Option<usize> {
        self.taken = self.taken.saturating_add(1);
        self.level().filter(|level| self.taken == LEVEL_TURNS[*level])
    }

    /// Returns the level of the flow; `None` if it has had no turn.
    #[inline]
    pub(crate) fn level(&self) -> Option<usize> {
        LEVEL_TURNS.iter().rposition(|first| *first <= self.taken)
    }

    /// Notes that the flow waits for something else than a thread. When it comes back to a queue, it is as new there.
    #[inline]
    pub(crate) fn interrupt(&mut self) {
        self.waited_in = None;
    }

    /// Notes that the flow is about to wait in this section; returns true if it has waited for its turn before that there. At
    /// the last level a flow may compute for ever, and each of its waits counts as one of its own.
    pub(crate) fn note_waiting(&mut self, section: usize) -> bool {
        let level = self.level();
        let queue = section * 2 + usize::from(level.is_some());
        let queue = NonZeroU32::new(u32::try_from(queue + 1).unwrap_or(u32::MAX));
        let before = std::mem::replace(&mut self.waited_in, queue);
        before == queue && level != Some(LEVELS - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_descends_with_its_turns() {
        let mut turns = FlowTurns::default();
        assert_eq!(turns.level(), None);
        let begun: Vec<_> = (1..20_000).filter_map(|turn| turns.count().map(|level| (turn, level))).collect();
        assert_eq!(begun, [(1, 0), (32, 1), (256, 2), (2_048, 3), (16_384, 4)]);
        assert_eq!(turns.level(), Some(4));
    }

    #[test]
    fn a_flow_that_computes_on_comes_back_to_its_queue() {
        let mut turns = FlowTurns::default();
        assert!(!turns.note_waiting(0) && turns.note_waiting(0), "before its first turn");
        assert_eq!(turns.count(), Some(0));
        assert!(!turns.note_waiting(0) && turns.note_waiting(0), "at the first level");
        (0..40).for_each(|_| _ = turns.count());
        assert!(turns.level() == Some(1) && turns.note_waiting(0), "at the second level");
        assert!(!turns.note_waiting(1) && !turns.note_waiting(0), "in another section");
        turns.interrupt();
        assert!(!turns.note_waiting(0) && turns.note_waiting(0), "after it has waited for something else");
        turns.taken = u32::MAX;
        assert!(!turns.note_waiting(0) && !turns.note_waiting(0), "at the last level");
    }
}
