//! Bytes that the connections of a server hold for their clients: request bodies, by their announced length or else as they
//! arrive, and answers that were not accepted yet. Together they may have a quarter of the program's memory ([`HELD_PART`]); beyond that, the
//! connection table closes one of those that hold most, of the address whose connections hold most.
//!
//! Of answers, only those count that are too long to be copied and belong to this connection alone: closing a connection
//! frees nothing of an answer that others share, such as a file in the cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use weir::memory;

/// The part of the program's memory that connections may hold. Chosen by judgement: flows need the larger part.
const HELD_PART: u64 = 4;
/// An answer up to this length counts as nothing: it takes no more than the buffers of its connection do anyway.
const COUNTED_BYTES_MIN: usize = 64 * 1024;

/// The sum over the connections of a server.
#[derive(Debug, Default)]
pub(crate) struct HeldTotal {
    bytes: AtomicU64,
    /// The part of connections that were told to end.
    ending: AtomicU64,
}

/// The bytes of one connection; the table reads them.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    total: Arc<HeldTotal>,
    /// Changed by the event loop of the connection only.
    bytes: AtomicU64,
    /// Bytes of bodies of unknown length, changed by the threads that read these.
    arrived: AtomicU64,
    /// The bytes at the moment when the connection was told to end; 0 before.
    ending: AtomicU64,
}

impl HeldTotal {
    /// Returns true if connections hold more than they may, without those that end.
    pub(crate) fn is_over(&self) -> bool {
        let limit = memory::program_limit().map_or(u64::MAX, |limit| limit / HELD_PART);
        let ending = self.ending.load(Ordering::Relaxed);
        self.bytes.load(Ordering::Relaxed).saturating_sub(ending) > limit
    }

    /// Returns true if this is what all connections hold, without those that end.
    pub(crate) fn is_all(&self, bytes: u64) -> bool {
        let ending = self.ending.load(Ordering::Relaxed);
        self.bytes.load(Ordering::Relaxed).saturating_sub(ending) <= bytes
    }
}

impl HeldBytes {
    /// Creates the count of a connection that holds nothing.
    pub(crate) fn new(total: &Arc<HeldTotal>) -> Self {
        let total = Arc::clone(total);
        HeldBytes { total, bytes: AtomicU64::default(), arrived: AtomicU64::default(), ending: AtomicU64::default() }
    }

    /// Returns the number of bytes.
    pub(crate) fn get(&self) -> u64 {
        self.without_arrived() + self.arrived.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes without those of bodies of unknown length.
    #[inline]
    pub(crate) fn without_arrived(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Replaces the number of bytes without those of bodies of unknown length; returns true if connections hold too much now.
    #[inline]
    pub(crate) fn set(&self, bytes: u64) -> bool {
        let before = self.without_arrived();
        bytes != before && self.change(before, bytes)
    }

    /// Adds bytes of a body of unknown length that have arrived; returns true if connections hold too much now.
    pub(crate) fn arrive(&self, bytes: u64) -> bool {
        self.arrived.fetch_add(bytes, Ordering::Relaxed);
        self.total.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.total.is_over()
    }

    /// Releases bytes that have arrived.
    pub(crate) fn take_arrived(&self, bytes: u64) {
        self.arrived.fetch_sub(bytes, Ordering::Relaxed);
        self.total.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    #[cold]
    fn change(&self, before: u64, bytes: u64) -> bool {
        self.bytes.store(bytes, Ordering::Relaxed);
        if bytes < before {
            self.total.bytes.fetch_sub(before - bytes, Ordering::Relaxed);
            return false;
        }
        self.total.bytes.fetch_add(bytes - before, Ordering::Relaxed);
        self.total.is_over()
    }

    /// Notes that the connection was told to end.
    pub(crate) fn end(&self) {
        let bytes = self.get();
        self.ending.store(bytes, Ordering::Relaxed);
        self.total.ending.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.total.bytes.fetch_sub(self.get(), Ordering::Relaxed);
        self.total.ending.fetch_sub(self.ending.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Returns the number of bytes that an answer counts.
pub(crate) fn counted(answer: &Bytes) -> u64 {
    if answer.len() > COUNTED_BYTES_MIN && answer.is_unique() { answer.len() as u64 } else { 0 }
}
