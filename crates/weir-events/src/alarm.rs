//! The clock that rings for tasks: one thread for the whole process, started when a task first waits for time.
//!
//! Threads do not need it, they park with a limit. An alarm that is dropped is taken out at once, so choices that were
//! lost against a long timer leave nothing behind.
//!
//! Protocol: the alarms lie in a map by instant, under one lock. The thread sleeps until the first is due; whoever
//! sets an earlier one wakes it. Parties are committed and woken outside the lock.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use crate::party::Party;

/// An alarm that is set; dropping it takes it back.
pub(crate) struct Alarm {
    key: (Instant, u64),
}

struct Clock {
    alarms: Mutex<Alarms>,
    earlier: Condvar,
}

#[derive(Default)]
struct Alarms {
    due: BTreeMap<(Instant, u64), (Arc<Party>, usize)>,
    set: u64,
}

/// Commits `party` to `leaf` at `instant`, unless it is taken before, and wakes it.
pub(crate) fn set(instant: Instant, party: Arc<Party>, leaf: usize) -> Alarm {
    let clock = clock();
    let mut alarms = clock.lock();
    alarms.set += 1;
    let key = (instant, alarms.set);
    alarms.due.insert(key, (party, leaf));
    if alarms.due.first_key_value().is_some_and(|(first, _)| *first == key) {
        clock.earlier.notify_one();
    }
    Alarm { key }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let entry = clock().lock().due.remove(&self.key);
        drop(entry);
    }
}

fn clock() -> &'static Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    static THREAD: OnceLock<()> = OnceLock::new();
    let clock = CLOCK.get_or_init(|| Clock { alarms: Mutex::default(), earlier: Condvar::new() });
    THREAD.get_or_init(|| {
        std::thread::Builder::new()
            .name("weir-events-clock".to_owned())
            .spawn(move || clock.run())
            .expect("the system can start one thread");
    });
    clock
}

impl Clock {
    fn lock(&self) -> MutexGuard<'_, Alarms> {
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut alarms = self.lock();
        loop {
            let now = Instant::now();
            let first = alarms.due.first_key_value().map(|(key, _)| *key);
            alarms = match first {
                None => self.earlier.wait(alarms).unwrap_or_else(PoisonError::into_inner),
                Some((due, _)) if now < due => {
                    self.earlier.wait_timeout(alarms, due - now).unwrap_or_else(PoisonError::into_inner).0
                }
                Some(key) => {
                    let rung = alarms.due.remove(&key);
                    drop(alarms);
                    if let Some((party, leaf)) = rung
                        && party.commit_alone(leaf)
                    {
                        party.wake();
                    }
                    self.lock()
                }
            };
        }
    }
}
