//! Cooperative scheduling: a task that always finds its channel ready must yield to the other tasks of its thread.

use std::task::{Context, Poll};

/// Polls an operation within tokio's cooperative budget. If the budget is used up, the task is rescheduled instead.
#[cfg(feature = "tokio")]
#[inline]
pub(crate) fn poll_within_budget<T>(
    context: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    let budget = std::task::ready!(tokio::task::coop::poll_proceed(context));
    let polled = poll(context);
    if polled.is_ready() {
        budget.made_progress();
    }
    polled
}

/// Polls an operation: without the feature `tokio` there is no budget.
#[cfg(not(feature = "tokio"))]
#[inline]
pub(crate) fn poll_within_budget<T>(
    context: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    poll(context)
}
