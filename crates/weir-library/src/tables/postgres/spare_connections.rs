//! The connections of a database beside those without which a program does not work.
//!
//! A program needs a connection that writes, one that waits for the disk, and one that reads ([`NEEDED`]); in an existing database, none
//! waits for the disk, and two read. All others save time: those of event loops, and further ones that read. If the number of connections
//! is limited, each of these has a permit, and is not made without one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of connections that a program needs.
const NEEDED: usize = 3;

/// The number of connections that may be made beside the needed ones; `None` if it is not limited.
#[derive(Clone, Default)]
pub(super) struct SpareConnections(Option<Arc<AtomicUsize>>);

/// The permit of a connection, which is given back when the connection ends.
pub(super) struct ConnectionPermit(SpareConnections);

impl SpareConnections {
    /// Returns those of a database to which at most this number of connections are made.
    pub(super) fn of(connections_max: Option<usize>) -> SpareConnections {
        SpareConnections(connections_max.map(|max| Arc::new(AtomicUsize::new(max.saturating_sub(NEEDED)))))
    }

    /// Returns a permit for one more connection; `None` if all are used.
    pub(super) fn take(&self) -> Option<ConnectionPermit> {
        if let Some(left) = &self.0 {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).ok()?;
        }
        Some(ConnectionPermit(self.clone()))
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        if let Some(left) = &self.0.0 {
            left.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SpareConnections;

    #[test]
    fn a_permit_that_is_given_back_can_be_taken_again() {
        let spare = SpareConnections::of(Some(5));
        let taken = [spare.take(), spare.take()].map(|permit| permit.expect("two are left"));
        assert!(spare.take().is_none());
        drop(taken);
        assert!(spare.take().is_some());
        assert!(SpareConnections::of(Some(3)).take().is_none());
        assert!(SpareConnections::of(None).take().is_some());
    }
}
