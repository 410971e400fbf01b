//! The connections of a database beside those without which a program does not work.
//!
//! A program needs a connection that writes, one that waits for the disk, and one that reads ([`NEEDED`]); in an existing database, none
//! waits for the disk, and two read. All others save time: those of event loops, and further ones that read. If the number of connections
//! is limited, each of these has a permit, and is not made without one.
//!
//! A server, too, limits the number of connections. Once it has refused one, the program makes do with those that it has, and asks
//! for further ones from time to time only, one at a time ([`REFUSED_PAUSE`]).

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::unused_connections::ConnectionPurpose;

/// The number of connections that a program needs.
const NEEDED: usize = 3;
/// Time after a refusal in which no further connection is asked for; after each one that follows, twice as long.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);
/// Maximum of this time.
const REFUSED_PAUSE_MAX: Duration = Duration::from_secs(30);

/// The connections that may be made to a database.
#[derive(Clone, Default)]
pub(super) struct SpareConnections(Arc<Mutex<ConnectionCount>>);

#[derive(Default)]
struct ConnectionCount {
    /// The number of connections that are open, or are being made.
    open: usize,
    /// The number of those that may be made beside the needed ones; `None` if it is not limited.
    left: Option<usize>,
    /// The last refusal of the server, behind which no connection was made.
    refusal: Option<RefusedConnection>,
    /// The time since which connections were refused without which nothing can be executed.
    indispensable_refused: Option<Instant>,
}

struct RefusedConnection {
    /// The time from which one further connection may be asked for.
    until: Instant,
    pause: Duration,
    /// True if one was asked for since.
    is_asked: bool,
}

/// The permit of a connection, which is given back when the connection ends.
pub(super) struct ConnectionPermit {
    of: SpareConnections,
    pub(super) purpose: ConnectionPurpose,
}

impl SpareConnections {
    /// Returns those of a database to which at most this number of connections are made.
    pub(super) fn of(connections_max: Option<usize>) -> SpareConnections {
        let left = connections_max.map(|max| max.saturating_sub(NEEDED));
        SpareConnections(Arc::new(Mutex::new(ConnectionCount { left, ..ConnectionCount::default() })))
    }

    /// Returns a permit for one more connection; `None` if all are used, or the server has lately refused one.
    pub(super) fn take(&self) -> Option<ConnectionPermit> {
        let mut count = self.0.lock();
        let left = count.left.map(|left| left.checked_sub(1).ok_or(())).transpose().ok()?;
        if !count.may_ask(Instant::now()) {
            return None;
        }
        count.left = left;
        Some(self.permit(&mut count, ConnectionPurpose::Spare))
    }

    /// Returns a permit for a connection that is needed to read, but for which another one can stand in; `None` if the server has
    /// lately refused one.
    pub(super) fn needed(&self) -> Option<ConnectionPermit> {
        let mut count = self.0.lock();
        count.may_ask(Instant::now()).then(|| self.permit(&mut count, ConnectionPurpose::Needed))
    }

    /// Returns a permit for a connection for which no other one can stand in.
    pub(super) fn indispensable(&self) -> ConnectionPermit {
        self.permit(&mut self.0.lock(), ConnectionPurpose::Indispensable)
    }

    fn permit(&self, count: &mut ConnectionCount, purpose: ConnectionPurpose) -> ConnectionPermit {
        count.open += 1;
        ConnectionPermit { of: self.clone(), purpose }
    }

    /// Returns the number of connections that are open, or are being made.
    pub(super) fn open(&self) -> usize {
        self.0.lock().open
    }

    /// Returns the time from which a further connection may be asked for, if that is not now.
    pub(super) fn refused_until(&self) -> Option<Instant> {
        let count = self.0.lock();
        count.refusal.as_ref().map(|refusal| refusal.until).filter(|until| *until > Instant::now())
    }

    /// Returns the time since which the server has refused connections without which nothing can be executed.
    pub(super) fn indispensable_refused(&self) -> Option<Instant> {
        self.0.lock().indispensable_refused
    }

    /// Notes that a connection was made.
    pub(super) fn made(&self, of: ConnectionPurpose) {
        let mut count = self.0.lock();
        count.refusal = None;
        if of == ConnectionPurpose::Indispensable {
            count.indispensable_refused = None;
        }
    }

    /// Notes that the server has refused a connection, because it has as many as it allows.
    pub(super) fn refused(&self, of: ConnectionPurpose) {
        let (mut count, now) = (self.0.lock(), Instant::now());
        count.was_refused(now);
        if of == ConnectionPurpose::Indispensable {
            count.indispensable_refused.get_or_insert(now);
        }
    }
}

impl ConnectionCount {
    /// Returns whether a further connection may be asked for. Behind a refusal, only one at a time may.
    fn may_ask(&mut self, now: Instant) -> bool {
        let Some(refusal) = &mut self.refusal else { return true };
        let may = refusal.until <= now;
        if may {
            (refusal.until, refusal.is_asked) = (now + refusal.pause, true);
        }
        may
    }

    fn was_refused(&mut self, now: Instant) {
        let pause = match &self.refusal {
            None => REFUSED_PAUSE,
            Some(refusal) if refusal.is_asked => (refusal.pause * 2).min(REFUSED_PAUSE_MAX),
            // It was asked for at the same time as the one that was refused before.
            Some(_) => return,
        };
        self.refusal = Some(RefusedConnection { until: now + pause, pause, is_asked: false });
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut count = self.of.0.lock();
        count.open -= 1;
        if self.purpose == ConnectionPurpose::Spare {
            count.left = count.left.map(|left| left + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    #[test]
    fn behind_a_refusal_one_further_connection_at_a_time_is_asked_for() {
        let (mut count, begin) = (ConnectionCount::default(), Instant::now());
        assert!(count.may_ask(begin) && count.may_ask(begin));
        (0..3).for_each(|_| count.was_refused(begin));
        let mut until = begin;
        for pause in [1, 2, 4, 8, 16, 30, 30].map(Duration::from_secs) {
            assert!(!count.may_ask(until + pause - Duration::from_nanos(1)));
            until += pause;
            assert!(count.may_ask(until) && !count.may_ask(until));
            count.was_refused(until);
        }
        count.refusal = None;
        assert!(count.may_ask(begin) && count.may_ask(begin));
    }
}
