//! Support for the tests: waiting without sleeping, and tasks on one thread.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// Long enough that a test that gets there has failed.
pub(crate) const TOO_LONG: Duration = Duration::from_secs(20);

/// Gives the core away until the condition holds.
pub(crate) fn until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < TOO_LONG, "waited too long");
        std::thread::yield_now();
    }
}

/// Polls a future that nobody is to be told about.
pub(crate) fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Runs tasks on this thread alone.
pub(crate) fn on_one_thread<T>(tasks: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(tokio::task::LocalSet::new().run_until(tasks))
}

/// Returns the number of threads of this process (Linux).
pub(crate) fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// A waker that counts its wake-ups.
#[derive(Clone)]
pub(crate) struct CountingWaker(Arc<AtomicUsize>);

impl CountingWaker {
    pub(crate) fn new() -> Self {
        CountingWaker(Arc::default())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(SeqCst)
    }

    /// Polls a future once with this waker.
    pub(crate) fn poll<F: Future + Unpin>(&self, future: &mut F) -> Poll<F::Output> {
        let waker = Waker::from(Arc::new(self.clone()));
        std::pin::Pin::new(future).poll(&mut Context::from_waker(&waker))
    }
}

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}
