//! The clock that rings for tasks: one thread for the whole process, started when a task first waits for time.
//!
//! Threads do not need it, they park with a limit. An alarm that is dropped is taken out at once, so choices that were
//! lost against a long timer leave nothing behind.
//!
//! Words: a *shelf* holds the alarms of some threads by their instant, under a lock of its own, so that threads that set
//! and take back alarms do not meet. The clock's *sleep* says until when it does.
//!
//! The protocol:
//! 1. Whoever sets an alarm puts it on its thread's shelf. Where it is the first there, it looks at the sleep, with no
//!    shelf locked: if the clock sleeps past the alarm, or is looking around, it tells the clock to look again.
//! 2. The clock forgets what it was told, takes from each shelf what is due, and notes the earliest of what is left. It
//!    sleeps until then only if it was not told to look again meanwhile; otherwise it begins anew.
//! 3. Taking an alarm back tells nobody: at worst the clock wakes once for nothing.
//!
//! Parties are committed and woken outside all locks.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use crate::party::Party;

/// An alarm that is set; dropping it takes it back.
pub(crate) struct Alarm {
    shelf: usize,
    key: Key,
}

/// When it is due, and which of those that are due then.
type Key = (Instant, u64);

struct Clock {
    shelves: [Mutex<Shelf>; SHELVES],
    sleep: Mutex<Sleep>,
    told: Condvar,
}

/// On cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Shelf {
    due: BTreeMap<Key, (Arc<Party>, usize)>,
    set: u64,
}

struct Sleep {
    is_looking: bool,
    look_again: bool,
    /// `None`: until it is told.
    until: Option<Instant>,
}

/// Threads take the shelves in turn; so many are enough for those that run at once to hardly ever meet.
const SHELVES: usize = 16;

/// Commits `party` to `leaf` at `instant`, unless it is taken before, and wakes it.
pub(crate) fn set(instant: Instant, party: Arc<Party>, leaf: usize) -> Alarm {
    let (clock, number) = (clock(), own_shelf());
    let mut shelf = lock(&clock.shelves[number]);
    shelf.set += 1;
    let key = (instant, shelf.set);
    shelf.due.insert(key, (party, leaf));
    let is_first = shelf.due.first_key_value().is_some_and(|(first, _)| *first == key);
    drop(shelf);
    if is_first {
        clock.tell(instant);
    }
    Alarm { shelf: number, key }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let entry = lock(&clock().shelves[self.shelf]).due.remove(&self.key);
        drop(entry);
    }
}

fn own_shelf() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHELF: Cell<Option<usize>> = const { Cell::new(None) };
    }
    SHELF.get().unwrap_or_else(|| {
        let shelf = THREADS.fetch_add(1, Relaxed) % SHELVES;
        SHELF.set(Some(shelf));
        shelf
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn clock() -> &'static Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    static THREAD: OnceLock<()> = OnceLock::new();
    let clock = CLOCK.get_or_init(|| Clock {
        shelves: std::array::from_fn(|_| Mutex::default()),
        sleep: Mutex::new(Sleep { is_looking: true, look_again: false, until: None }),
        told: Condvar::new(),
    });
    THREAD.get_or_init(|| {
        std::thread::Builder::new()
            .name("weir-events-clock".to_owned())
            .spawn(move || clock.run())
            .expect("the system can start one thread");
    });
    clock
}

impl Clock {
    /// An alarm for `instant` is the first on its shelf.
    fn tell(&self, instant: Instant) {
        let mut sleep = lock(&self.sleep);
        let in_time = !sleep.is_looking && sleep.until.is_some_and(|until| until <= instant);
        if !in_time {
            sleep.look_again = true;
            drop(sleep);
            self.told.notify_one();
        }
    }

    fn run(&self) {
        loop {
            let earliest = self.shelves.iter().filter_map(ring).min();
            self.sleep(earliest);
        }
    }

    /// Sleeps until `earliest` or until it is told, and comes back looking.
    fn sleep(&self, earliest: Option<Instant>) {
        let mut sleep = lock(&self.sleep);
        (sleep.is_looking, sleep.until) = (false, earliest);
        while !sleep.look_again {
            let left = earliest.map(|earliest| earliest.saturating_duration_since(Instant::now()));
            sleep = match left {
                None => self.told.wait(sleep).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => break,
                Some(left) => self.told.wait_timeout(sleep, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
        (sleep.is_looking, sleep.look_again) = (true, false);
    }
}

/// Rings what is due on a shelf; gives when the next is.
fn ring(shelf: &Mutex<Shelf>) -> Option<Instant> {
    loop {
        let mut locked = lock(shelf);
        let key = *locked.due.first_key_value()?.0;
        if Instant::now() < key.0 {
            return Some(key.0);
        }
        let rung = locked.due.remove(&key);
        drop(locked);
        if let Some((party, leaf)) = rung
            && party.commit_alone(leaf)
        {
            party.wake();
        }
    }
}
