//! How long a thread looks for something before it waits: as long as looking has lately been worth it.
//!
//! Words: a *look* is one glance at what another thread may be about to do, after some pauses of the processor. A thread
//! that waits is put to sleep and woken, which takes some microseconds and as many of the other thread's; one that looks has
//! what it looks for some hundred nanoseconds after it is there, if the other thread is running at the same time.
//!
//! Whether it is, on cores that others share, shows only in how it went. So each thread keeps its *reach*, the number of
//! pauses that it gives to the next wait: twice as many after looks that found something, half as many after looks in
//! vain. Where they are nearly always in vain, they cost nearly nothing; now and then a thread looks for long all the same,
//! or two that sleep and wake each other in turns would never learn that they need not.

use std::cell::Cell;

/// The reach of a thread that has found nothing for long.
const REACH_MIN: u32 = 8;
/// The reach of a thread that always finds something: about as long as it takes to wake another one.
const REACH_MAX: u32 = 256;
/// So many times in vain with the least reach, and the next time it is the greatest.
const IN_VAIN_MAX: u32 = 64;
/// Pauses before each look at the most. A thread looks the less often, the more the buffer holds: the other one goes on
/// meanwhile, and the more it has done, the fewer times they get into each other's way.
const PAUSES_MAX: usize = 128;

thread_local! {
    static HABIT: Cell<Habit> = const { Cell::new(Habit { reach: REACH_MAX, in_vain: 0 }) };
}

/// What a thread has learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Habit {
    reach: u32,
    in_vain: u32,
}

impl Habit {
    fn after_a_find(self) -> Habit {
        Habit { reach: (self.reach * 2).min(REACH_MAX), in_vain: 0 }
    }

    fn after_nothing(self) -> Habit {
        let in_vain = self.in_vain + u32::from(self.reach == REACH_MIN);
        match in_vain {
            IN_VAIN_MAX => Habit { reach: REACH_MAX, in_vain: 0 },
            _ => Habit { reach: (self.reach / 2).max(REACH_MIN), in_vain },
        }
    }
}

/// The looks of one wait.
pub(crate) struct Patience {
    /// What is left of the thread's reach; unknown before the first look.
    left: Option<u32>,
    /// Pauses before each look.
    pauses: u32,
}

impl Patience {
    /// For a channel. Whoever waits on one without a buffer is not looked for but met: there are no looks.
    pub(crate) fn new(capacity: usize) -> Self {
        let left = (capacity == 0).then_some(0);
        Patience { left, pauses: capacity.clamp(1, PAUSES_MAX) as u32 }
    }

    /// Looks until it is there; false where it has not come within the thread's reach.
    #[cold]
    pub(crate) fn look_for(&mut self, is_there: impl Fn() -> bool) -> bool {
        // The model explores every order of things; looking twice would add nothing but more of them.
        if cfg!(loom) || self.left == Some(0) {
            return false;
        }
        let habit = HABIT.get();
        let left = self.left.get_or_insert(habit.reach);
        while *left > 0 {
            let pauses = self.pauses.min(*left);
            (0..pauses).for_each(|_| std::hint::spin_loop());
            *left -= pauses;
            if is_there() {
                HABIT.set(habit.after_a_find());
                return true;
            }
        }
        HABIT.set(habit.after_nothing());
        false
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn looks(finds_at: Option<u32>) -> u32 {
        let made = Cell::new(0);
        Patience::new(1).look_for(|| {
            made.set(made.get() + 1);
            finds_at.is_some_and(|last| made.get() > last)
        });
        made.get()
    }

    #[test]
    fn looks_in_vain_become_few_and_finds_make_them_many_again() {
        let in_vain: Vec<u32> = (0..7).map(|_| looks(None)).collect();
        assert_eq!(in_vain, [256, 128, 64, 32, 16, 8, 8]);
        let found: Vec<u32> = (0..4).map(|_| looks(Some(5))).collect();
        assert_eq!((found, looks(None)), (vec![6; 4], 128));
    }

    #[test]
    fn a_thread_that_finds_nothing_looks_for_long_now_and_then() {
        let all: Vec<u32> = (0..200).map(|_| looks(None)).collect();
        assert_eq!(all.iter().filter(|&&looks| looks == REACH_MAX).count(), 3);
        assert!(all.iter().sum::<u32>() < 200 * 16, "it hardly costs anything");
    }

    #[test]
    fn one_wait_has_one_reach_and_without_a_buffer_none() {
        let mut patience = Patience::new(1);
        assert!(patience.look_for(|| true));
        assert!(!patience.look_for(|| false) && !patience.look_for(|| true));
        assert!(!Patience::new(0).look_for(|| true));
    }
}
