//! Thread pool for post-consumption actions that may block.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::telemetry;

/// Idle time after which a thread ends.
const IDLE_MAX: Duration = Duration::from_millis(500);

type ActionJob = Box<dyn FnOnce() + Send>;

struct ActionPool {
    state: Mutex<PoolState>,
    wanted: Condvar,
    panics: AtomicUsize,
    idle_max: Duration,
}

struct PoolState {
    jobs: VecDeque<ActionJob>,
    /// Threads that wait for a job.
    idle: usize,
    /// Threads that have been started and have not looked for a job yet.
    starting: usize,
    threads: usize,
}

static POOL: ActionPool = ActionPool::new(IDLE_MAX);

/// Returns the number of post-consumption actions that have panicked so far. The panic hook has reported each of them; a
/// panic affects neither the channel nor any other action.
pub fn action_panics() -> usize {
    POOL.panics.load(Relaxed)
}

/// Returns the current number of implicit threads, idle ones included.
pub fn action_threads() -> usize {
    POOL.lock().threads
}

/// Runs a part of an action, and counts its panic; `None` if it panicked.
pub(super) fn run_counting_panics<T>(action: impl FnOnce() -> T) -> Option<T> {
    let result = catch_unwind(AssertUnwindSafe(action));
    if result.is_err() {
        POOL.panics.fetch_add(1, Relaxed);
        telemetry::action_panicked();
    }
    result.ok()
}

/// Runs a job in an implicit thread.
pub(crate) fn run(job: impl FnOnce() + Send + 'static) {
    POOL.run(Box::new(job));
}

impl ActionPool {
    const fn new(idle_max: Duration) -> Self {
        ActionPool {
            state: Mutex::new(PoolState { jobs: VecDeque::new(), idle: 0, starting: 0, threads: 0 }),
            wanted: Condvar::new(),
            panics: AtomicUsize::new(0),
            idle_max,
        }
    }

    /// Runs a job. There are as many threads as jobs that run at once, because each job may wait for any other one.
    fn run(&'static self, job: ActionJob) {
        let mut state = self.lock();
        state.jobs.push_back(job);
        let missing = state.jobs.len().saturating_sub(state.idle + state.starting);
        if missing == 0 {
            self.wanted.notify_one();
            return;
        }
        state.threads += missing;
        state.starting += missing;
        drop(state);
        // More than one is missing only if the system has refused some before.
        (0..missing).for_each(|_| self.start_thread());
    }

    fn start_thread(&'static self) {
        let started = std::thread::Builder::new().name("weir-events-action".to_owned()).spawn(|| self.work());
        let Err(error) = started else { return };
        // The system refuses more threads: a running thread will take the job, or the next job tries to start one again.
        let mut state = self.lock();
        state.threads -= 1;
        state.starting -= 1;
        drop(state);
        telemetry::thread_refused(&error);
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        self.lock().starting -= 1;
        while let Some(job) = self.next_job() {
            run_counting_panics(job);
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
            let wait = self.wanted.wait_timeout(state, self.idle_max);
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Long enough that a test that reaches it has failed.
    const TOO_LONG: Duration = Duration::from_secs(20);

    #[test]
    fn an_idle_thread_is_woken_for_the_next_job() {
        static PATIENT: ActionPool = ActionPool::new(Duration::from_secs(3600));
        let (done, ended) = mpsc::channel();
        for number in 1..=3 {
            let done = done.clone();
            PATIENT.run(Box::new(move || done.send(number).unwrap_or_default()));
            assert_eq!(ended.recv_timeout(TOO_LONG), Ok(number));
            while PATIENT.lock().idle == 0 {
                std::thread::yield_now();
            }
        }
        assert_eq!(PATIENT.lock().threads, 1);
    }
}
