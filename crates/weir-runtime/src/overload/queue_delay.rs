//! The delay of a queue, and the law by which it is too long.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::platform::Platform;

/// The delay that is too long for work that takes long, if it has been longer for [`STANDING_NS`]: CoDel's target.
const LONG_WORK_DELAY_MAX_NS: u64 = 5_000_000;
/// The same for work of unknown length, which may cost hardly more than its refusal. Chosen by judgement: requests that are
/// answered within microseconds wait for less, also if a thousand clients send them one after the other.
const DELAY_MAX_NS: u64 = 100_000_000;
/// The time for which the delay may be too long, as it is after a burst: CoDel's interval, and at least the time in which so many
/// items leave. Chosen by simulation: at 0.8 of the capacity, chance seldom keeps [`WAITING_MIN`] items waiting for as long.
pub(super) const STANDING_NS: u64 = 100_000_000;
const STANDING_ITEMS: u64 = 2 * WAITING_MIN;
/// The time after an overload in which no burst may fill the queue: near its capacity a queue is empty from time to time, and
/// would be filled again each time. Refusals renew it, but only while more than [`REFUSED_MIN`] of all items are refused.
const MEMORY_NS: u64 = 1_000_000_000;
/// The part of the items that an overload refuses at least, of [`ONE`]. Chosen by simulation: at 0.8 of its capacity a server
/// refuses a few of what chance brings together, which must not renew the memory of an overload; and if so few are refused, a
/// queue that is filled again grows slowly.
const REFUSED_MIN: u64 = ONE / 4;
/// The whole of a part.
const ONE: u64 = 1 << 16;
/// The number of items over which the part that is refused is estimated.
const REFUSED_ITEMS: u64 = 64;
/// The delay that is too long even for a burst. Chosen by judgement: clients that wait for longer have often left.
pub(super) const BURST_DELAY_MAX_NS: u64 = 1_000_000_000;
/// No delay is too long while fewer items wait, so that the law holds for work of any length. By Little's law it is the
/// delay in units of the mean time between two departures. Chosen by simulation: flows that take turns share the thread, so
/// that at 0.8 of its capacity 16 or more are in progress during 3 % of the time (0.8 to the power of 16). An overload therefore
/// begins only when as many have waited for [`STANDING_NS`]. With 22, flows of eight turns that were admitted in an overload took
/// more than twice as long as at 0.8.
pub(super) const WAITING_MIN: u64 = 16;

/// The time over which departures are counted, at least: several batches of a section, whose items leave at once.
const WINDOW_NS: u64 = 25_000_000;
/// From one window to the next the mean time between departures grows by this factor at most, so that one item that takes
/// long does not make many short ones look long.
const GAP_GROWTH_MAX: u64 = 4;
/// A mean below which all means count alike, so that it can grow from 0.
const SHORT_GAP_NS: u64 = 1_000;

/// The delay of a queue: the time for which an item that arrives now would wait. By Little's law it is the number of items
/// times the mean time between two departures; the delays of items that leave now would only tell what it was before. An item
/// that comes back ([`QueueDelay::enter_again`]) has not departed, so that the delay of flows that take turns is that of all
/// their turns together. All fields are hints.
#[derive(Debug)]
pub(crate) struct QueueDelay {
    /// The number of items in the queue.
    waiting: AtomicU64,
    /// The time at which the delay was last no longer than its limit, or fewer than [`WAITING_MIN`] items waited: as an item left,
    /// or entered the empty queue.
    calm_ns: AtomicU64,
    /// The time at which an item last left, or entered the empty queue. The first item has waited since then or longer.
    moved_ns: AtomicU64,
    /// The beginning of the present window, and the number of items that have left since and not come back.
    window_ns: AtomicU64,
    departures: AtomicI64,
    /// The mean time between two departures in the window before.
    gap_ns: AtomicU64,
    /// The number of items that were refused in the present window, and the part of all items before, of [`ONE`].
    refused: AtomicU64,
    refused_part: AtomicU64,
    /// The time at which an overload last began or went on; 0 if never.
    overloaded_ns: AtomicU64,
    /// The delay that is too long if it lasts.
    delay_max_ns: u64,
    /// The time without a departure that is too long.
    stop_max_ns: u64,
}

impl QueueDelay {
    /// Returns the delay of a queue for work that takes long: turns, and calls that have a thread of their own.
    pub(crate) const fn of_long_work() -> QueueDelay {
        QueueDelay::with_limits(LONG_WORK_DELAY_MAX_NS, STANDING_NS)
    }

    /// Returns the delay of a queue for work of unknown length. A single item that holds all threads for a while
    /// says nothing of the others.
    pub(super) const fn of_any_work() -> QueueDelay {
        QueueDelay::with_limits(DELAY_MAX_NS, BURST_DELAY_MAX_NS)
    }

    const fn with_limits(delay_max_ns: u64, stop_max_ns: u64) -> QueueDelay {
        QueueDelay {
            waiting: AtomicU64::new(0),
            calm_ns: AtomicU64::new(0),
            moved_ns: AtomicU64::new(0),
            window_ns: AtomicU64::new(0),
            departures: AtomicI64::new(0),
            gap_ns: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            refused_part: AtomicU64::new(0),
            overloaded_ns: AtomicU64::new(0),
            delay_max_ns,
            stop_max_ns,
        }
    }

    /// Notes that an item enters the queue; it leaves by [`QueueDelay::leave`] or [`QueueDelay::abandon`].
    pub(crate) fn enter(&self, platform: &dyn Platform) {
        if self.waiting.fetch_add(1, Ordering::Relaxed) == 0 {
            let now_ns = platform.now_ns();
            self.calm_ns.store(now_ns, Ordering::Relaxed);
            self.moved_ns.store(now_ns, Ordering::Relaxed);
            self.begin_window(now_ns);
        }
    }

    /// Notes that an item enters the queue that has just left it to be run.
    pub(crate) fn enter_again(&self, platform: &dyn Platform) {
        self.departures.fetch_sub(1, Ordering::Relaxed);
        self.enter(platform);
    }

    /// Notes that an item leaves the queue to be run.
    pub(crate) fn leave(&self, platform: &dyn Platform) {
        self.leave_at(platform.now_ns());
    }

    /// Notes that an item leaves the queue to be run, at this time.
    pub(super) fn leave_at(&self, now_ns: u64) {
        self.moved_ns.store(now_ns, Ordering::Relaxed);
        let departures = self.departures.fetch_add(1, Ordering::Relaxed) + 1;
        let elapsed_ns = now_ns.saturating_sub(self.window_ns.load(Ordering::Relaxed));
        if elapsed_ns >= WINDOW_NS {
            let before_ns = self.gap_ns.load(Ordering::Relaxed);
            let longest_ns = before_ns.max(SHORT_GAP_NS).saturating_mul(GAP_GROWTH_MAX);
            let departures = departures.max(1).cast_unsigned();
            self.gap_ns.store((elapsed_ns / departures).min(longest_ns), Ordering::Relaxed);
            self.note_refused(departures);
            self.begin_window(now_ns);
        }
        self.abandon();
        if self.expected_ns() <= self.delay_max_ns || self.waiting.load(Ordering::Relaxed) < WAITING_MIN {
            self.calm_ns.store(now_ns, Ordering::Relaxed);
        }
    }

    /// Updates the part of the items that are refused, at the end of a window in which so many departed.
    fn note_refused(&self, departures: u64) {
        let refused = self.refused.swap(0, Ordering::Relaxed);
        let before = self.refused_part.load(Ordering::Relaxed);
        if refused == 0 && before == 0 {
            return;
        }
        let items = refused + departures;
        let weight = items.min(REFUSED_ITEMS);
        let part = (before * (REFUSED_ITEMS - weight) + ONE * refused / items * weight) / REFUSED_ITEMS;
        self.refused_part.store(part, Ordering::Relaxed);
    }

    fn begin_window(&self, now_ns: u64) {
        self.window_ns.store(now_ns, Ordering::Relaxed);
        self.departures.store(0, Ordering::Relaxed);
    }

    /// Notes that an item leaves the queue for another reason than being run.
    pub(crate) fn abandon(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns true if work waits too long in this queue to begin more of it.
    #[inline]
    pub(crate) fn is_overloaded(&self, platform: &dyn Platform) -> bool {
        self.waiting.load(Ordering::Relaxed) >= WAITING_MIN && self.is_overloaded_at(platform.now_ns())
    }

    /// Returns the time for which an item that arrives now would wait if items leave as they did before.
    fn expected_ns(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed).saturating_mul(self.gap_ns.load(Ordering::Relaxed))
    }

    #[cold]
    fn is_overloaded_at(&self, now_ns: u64) -> bool {
        let refuses = self.refuses_at(now_ns);
        self.refused.fetch_add(u64::from(refuses), Ordering::Relaxed);
        refuses
    }

    fn refuses_at(&self, now_ns: u64) -> bool {
        let since = |moment: &AtomicU64| now_ns.saturating_sub(moment.load(Ordering::Relaxed));
        let stopped_ns = since(&self.moved_ns);
        let delay_ns = self.expected_ns().max(stopped_ns);
        let standing_ns = STANDING_NS.max(STANDING_ITEMS * self.gap_ns.load(Ordering::Relaxed));
        let is_long = self.expected_ns() > self.delay_max_ns && since(&self.calm_ns) >= standing_ns;
        if is_long || stopped_ns >= self.stop_max_ns {
            self.overloaded_ns.store(now_ns.max(1), Ordering::Relaxed);
            return true;
        }
        let is_recent = self.overloaded_ns.load(Ordering::Relaxed) > 0 && since(&self.overloaded_ns) < MEMORY_NS;
        if is_recent && delay_ns > self.delay_max_ns {
            if self.refused_part.load(Ordering::Relaxed) > REFUSED_MIN {
                self.overloaded_ns.store(now_ns, Ordering::Relaxed);
            }
            return true;
        }
        delay_ns > BURST_DELAY_MAX_NS
    }
}

#[cfg(test)]
pub(super) mod tests;
