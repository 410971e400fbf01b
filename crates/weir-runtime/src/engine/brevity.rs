//! Whether what is done again and again is brief, as it was measured.
//!
//! It is an account: a brief one pays in one, a long one takes out many, and the next is taken to be brief unless the account
//! is overdrawn. So one that was held up now and then, by the system or a page that was missing, changes nothing.

use std::sync::atomic::{AtomicI64, Ordering};

/// How many brief ones are to be seen at first.
const INITIAL_DEBT: i64 = 2;
/// How many one takes out that took as long as a brief one may; more, where it took longer. So whoever counts on brief ones
/// loses to long ones a small part of what it would lose to brief ones anyway, however long those take.
const DEBT_PER_OVERRUN: i64 = 32;
/// How many may lie there: so many long ones at the most come by surprise.
const CREDIT_MAX: i64 = 32 * DEBT_PER_OVERRUN;

/// What is known: how many brief ones are to be seen before the next is taken to be so, or, below nothing, how many are in
/// hand. Threads may miss each other's notes, which are hints.
pub(super) struct BrevityPredictor(AtomicI64);

impl BrevityPredictor {
    /// Nothing is known.
    pub(super) fn new() -> Self {
        BrevityPredictor(AtomicI64::new(INITIAL_DEBT))
    }

    /// Whether the next one should be brief.
    pub(super) fn is_brief(&self) -> bool {
        self.0.load(Ordering::Relaxed) <= 0
    }

    /// One has taken so long, where a brief one takes less than `brief_ns`.
    pub(super) fn record(&self, took_ns: u64, brief_ns: u64) {
        let debt = self.0.load(Ordering::Relaxed);
        let left = match i64::try_from(took_ns / brief_ns).unwrap_or(i64::MAX) {
            0 => (debt - 1).max(-CREDIT_MAX),
            // What is owed already is not owed twice.
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

    /// A pace that has seen so many brief ones.
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
