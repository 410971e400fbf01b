//! Count of a request body whose header does not announce its length: it grows as the body arrives.
//!
//! The body may be read on another thread than that of its connection, so the count is a handle of its own, which the request
//! carries to the reader of its body.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::connection_table::{ConnectionTable, TableEntry};

/// The bytes that a body of unknown length counts before any of it is read: about what the server buffers of it.
pub(super) const UNREAD_BYTES: u64 = 64 * 1024;

/// The bytes of a body that have arrived, until the last clone is dropped.
#[derive(Clone)]
pub(super) struct ArrivingBytes(Arc<ArrivedCount>);

struct ArrivedCount {
    table: Arc<ConnectionTable>,
    entry: Arc<TableEntry>,
    /// Changed by the one reader of the body.
    bytes: AtomicU64,
}

impl ArrivingBytes {
    pub(super) fn new(table: &Arc<ConnectionTable>, entry: &Arc<TableEntry>) -> Self {
        let (table, entry) = (Arc::clone(table), Arc::clone(entry));
        ArrivingBytes(Arc::new(ArrivedCount { table, entry, bytes: AtomicU64::default() }))
    }

    /// Counts a body that takes this many bytes by now; returns false if the connection must not hold them.
    pub(super) fn grow_to(&self, bytes: u64) -> bool {
        let ArrivedCount { table, entry, bytes: counted } = &*self.0;
        let before = counted.fetch_max(bytes, Ordering::Relaxed);
        bytes <= before || !entry.held.arrive(bytes - before) || table.make_room(entry, bytes + UNREAD_BYTES)
    }
}

impl Drop for ArrivedCount {
    fn drop(&mut self) {
        self.entry.held.take_arrived(*self.bytes.get_mut());
    }
}
