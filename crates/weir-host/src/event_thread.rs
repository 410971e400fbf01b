//! Threads that drive event loops, as library code sees them.
//!
//! Such a thread must not block until something has happened that may be left to a task of its own loop: neither would ever go on.

use std::cell::Cell;

thread_local! {
    static IS_EVENT_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Notes that this thread drives an event loop until its end.
pub fn begin_event_thread() {
    IS_EVENT_THREAD.set(true);
}

/// Returns whether this thread may block until others have done something: it drives no event loop.
#[must_use]
pub fn may_block() -> bool {
    !IS_EVENT_THREAD.get()
}

/// Panics in a debug build if this thread drives an event loop. Library code calls it before it blocks until others have done
/// something.
#[track_caller]
pub fn assert_may_block() {
    debug_assert!(may_block(), "the thread of an event loop would block until a task has ended that may be its own");
}
