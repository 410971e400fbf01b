//! Tests of the memory accounts.

use std::sync::atomic::Ordering;

use super::room::SMALL_BYTES;
use super::thread_account::TOTAL;
use super::*;
use crate::FailureKind;

const MEGABYTE: usize = 1 << 20;

/// Runs a test on a thread of its own, one at a time, because limits and total belong to the process.
fn alone(limits: MemoryLimits, test: impl FnOnce() + Send + 'static) {
    static ONE: parking_lot::Mutex<()> = parking_lot::Mutex::new(());
    let _one = ONE.lock();
    limits.apply();
    TOTAL.store(0, Ordering::Relaxed);
    let ended = std::thread::spawn(test).join();
    MemoryLimits::default().apply();
    ended.unwrap();
}

fn limits(flow: usize, program: usize) -> MemoryLimits {
    MemoryLimits { flow: flow as u64, program: program as u64 }
}

#[test]
fn a_flow_is_charged_while_it_runs_and_only_then() {
    alone(limits(10 * MEGABYTE, usize::MAX), || {
        allocated(MEGABYTE);
        let entered = enter(5);
        allocated(1000);
        released(100);
        assert_eq!(entered.balance(), 5 + 1016 - 116);
        of_program(|| allocated(MEGABYTE));
        allocated(MEGABYTE);
        hand_to_program(MEGABYTE);
        charge(-1);
        assert_eq!(entered.leave(), 5 + 1016 - 116 - 1);
        assert_eq!(ask(usize::MAX), Ok(()), "nobody runs");
    });
}

#[test]
fn a_flow_that_releases_what_others_allocated_gains_nothing() {
    alone(limits(MEGABYTE, usize::MAX), || {
        let entered = enter(0);
        released(MEGABYTE);
        assert_eq!(entered.leave(), 0);
    });
}

#[test]
fn a_request_beyond_the_limit_of_the_flow_is_refused() {
    alone(limits(MEGABYTE, usize::MAX), || {
        let _entered = enter(0);
        assert_eq!((ask(MEGABYTE).is_ok(), ask(MEGABYTE + 1).is_err()), (true, true));
        allocated(MEGABYTE / 2);
        assert_eq!((ask(MEGABYTE / 2).is_err(), check().is_ok()), (true, true));
        allocated(MEGABYTE / 2);
        let failure = check().unwrap_err();
        assert_eq!(failure.kind, FailureKind::Memory);
        assert!(failure.message.contains("1.0 MiB") && failure.message.contains("memory_per_flow"), "{failure}");
        assert!(is_over());
    });
}

#[test]
fn a_refusal_names_the_limit_that_was_reached() {
    alone(limits(4 * MEGABYTE, 5 * MEGABYTE), || {
        let _entered = enter(0);
        assert_eq!(take_refusal(), None);
        assert!(ask(3 * MEGABYTE).is_err());
        assert_eq!((take_refusal(), take_refusal()), (Some(ReachedLimit::Program), None));
        assert!(ask(5 * MEGABYTE).is_err());
        assert_eq!(take_refusal(), Some(ReachedLimit::Flow));
    });
}

#[test]
fn an_atomic_step_fails_before_it_begins_or_has_its_room() {
    alone(limits(16 * MEGABYTE, 100 * MEGABYTE), || {
        let entered = enter(0);
        allocated(15 * MEGABYTE - 16);
        assert_eq!(begin_step(), Ok(()));
        // Meanwhile the others fill the program.
        TOTAL.store(1_000 * MEGABYTE as i64, Ordering::Relaxed);
        allocated(MEGABYTE - 100);
        assert_eq!((ask(84).is_ok(), check().is_ok(), ask(85).is_ok()), (true, true, false));
        let (balance, assured) = (entered.balance(), entered.assured());
        drop(entered);
        assert_eq!(super::assured(), 0);
        let resumed = enter(balance);
        assert!(check().is_err(), "the flow has left its step");
        resumed.assure(assured);
        assert_eq!((ask(84).is_ok(), ask(85).is_ok()), (true, false));
        TOTAL.store(0, Ordering::Relaxed);
        let failure = begin_step().unwrap_err();
        assert!(failure.message.contains("memory_per_flow"), "{failure}");
        drop(resumed);
        released(16 * MEGABYTE);
    });
}

#[test]
fn a_flow_in_an_atomic_step_takes_what_the_program_has_left() {
    alone(limits(100 * MEGABYTE, 60 * MEGABYTE), || {
        let _entered = enter(0);
        allocated(20 * MEGABYTE);
        assert_eq!(begin_step(), Ok(()));
        allocated(15 * MEGABYTE);
        assert_eq!((ask(30 * MEGABYTE).is_ok(), ask(32 * MEGABYTE).is_ok()), (true, false));
        allocated(30 * MEGABYTE);
        assert_eq!(check(), Ok(()));
        let _other = enter(0);
        assert_eq!((ask(1000).is_ok(), ask(MEGABYTE).is_ok()), (true, false), "it is in no step");
        released(65 * MEGABYTE);
    });
}

#[test]
fn greedy_flows_share_the_memory_and_small_ones_go_on() {
    alone(limits(usize::MAX >> 1, 90 * MEGABYTE), || {
        let mut balances = [0_i64; 2];
        // Both grow in turn, until each has a third.
        let mut growing = true;
        while growing {
            growing = false;
            for balance in &mut balances {
                let entered = enter(*balance);
                if ask(MEGABYTE).is_ok() {
                    allocated(MEGABYTE);
                    growing = true;
                }
                *balance = entered.leave();
            }
        }
        for balance in balances {
            assert!((28..=31).contains(&(balance / MEGABYTE as i64)), "{balance}");
        }
        assert!(!is_full());
        let _small = enter(0);
        assert_eq!(ask(10 * MEGABYTE), Ok(()));
    });
}

#[test]
fn beyond_the_limit_of_the_program_only_small_flows_go_on_and_then_none() {
    alone(limits(usize::MAX >> 1, 10 * MEGABYTE), || {
        allocated(10 * MEGABYTE + 64);
        assert!(is_full());
        {
            let _entered = enter(0);
            assert_eq!((ask(1000).is_ok(), ask(MEGABYTE).is_ok()), (true, false));
        }
        let _entered = enter(SMALL_BYTES + 1);
        assert!(is_over());
        released(10 * MEGABYTE + 64);
    });
}

#[test]
fn threads_that_end_leave_nothing_unsettled() {
    alone(MemoryLimits::default(), || {
        let before = used();
        for _ in 0..100 {
            std::thread::spawn(|| {
                let _entered = enter(0);
                allocated(1000);
            })
            .join()
            .unwrap();
        }
        assert_eq!(used() - before, 100 * 1016);
        (0..100).for_each(|_| released(1000));
    });
}

#[test]
fn a_reservation_counts_until_it_is_used_or_dropped() {
    alone(limits(MEGABYTE, 10 * MEGABYTE), || {
        let before = used();
        let mut first = Reservation::of(8 * MEGABYTE as u64).unwrap();
        assert!(Reservation::of(3 * MEGABYTE as u64).is_none());
        first.shrink(6 * MEGABYTE);
        assert_eq!(used() - before, 2 * MEGABYTE as u64);
        drop(first);
        assert_eq!(used(), before);
    });
}

#[test]
fn a_flow_takes_over_what_another_thread_has_allocated_for_it() {
    alone(limits(MEGABYTE, 10 * MEGABYTE), || {
        std::thread::spawn(|| allocated(2 * MEGABYTE - 16)).join().unwrap();
        let entered = enter(0);
        take_over(MEGABYTE as i64 / 2);
        assert_eq!(check(), Ok(()));
        let account = carried();
        let work = move || {
            assert_eq!(ask(MEGABYTE / 4), Ok(()));
            assert!(ask(MEGABYTE).is_err());
            take_over(MEGABYTE as i64);
        };
        let ((), grown) = std::thread::spawn(move || account.run(work)).join().unwrap();
        assert_eq!(grown, MEGABYTE as i64);
        assert_eq!(check(), Ok(()));
        take_over(grown);
        assert!(check().is_err());
        let before = used();
        released(2 * MEGABYTE - 16);
        assert_eq!((entered.leave(), before - used()), (0, 2 * MEGABYTE as u64));
    });
}
