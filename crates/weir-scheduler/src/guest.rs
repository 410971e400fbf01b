//! The thread that puts items in, as a worker: how long its items hold it up, and when it leaves them to others.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::hands::{BATCH, Hands};
use crate::work::Work;

/// The mean time for an item from which on the source is held up: a queue is cheap against that.
const HELD_MAX: Duration = Duration::from_micros(20);
/// After having been held up, the source keeps to queues for so many items at first.
const AWAY_MIN: u32 = 256;
/// And for so many at most.
const AWAY_MAX: u32 = 1 << 20;

/// The thread that puts items in, as a worker of the crew. Its words are for who has the right to work alone there, so that
/// nothing of them is exchanged; who reads one without may be late.
pub(crate) struct Guest<W: Work> {
    /// Nobody waits for them: who takes them works alone.
    pub(crate) hands: Mutex<Hands<W>>,
    /// How many items it brings before it looks how long they take: few, while that is not known.
    chunk: Word,
    /// How many more it brings one by one before it looks around.
    unlooked: Word,
    /// How often an item was worked on since that was last told.
    visits: Word,
    /// For how many items more it keeps to queues.
    away: Word,
    away_next: Word,
}

/// A number that one thread at a time uses.
struct Word(AtomicU32);

impl Word {
    const fn new(value: u32) -> Self {
        Word(AtomicU32::new(value))
    }

    #[inline]
    fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    fn set(&self, value: u32) {
        self.0.store(value, Ordering::Relaxed);
    }
}

impl<W: Work> Guest<W> {
    pub(crate) fn new(crew: usize) -> Self {
        Guest {
            hands: Mutex::new(Hands::new(crew)),
            chunk: Word::new(1),
            unlooked: Word::new(0),
            visits: Word::new(0),
            away: Word::new(0),
            away_next: Word::new(AWAY_MIN),
        }
    }

    /// Whether it may work itself on the next so many items, as far as it knows.
    #[inline]
    pub(crate) fn is_at_work(&self, items: u32) -> bool {
        let away = self.away.get();
        if away > 0 {
            self.away.set(away.saturating_sub(items));
        }
        away <= items
    }

    /// How many items it is to bring before it looks how long they took.
    pub(crate) fn chunk(&self) -> usize {
        self.chunk.get() as usize
    }

    /// Whether it is to look around before it brings one more item: whether it may still work, and how long that takes.
    #[inline]
    pub(crate) fn is_to_look(&self) -> bool {
        self.unlooked.get() == 0
    }

    /// It is to look around before the next item.
    pub(crate) fn look_next(&self) {
        self.unlooked.set(0);
    }

    /// It has brought an item by itself, which was worked on so often.
    #[inline]
    pub(crate) fn brought(&self, visits: u32) {
        self.unlooked.set(self.unlooked.get().wrapping_sub(1));
        self.visits.set(self.visits.get() + visits);
    }

    /// It has looked how long an item took that it has brought by itself; yields how often items were worked on since it
    /// last did.
    pub(crate) fn looked(&self, took: Duration) -> u64 {
        self.learn(took);
        self.unlooked.set(if self.away.get() > 0 { 0 } else { self.chunk.get() - 1 });
        let visits = self.visits.get();
        self.visits.set(0);
        u64::from(visits)
    }

    /// Learns how long an item took.
    pub(crate) fn learn(&self, took: Duration) {
        let chunk = self.chunk.get();
        if took > HELD_MAX && chunk > 1 {
            // The system may have taken the processor away: the next item tells more.
            self.chunk.set(1);
        } else if took > HELD_MAX {
            let next = self.away_next.get();
            self.away.set(next);
            self.away_next.set((next * 2).min(AWAY_MAX));
        } else if chunk < BATCH as u32 {
            self.chunk.set(chunk * 2);
        } else {
            self.away_next.set(AWAY_MIN);
        }
    }
}
