//! A queue with several levels (multilevel feedback queue; Corbató et al., An Experimental Time-Sharing System, 1962) for
//! flows that take turns.
//!
//! A flow begins at the first level, and descends as it has had more turns. The levels that are not empty are served in
//! turn, so that each has its share of the thread, however many flows the others have: a flow waits for the flows of its own
//! length, and not for all those that have been computing for seconds.

use std::collections::VecDeque;

/// The number of levels.
pub(crate) const LEVELS: usize = 4;

/// The number of turns with which a flow comes to each level. Chosen by judgement: a turn takes up to half a millisecond, and
/// flows whose lengths differ by a factor of eight do not differ much for those that wait for them.
const LEVEL_TURNS: [u32; LEVELS] = [1, 32, 256, 2_048];

/// Returns the level of a flow that has had this many turns; `None` if it has had none.
#[inline]
pub(crate) fn level_of(turns: u32) -> Option<usize> {
    LEVEL_TURNS.iter().rposition(|first| *first <= turns)
}

/// Returns true if a flow comes to its level with this turn.
pub(crate) fn begins_level(turns: u32) -> bool {
    LEVEL_TURNS.contains(&turns)
}

/// A queue with several levels, FIFO within each.
pub(crate) struct MultilevelQueue<T> {
    levels: [VecDeque<T>; LEVELS],
    /// The level that is served next.
    next: usize,
}

impl<T> MultilevelQueue<T> {
    pub(crate) const fn new() -> Self {
        MultilevelQueue { levels: [const { VecDeque::new() }; LEVELS], next: 0 }
    }

    /// Adds a flow that has had this many turns.
    pub(crate) fn push(&mut self, turns: u32, item: T) {
        self.levels[level_of(turns).unwrap_or(0)].push_back(item);
    }

    /// Takes the first flow of the level whose turn it is, or of the next one that is not empty.
    pub(crate) fn pop(&mut self) -> Option<T> {
        for _ in 0..LEVELS {
            let level = self.next;
            self.next = (level + 1) % LEVELS;
            if let Some(item) = self.levels[level].pop_front() {
                return Some(item);
            }
        }
        None
    }

    /// Returns the number of flows in the queue.
    pub(crate) fn len(&self) -> usize {
        self.levels.iter().map(VecDeque::len).sum()
    }
}

impl<T> Default for MultilevelQueue<T> {
    fn default() -> Self {
        MultilevelQueue::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_served_in_turn_and_each_is_fifo() {
        let mut queue = MultilevelQueue::new();
        for (turns, item) in [(0, 'a'), (1, 'b'), (31, 'c'), (32, 'p'), (255, 'q'), (u32::MAX, 'x'), (2_048, 'y')] {
            queue.push(turns, item);
        }
        assert_eq!(queue.len(), 7);
        let order: String = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!((order.as_str(), queue.len()), ("apxbqyc", 0));
    }

    #[test]
    fn a_flow_descends_with_its_turns() {
        assert_eq!([0, 1, 31, 32, 256, 2_048].map(level_of), [None, Some(0), Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!((0..10_000).filter(|turns| begins_level(*turns)).count(), LEVELS);
    }
}
