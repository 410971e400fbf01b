//! Independent jobs on several cores, for a check from scratch. No thread outlives the call that needs it.

#[cfg(test)]
use std::cell::Cell;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, available_parallelism, scope};

/// Maximum number of threads of one check.
const THREADS_MAX: usize = 8;

/// The stack of a thread in bytes; that of most main threads.
const STACK_BYTES: usize = 8 * 1024 * 1024;

#[cfg(test)]
thread_local! {
    /// The number of cores that a test wants checks on its thread to use.
    pub(crate) static CORES_OF_TEST: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Returns the number of cores that a check can use.
pub(crate) fn cores() -> usize {
    #[cfg(test)]
    if let Some(cores) = CORES_OF_TEST.get() {
        return cores;
    }
    available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX)
}

/// Runs the jobs on several threads, and returns their results in the order of the jobs.
pub(crate) fn in_parallel<J: Send, T: Send>(jobs: Vec<J>, work: impl Fn(J) -> T + Sync) -> Vec<T> {
    let threads = cores().min(jobs.len());
    if threads < 2 {
        return jobs.into_iter().map(work).collect();
    }
    let queue = Mutex::new(jobs.into_iter().enumerate());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let worker = || {
        let mut done = Vec::new();
        while let Some((at, job)) = next() {
            done.push((at, work(job)));
        }
        done
    };
    let mut done = scope(|scope| {
        let start = |_| Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, worker).ok();
        // This thread does the work of those that cannot be started.
        let others: Vec<_> = (1..threads).filter_map(start).collect();
        let mut done = worker();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::in_parallel;

    #[test]
    fn results_are_in_the_order_of_the_jobs() {
        let squares = in_parallel((0..1_000u64).collect(), |n| n * n);
        assert_eq!(squares, (0..1_000).map(|n| n * n).collect::<Vec<u64>>());
        assert!(in_parallel(Vec::<u64>::new(), |n| n).is_empty());
    }
}
