//! Primitives under the protocols between threads, in one place, so that the model check can replace them by loom's.

use std::sync::atomic::compiler_fence;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::thread::{Thread, current, park};
use std::time::Duration;

pub(crate) use parking_lot::{Mutex, MutexGuard};

pub(crate) use crate::fence::{has_heavy_fence, heavy_fence};

/// The longest wait for exclusive mode: about as long as a batch in that mode (`BATCH_TIME_MAX`). It also ends the wait
/// of a thread for itself.
const LOCK_WAIT_MAX: Duration = Duration::from_millis(1);
/// The number of checks before a spinning thread sleeps. Chosen by judgement: a bias owner usually leaves within one
/// item.
const LOOKS: u32 = 100;
/// The time that a waiting thread sleeps between two checks. Chosen by judgement: it is short in comparison with
/// `LOCK_WAIT_MAX`.
const NAP: Duration = Duration::from_micros(50);

/// Locks the mutex, unless that takes longer than [`LOCK_WAIT_MAX`].
pub(crate) fn lock_within<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    mutex.try_lock_for(LOCK_WAIT_MAX)
}

/// Stops the compiler from moving memory accesses across: the light half of an asymmetric fence.
#[inline]
pub(crate) fn light_fence() {
    compiler_fence(Ordering::SeqCst);
}

/// A bounded wait for a condition that nearly always holds at once: spins first, then sleeps between checks.
#[derive(Default)]
pub(crate) struct SpinWait {
    looks: u32,
}

impl SpinWait {
    /// Waits until the next check.
    pub(crate) fn pause(&mut self) {
        self.looks = self.looks.saturating_add(1);
        if self.looks < LOOKS { std::hint::spin_loop() } else { std::thread::sleep(NAP) }
    }

    /// Returns whether the wait has lasted for about [`LOCK_WAIT_MAX`].
    pub(crate) fn is_over(&self) -> bool {
        self.looks > LOOKS + (LOCK_WAIT_MAX.as_micros() / NAP.as_micros()) as u32
    }
}

/// Unlocks the mutex in favour of a waiting thread, if there is one.
pub(crate) fn unlock_fair<T>(guard: MutexGuard<'_, T>) {
    MutexGuard::unlock_fair(guard);
}

/// A mutant of the protocols: one step left out or weakened. The model check must catch each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchedulerMutant {
    /// `IdleSet`: a sleeper does not check for work after it has registered.
    NoSecondLook,
    /// `IdleSet`: registration is relaxed.
    RelaxedRegistration,
    /// `IdleSet`: a waker reads the count by a plain load.
    PlainLoad,
    /// `PortQueue`: a port becomes idle although its queue may not be empty.
    BlindUnschedule,
    /// `PortQueue`: a claim does not check whether the port is scheduled.
    BlindClaim,
    /// `ReadyQueue`: the store to a slot is relaxed.
    RelaxedSlot,
    /// `ReadyQueue`: the lap of a slot is not checked.
    AnyLap,
    /// `ReadyQueue`: a ticket is taken without a compare-and-exchange.
    HeadUnchecked,
    /// `ModeLock`: workers in shared mode are not counted.
    SharedUncounted,
    /// `ModeLock`: exclusive mode does not check for workers in shared mode.
    ExclusiveUnchecked,
    /// `ModeLock`: any thread may become the bias owner.
    AnyBiasOwner,
    /// `BiasedLock`: entering has no fence between its store and its load.
    EnterUnfenced,
    /// `BiasedLock`: entering does not check the owner again.
    EnterUnchecked,
    /// `BiasedLock`: leaving is relaxed.
    LeaveUnreleased,
    /// `BiasedLock`: revoking has no fence between its store and its load.
    RevokeUnfenced,
    /// `BiasedLock`: revoking does not check whether the owner is inside.
    RevokeUnchecked,
    /// `ControllerParking`: the controller does not check for work after it has set `parked`.
    ParkUnchecked,
    /// `ControllerParking`: setting `parked` is relaxed.
    RelaxedPark,
    /// `ControllerParking`: the controller reads the items in flight by a plain load.
    PlainInFlight,
}

/// Returns whether this mutant is under test: never, outside the model check.
#[inline]
pub(crate) const fn is(_mutant: SchedulerMutant) -> bool {
    false
}
