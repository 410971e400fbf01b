//! The state of an atomic step while it makes the values of its sessions.

use super::Frame;
use crate::lock::HeldLock;

/// An atomic step that has its locks, and makes the values of its sessions. Dropping it releases the locks.
pub(super) struct Making {
    pub held: Vec<HeldLock>,
    /// The lock of the step whose value is made.
    pub wanted: usize,
    /// The frame of the body that computes it, once it has begun.
    pub frame: Option<Box<Frame>>,
}

impl Making {
    /// Returns the frame to the pool.
    pub(super) fn end_body(&mut self) {
        self.frame.take().into_iter().for_each(Frame::give_back);
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        // Before the locks, under which it runs.
        self.end_body();
    }
}
