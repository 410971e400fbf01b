//! The model check of the occupancy counter: every interleaving of two threads that release and one that waits, by
//! loom.
//!
//! The file under test is compiled a second time here, over loom's primitives instead of the system's. Every mutant
//! leaves out one step of the protocol, and must be caught. Loom has sequentially consistent fences, but no
//! sequentially consistent reads and writes; the model's counter therefore has a fence wherever the real one relies on
//! `SeqCst` accesses.

use loom::sync::Arc;
use loom::thread;

use occupancy::OccupancyCounter;
use sync::{AdmissionMutant, MUTANT, STRIPE};

#[path = "occupancy.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
mod occupancy;

/// Loom's primitives under the names of those in `super::sync`.
mod sync {
    use std::cell::Cell;

    pub(crate) use crossbeam_utils::CachePadded;
    use loom::sync::atomic::fence;
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};

    pub(crate) use self::ModelStripedCounter as StripedCounter;
    pub(crate) use super::super::sync::AdmissionMutant;

    loom::thread_local! {
        /// The stripe of each thread of the model.
        pub(crate) static STRIPE: Cell<usize> = Cell::new(0);
    }

    /// A counter with a stripe for each releasing thread of the model.
    #[derive(Default)]
    pub(crate) struct ModelStripedCounter([AtomicU64; 2]);

    impl ModelStripedCounter {
        pub(crate) fn add(&self) {
            STRIPE.with(|stripe| self.0[stripe.get()].fetch_add(1, Ordering::SeqCst));
            fence(Ordering::SeqCst);
        }

        pub(crate) fn sum(&self) -> u64 {
            fence(Ordering::SeqCst);
            self.0.iter().map(|stripe| stripe.load(Ordering::SeqCst)).sum()
        }
    }

    thread_local! {
        /// The mutant under test. All threads of a model run on one thread of the system.
        pub(crate) static MUTANT: Cell<Option<AdmissionMutant>> = const { Cell::new(None) };
    }

    pub(crate) fn is(mutant: AdmissionMutant) -> bool {
        MUTANT.get() == Some(mutant)
    }
}

/// Two permits are released while another thread waits until none is in use.
fn two_leave() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let count = Arc::new(OccupancyCounter::new(2));
        count.acquire();
        count.acquire();
        let leaves = [0, 1].map(|stripe| {
            let count = count.clone();
            thread::spawn(move || {
                STRIPE.with(|own| own.set(stripe));
                count.release()
            })
        });
        let waits = count.request_notice_below(1);
        let told = leaves.into_iter().fold(false, |told, leave| leave.join().unwrap() | told);
        assert_eq!(count.occupied(), 0, "everybody has left");
        assert!(told || !waits, "who waits is told");
    });
}

/// A waiter for room is notified once, and not by every later release.
fn one_is_told() {
    loom::model(|| {
        let count = OccupancyCounter::new(2);
        (0..3).for_each(|_| count.acquire());
        assert!(!count.is_below(count.max()) && count.request_notice_below(count.max()));
        assert!(!count.release(), "there is no room yet");
        assert!(count.release() && count.is_below(count.max()), "there is room");
        assert!(!count.release(), "nobody waits any more");
    });
}

fn caught(mutant: AdmissionMutant, model: fn()) -> bool {
    crate::loom_support::caught(&MUTANT, mutant, model)
}

#[test]
fn who_waits_for_others_to_leave_is_told_once() {
    two_leave();
    one_is_told();
}

#[test]
fn every_mutant_of_counting_is_caught() {
    assert!(caught(AdmissionMutant::ChecksBeforeReleasing, two_leave));
    assert!(caught(AdmissionMutant::RequestsWithoutCheck, two_leave));
    assert!(caught(AdmissionMutant::KeepsRequest, one_is_told));
}
