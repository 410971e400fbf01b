//! A crew: threads that share a list of ports which have work.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;

use crossbeam_utils::CachePadded;

use crate::idle::Idle;
use crate::level::Settings;
use crate::ready::Ready;

/// How a crew is made up.
#[derive(Clone, Debug, PartialEq)]
pub struct Crew {
    /// What it is called in the names of its threads and in snapshots.
    pub name: String,
    /// How the number of its threads is found.
    pub control: Control,
}

/// How the number of a crew's threads is found.
#[derive(Clone, Debug, PartialEq)]
pub enum Control {
    /// Always this many.
    Fixed(usize),
    /// By measured throughput: see [`crate::Elasticity`].
    Elastic(Settings),
    /// By the length of the queues, as the controllers of SEDA's stages do: one more where `queue_length` items wait at the
    /// end of a period, one fewer where none does.
    QueueLength {
        /// The fewest threads.
        threads_min: usize,
        /// The most threads.
        threads_max: usize,
        /// From how many waiting items on another thread is added.
        queue_length: usize,
    },
    /// Drawn anew each period, between one thread and as many as another control may ask for, whose crew it is otherwise.
    /// For tests: whatever the levels do, nothing may be lost, doubled or overtaken.
    Random {
        /// The other control.
        like: Box<Control>,
        /// Where the numbers begin: the same seed gives the same levels.
        seed: u64,
    },
}

impl Control {
    /// Whether the throughput decides.
    pub(crate) fn is_elastic(&self) -> bool {
        match self {
            Control::Elastic(_) => true,
            Control::Random { like, .. } => like.is_elastic(),
            Control::Fixed(_) | Control::QueueLength { .. } => false,
        }
    }

    /// Whether it is drawn.
    pub(crate) fn is_random(&self) -> bool {
        matches!(self, Control::Random { .. })
    }

    /// Whether somebody has to look after it.
    pub(crate) fn is_steered(&self) -> bool {
        !matches!(self, Control::Fixed(_))
    }

    /// The most threads that it may ask for.
    #[must_use]
    pub fn threads_max(&self) -> usize {
        match self {
            Control::Fixed(threads) => *threads,
            Control::Elastic(settings) => settings.level_max,
            Control::QueueLength { threads_max, .. } => *threads_max,
            Control::Random { like, .. } => like.threads_max(),
        }
    }

    /// The number of threads that it begins with.
    #[must_use]
    pub fn threads_min(&self) -> usize {
        match self {
            Control::Fixed(threads) => *threads,
            Control::Elastic(settings) => settings.level_min,
            Control::QueueLength { threads_min, .. } => *threads_min,
            Control::Random { .. } => 1,
        }
    }
}

/// What a crew works beside.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    /// Whether somebody looks after the crews.
    pub(crate) is_steered: bool,
    /// How many threads the system runs at once. On a single one threads cannot work beside each other, whatever crew they
    /// are of; they can only hold each other up.
    pub(crate) processors: usize,
}

/// A crew at work.
pub(crate) struct Running {
    pub(crate) crew: Crew,
    /// The ports that have work, each at most once.
    pub(crate) ready: Ready,
    /// A line of cache of its own: who has work for the crew looks there each time.
    pub(crate) idle: CachePadded<Idle>,
    /// One for each thread that there may be.
    pub(crate) seats: Vec<CachePadded<Seat>>,
    /// That of the thread that puts items in, when it works on them itself.
    pub(crate) guest: CachePadded<Seat>,
    /// Whether who puts items in may work on them itself while the crew needs one thread only.
    pub(crate) takes_guests: bool,
    /// Whether its one thread is always alone: no guest comes, and nobody puts another in the place of one that is stuck.
    pub(crate) is_solo: bool,
    /// How many threads there should be, threads that are stuck in a port's work not counted.
    pub(crate) level: AtomicUsize,
}

/// What a thread shares with those who steer it; nobody else touches it on the way, so that no line of cache is shared.
#[derive(Default)]
pub(crate) struct Seat {
    /// Told to stop at the next port. Written by the steering thread.
    pub(crate) suspended: AtomicBool,
    /// Told to end at the next port. Written by the steering thread.
    pub(crate) ended: AtomicBool,
    /// How many items it has worked on. Written by the thread.
    pub(crate) items: AtomicU64,
    /// Odd while it works on a port, even while it looks for one. Written by the thread.
    pub(crate) turns: AtomicU64,
    pub(crate) thread: OnceLock<Thread>,
}

impl Seat {
    /// So many items more were worked on. By the thread alone.
    #[inline]
    pub(crate) fn tell(&self, items: u64) {
        self.items.store(self.items.load(Ordering::Relaxed) + items, Ordering::Relaxed);
    }
}

impl Running {
    pub(crate) fn new(crew: Crew, ports: usize, setting: Setting) -> Self {
        let level = crew.control.threads_min();
        assert!(level > 0, "the crew {} has no threads", crew.name);
        // Threads that are stuck are replaced, so that there are twice as many seats as threads.
        let seats = (0..crew.control.threads_max() * 2).map(|_| CachePadded::default()).collect();
        let (ready, idle) = (Ready::new(ports), CachePadded::new(Idle::new()));
        let takes_guests = crew.control.is_elastic() || setting.processors == 1;
        let is_solo = crew.control == Control::Fixed(1) && !setting.is_steered && !takes_guests;
        let (guest, level) = (CachePadded::default(), AtomicUsize::new(level));
        Running { crew, ready, idle, seats, guest, takes_guests, is_solo, level }
    }

    /// Whether there should be one thread only.
    pub(crate) fn is_alone(&self) -> bool {
        self.level.load(Ordering::Relaxed) == 1
    }

    /// Hands a port to whoever comes first.
    pub(crate) fn hand(&self, port: usize) {
        self.ready.push(port);
        self.idle.wake();
    }

    /// How many items its threads have worked on.
    pub(crate) fn items(&self) -> u64 {
        let seats = self.seats.iter().chain([&self.guest]);
        seats.map(|seat| seat.items.load(Ordering::Relaxed)).sum()
    }
}
