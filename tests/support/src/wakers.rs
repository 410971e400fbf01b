//! Wakers that tell what they have seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

/// Counts how often it wakes its task.
#[derive(Debug, Default)]
pub struct CountingWaker(AtomicUsize);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl CountingWaker {
    /// Returns the number of times that it has woken its task.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}
