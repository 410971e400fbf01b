//! The timer thread for tasks: one per process, started when a task first waits for time.
//!
//! Threads do not need it, because they park with a time limit. A timer that is dropped is removed at once, so choices
//! that were lost against a long timer leave nothing behind.
//!
//! A *shard* holds the timers of some threads by their instant, under a lock of its own, so that threads that set and
//! drop timers do not contend. The thread's *sleep state* says until when it sleeps.
//!
//! The protocol:
//! 1. A thread that sets a timer puts it into its own shard. If it is the earliest there, the thread reads the sleep
//!    state, with no shard locked: if the timer thread sleeps past the timer, or is scanning, it requests another scan.
//! 2. The timer thread clears the request, takes all due timers from each shard, and notes the earliest of the rest. It
//!    sleeps until then only if no scan was requested meanwhile; otherwise it scans again.
//! 3. Dropping a timer notifies no thread: at worst the timer thread wakes once without a due timer.
//!
//! Waiters are committed and woken outside all locks.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use crate::waiter::Waiter;

/// A timer that is set; dropping it removes it.
pub(crate) struct ScheduledTimer {
    shard: usize,
    key: TimerKey,
}

/// The instant of a timer, and a number that distinguishes timers of the same instant.
type TimerKey = (Instant, u64);

struct TimerThread {
    shards: [Mutex<TimerShard>; SHARDS],
    sleep_state: Mutex<SleepState>,
    notified: Condvar,
}

/// Aligned to its own cache lines.
#[derive(Default)]
#[repr(align(128))]
struct TimerShard {
    due: BTreeMap<TimerKey, (Arc<Waiter>, usize)>,
    set: u64,
}

struct SleepState {
    is_looking: bool,
    look_again: bool,
    /// `None`: until it is notified.
    until: Option<Instant>,
}

/// Number of shards. Threads are assigned in turn; with this many, threads that run at once hardly ever share one.
const SHARDS: usize = 16;

/// Commits `waiter` to the base event `base` at `instant`, unless it is committed before, and wakes it.
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
    let timer_thread = TIMER_THREAD.get_or_init(TimerThread::new);
    THREAD.get_or_init(|| {
        std::thread::Builder::new()
            .name("weir-events-timer".to_owned())
            .spawn(move || timer_thread.run())
            .expect("the system can start one thread");
    });
    timer_thread
}

impl TimerThread {
    fn new() -> Self {
        TimerThread {
            shards: std::array::from_fn(|_| Mutex::default()),
            sleep_state: Mutex::new(SleepState { is_looking: true, look_again: false, until: None }),
            notified: Condvar::new(),
        }
    }

    /// Announces a timer for `instant` that is the earliest of its shard.
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

    /// Sleeps until `earliest` or until notified, and marks the thread as scanning again.
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

/// Fires the due timers of a shard; returns the instant of the next one.
fn expire_due(shard: &Mutex<TimerShard>) -> Option<Instant> {
    loop {
        let mut locked = lock(shard);
        let key = *locked.due.first_key_value()?.0;
        if Instant::now() < key.0 {
            return Some(key.0);
        }
        let expired = locked.due.remove(&key);
        drop(locked);
        if let Some((waiter, _)) = expired.filter(|(waiter, base)| waiter.commit_alone(*base)) {
            waiter.wake();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::time::Duration;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_timer_that_is_set_during_a_scan_makes_the_thread_scan_again() {
        let timer_thread = TimerThread::new();
        timer_thread.notify(Instant::now() + HOUR);
        // Without the request this would sleep forever.
        timer_thread.sleep_until(None);
        let sleep = lock(&timer_thread.sleep_state);
        assert!(sleep.is_looking && !sleep.look_again, "it scans, and the request is done with");
    }

    #[test]
    fn a_sleeping_thread_is_woken_for_an_earlier_timer_only() {
        let timer_thread = TimerThread::new();
        let due = Instant::now() + HOUR;
        for (until, instant, wakes) in [
            (Some(due), due + HOUR, false),
            (Some(due), due, false),
            (Some(due), due - HOUR / 2, true),
            (None, due, true),
        ] {
            *lock(&timer_thread.sleep_state) = SleepState { is_looking: false, look_again: false, until };
            timer_thread.notify(instant);
            assert_eq!(lock(&timer_thread.sleep_state).look_again, wakes);
        }
    }
}
