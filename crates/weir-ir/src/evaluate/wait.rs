//! Blocking on one future.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Wakes a thread that is parked.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls the future until it is ready, and parks in between. A wake-up before the parking is not lost. Returns `None` if the
/// future is not ready after the time that is left.
pub(super) fn block_on<T>(future: impl Future<Output = T>, left: Option<Duration>) -> Option<T> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
    let mut context = Context::from_waker(&waker);
    let begun = Instant::now();
    loop {
        // The time is read before the poll: what is ready is used, however late it is.
        let left = left.map(|left| left.saturating_sub(begun.elapsed()));
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Some(value);
        }
        match left {
            None => thread::park(),
            Some(Duration::ZERO) => return None,
            Some(left) => thread::park_timeout(left),
        }
    }
}
