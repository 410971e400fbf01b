//! Thread pools for calls that would hold up the thread of their flow: those that block it, and those that compute for
//! long.
//!
//! A pool has a bounded number of threads, which start when they are needed, and a FIFO queue before them. The queue is
//! bounded by the number of flows in progress; its delay decides on admission ([`overload`](crate::overload)). The
//! blocking pool of tokio, of up to 512 threads, would begin all calls at once: under overload none of them ends in time, and
//! all of their data is in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::overload::QueueDelay;
use crate::platform::Platform;

/// Something that a thread runs for a flow.
pub(crate) type PoolJob = Box<dyn FnOnce() + Send>;

/// A pool of threads that may block. Its threads end when it is dropped; calls in progress are left to the end of the process.
pub(crate) struct BlockingPool {
    name: &'static str,
    threads_max: usize,
    platform: Arc<dyn Platform>,
    shared: Arc<SharedQueue>,
}

struct SharedQueue {
    state: Mutex<BlockingPoolState>,
    arrived: Condvar,
    delay: QueueDelay,
}

#[derive(Default)]
struct BlockingPoolState {
    jobs: VecDeque<PoolJob>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl BlockingPool {
    /// Returns a pool without threads yet.
    pub(crate) fn new(name: &'static str, threads_max: usize, platform: &Arc<dyn Platform>) -> BlockingPool {
        let shared =
            SharedQueue { state: Mutex::default(), arrived: Condvar::new(), delay: QueueDelay::of_long_work() };
        BlockingPool { name, threads_max, platform: Arc::clone(platform), shared: Arc::new(shared) }
    }

    /// Runs a job on a thread of the pool, inside the runtime of this event loop. The result is missing if the job cannot be
    /// run any more.
    pub(crate) fn run<R: Send + 'static>(
        &self,
        event_loop: &Handle,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> oneshot::Receiver<R> {
        let (done, result) = oneshot::channel();
        // Nobody awaits the result of a flow that was cancelled.
        self.add(event_loop, Box::new(move || _ = done.send(job())));
        result
    }

    /// Returns true if calls wait too long in the queue to begin more of them.
    pub(crate) fn is_overloaded(&self) -> bool {
        self.shared.delay.is_overloaded(&*self.platform)
    }

    /// Adds a job whose result nobody awaits here.
    pub(crate) fn add(&self, event_loop: &Handle, job: PoolJob) {
        let mut state = self.shared.state.lock();
        state.jobs.push_back(job);
        self.shared.delay.enter(&*self.platform);
        if state.idle >= state.jobs.len() || state.threads == self.threads_max {
            drop(state);
            self.shared.arrived.notify_one();
            return;
        }
        state.threads += 1;
        let name = format!("weir {} {}", self.name, state.threads);
        drop(state);
        if self.start_thread(&name, event_loop).is_err() {
            self.shared.lose_thread();
        }
    }

    fn start_thread(&self, name: &str, event_loop: &Handle) -> std::io::Result<()> {
        let (shared, platform, event_loop) = (Arc::clone(&self.shared), Arc::clone(&self.platform), event_loop.clone());
        let body = move || {
            let _inside = event_loop.enter();
            while let Some(job) = shared.next(&*platform) {
                job();
            }
        };
        self.platform.thread(name, Box::new(body)).map(drop)
    }
}

impl Drop for BlockingPool {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        let unbegun = std::mem::take(&mut state.jobs);
        drop(state);
        self.shared.arrived.notify_all();
        drop(unbegun);
    }
}

impl SharedQueue {
    /// Waits for the next job; returns `None` when the pool was dropped.
    fn next(&self, platform: &dyn Platform) -> Option<PoolJob> {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                self.delay.leave(platform);
                return Some(job);
            }
            if state.closed {
                return None;
            }
            state.idle += 1;
            self.arrived.wait(&mut state);
            state.idle -= 1;
        }
    }

    /// Notes that the system gave no thread. The jobs wait for the other threads; without any they are dropped, and their
    /// flows fail.
    fn lose_thread(&self) {
        let mut state = self.state.lock();
        state.threads -= 1;
        let lost = if state.threads == 0 { std::mem::take(&mut state.jobs) } else { VecDeque::new() };
        drop(state);
        lost.iter().for_each(|_| self.delay.abandon());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::platform::{ScriptedPlatform, SystemPlatform};

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    #[test]
    fn jobs_run_at_once_up_to_the_number_of_threads_and_in_order_beyond_it() {
        let (runtime, platform) = (runtime(), Arc::new(SystemPlatform::new()) as Arc<dyn Platform>);
        let pool = BlockingPool::new("test", 2, &platform);
        let (both, order) = (Arc::new(Barrier::new(2)), Arc::<Mutex<Vec<usize>>>::default());
        let jobs: Vec<_> = (0..2).map(|_| Arc::clone(&both)).map(|both| move || _ = both.wait()).collect();
        let first: Vec<_> = jobs.into_iter().map(|job| pool.run(runtime.handle(), job)).collect();
        first.into_iter().for_each(|done| runtime.block_on(done).unwrap());
        let (release, released) = channel::<()>();
        let held = pool.run(runtime.handle(), move || released.recv_timeout(Duration::from_secs(60)).is_ok());
        let log = |number| {
            let order = Arc::clone(&order);
            pool.run(runtime.handle(), move || order.lock().push(number))
        };
        for done in (0..10).map(log).collect::<Vec<_>>() {
            runtime.block_on(done).unwrap();
        }
        assert_eq!(*order.lock(), (0..10).collect::<Vec<_>>());
        release.send(()).unwrap();
        assert!(runtime.block_on(held).unwrap());
        assert_eq!(pool.shared.state.lock().threads, 2);
    }

    #[test]
    fn calls_that_wait_for_long_are_an_overload() {
        let (runtime, clock) = (runtime(), Arc::new(ScriptedPlatform::new(0)));
        let pool = BlockingPool::new("test", 1, &(Arc::clone(&clock) as Arc<dyn Platform>));
        let (release, released) = channel::<()>();
        let (began, has_begun) = channel::<()>();
        let held = pool.run(runtime.handle(), move || {
            began.send(()).unwrap();
            released.recv_timeout(Duration::from_secs(60)).is_ok()
        });
        has_begun.recv_timeout(Duration::from_secs(60)).unwrap();
        let waiting: Vec<_> = (0..20).map(|_| pool.run(runtime.handle(), || ())).collect();
        assert!(!pool.is_overloaded(), "a burst");
        clock.pass_ns(200_000_000);
        assert!(pool.is_overloaded());
        release.send(()).unwrap();
        assert!(runtime.block_on(held).unwrap());
        waiting.into_iter().for_each(|done| runtime.block_on(done).unwrap());
        assert!(!pool.is_overloaded());
    }

    #[test]
    fn without_threads_jobs_are_dropped() {
        struct NoThreads;
        impl Platform for NoThreads {
            fn now_ns(&self) -> u64 {
                0
            }
            fn thread(
                &self,
                _name: &str,
                _body: Box<dyn FnOnce() + Send>,
            ) -> std::io::Result<std::thread::JoinHandle<()>> {
                Err(std::io::Error::other("none"))
            }
            fn random(&self) -> u64 {
                0
            }
            fn at(&self, _instant_ns: u64) -> weir_events::Event<()> {
                weir_events::never()
            }
        }
        let (runtime, platform) = (runtime(), Arc::new(NoThreads) as Arc<dyn Platform>);
        let pool = BlockingPool::new("test", 2, &platform);
        assert!(runtime.block_on(pool.run(runtime.handle(), || ())).is_err());
    }
}
