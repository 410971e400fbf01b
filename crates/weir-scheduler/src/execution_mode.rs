//! Execution mode of a pool: shared (every worker runs the ports it claims) or exclusive (one thread owns all ports).
//!
//! A pool that needs one thread needs neither claims nor queues between its ports. But that thread may be the pool's
//! worker or a producer (caller-runs), and the number of threads may grow at any time. The mode lock decides which
//! threads may run ports.
//!
//! ```text
//!                 try_lock                     enter_shared
//!    Exclusive <------------- Free ---------------------------> Shared(n)
//!    (mutex held) ----------> (mutex free) <------------------- (mutex free, n > 0)
//!                 guard drop   |     ^       last leave_shared
//!                              |     |
//!      BIAS_THRESHOLD times in |     | revoke (mutex held)
//!      a row by one thread     v     |
//!                        Biased(owner): enters and leaves without the mutex
//! ```
//!
//! Protocol:
//! 1. *Shared.* A worker enters (`shared_workers += 1`) before it runs ports beside others, and leaves before it sleeps
//!    or is suspended. Both take the mutex for a moment.
//! 2. *Exclusive.* A thread holds the mutex for as long as it runs ports, and may do so only if `shared_workers == 0`.
//!    It releases the mutex after each batch. A worker that enters shared mode waits for that.
//! 3. *Biased.* A thread that enters exclusive mode for the [`BIAS_THRESHOLD`]th time in a row becomes the owner of the
//!    biased lock, and enters without the mutex from then on. A thread that holds the mutex and wants to run ports
//!    first revokes the bias. Only the first owner can become the owner again: a former owner may still be entering,
//!    and would write into the state of another one. In most programs one producer thread uses the pool.
//!
//! All fields are accessed with the mutex held, so that its acquire and release order them; the orderings of the biased
//! path are stated in `biased_lock`.

use super::biased_lock::BiasedLock;
use super::sync::{Mutex, MutexGuard, SchedulerMutant, SpinWait, has_heavy_fence, is, lock_within, unlock_fair};

/// The number of exclusive entries in a row that make a thread the bias owner. A revocation costs about as much as this
/// many lock operations, so that a workload that revokes each bias at once pays at most twice the price of the mutex
/// alone. Debug builds use a small number, so that tests reach the biased path.
const BIAS_THRESHOLD: u32 = if cfg!(debug_assertions) { 4 } else { 1_024 };

/// The lock that decides the execution mode of one pool.
pub(crate) struct ModeLock {
    state: Mutex<ModeState>,
    bias: BiasedLock,
    /// The number of exclusive entries in a row that make a thread the bias owner; `None` if the system has no heavy
    /// fence.
    bias_threshold: Option<u32>,
}

/// The state behind the mutex.
#[derive(Default)]
struct ModeState {
    /// The number of workers in shared mode.
    shared_workers: usize,
    /// The thread that entered exclusive mode last, and how many times in a row.
    last_exclusive: usize,
    repeats: u32,
    /// The first thread that became the bias owner. No other thread can become it.
    bias_owner: Option<usize>,
}

/// A guard of exclusive mode: until it is dropped, its holder may run every port of the pool.
pub(crate) enum ExclusiveGuard<'a> {
    /// Held by the mutex.
    Locked(#[expect(dead_code, reason = "held, and given back when dropped")] LockedGuard<'a>),
    /// Held by the biased lock.
    Biased(#[expect(dead_code, reason = "held, and returned when dropped")] BiasGuard<'a>),
}

/// The locked mutex. It is `None` only while it is dropped.
pub(crate) struct LockedGuard<'a>(Option<MutexGuard<'a, ModeState>>);

/// The owner's side of the biased lock.
pub(crate) struct BiasGuard<'a>(&'a BiasedLock);

impl ModeLock {
    /// Creates a lock without a bias, in no mode.
    pub(crate) fn new() -> Self {
        ModeLock::with_bias_after(has_heavy_fence().then_some(BIAS_THRESHOLD))
    }

    /// Creates a lock that makes a thread the bias owner after this many exclusive entries in a row.
    pub(crate) fn with_bias_after(bias_threshold: Option<u32>) -> Self {
        ModeLock { state: Mutex::new(ModeState::default()), bias: BiasedLock::new(), bias_threshold }
    }

    /// Enters shared mode, after waiting until no thread is in exclusive mode.
    pub(crate) fn enter_shared(&self) {
        let mut state = self.state.lock();
        let mut spin = SpinWait::default();
        while !self.bias.revoke() {
            spin.pause();
        }
        state.repeats = 0;
        state.shared_workers += usize::from(!is(SchedulerMutant::SharedUncounted));
    }

    /// Leaves shared mode.
    pub(crate) fn leave_shared(&self) {
        self.state.lock().shared_workers -= usize::from(!is(SchedulerMutant::SharedUncounted));
    }

    /// Enters exclusive mode for a batch if no thread is in either mode. Waits for a short time only.
    pub(crate) fn try_exclusive(&self) -> Option<ExclusiveGuard<'_>> {
        let mut locked = self.try_lock()?;
        locked.state().repeats = 0;
        Some(ExclusiveGuard::Locked(locked))
    }

    /// Enters exclusive mode for an item if no thread is in either mode. `thread` is the number of the calling thread,
    /// which may become the bias owner.
    #[inline]
    pub(crate) fn try_exclusive_biased(&self, thread: usize) -> Option<ExclusiveGuard<'_>> {
        if self.bias.try_enter(thread) {
            return Some(ExclusiveGuard::Biased(BiasGuard(&self.bias)));
        }
        self.try_exclusive_counted(thread)
    }

    /// Enters exclusive mode by the mutex, and makes the thread the bias owner if it did so often enough.
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

    /// Locks the mutex if no thread is in either mode, and revokes the bias.
    fn try_lock(&self) -> Option<LockedGuard<'_>> {
        let state = lock_within(&self.state)?;
        if state.shared_workers > 0 && !is(SchedulerMutant::ExclusiveUnchecked) {
            return None;
        }
        let mut spin = SpinWait::default();
        while !self.bias.revoke() {
            // The owner inside may be this thread itself, which would wait forever.
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
        // Fair, because this thread would otherwise lock the mutex again before a waiting one is awake.
        self.0.take().into_iter().for_each(unlock_fair);
    }
}

impl Drop for BiasGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.leave();
    }
}
