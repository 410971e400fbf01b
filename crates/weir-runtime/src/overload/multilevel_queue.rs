//! A queue with several levels (multilevel feedback queue; Corbató et al., An Experimental Time-Sharing System, 1962) for
//! flows that take turns.
//!
//! A flow begins at the first level, and descends as it has had more turns. The levels that are not empty are served in
//! turn, so that each has its share of the thread, however many flows the others have: a flow waits for the flows of its own
//! length, and not for all those that have been computing for seconds.

use std::collections::VecDeque;

/// The number of levels.
pub(crate) const LEVELS: usize = 5;

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

    /// Adds a flow at this level; one that has had no turn yet (`None`) joins the first level.
    pub(crate) fn push(&mut self, level: Option<usize>, item: T) {
        self.levels[level.unwrap_or(0)].push_back(item);
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
        for (level, item) in
            [(None, 'a'), (Some(0), 'b'), (Some(0), 'c'), (Some(1), 'p'), (Some(1), 'q'), (Some(4), 'x')]
        {
            queue.push(level, item);
        }
        assert_eq!(queue.len(), 6);
        let order: String = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!((order.as_str(), queue.len()), ("apxbqc", 0));
    }
}
