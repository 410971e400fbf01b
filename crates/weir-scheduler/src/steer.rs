//! The thread that steers: once a period it measures the crews and changes how many threads they have.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::crew::{Control, Running};
use crate::level::Elasticity;
use crate::machine::Machine;
use crate::shared::{Shared, Work};

/// The steering thread. Dropping it ends the thread.
pub(crate) struct Steering {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Steering {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A thread that panicked has said so already.
        self.thread.take().into_iter().for_each(|thread| _ = thread.join());
    }
}

/// Starts the steering thread, where some crew is to be steered.
pub(crate) fn start<W: Work>(shared: &Arc<Shared<W>>, period: Duration) -> std::io::Result<Option<Steering>> {
    if shared.crews.iter().all(|running| matches!(running.crew.control, Control::Fixed(_))) {
        return Ok(None);
    }
    let (stop, stopped) = mpsc::channel();
    let shared = shared.clone();
    let steer = move || {
        let mut helms: Vec<Helm> = shared.crews.iter().map(Helm::new).collect();
        let mut machine = Machine::new();
        let mut last = Instant::now();
        while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
            let elapsed = last.elapsed().as_secs_f64();
            last = Instant::now();
            let others = machine.busy_by_others(elapsed);
            for (index, helm) in helms.iter_mut().enumerate() {
                let spare = machine.processors() - others;
                helm.steer(&shared.crews[index], elapsed, spare, || shared.waiting(index));
            }
        }
    };
    let thread = Builder::new().name("weir-steering".into()).spawn(steer)?;
    Ok(Some(Steering { stop: Some(stop), thread: Some(thread) }))
}

/// What steering one crew remembers between periods.
struct Helm {
    elasticity: Option<Elasticity>,
    /// How many levels have been drawn at random.
    drawn: u64,
    items: u64,
    /// The turns of each thread when they were last looked at.
    turns: Vec<u64>,
}

impl Helm {
    fn new(running: &Running) -> Self {
        let elasticity = match &running.crew.control {
            Control::Elastic(settings) => Some(Elasticity::new(settings.clone())),
            Control::Fixed(_) | Control::QueueLength { .. } | Control::Random { .. } => None,
        };
        Helm { elasticity, items: 0, drawn: 0, turns: vec![0; running.seats.len()] }
    }

    fn steer(&mut self, running: &Running, elapsed: f64, spare: f64, waiting: impl Fn() -> usize) {
        let items = running.items();
        let done = items - std::mem::replace(&mut self.items, items);
        let level = running.level.load(Ordering::Relaxed);
        let next = match (&running.crew.control, &mut self.elasticity) {
            // Without work there is nothing to learn.
            (_, Some(elasticity)) if done > 0 => elasticity.next(done as f64 / elapsed, level as f64 + 0.5 <= spare),
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
    }

    /// Which threads have been working on one and the same batch for a whole period.
    fn stuck(&mut self, running: &Running) -> Vec<bool> {
        let threads = running.seats.iter().zip(&mut self.turns);
        threads
            .map(|(seat, last)| {
                let turns = seat.turns.load(Ordering::Relaxed);
                turns % 2 == 1 && std::mem::replace(last, turns) == turns
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
