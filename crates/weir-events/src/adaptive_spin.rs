//! How long a thread looks for something before it waits: as long as looking has lately been worth it.
//!
//! Words: a *look* is one glance at what another thread may be about to do, after some pauses of the processor. A thread
//! that waits is put to sleep and woken, which takes from two microseconds, where both threads have one core, to some tens,
//! where an idle core is woken with it; one that looks has what it looks for some hundred nanoseconds after it is there, if
//! the other thread is running at the same time.
//!
//! Whether it is, on cores that others share, shows only in how it went. So each thread keeps its *reach*, the number of
//! pauses that it gives to the next wait: some more after each look that found something, half as many after one in
//! vain. So looks in vain never cost much more than the finds between them have saved, and where nothing is ever found
//! they cost nearly nothing.
//!
//! Once one of two threads sleeps, the other one, which wakes it, waits for as long as that takes: with a shorter reach it
//! sleeps too, and they go on to sleep and wake each other in turns though both have a core. So the greatest reach is longer than
//! a waking, and now and then a thread with the least one makes a *trial* of the greatest: soon at first, and the less often,
//! the more trials were in vain.

use std::cell::Cell;

/// The reach of a thread that has found nothing for long.
const SPINS_MIN: u32 = 8;
/// The reach of a thread that always finds something: longer than it takes to wake another one on an idle core.
const SPINS_MAX: u32 = 2048;
/// So much longer is the reach after each find.
const SPINS_GAIN: u32 = 16;
/// So many times in vain with the least reach, and the next time is a trial of the greatest.
const TRIAL_MIN: u32 = 16;
/// So many times after trials that were in vain themselves.
const TRIAL_MAX: u32 = 512;
/// Pauses before each look at the most. A thread looks the less often, the more the buffer holds: the other one goes on
/// meanwhile, and the more it has done, the fewer times they get into each other's way.
const PAUSES_MAX: usize = 128;

thread_local! {
    static HISTORY: Cell<SpinHistory> = const { Cell::new(SpinHistory { spins: SPINS_MAX, misses: 0, trial: TRIAL_MIN }) };
}

/// What a thread has learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SpinHistory {
    spins: u32,
    /// Times in vain with the least reach, since the last trial.
    misses: u32,
    /// So many make the next trial.
    trial: u32,
}

impl SpinHistory {
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

/// The looks of one wait.
pub(crate) struct AdaptiveSpin {
    /// What is left of the thread's reach; unknown before the first look.
    left: Option<u32>,
    /// Pauses before each look.
    pauses: u32,
}

impl AdaptiveSpin {
    /// For a channel. Whoever waits on one without a buffer is not looked for but met: there are no looks.
    pub(crate) fn new(capacity: usize) -> Self {
        let left = (capacity == 0).then_some(0);
        AdaptiveSpin { left, pauses: capacity.clamp(1, PAUSES_MAX) as u32 }
    }

    /// Looks until it is there; false where it has not come within the thread's reach.
    #[cold]
    pub(crate) fn spin_until(&mut self, is_there: impl Fn() -> bool) -> bool {
        // The model explores every order of things; looking twice would add nothing but more of them.
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
        AdaptiveSpin::new(1).spin_until(|| {
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
    fn one_wait_has_one_reach_and_without_a_buffer_none() {
        let mut spin = AdaptiveSpin::new(1);
        assert!(spin.spin_until(|| true));
        assert!(!spin.spin_until(|| false) && !spin.spin_until(|| true));
        assert!(!AdaptiveSpin::new(0).spin_until(|| true));
    }
}
