//! The thread that puts items in, as a worker: how long its items hold it up, and when it leaves them to others.

use std::time::Duration;

use crate::hands::{BATCH, Hands};
use crate::work::Work;

/// The mean time for an item from which on the source is held up: a queue is cheap against that.
const HELD_MAX: Duration = Duration::from_micros(20);
/// After having been held up, the source keeps to queues for so many items at first.
const AWAY_MIN: u32 = 256;
/// And for so many at most.
const AWAY_MAX: u32 = 1 << 20;

/// The thread that puts items in, as a worker of the crew.
pub(crate) struct Guest<W: Work> {
    pub(crate) hands: Hands<W>,
    /// How many items it brings before it looks how long they take: few, while that is not known.
    pub(crate) chunk: usize,
    /// How many it has brought one by one since it looked.
    pub(crate) untimed: usize,
    /// For how many items more it keeps to queues.
    away: u32,
    away_next: u32,
}

impl<W: Work> Guest<W> {
    pub(crate) fn new(crew: usize) -> Self {
        Guest { hands: Hands::new(crew), chunk: 1, untimed: 0, away: 0, away_next: AWAY_MIN }
    }

    /// Whether it may work itself on the next so many items, as far as it knows.
    pub(crate) fn is_at_work(&mut self, items: u32) -> bool {
        self.away = self.away.saturating_sub(items);
        self.away == 0
    }

    /// Learns how long an item took.
    pub(crate) fn learn(&mut self, took: Duration) {
        if took > HELD_MAX && self.chunk > 1 {
            // The system may have taken the processor away: the next item tells more.
            self.chunk = 1;
        } else if took > HELD_MAX {
            self.away = self.away_next;
            self.away_next = (self.away_next * 2).min(AWAY_MAX);
        } else if self.chunk < BATCH {
            self.chunk *= 2;
        } else {
            self.away_next = AWAY_MIN;
        }
    }
}
