//! Permits of calls: the number of calls under way is bounded, in all and to each host.

use std::sync::Arc;

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Maximum number of calls under way.
const CALLS_MAX: usize = 1024;
/// Maximum number of calls under way to one host: a host that does not answer leaves permits to the others.
const HOST_CALLS_MAX: usize = 256;

/// The permits of a program's calls.
#[derive(Debug)]
pub(super) struct Permits {
    all: Semaphore,
    /// The permits of the hosts that are being called, and of some that were.
    hosts: Mutex<IndexMap<String, Arc<Semaphore>, RandomState>>,
}

/// A permit of a call, which is returned when it is dropped.
#[derive(Debug)]
pub(super) struct CallPermit<'p> {
    _of_all: SemaphorePermit<'p>,
    _of_host: OwnedSemaphorePermit,
}

impl Default for Permits {
    fn default() -> Self {
        Permits { all: Semaphore::new(CALLS_MAX), hosts: Mutex::default() }
    }
}

impl Permits {
    /// Waits for a permit to call the host. A call that waits for its host's permit holds no other one.
    pub(super) async fn acquire(&self, host: &str) -> CallPermit<'_> {
        let of_host = self.of_host(host);
        let of_host = match Arc::clone(&of_host).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => of_host.acquire_owned().await.expect("the semaphore is never closed"),
        };
        let of_all = match self.all.try_acquire() {
            Ok(permit) => permit,
            Err(_) => self.all.acquire().await.expect("the semaphore is never closed"),
        };
        CallPermit { _of_all: of_all, _of_host: of_host }
    }

    /// Returns the permits of a host, and forgets hosts that nobody calls when there are many.
    fn of_host(&self, host: &str) -> Arc<Semaphore> {
        let mut hosts = self.hosts.lock();
        if let Some(permits) = hosts.get(host) {
            return Arc::clone(permits);
        }
        if hosts.len() > CALLS_MAX {
            hosts.retain(|_, permits| Arc::strong_count(permits) > 1);
        }
        let permits = Arc::new(Semaphore::new(HOST_CALLS_MAX));
        hosts.insert(host.to_owned(), Arc::clone(&permits));
        permits
    }
}

#[cfg(test)]
mod tests {
    use test_support::at_once;

    use super::*;

    #[test]
    fn a_host_that_takes_all_its_permits_leaves_some_to_others() {
        let permits = Permits::default();
        let mut held: Vec<_> = (0..HOST_CALLS_MAX).map(|_| at_once(permits.acquire("slow")).unwrap()).collect();
        assert!(at_once(permits.acquire("slow")).is_none());
        assert!(at_once(permits.acquire("quick")).is_some());
        held.pop();
        assert!(at_once(permits.acquire("slow")).is_some());
    }

    #[test]
    fn hosts_that_nobody_calls_are_forgotten() {
        let permits = Permits::default();
        let kept = at_once(permits.acquire("kept")).unwrap();
        for number in 0..3 * CALLS_MAX {
            drop(at_once(permits.acquire(&number.to_string())));
        }
        assert!(permits.hosts.lock().len() <= CALLS_MAX + 1);
        assert!(permits.hosts.lock().contains_key("kept"), "{kept:?}");
    }
}
