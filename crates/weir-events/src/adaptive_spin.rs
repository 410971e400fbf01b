//! Adaptive spinning before a thread blocks: a thread spins for as long as spinning has recently paid off.
//!
//! Blocking and waking a thread takes from two microseconds, if both threads share a core, to some tens, if an idle
//! core has to be woken. A spinning thread sees a new value within some hundred nanoseconds, provided that the other
//! thread is running at the same time.
//!
//! On shared cores, only past waits indicate whether the other thread is running. Each thread therefore keeps a *spin
//! limit*, the number of pauses that it spends on the next wait: a hit raises the limit by a constant, a miss halves
//! it. Misses thus never cost much more than the hits between them have saved, and a thread that never hits spends
//! nearly nothing.
//!
//! Once one of two threads blocks, the other one waits for as long as waking it takes. With a shorter limit it blocks
//! too, and the two go on to block and wake each other in turns although each has a core. The largest limit is
//! therefore longer than a wake-up, and a thread at the smallest limit occasionally makes a *trial* with the largest:
//! soon at first, and less often the more trials have missed.

use std::cell::Cell;

/// Spin limit of a thread after many misses.
const SPINS_MIN: u32 = 8;
/// Largest spin limit: longer than it takes to wake a thread on an idle core.
const SPINS_MAX: u32 = 2048;
/// Increase of the spin limit after a hit.
const SPINS_GAIN: u32 = 16;
/// Number of misses at the smallest limit after which the first trial is made.
const TRIAL_MIN: u32 = 16;
/// Largest number of misses between two trials.
const TRIAL_MAX: u32 = 512;
/// Maximum number of pauses between two checks. A thread checks less often the larger the buffer is: the more the other
/// thread has done between two checks, the less the two contend.
const PAUSES_MAX: usize = 128;

/// Smallest capacity for which a thread spins before it queues its offer: it then finds several values or free slots at
/// once. With less room, a queued offer is itself a value or a slot more that the other thread finds.
const BATCH_CAPACITY_MIN: usize = 2;
thread_local! {
    static HISTORY: Cell<SpinHistory> = const { Cell::new(SpinHistory::NEW) };
}

/// Spinning statistics of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SpinHistory {
    spins: u32,
    /// Misses at the smallest limit since the last trial.
    misses: u32,
    /// Number of misses that triggers the next trial.
    trial: u32,
}

impl SpinHistory {
    const NEW: SpinHistory = SpinHistory { spins: SPINS_MAX, misses: 0, trial: TRIAL_MIN };

    fn after_hit(self) -> SpinHistory {
        SpinHistory { spins: (self.spins + SPINS_GAIN).min(SPINS_MAX), misses: 0, trial: TRIAL_MIN }
    }

    fn after_miss(self) -> SpinHistory {
        let SpinHistory { spins, misses, trial } = self;
        if misses == trial {
            SpinHistory { spins: SPINS_MIN, misses: 0, trial: (trial * 2).min(TRIAL_MAX) }
        } else if spins > SPINS_MIN {
            SpinHistory { spins: (spins / 2).max(SPINS_MIN), ..self }
        } else {
            let misses = misses + 1;
            SpinHistory { spins: if misses == trial { SPINS_MAX } else { SPINS_MIN }, misses, trial }
        }
    }
}

/// The spinning of one wait.
pub(crate) struct AdaptiveSpin {
    /// Pauses left of the thread's spin limit; `None` before the first check.
    left: Option<u32>,
    /// Pauses before each check.
    pauses: u32,
}

impl AdaptiveSpin {
    /// Creates the spinning of one wait on a channel, before the offer is queued; it ends at once on a channel of small
    /// capacity.
    pub(crate) fn new(capacity: usize) -> Self {
        let left = (capacity < BATCH_CAPACITY_MIN).then_some(0);
        AdaptiveSpin { left, pauses: capacity.clamp(1, PAUSES_MAX) as u32 }
    }

    /// Checks until the condition holds; returns false if the spin limit is used up before.
    #[cold]
    pub(crate) fn spin_until(&mut self, is_there: impl Fn() -> bool) -> bool {
        // The model explores every interleaving; a second check would only multiply them.
        if cfg!(loom) || self.left == Some(0) {
            return false;
        }
        let history = HISTORY.get();
        let left = self.left.get_or_insert(history.spins);
        while *left > 0 {
            let pauses = self.pauses.min(*left);
            (0..pauses).for_each(|_| std::hint::spin_loop());
            *left -= pauses;
            if is_there() {
                HISTORY.set(history.after_hit());
                return true;
            }
        }
        HISTORY.set(history.after_miss());
        false
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn looks(finds_at: Option<u32>) -> u32 {
        let made = Cell::new(0);
        AdaptiveSpin { left: None, pauses: 1 }.spin_until(|| {
            made.set(made.get() + 1);
            finds_at.is_some_and(|last| made.get() > last)
        });
        made.get()
    }

    #[test]
    fn looks_in_vain_become_few_and_finds_make_them_many_again() {
        let misses: Vec<u32> = (0..10).map(|_| looks(None)).collect();
        assert_eq!(misses, [2048, 1024, 512, 256, 128, 64, 32, 16, 8, 8]);
        let found: Vec<u32> = (0..4).map(|_| looks(Some(5))).collect();
        assert_eq!((found, looks(None)), (vec![6; 4], SPINS_MIN + 4 * SPINS_GAIN));
    }

    #[test]
    fn a_thread_that_finds_nothing_makes_trials_and_ever_fewer() {
        let all: Vec<u32> = (0..11 + 16 + 32 + 64).map(|_| looks(None)).collect();
        let trials: Vec<usize> = (1..all.len()).filter(|&wait| all[wait] == SPINS_MAX).collect();
        assert_eq!(trials, [8 + 16, 8 + 16 + 1 + 32, 8 + 16 + 1 + 32 + 1 + 64]);
        (0..20_000).for_each(|_| _ = looks(None));
        let later: u32 = (0..10_000).map(|_| looks(None)).sum();
        assert!(later < 10_000 * 13, "it hardly costs anything");
    }

    #[test]
    fn a_trial_that_finds_something_makes_the_next_one_soon() {
        (0..5_000).for_each(|_| _ = looks(None));
        while looks(Some(SPINS_MAX - 1)) != SPINS_MAX {}
        let all: Vec<u32> = (0..40).map(|_| looks(None)).collect();
        let trials: Vec<usize> = (1..all.len()).filter(|&wait| all[wait] == SPINS_MAX).collect();
        assert_eq!(trials, [8 + 16]);
    }

    #[test]
    fn one_wait_has_one_limit_and_on_a_small_channel_none() {
        let mut spin = AdaptiveSpin::new(2);
        assert!(spin.spin_until(|| true));
        assert!(!spin.spin_until(|| false) && !spin.spin_until(|| true));
        assert!(!AdaptiveSpin::new(0).spin_until(|| true) && !AdaptiveSpin::new(1).spin_until(|| true));
    }
}
