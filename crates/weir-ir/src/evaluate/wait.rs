//! Waiting for one call.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use weir_host::{Pending, Settled};

use super::time_limits::TimeLimits;

/// The end of a wait.
pub(super) enum CallWait {
    /// The call has ended.
    Settled(Settled),
    /// The limit with this number has expired.
    Expired(usize),
}

/// Wakes a thread that is parked.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls the call once.
pub(super) fn poll_once(call: &mut Pending) -> Poll<Settled> {
    call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls the call until it has ended or a limit has expired, and parks in between. A wake-up before the parking is not lost.
pub(super) fn wait(mut call: Pending, limits: &mut TimeLimits<'_>) -> CallWait {
    let waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
    let mut context = Context::from_waker(&waker);
    let (begun, allowed) = (Instant::now(), limits.left());
    loop {
        // The time is read before the poll: what is ready is used, however late it is.
        let left = allowed.map(|allowed| allowed.saturating_sub(begun.elapsed()));
        if let Poll::Ready(settled) = call.as_mut().poll(&mut context) {
            return CallWait::Settled(settled);
        }
        if let Some(limit) = limits.ended(&mut context) {
            return CallWait::Expired(limit);
        }
        match left {
            None => thread::park(),
            Some(Duration::ZERO) => return CallWait::Expired(limits.first().expect("a limit has expired")),
            Some(left) => thread::park_timeout(left),
        }
    }
}
