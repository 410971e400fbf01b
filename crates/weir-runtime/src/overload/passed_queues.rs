//! The queues that flows of a route pass, as learned from the flows before.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::multilevel_queue::LEVELS;

/// A queue that a flow may come to after it has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadQueue {
    /// A level of the queue in which flows take turns.
    Level(usize),
    /// The queue for calls that compute for long.
    LongCalls,
    /// The queue for functions that block their thread.
    BlockingCalls,
}

/// The number of queues.
const QUEUES: usize = LEVELS + 2;
/// The estimate of a queue that every flow reaches.
const ONE: u32 = 1 << 16;
/// The part by which an estimate rises when a flow reaches the queue. Larger than [`FALL`], because a flow that reaches it
/// costs more than one that does not: a route counts as passing a queue if about one of 16 flows does.
const RISE: u32 = 4;
/// The part by which an estimate falls when a flow ends.
const FALL: u32 = 64;

/// For each queue, a moving estimate of the flows that reach it. Threads may overwrite each other's notes.
#[derive(Debug, Default)]
pub(crate) struct PassedQueues {
    estimates: [AtomicU32; QUEUES],
    /// True once a flow has reached some queue, until all estimates have fallen.
    any: AtomicBool,
}

impl ThreadQueue {
    fn index(self) -> usize {
        match self {
            ThreadQueue::Level(level) => level,
            ThreadQueue::LongCalls => LEVELS,
            ThreadQueue::BlockingCalls => LEVELS + 1,
        }
    }
}

impl PassedQueues {
    /// Returns true if some flow of the route has reached a queue, and this is not forgotten.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Returns true if enough flows of the route reach this queue.
    pub(crate) fn includes(&self, queue: ThreadQueue) -> bool {
        self.estimates[queue.index()].load(Ordering::Relaxed) > ONE / 2
    }

    /// Notes that a flow has reached a queue.
    #[cold]
    pub(crate) fn note_passed(&self, queue: ThreadQueue) {
        let estimate = &self.estimates[queue.index()];
        let before = estimate.load(Ordering::Relaxed);
        estimate.store(before + (ONE - before) / RISE, Ordering::Relaxed);
        self.any.store(true, Ordering::Relaxed);
    }

    /// Notes that a flow has ended that has come to this level. The estimates of the levels that it has passed do not fall:
    /// flows that take turns end one soon after the other, and a route would forget its levels while no flow is admitted.
    #[inline]
    pub(crate) fn note_end(&self, level: Option<usize>) {
        if self.has_any() {
            self.fall(level.map_or(0, |level| level + 1));
        }
    }

    /// Lets the estimates fall, except those of the first levels. Once all are at their end, nothing is left to note.
    fn fall(&self, levels: usize) {
        let mut any = levels > 0;
        for estimate in &self.estimates[levels..] {
            let before = estimate.load(Ordering::Relaxed);
            if before >= FALL {
                any = true;
                estimate.store(before - before / FALL, Ordering::Relaxed);
            }
        }
        if !any {
            self.any.store(false, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if a route counts as making long calls, of whose flows one of `every` makes one.
    fn includes_one_of(every: usize) -> bool {
        let queues = PassedQueues::default();
        for flow in 0..100 * every {
            if flow % every == 0 {
                queues.note_passed(ThreadQueue::LongCalls);
            }
            queues.note_end(None);
        }
        queues.includes(ThreadQueue::LongCalls)
    }

    #[test]
    fn a_queue_belongs_to_a_route_if_enough_flows_reach_it() {
        assert!(includes_one_of(1) && includes_one_of(10));
        assert!(!includes_one_of(100));
        let queues = PassedQueues::default();
        queues.note_end(None);
        assert!(!queues.has_any() && !queues.includes(ThreadQueue::Level(0)));
    }

    #[test]
    fn a_route_whose_flows_reach_no_queue_any_more_notes_nothing() {
        let queues = PassedQueues::default();
        queues.note_passed(ThreadQueue::LongCalls);
        (0..100).for_each(|_| queues.note_end(None));
        assert!(queues.has_any());
        (0..1_000).for_each(|_| queues.note_end(None));
        assert!(!queues.has_any());
        queues.note_passed(ThreadQueue::Level(0));
        assert!(queues.has_any());
    }

    #[test]
    fn a_queue_that_flows_no_longer_reach_is_forgotten() {
        let queues = PassedQueues::default();
        (0..1_000).for_each(|_| queues.note_passed(ThreadQueue::Level(1)));
        assert!(queues.includes(ThreadQueue::Level(1)) && !queues.includes(ThreadQueue::BlockingCalls));
        (0..1_000).for_each(|_| queues.note_end(Some(1)));
        assert!(queues.includes(ThreadQueue::Level(1)));
        (0..60).for_each(|_| queues.note_end(Some(0)));
        assert!(!queues.includes(ThreadQueue::Level(1)));
    }
}
