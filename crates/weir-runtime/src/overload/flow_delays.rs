//! The delays of the queues in which flows wait for a thread.
//!
//! Flows that take turns descend through the levels of a queue ([`super::MultilevelQueue`]), and all levels share the thread. A
//! flow that comes as far as a level is held up by all flows at that level and at those before it, so the delay of a level
//! counts all of these: if each level had a law of its own, a route whose flows pass three levels could have three times as
//! many in progress. A flow that descends departs from the levels that it leaves behind only. Flows at later levels do not
//! count, so that long flows do not close the routes of short ones.

use super::flow_turns::FlowTurns;
use super::multilevel_queue::LEVELS;
use super::passed_queues::{PassedQueues, ThreadQueue};
use super::queue_delay::QueueDelay;
use crate::platform::Platform;

/// The delays of the flows that share a thread or a pool.
#[derive(Debug)]
pub(crate) struct FlowDelays {
    /// The delay of flows that have not had a whole turn yet.
    new: QueueDelay,
    /// For each level, the delay of the flows at this level and at those before it.
    down_to: [QueueDelay; LEVELS],
}

impl FlowDelays {
    pub(crate) const fn new() -> FlowDelays {
        FlowDelays { new: QueueDelay::of_any_work(), down_to: [const { QueueDelay::of_long_work() }; LEVELS] }
    }

    /// Notes that a flow enters its queue in this section.
    pub(crate) fn enter(&self, section: usize, turns: &mut FlowTurns, platform: &dyn Platform) {
        let again = turns.note_waiting(section);
        for delay in self.at(turns.level()) {
            if again { delay.enter_again(platform) } else { delay.enter(platform) }
        }
    }

    /// Notes that a flow leaves its queue to be run.
    pub(crate) fn leave(&self, turns: &FlowTurns, platform: &dyn Platform) {
        self.leave_level(turns.level(), platform);
    }

    /// Notes that a flow at this level leaves its queue to be run.
    pub(crate) fn leave_level(&self, level: Option<usize>, platform: &dyn Platform) {
        let now_ns = platform.now_ns();
        self.at(level).iter().for_each(|delay| delay.leave_at(now_ns));
    }

    /// Notes that a flow at this level leaves its queue for another reason than being run.
    pub(crate) fn abandon_level(&self, level: Option<usize>) {
        self.at(level).iter().for_each(QueueDelay::abandon);
    }

    /// Returns the delays in which a flow at this level counts.
    fn at(&self, level: Option<usize>) -> &[QueueDelay] {
        level.map_or(std::slice::from_ref(&self.new), |level| &self.down_to[level..])
    }

    /// Returns true if work waits too long in one of the queues that flows of a route pass.
    #[inline]
    pub(crate) fn is_overloaded(&self, queues: &PassedQueues, platform: &dyn Platform) -> bool {
        self.new.is_overloaded(platform) || (queues.has_any() && self.is_level_overloaded(queues, platform))
    }

    fn is_level_overloaded(&self, queues: &PassedQueues, platform: &dyn Platform) -> bool {
        let mut levels = self.down_to.iter().enumerate();
        levels.any(|(level, delay)| queues.includes(ThreadQueue::Level(level)) && delay.is_overloaded(platform))
    }
}

#[cfg(test)]
mod tests;
