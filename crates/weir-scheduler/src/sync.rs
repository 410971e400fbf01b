//! The primitives under the protocols between threads, in one place, so that the model check can put loom's in theirs.

use std::sync::atomic::compiler_fence;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::thread::{Thread, current, park};
use std::time::Duration;

pub(crate) use parking_lot::{Mutex, MutexGuard};

pub(crate) use crate::fence::{has_heavy_fence, heavy_fence};

/// How long who would work alone waits for who does: about a batch. It also ends a wait for oneself.
const LOCK_WAIT_MAX: Duration = Duration::from_millis(1);
/// How often is looked before others have the processor in between.
const LOOKS: u32 = 100;
/// How long is slept then before the next look.
const NAP: Duration = Duration::from_micros(50);

/// The lock, where it is to be had within a moment.
pub(crate) fn lock_within<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    mutex.try_lock_for(LOCK_WAIT_MAX)
}

/// Keeps the compiler from moving reads and writes across: the favourite's half of a fence of all.
#[inline]
pub(crate) fn light_fence() {
    compiler_fence(Ordering::SeqCst);
}

/// Who waits for what is nearly always there in no time.
#[derive(Default)]
pub(crate) struct SpinWait {
    looks: u32,
}

impl SpinWait {
    /// Looks again later.
    pub(crate) fn pause(&mut self) {
        self.looks = self.looks.saturating_add(1);
        if self.looks < LOOKS { std::hint::spin_loop() } else { std::thread::sleep(NAP) }
    }

    /// Whether it has lasted for as long as for a lock.
    pub(crate) fn is_over(&self) -> bool {
        self.looks > LOOKS + (LOCK_WAIT_MAX.as_micros() / NAP.as_micros()) as u32
    }
}

/// Hands the lock to who waits for it.
pub(crate) fn unlock_fair<T>(guard: MutexGuard<'_, T>) {
    MutexGuard::unlock_fair(guard);
}

/// A step of the protocol that a mutant leaves out or weakens; the model check must notice each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchedulerMutant {
    /// The sleeper does not look again after it has registered.
    NoSecondLook,
    /// The sleeper's registration releases and acquires nothing.
    RelaxedRegistration,
    /// The maker of work reads the count with a plain load.
    PlainLoad,
    /// A port is unlisted without a look at what has come in the meantime.
    BlindUnschedule,
    /// A port is claimed without a look at whether somebody runs it.
    BlindClaim,
    /// A place of the ready ports is written without releasing what came before.
    RelaxedSlot,
    /// A place of the ready ports is read whatever lap it is of.
    AnyLap,
    /// A ticket is taken without a look at whether somebody else has it.
    HeadUnchecked,
    /// Who works beside others does not say so.
    SharedUncounted,
    /// Who would work alone does not look whether others work.
    ExclusiveUnchecked,
    /// Anybody becomes the favourite who works alone often enough.
    AnyBiasOwner,
    /// The favourite may look before others can see that it is inside.
    EnterUnfenced,
    /// The favourite does not look whether it still is that.
    EnterUnchecked,
    /// Returning the favourite's right releases nothing.
    LeaveUnreleased,
    /// Who ends a bias may look before the favourite can see that.
    RevokeUnfenced,
    /// Who ends a bias does not look whether the favourite is inside.
    RevokeUnchecked,
    /// Who would rest does not look again after having said so.
    ParkUnchecked,
    /// Who rests says so without releasing or acquiring anything.
    RelaxedPark,
    /// Who would rest reads what is in flight with a plain load.
    PlainInFlight,
}

/// Whether this is that mutant: never, outside the model check.
#[inline]
pub(crate) const fn is(_mutant: SchedulerMutant) -> bool {
    false
}
