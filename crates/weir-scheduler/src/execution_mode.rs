//! Whether the threads of a crew work beside each other, or one at a time.
//!
//! A crew of one thread has nobody to share its ports with, so that it needs no queue and no claim between them. But that
//! thread may be the crew's own or one that puts items in, and the crew may grow at any time.
//!
//! Protocol:
//! 1. Who works *beside* others joins first and leaves when it sleeps or is suspended, both under the lock.
//! 2. Who works *alone* holds the lock all the time, and nobody has joined. A thread that joins waits for it, and thread
//!    that works alone lets go after each batch.
//! 3. Who works alone again and again, each time for a moment, becomes the favourite (`bias`) and needs the lock no more.
//!    Who has the lock and wants to work ends that first. Only the first who became the favourite becomes it again: an
//!    earlier one that comes late would write the word of a later one, and there is one source's thread most often.

use super::biased_lock::BiasedLock;
use super::sync::{Mutex, MutexGuard, SchedulerMutant, SpinWait, has_heavy_fence, is, lock_within, unlock_fair};

/// Who has worked alone so often, and nobody else in between, becomes the favourite. To end that costs as much as so many
/// times the lock, so that at most twice as much is paid as would have been without. Tests come there soon.
const BIAS_THRESHOLD: u32 = if cfg!(debug_assertions) { 4 } else { 1_024 };

/// The places of one crew.
pub(crate) struct ModeLock {
    state: Mutex<ModeState>,
    bias: BiasedLock,
    /// How often a thread works alone before it becomes the favourite; nothing where the system has no fence for it.
    bias_threshold: Option<u32>,
}

#[derive(Default)]
struct ModeState {
    /// How many threads work beside each other.
    shared_workers: usize,
    /// Who worked alone for a moment last, and how often in a row.
    last_exclusive: usize,
    repeats: u32,
    /// Who was the first to become the favourite.
    bias_owner: Option<usize>,
}

/// The right to work alone, until it is dropped.
pub(crate) enum ExclusiveGuard<'a> {
    /// By the lock.
    Locked(#[expect(dead_code, reason = "held, and given back when dropped")] LockedGuard<'a>),
    /// As the favourite.
    Biased(#[expect(dead_code, reason = "held, and returned when dropped")] BiasGuard<'a>),
}

/// The lock that is held.
pub(crate) struct LockedGuard<'a>(Option<MutexGuard<'a, ModeState>>);

/// The favourite is inside.
pub(crate) struct BiasGuard<'a>(&'a BiasedLock);

impl ModeLock {
    pub(crate) fn new() -> Self {
        ModeLock::with_bias_after(has_heavy_fence().then_some(BIAS_THRESHOLD))
    }

    /// Places where who works alone so often becomes the favourite.
    pub(crate) fn with_bias_after(bias_threshold: Option<u32>) -> Self {
        ModeLock { state: Mutex::new(ModeState::default()), bias: BiasedLock::new(), bias_threshold }
    }

    /// This thread works beside others from now on.
    pub(crate) fn enter_shared(&self) {
        let mut state = self.state.lock();
        let mut spin = SpinWait::default();
        while !self.bias.revoke() {
            spin.pause();
        }
        state.repeats = 0;
        state.shared_workers += usize::from(!is(SchedulerMutant::SharedUncounted));
    }

    /// This thread does not any more.
    pub(crate) fn leave_shared(&self) {
        self.state.lock().shared_workers -= usize::from(!is(SchedulerMutant::SharedUncounted));
    }

    /// The right to work alone for a while, where nobody works.
    pub(crate) fn try_exclusive(&self) -> Option<ExclusiveGuard<'_>> {
        let mut locked = self.try_lock()?;
        locked.state().repeats = 0;
        Some(ExclusiveGuard::Locked(locked))
    }

    /// The right to work alone for a moment, where nobody works. `thread` is the number of this thread.
    #[inline]
    pub(crate) fn try_exclusive_biased(&self, thread: usize) -> Option<ExclusiveGuard<'_>> {
        if self.bias.try_enter(thread) {
            return Some(ExclusiveGuard::Biased(BiasGuard(&self.bias)));
        }
        self.try_exclusive_counted(thread)
    }

    #[cold]
    fn try_exclusive_counted(&self, thread: usize) -> Option<ExclusiveGuard<'_>> {
        let mut locked = self.try_lock()?;
        let state = locked.state();
        state.repeats = if state.last_exclusive == thread { state.repeats.saturating_add(1) } else { 1 };
        state.last_exclusive = thread;
        let is_frequent = self.bias_threshold.is_some_and(|times| state.repeats >= times);
        if !is_frequent || (*state.bias_owner.get_or_insert(thread) != thread && !is(SchedulerMutant::AnyBiasOwner)) {
            return Some(ExclusiveGuard::Locked(locked));
        }
        state.repeats = 0;
        self.bias.bias_to(thread);
        Some(ExclusiveGuard::Biased(BiasGuard(&self.bias)))
    }

    /// The lock, where nobody works.
    fn try_lock(&self) -> Option<LockedGuard<'_>> {
        let state = lock_within(&self.state)?;
        if state.shared_workers > 0 && !is(SchedulerMutant::ExclusiveUnchecked) {
            return None;
        }
        let mut spin = SpinWait::default();
        while !self.bias.revoke() {
            // It may be this thread itself.
            if spin.is_over() {
                return None;
            }
            spin.pause();
        }
        Some(LockedGuard(Some(state)))
    }
}

impl LockedGuard<'_> {
    fn state(&mut self) -> &mut ModeState {
        self.0.as_mut().expect("taken only when it is dropped")
    }
}

impl Drop for LockedGuard<'_> {
    fn drop(&mut self) {
        // Who waits comes next: it would not get the lock from a thread that takes it again at once.
        self.0.take().into_iter().for_each(unlock_fair);
    }
}

impl Drop for BiasGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.leave();
    }
}
