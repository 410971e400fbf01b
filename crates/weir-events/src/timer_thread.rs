//! The clock that rings for tasks: one thread for the whole process, started when a task first waits for time.
//!
//! Threads do not need it, they park with a limit. An alarm that is dropped is taken out at once, so choices that were
//! lost against a long timer leave nothing behind.
//!
//! Words: a *shard* holds the alarms of some threads by their instant, under a lock of its own, so that threads that set
//! and take back alarms do not meet. The clock's *sleep* says until when it does.
//!
//! The protocol:
//! 1. Whoever sets an alarm puts it on its thread's shard. Where it is the first there, it looks at the sleep, with no
//!    shard locked: if the clock sleeps past the alarm, or is looking around, it tells the clock to look again.
//! 2. The clock forgets what it was told, takes from each shard what is due, and notes the earliest of what is left. It
//!    sleeps until then only if it was not told to look again meanwhile; otherwise it begins anew.
//! 3. Taking an alarm back tells nobody: at worst the clock wakes once for nothing.
//!
//! Parties are committed and woken outside all locks.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use crate::waiter::Waiter;

/// An alarm that is set; dropping it takes it back.
pub(crate) struct ScheduledTimer {
    shard: usize,
    key: TimerKey,
}

/// When it is due, and which of those that are due then.
type TimerKey = (Instant, u64);

struct TimerThread {
    shards: [Mutex<TimerShard>; SHARDS],
    sleep_state: Mutex<SleepState>,
    notified: Condvar,
}

/// On cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct TimerShard {
    due: BTreeMap<TimerKey, (Arc<Waiter>, usize)>,
    set: u64,
}

struct SleepState {
    is_looking: bool,
    look_again: bool,
    /// `None`: until it is told.
    until: Option<Instant>,
}

/// Threads take the shards in turn; so many are enough for those that run at once to hardly ever meet.
const SHARDS: usize = 16;

/// Commits `waiter` to `base event` at `instant`, unless it is taken before, and wakes it.
pub(crate) fn set(instant: Instant, waiter: Arc<Waiter>, base: usize) -> ScheduledTimer {
    let (timer_thread, number) = (timer_thread(), own_shard());
    let mut shard = lock(&timer_thread.shards[number]);
    shard.set += 1;
    let key = (instant, shard.set);
    shard.due.insert(key, (waiter, base));
    let is_first = shard.due.first_key_value().is_some_and(|(first, _)| *first == key);
    drop(shard);
    if is_first {
        timer_thread.notify(instant);
    }
    ScheduledTimer { shard: number, key }
}

impl Drop for ScheduledTimer {
    fn drop(&mut self) {
        let entry = lock(&timer_thread().shards[self.shard]).due.remove(&self.key);
        drop(entry);
    }
}

fn own_shard() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: Cell<Option<usize>> = const { Cell::new(None) };
    }
    SHARD.get().unwrap_or_else(|| {
        let shard = THREADS.fetch_add(1, Relaxed) % SHARDS;
        SHARD.set(Some(shard));
        shard
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn timer_thread() -> &'static TimerThread {
    static TIMER_THREAD: OnceLock<TimerThread> = OnceLock::new();
    static THREAD: OnceLock<()> = OnceLock::new();
    let timer_thread = TIMER_THREAD.get_or_init(|| TimerThread {
        shards: std::array::from_fn(|_| Mutex::default()),
        sleep_state: Mutex::new(SleepState { is_looking: true, look_again: false, until: None }),
        notified: Condvar::new(),
    });
    THREAD.get_or_init(|| {
        std::thread::Builder::new()
            .name("weir-events-timer".to_owned())
            .spawn(move || timer_thread.run())
            .expect("the system can start one thread");
    });
    timer_thread
}

impl TimerThread {
    /// An alarm for `instant` is the first on its shard.
    fn notify(&self, instant: Instant) {
        let mut sleep = lock(&self.sleep_state);
        let in_time = !sleep.is_looking && sleep.until.is_some_and(|until| until <= instant);
        if !in_time {
            sleep.look_again = true;
            drop(sleep);
            self.notified.notify_one();
        }
    }

    fn run(&self) {
        loop {
            let earliest = self.shards.iter().filter_map(expire_due).min();
            self.sleep_until(earliest);
        }
    }

    /// Sleeps until `earliest` or until it is told, and comes back looking.
    fn sleep_until(&self, earliest: Option<Instant>) {
        let mut sleep = lock(&self.sleep_state);
        (sleep.is_looking, sleep.until) = (false, earliest);
        while !sleep.look_again {
            let left = earliest.map(|earliest| earliest.saturating_duration_since(Instant::now()));
            sleep = match left {
                None => self.notified.wait(sleep).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => break,
                Some(left) => self.notified.wait_timeout(sleep, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
        (sleep.is_looking, sleep.look_again) = (true, false);
    }
}

/// Rings what is due on a shard; gives when the next is.
fn expire_due(shard: &Mutex<TimerShard>) -> Option<Instant> {
    loop {
        let mut locked = lock(shard);
        let key = *locked.due.first_key_value()?.0;
        if Instant::now() < key.0 {
            return Some(key.0);
        }
        let expired = locked.due.remove(&key);
        drop(locked);
        if let Some((waiter, base)) = expired
            && waiter.commit_alone(base)
        {
            waiter.wake();
        }
    }
}
