//! Time limits of futures, with timers of the event loop that are used again.
//!
//! A timer that is created, set and cancelled for each request takes as long as a small request's routing does. Most futures end
//! long before their limit. So a timer stays set when its future has ended, and the next future of the same thread takes it over:
//! it is due earlier than the new limit, and is set anew only if that time comes before the future ends.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::time::{Instant, Sleep, sleep_until};

/// Maximum number of timers that a thread keeps. Chosen by judgement: about as many requests as wait at a time.
const KEPT_MAX: usize = 64;
/// The limit instead of one beyond the range of the clock: thirty years.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 86_400);

thread_local! {
    static KEPT: RefCell<Vec<SetTimer>> = const { RefCell::new(Vec::new()) };
}

/// The time was up before the future ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TimeIsUp;

/// A timer of a runtime.
struct SetTimer {
    sleep: Pin<Box<Sleep>>,
    of: Id,
}

/// A time limit on a future, which counts from the first poll.
pub(crate) struct TimeLimit {
    limit: Duration,
    /// The timer, and when the time is up, once the future has to wait.
    running: Option<(SetTimer, Instant)>,
}

impl TimeLimit {
    /// Returns a limit of this duration.
    pub(crate) fn new(limit: Duration) -> Self {
        TimeLimit { limit, running: None }
    }

    /// Polls a future that has this limit.
    pub(crate) fn poll<F: Future + ?Sized>(
        &mut self,
        future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<F::Output, TimeIsUp>> {
        match future.poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => self.poll_end(cx).map(|()| Err(TimeIsUp)),
        }
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (timer, end) = self.running.get_or_insert_with(|| {
            let now = Instant::now();
            let end = now.checked_add(self.limit).unwrap_or_else(|| now + FOREVER);
            (SetTimer::kept_or_new(end), end)
        });
        loop {
            if timer.sleep.deadline() > *end {
                timer.sleep.as_mut().reset(*end);
            }
            ready!(timer.sleep.as_mut().poll(cx));
            if timer.sleep.deadline() >= *end {
                return Poll::Ready(());
            }
            // It was set for an earlier future.
            timer.sleep.as_mut().reset(*end);
        }
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        let Some((timer, _)) = self.running.take() else { return };
        if timer.sleep.is_elapsed() {
            return;
        }
        // A thread that ends keeps none.
        _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < KEPT_MAX {
                kept.push(timer);
            }
        });
    }
}

impl SetTimer {
    /// Returns a timer of the runtime of this thread: one that is set already, or a new one for this time.
    fn kept_or_new(end: Instant) -> SetTimer {
        let of = Handle::current().id();
        let kept = KEPT.with(|kept| kept.borrow_mut().pop());
        // Those of another runtime, which may have ended, are dropped one by one.
        kept.filter(|kept| kept.of == of).unwrap_or_else(|| SetTimer { sleep: Box::pin(sleep_until(end)), of })
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn};
    use std::pin::pin;

    use tokio::runtime::Builder;
    use tokio::time::sleep;

    use super::*;

    async fn within<F: Future>(limit: Duration, future: F) -> Result<F::Output, TimeIsUp> {
        let (mut future, mut limit) = (pin!(future), TimeLimit::new(limit));
        poll_fn(|cx| {
            let polled = limit.poll(future.as_mut(), cx);
            if let Some((timer, end)) = &limit.running {
                assert!(timer.sleep.deadline() <= *end, "it would be late");
            }
            polled
        })
        .await
    }

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// Waits once.
    async fn soon() {
        tokio::task::yield_now().await;
    }

    #[tokio::test]
    async fn a_limit_holds_whenever_its_timer_was_set_before() {
        for (before, limit) in [(20, 20), (10, 30), (20_000, 5), (1, 20), (30_000, 1)] {
            // Its timer is kept, and due after `before`.
            assert_eq!(within(ms(before), soon()).await, Ok(()));
            let begun = Instant::now();
            assert_eq!(within(ms(limit), pending::<()>()).await, Err(TimeIsUp));
            assert!(begun.elapsed() >= ms(limit), "{:?} instead of {limit} ms", begun.elapsed());
        }
        assert_eq!(within(Duration::MAX, async { 3 }).await, Ok(3));
        assert_eq!(within(Duration::MAX, soon()).await, Ok(()));
    }

    #[tokio::test]
    async fn a_kept_timer_that_was_due_meanwhile_is_set_anew() {
        assert_eq!(within(ms(1), soon()).await, Ok(()));
        sleep(ms(5)).await;
        let begun = Instant::now();
        assert_eq!(within(ms(10), pending::<()>()).await, Err(TimeIsUp));
        assert!(begun.elapsed() >= ms(10));
    }

    #[tokio::test]
    async fn futures_that_wait_at_the_same_time_have_timers_of_their_own() {
        let begun = Instant::now();
        let waits = [30, 10, 20].map(|limit| (limit, tokio::spawn(within(ms(limit), pending::<()>()))));
        for (limit, wait) in waits {
            assert_eq!(wait.await.unwrap(), Err(TimeIsUp));
            assert!(begun.elapsed() >= ms(limit));
        }
    }

    #[test]
    fn timers_of_a_runtime_that_has_ended_are_not_used() {
        for _ in 0..3 {
            let runtime = Builder::new_current_thread().enable_time().build().unwrap();
            assert_eq!(runtime.block_on(within(ms(10_000), soon())), Ok(()));
            assert_eq!(runtime.block_on(within(ms(1), pending::<()>())), Err(TimeIsUp));
        }
    }

    #[tokio::test]
    async fn the_number_of_kept_timers_is_bounded() {
        let waits: Vec<_> = (0..2 * KEPT_MAX).map(|_| tokio::spawn(within(ms(10_000), soon()))).collect();
        for wait in waits {
            assert_eq!(wait.await.unwrap(), Ok(()));
        }
        assert_eq!(KEPT.with(|kept| kept.borrow().len()), KEPT_MAX);
    }
}
