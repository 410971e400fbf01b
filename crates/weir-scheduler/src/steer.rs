//! The thread that steers: once a period it measures the crews and changes how many threads they have.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError, Sender, TryRecvError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::crew::{Control, Running};
use crate::level::Elasticity;
use crate::machine::Machine;
use crate::shared::Shared;
use crate::work::Work;

/// The steering thread. Ends with [`Steering::end`].
pub(crate) struct Steering {
    /// Dropped to end the thread.
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Steering {
    pub(crate) fn end<W: Work>(self, shared: &Shared<W>) {
        drop(self.stop);
        shared.rest.rouse_resting();
        // A thread that panicked has said so already.
        _ = self.thread.join();
    }
}

/// Starts the steering thread, where some crew is to be steered.
pub(crate) fn start<W: Work>(shared: &Arc<Shared<W>>, period: Duration) -> std::io::Result<Option<Steering>> {
    if !shared.crews.iter().any(|running| running.crew.control.is_steered()) {
        return Ok(None);
    }
    let (stop, stopped) = mpsc::channel();
    let shared = Arc::clone(shared);
    let steer = move || {
        let mut bridge = Bridge::new(&shared);
        while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
            if bridge.steer(&shared) == Then::Rest {
                shared.rest(|| stopped.try_recv() != Err(TryRecvError::Empty));
                bridge.begin(&shared);
            }
        }
    };
    let thread = Builder::new().name("weir-steering".into()).spawn(steer)?;
    Ok(Some(Steering { stop, thread }))
}

/// What comes after a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// Another.
    GoOn,
    /// None, before something is put in.
    Rest,
}

/// What steering remembers between periods.
struct Bridge {
    helms: Vec<Helm>,
    machine: Machine,
    last: Instant,
}

impl Bridge {
    fn new<W: Work>(shared: &Shared<W>) -> Self {
        let helms = shared.crews.iter().map(Helm::new).collect();
        Bridge { helms, machine: Machine::new(), last: Instant::now() }
    }

    /// Begins a period. What came before it is not looked at.
    fn begin<W: Work>(&mut self, shared: &Shared<W>) {
        self.last = Instant::now();
        self.machine.busy_by_others();
        self.helms.iter_mut().zip(&shared.crews).for_each(|(helm, running)| helm.items = running.items());
    }

    /// Looks at all crews after a period, and steers them. Where nothing was done, nothing is to be done and nothing has
    /// changed, there is nothing to steer before something is put in.
    fn steer<W: Work>(&mut self, shared: &Shared<W>) -> Then {
        let elapsed = std::mem::replace(&mut self.last, Instant::now()).elapsed().as_secs_f64();
        let spare = self.machine.processors() - self.machine.busy_by_others();
        let mut busy = shared.in_flight() > 0;
        for (index, helm) in self.helms.iter_mut().enumerate() {
            busy |= helm.steer(&shared.crews[index], elapsed, spare, || shared.waiting(index));
        }
        if busy { Then::GoOn } else { Then::Rest }
    }
}

/// What steering one crew remembers between periods.
struct Helm {
    elasticity: Option<Elasticity>,
    /// How many levels have been drawn at random.
    drawn: u64,
    items: u64,
    /// The turns and items of each thread when they were last looked at.
    seen: Vec<(u64, u64)>,
}

impl Helm {
    fn new(running: &Running) -> Self {
        let elasticity = match &running.crew.control {
            Control::Elastic(settings) => Some(Elasticity::new(settings.clone())),
            Control::Fixed(_) | Control::QueueLength { .. } | Control::Random { .. } => None,
        };
        Helm { elasticity, items: 0, drawn: 0, seen: vec![(0, 0); running.seats.len()] }
    }

    /// Steers the crew; whether something was done or has changed.
    fn steer(&mut self, running: &Running, elapsed: f64, spare: f64, waiting: impl Fn() -> usize) -> bool {
        let items = running.items();
        let done = items - std::mem::replace(&mut self.items, items);
        let level = running.level.load(Ordering::Relaxed);
        let next = match (&running.crew.control, &mut self.elasticity) {
            // Without work there is nothing to learn.
            (_, Some(elasticity)) if done > 0 => elasticity.next(done as f64 / elapsed, (spare + 0.5) as usize),
            (Control::QueueLength { threads_min, threads_max, queue_length }, _) => match waiting() {
                0 => (level - 1).max(*threads_min),
                length if length >= *queue_length => (level + 1).min(*threads_max),
                _ => level,
            },
            (Control::Random { like, seed }, _) => {
                self.drawn += 1;
                1 + (mixed(seed.wrapping_add(self.drawn)) % like.threads_max() as u64) as usize
            }
            _ => level,
        };
        running.level.store(next, Ordering::Relaxed);
        let stuck = self.stuck(running);
        apply(running, next, &stuck);
        done > 0 || (next != level && !running.crew.control.is_random())
    }

    /// Which threads have been working on one and the same item for a whole period.
    fn stuck(&mut self, running: &Running) -> Vec<bool> {
        let threads = running.seats.iter().zip(&mut self.seen);
        threads
            .map(|(seat, last)| {
                let seen = (seat.turns.load(Ordering::Relaxed), seat.items.load(Ordering::Relaxed));
                seen.0 % 2 == 1 && std::mem::replace(last, seen) == seen
            })
            .collect()
    }
}

/// A number that looks random, the same for the same `number` (the mixer of SplitMix64; Steele, Lea, Flood, OOPSLA 2014).
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Lets the first `level` threads that are not stuck work, and suspends the rest.
fn apply(running: &Running, level: usize, stuck: &[bool]) {
    let mut working = 0;
    let mut changed = false;
    for (seat, stuck) in running.seats.iter().zip(stuck) {
        let work = !stuck && working < level;
        working += usize::from(work);
        let suspended = !work && !stuck;
        let before = seat.suspended.swap(suspended, Ordering::AcqRel);
        changed |= before != suspended;
        if before && !suspended {
            seat.thread.get().into_iter().for_each(std::thread::Thread::unpark);
        }
    }
    if changed {
        // Those that sleep are woken to see whether they are suspended, lest one swallow a wake-up.
        running.idle.wake_all();
    }
}
