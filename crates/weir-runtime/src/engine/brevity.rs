//! Brevity predictor: predicts whether the next execution of a task is brief, by a saturating counter, not an EWMA.
//!
//! The counter works like an account: a brief execution adds one unit of credit, a long one removes many, and the next
//! execution is predicted to be brief unless the account is overdrawn. A moving average (EWMA) is unsuitable: a single
//! execution that the system or a page fault interrupts could outweigh many others, whereas here it removes no more
//! than the credit that brief executions have earned before.
//!
//! All accesses are relaxed. Threads may overwrite each other's records, because a record is only a hint: a lost record
//! delays the next change of the prediction, and nothing else depends on it.

use std::sync::atomic::{AtomicI64, Ordering};

/// Brief executions needed before the first prediction of brevity. Chosen by judgement: one may be a coincidence.
const INITIAL_DEBT: i64 = 2;
/// The number of brief executions that offset one that exceeds the limit of brevity; a longer one counts as a multiple.
/// However long the mispredicted executions are, their cost is thus a small fraction of what the brief executions have
/// saved.
const DEBT_PER_OVERRUN: i64 = 32;
/// The maximum credit of the account, so that at most 32 long executions in a row are predicted wrongly. Measured with
/// `pool` and hits of a cache: without credit, the 45 hits a second that a system tick interrupted sent the 32 flows
/// after each to another thread, 1,500 thread switches a second, at 2 % of the throughput.
const CREDIT_MAX: i64 = 32 * DEBT_PER_OVERRUN;

/// The account, negated: the number of brief executions still needed before brevity is predicted, or, if it is zero or
/// less, the credit.
pub(super) struct BrevityPredictor(AtomicI64);

impl BrevityPredictor {
    /// Returns a predictor without measurements.
    pub(super) fn new() -> Self {
        BrevityPredictor(AtomicI64::new(INITIAL_DEBT))
    }

    /// Predicts whether the next execution will be brief.
    pub(super) fn is_brief(&self) -> bool {
        self.0.load(Ordering::Relaxed) <= 0
    }

    /// Records the duration of an execution; less than `brief_ns` is brief.
    pub(super) fn record(&self, took_ns: u64, brief_ns: u64) {
        let debt = self.0.load(Ordering::Relaxed);
        let left = match i64::try_from(took_ns / brief_ns).unwrap_or(i64::MAX) {
            0 => (debt - 1).max(-CREDIT_MAX),
            // A debt is not increased: several long executions in a row need no more brief ones than the longest.
            times => debt.max(debt.min(0).saturating_add(times.saturating_mul(DEBT_PER_OVERRUN))),
        };
        if left != debt {
            self.0.store(left, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRIEF_NS: u64 = 10_000;

    /// Returns a predictor that has recorded this many brief executions.
    fn after_brief(count: i64) -> BrevityPredictor {
        let predictor = BrevityPredictor::new();
        (0..count).for_each(|_| predictor.record(BRIEF_NS - 1, BRIEF_NS));
        predictor
    }

    #[test]
    fn brief_ones_are_counted_on_once_they_were_seen() {
        assert!(!BrevityPredictor::new().is_brief() && !after_brief(INITIAL_DEBT - 1).is_brief());
        assert!(after_brief(INITIAL_DEBT).is_brief());
    }

    #[test]
    fn a_long_one_is_borne_by_the_brief_ones_before_it_and_else_by_those_behind_it() {
        let long_after = |count, times| {
            let predictor = after_brief(INITIAL_DEBT + count);
            predictor.record(times * BRIEF_NS, BRIEF_NS);
            predictor
        };
        assert!(long_after(DEBT_PER_OVERRUN, 1).is_brief());
        assert!(!long_after(DEBT_PER_OVERRUN, 2).is_brief());
        let predictor = long_after(0, 1);
        (1..DEBT_PER_OVERRUN).for_each(|_| predictor.record(0, BRIEF_NS));
        assert!(!predictor.is_brief());
        predictor.record(0, BRIEF_NS);
        assert!(predictor.is_brief());
    }

    #[test]
    fn the_account_is_bounded_above() {
        let predictor = after_brief(10 * CREDIT_MAX);
        predictor.record(33 * BRIEF_NS, BRIEF_NS);
        assert!(!predictor.is_brief());
        predictor.record(u64::MAX, 1);
        assert!(!predictor.is_brief());
    }
}
