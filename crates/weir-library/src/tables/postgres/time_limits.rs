//! Time limits of answers.
//!
//! A timer of each answer would wake the event loop that sets it, which is a system call. So the thread of connections looks in each
//! [`LOOK_PERIOD`] which answers are overdue, as long as some are missing.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::io::begin_task;
use crate::time_limit::TimeIsUp;

/// Period of the looks. An answer is given up by so much later at most.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// The answers that are missing.
#[derive(Clone, Default)]
pub(super) struct AnswerTimeLimits(Arc<Mutex<MissingAnswers>>);

#[derive(Default)]
struct MissingAnswers {
    /// The ends of their time, and the tasks that wait, by their numbers.
    missing: BTreeMap<u64, (Instant, Waker)>,
    /// The number of the last one.
    last: u64,
    /// True while a task looks.
    is_watched: bool,
}

impl AnswerTimeLimits {
    /// Waits for an answer, and gives it up after a time. `watching` is the event loop that looks.
    pub(super) async fn limited<A: Future>(
        &self,
        watching: &Handle,
        limit: Duration,
        answer: A,
    ) -> Result<A::Output, TimeIsUp> {
        let (mut answer, end) = (pin!(answer), Instant::now() + limit);
        let mut missing = MissingAnswer { limits: self, number: 0 };
        poll_fn(|context| {
            if let Poll::Ready(answer) = answer.as_mut().poll(context) {
                return Poll::Ready(Ok(answer));
            }
            if Instant::now() >= end {
                return Poll::Ready(Err(TimeIsUp));
            }
            missing.wait(watching, end, context);
            Poll::Pending
        })
        .await
    }

    async fn watch(self) {
        loop {
            tokio::time::sleep(LOOK_PERIOD).await;
            let mut answers = self.0.lock();
            if answers.missing.is_empty() {
                answers.is_watched = false;
                return;
            }
            let now = Instant::now();
            answers.missing.values().filter(|(end, _)| *end <= now).for_each(|(_, waker)| waker.wake_by_ref());
        }
    }
}

/// An answer that is missing until this is dropped.
struct MissingAnswer<'l> {
    limits: &'l AnswerTimeLimits,
    /// Its number; 0 before it is noted.
    number: u64,
}

impl MissingAnswer<'_> {
    /// Notes the task that waits.
    fn wait(&mut self, watching: &Handle, end: Instant, context: &Context<'_>) {
        let mut answers = self.limits.0.lock();
        if self.number == 0 {
            answers.last += 1;
            self.number = answers.last;
        }
        match answers.missing.get_mut(&self.number) {
            Some((_, waker)) => waker.clone_from(context.waker()),
            None => _ = answers.missing.insert(self.number, (end, context.waker().clone())),
        }
        if !std::mem::replace(&mut answers.is_watched, true) {
            begin_task(watching, self.limits.clone().watch());
        }
    }
}

impl Drop for MissingAnswer<'_> {
    fn drop(&mut self) {
        if self.number != 0 {
            self.limits.0.lock().missing.remove(&self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[test]
    fn an_answer_that_does_not_come_is_given_up() {
        let limits = AnswerTimeLimits::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let limited = |limit, is_there: bool| {
            let answer = async move { if is_there { ready(7).await } else { pending().await } };
            runtime.block_on(limits.limited(runtime.handle(), limit, answer))
        };
        assert_eq!(limited(Duration::ZERO, true), Ok(7));
        assert_eq!(limited(Duration::ZERO, false), Err(TimeIsUp));
        // The task that looks wakes it.
        assert_eq!(limited(Duration::from_millis(1), false), Err(TimeIsUp));
        assert!(limits.0.lock().missing.is_empty());
    }
}
