//! The room that the buffers of connections keep.
//!
//! A connection receives and sends each message as a whole, and its buffers keep the room of the largest one until the connection ends.
//! So that the connections of a program which does nothing hold little of its memory, one that keeps much is closed behind its answer:
//! all together may keep a part of the memory that the program may hold ([`SHARE`]), and each of them at most as much as the others
//! leave free of it (a dynamic threshold, as `weir::memory` has it for flows). As long as they keep less, a program that reads large
//! rows all the time uses the connections that it has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use weir::memory;

/// The part of the program's memory that the connections may keep. Chosen by judgement.
const SHARE: u64 = 8;
/// The room up to which a connection keeps nothing that counts: buffers have some ten kB from the beginning.
const SMALL_BYTES: usize = 128 * 1024;

/// The bytes that the connections of this process keep.
static OF_ALL: AtomicUsize = AtomicUsize::new(0);

/// The room that the buffers of a connection keep.
#[derive(Debug, Default)]
pub(super) struct KeptRoom {
    /// In bytes; 0 if it is small.
    bytes: AtomicUsize,
    /// Is told when it grows.
    pub(super) grown: Arc<Notify>,
}

impl KeptRoom {
    /// Notes a row of this size that was received: a buffer that grows doubles its room.
    pub(super) fn received(&self, bytes: usize) {
        self.note(bytes.saturating_mul(2));
    }

    /// Notes that a message has allocated so much when it was sent: it is copied to a second buffer.
    pub(super) fn sent(&self, allocated: i64) {
        self.note(usize::try_from(allocated).unwrap_or(0).saturating_mul(2));
    }

    fn note(&self, bytes: usize) {
        if bytes > SMALL_BYTES && bytes > self.bytes.load(Ordering::Relaxed) {
            let before = self.bytes.fetch_max(bytes, Ordering::Relaxed);
            OF_ALL.fetch_add(bytes.saturating_sub(before), Ordering::Relaxed);
            self.grown.notify_one();
        }
    }

    /// Returns whether it is more than the connection may keep.
    pub(super) fn is_too_large(&self) -> bool {
        let bytes = self.bytes.load(Ordering::Relaxed);
        bytes > 0 && memory::program_limit().is_some_and(|limit| !may_keep(bytes, of_all(), limit))
    }
}

impl Drop for KeptRoom {
    fn drop(&mut self) {
        OF_ALL.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

/// Returns the bytes that the connections of this process keep.
pub(super) fn of_all() -> usize {
    OF_ALL.load(Ordering::Relaxed)
}

/// Returns whether a connection may keep this room, if all keep so much, and the program may hold `limit`.
fn may_keep(bytes: usize, of_all: usize, limit: u64) -> bool {
    bytes.saturating_add(of_all) as u64 <= limit / SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_keeps_at_most_what_the_others_leave_of_an_eighth() {
        let limit = 80 << 20;
        let kept = |rooms: &[usize]| {
            rooms.iter().fold(0, |of_all, room| of_all + if may_keep(*room, of_all + room, limit) { *room } else { 0 })
        };
        assert_eq!(kept(&[5 << 20]), 5 << 20);
        assert_eq!(kept(&[6 << 20]), 0);
        assert_eq!(kept(&[4 << 20; 30]), 4 << 20);
        assert_eq!(kept(&[1 << 20; 30]), 9 << 20);
    }
}
