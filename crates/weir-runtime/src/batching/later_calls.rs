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
use super::slack::{FunctionGatherer, StepCertainty};

/// The calls of a flow that are certain, and the order of its moments.
pub(super) struct LaterCalls<'a> {
    moments: &'a [FlowMoment<'a>],
    /// For each moment all that it comes behind.
    before: MomentSets,
    /// For each moment all that each of the next moments behind it which matter comes behind.
    before_each_next: MomentSets,
    certain: Vec<usize>,
}

/// A set of moments for each moment.
struct MomentSets {
    words: Vec<u64>,
    /// The number of words of a set.
    width: usize,
}

impl<'a> LaterCalls<'a> {
    /// Returns the calls of a flow that are certain; `None` if no call could wait for one.
    pub(super) fn of(moments: &'a [FlowMoment<'a>]) -> Option<LaterCalls<'a>> {
        let waits = |call: &FlowMoment<'_>| call.state == MomentState::Gathers && call.delays && call.is_described;
        let is_wanted = |call: &FlowMoment<'_>| {
            let gatherer = call.gatherer();
            gatherer.is_some_and(|gatherer| moments.iter().any(|earlier| waits(earlier) && earlier.calls(gatherer)))
        };
        let is_candidate = |at: &usize| {
            let call = &moments[*at];
            let repeats = call.step.is_some_and(|step| step.latency.repeats());
            let is_ahead = call.state == MomentState::Ahead(StepCertainty::UnlessFailed);
            is_ahead && call.is_described && !repeats && is_wanted(call)
        };
        let mut certain: Vec<usize> = (0..moments.len()).filter(is_candidate).collect();
        if certain.is_empty() {
            return None;
        }
        let before = MomentSets::before(moments);
        let holds_up = |at: &usize| {
            let moment = &moments[*at];
            let is_of_batches = moment.step.is_none_or(|step| step.latency.is_of_batches());
            match moment.state {
                MomentState::Over => false,
                MomentState::Waits => true,
                _ => !(is_of_batches && moment.is_described),
            }
        };
        let holds_up: Vec<usize> = (0..moments.len()).filter(holds_up).collect();
        certain.retain(|call| !holds_up.iter().any(|at| before.contains(*call, *at)));
        let before_each_next = MomentSets::before_each_next(moments, &before);
        Some(LaterCalls { moments, before, before_each_next, certain })
    }

    /// Returns the calls for which a call of this function that gathers may wait without a limit: they need none of its
    /// answers, and all that does needs theirs.
    pub(super) fn certain(&self, call: usize, gatherer: &FunctionGatherer) -> impl Iterator<Item = usize> {
        let joins = move |later: &usize| {
            self.moments[call].is_described
                && self.moments[*later].calls(gatherer)
                && !self.before.contains(*later, call)
                && self.before_each_next.contains(call, *later)
        };
        self.certain.iter().copied().filter(joins)
    }
}

impl MomentSets {
    fn new(count: usize, word: u64) -> MomentSets {
        let width = count.div_ceil(64);
        MomentSets { words: vec![word; count * width], width }
    }

    /// Returns for each moment all that it comes behind.
    fn before(moments: &[FlowMoment<'_>]) -> MomentSets {
        let mut sets = MomentSets::new(moments.len(), 0);
        for (at, moment) in moments.iter().enumerate() {
            let (earlier, own) = sets.words.split_at_mut(at * sets.width);
            for before in moment.before.iter().map(|before| *before as usize) {
                let of_before = &earlier[before * sets.width..][..sets.width];
                own.iter_mut().zip(of_before).for_each(|(own, of_before)| *own |= of_before);
                own[before / 64] |= 1 << (before % 64);
            }
        }
        sets
    }

    /// Returns for each moment what the next ones behind it have in common that matter: everything, if there are none. Those
    /// that are over, or only compute, do not matter, but what comes next behind them does.
    fn before_each_next(moments: &[FlowMoment<'_>], before: &MomentSets) -> MomentSets {
        let mut sets = MomentSets::new(moments.len(), u64::MAX);
        for (next, moment) in moments.iter().enumerate().rev() {
            let (earlier, own) = sets.words.split_at_mut(next * sets.width);
            let matters = moment.state != MomentState::Over && !moment.only_computes();
            let of_next = if matters { &before.words[next * sets.width..] } else { own };
            for at in moment.before.iter().map(|before| *before as usize) {
                let common = &mut earlier[at * sets.width..][..sets.width];
                common.iter_mut().zip(of_next.iter()).for_each(|(common, of_next)| *common &= of_next);
            }
        }
        sets
    }

    /// Returns true if the set of a moment contains another one.
    fn contains(&self, of: usize, moment: usize) -> bool {
        self.words[of * self.width + moment / 64] & (1 << (moment % 64)) != 0
    }
}
