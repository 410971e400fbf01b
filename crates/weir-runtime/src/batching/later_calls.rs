//! Later calls that are certain: a call waits for one without a limit of time, if all that comes behind the call also comes
//! behind the later one.
//!
//! Then nothing begins later for that: whatever needs the answer of the call needs that of the later one, too, and gets both
//! from one batch. No estimate of a latency is needed, so latencies that vary take nothing away. Computation does not count: it
//! may come later, and fail later, but what it is for does not.
//!
//! The later call is *certain* if it will be made unless the flow fails: it is in no arm that is not chosen yet, in no `map` that
//! has not begun, whose list may be empty, and behind no step that may return. It waits for batched calls alone, which end by
//! themselves: not for other flows, clients or timers. So the wait ends: of the calls of a flow that gather, one does not wait
//! like this. For each of the others, the later call needs a step in progress; were this one a call that waits like that,
//! its own later call would be before the first, and that cannot go on for ever.

use super::moment::{FlowMoment, MomentState};
use super::progress::StepCertainty;

/// The calls of a flow that are certain, and the order of its moments.
#[derive(Default)]
pub(super) struct LaterCalls {
    certain: Vec<usize>,
    /// For each function, true if a call of it gathers that may wait.
    wanted: Vec<bool>,
    /// The moments that keep what comes behind them from being certain.
    hold_up: Vec<u64>,
    /// For each moment all that it comes behind.
    before: MomentSets,
    /// For each moment all that each of the next moments behind it which matter comes behind.
    before_each_next: MomentSets,
}

/// A set of moments for each moment.
#[derive(Default)]
struct MomentSets {
    words: Vec<u64>,
    /// The number of words of a set.
    width: usize,
}

impl LaterCalls {
    /// Finds the calls of a flow that are certain and for which another one could wait.
    pub(super) fn find(&mut self, moments: &[FlowMoment], edges: &[u32], functions: usize) {
        self.wanted.clear();
        self.wanted.resize(functions, false);
        for moment in moments {
            if moment.state == MomentState::Gathers && moment.delays && moment.is_described {
                moment.function.into_iter().for_each(|function| self.wanted[function as usize] = true);
            }
        }
        let is_candidate = |at: &usize| {
            let call = &moments[*at];
            let is_ahead = call.state == MomentState::Ahead(StepCertainty::UnlessFailed);
            let is_wanted = || call.function.is_some_and(|function| self.wanted[function as usize]);
            is_ahead && call.is_described && !call.kind.repeats && is_wanted()
        };
        self.certain.clear();
        self.certain.extend((0..moments.len()).filter(is_candidate));
        if self.certain.is_empty() {
            return;
        }
        self.before.find_before(moments, edges);
        self.hold_up.clear();
        self.hold_up.resize(self.before.width, 0);
        for (at, moment) in moments.iter().enumerate() {
            let holds_up = match moment.state {
                MomentState::Over => false,
                MomentState::Waits => true,
                _ => !(moment.kind.is_of_batches && moment.is_described),
            };
            self.hold_up[at / 64] |= u64::from(holds_up) << (at % 64);
        }
        let (before, hold_up) = (&self.before, &self.hold_up);
        self.certain.retain(|call| before.of(*call).iter().zip(hold_up).all(|(before, hold_up)| before & hold_up == 0));
        self.before_each_next.find_before_each_next(moments, edges, &self.before);
    }

    /// Returns the calls for which a call of this function that gathers may wait without a limit: they need none of its
    /// answers, and all that does needs theirs.
    pub(super) fn certain(&self, call: usize, function: u32, moments: &[FlowMoment]) -> impl Iterator<Item = usize> {
        let joins = move |later: &usize| {
            moments[call].is_described
                && moments[*later].function == Some(function)
                && !self.before.contains(*later, call)
                && self.before_each_next.contains(call, *later)
        };
        self.certain.iter().copied().filter(joins)
    }
}

impl MomentSets {
    fn reset(&mut self, count: usize, word: u64) {
        self.width = count.div_ceil(64);
        self.words.clear();
        self.words.resize(count * self.width, word);
    }

    fn of(&self, moment: usize) -> &[u64] {
        &self.words[moment * self.width..][..self.width]
    }

    /// Finds for each moment all that it comes behind.
    fn find_before(&mut self, moments: &[FlowMoment], edges: &[u32]) {
        self.reset(moments.len(), 0);
        for (at, moment) in moments.iter().enumerate() {
            let (earlier, own) = self.words.split_at_mut(at * self.width);
            for before in edges_of(moment, edges) {
                let of_before = &earlier[before * self.width..][..self.width];
                own.iter_mut().zip(of_before).for_each(|(own, of_before)| *own |= of_before);
                own[before / 64] |= 1 << (before % 64);
            }
        }
    }

    /// Finds for each moment what the next ones behind it have in common that matter: everything, if there are none. Those
    /// that are over, or only compute, do not matter, but what comes next behind them does.
    fn find_before_each_next(&mut self, moments: &[FlowMoment], edges: &[u32], before: &MomentSets) {
        self.reset(moments.len(), u64::MAX);
        for (next, moment) in moments.iter().enumerate().rev() {
            let (earlier, own) = self.words.split_at_mut(next * self.width);
            let matters = moment.state != MomentState::Over && !moment.kind.only_computes;
            let of_next = if matters { before.of(next) } else { &own[..self.width] };
            for at in edges_of(moment, edges) {
                let common = &mut earlier[at * self.width..][..self.width];
                common.iter_mut().zip(of_next).for_each(|(common, of_next)| *common &= of_next);
            }
        }
    }

    /// Returns true if the set of a moment contains another one.
    fn contains(&self, of: usize, moment: usize) -> bool {
        self.words[of * self.width + moment / 64] & (1 << (moment % 64)) != 0
    }
}

/// Returns the moments directly before one.
fn edges_of(moment: &FlowMoment, edges: &[u32]) -> impl Iterator<Item = usize> {
    edges[moment.before.0 as usize..moment.before.1 as usize].iter().map(|before| *before as usize)
}
