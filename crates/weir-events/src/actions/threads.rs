//! Thread pool for post-consumption actions.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of actions that run at the same time. Further actions queue until one ends.
pub const ACTION_THREADS_MAX: usize = 4096;

/// Idle time after which a thread ends, in milliseconds.
const IDLE_MS: u64 = 500;

type ActionJob = Box<dyn FnOnce() + Send>;

struct ActionPool {
    state: Mutex<PoolState>,
    wanted: Condvar,
    panics: AtomicUsize,
}

struct PoolState {
    jobs: VecDeque<ActionJob>,
    idle: usize,
    threads: usize,
}

static POOL: ActionPool = ActionPool {
    state: Mutex::new(PoolState { jobs: VecDeque::new(), idle: 0, threads: 0 }),
    wanted: Condvar::new(),
    panics: AtomicUsize::new(0),
};

/// Returns the number of post-consumption actions that have panicked so far. The panic hook has reported each of them;
/// a panic affects neither the channel nor any other action.
pub fn action_panics() -> usize {
    POOL.panics.load(Relaxed)
}

/// Returns the current number of implicit threads, idle ones included.
pub fn action_threads() -> usize {
    POOL.lock().threads
}

/// Runs a job in an implicit thread.
pub(crate) fn run(job: impl FnOnce() + Send + 'static) {
    let mut state = POOL.lock();
    state.jobs.push_back(Box::new(job));
    if state.jobs.len() <= state.idle {
        POOL.wanted.notify_one();
    } else if state.threads < ACTION_THREADS_MAX {
        state.threads += 1;
        drop(state);
        start_thread();
    }
}

fn start_thread() {
    let started = std::thread::Builder::new().name("weir-events-action".to_owned()).spawn(|| POOL.work());
    if started.is_err() {
        // The system refuses more threads; a running one will take the job.
        POOL.lock().threads -= 1;
    }
}

impl ActionPool {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some(job) = self.next_job() {
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                self.panics.fetch_add(1, Relaxed);
            }
        }
    }

    /// Returns the next job, or `None` if this thread is to end.
    fn next_job(&self) -> Option<ActionJob> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            state.idle += 1;
            let wait = self.wanted.wait_timeout(state, Duration::from_millis(IDLE_MS));
            let (guard, timeout) = wait.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            state.idle -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return None;
            }
        }
    }
}
