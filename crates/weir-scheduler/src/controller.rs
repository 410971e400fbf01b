//! Controller thread: measures every pool once per period and sets its number of threads.
//!
//! A period in which no item ran, no item is in flight and no pool changed leaves nothing to decide. The controller
//! then parks until an item is taken up (`controller_parking`).
//!
//! A worker that spends a whole period in one item is *stuck*, for example in a blocking call. It does not count as one
//! of the pool's threads, and another worker takes its place.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError, Sender, TryRecvError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::platform::SchedulerPlatform;
use crate::processor_load::ProcessorLoad;
use crate::state::SchedulerState;
use crate::thread_count::ThreadCountController;
use crate::thread_pool::{RunningPool, ThreadControl};
use crate::work::Work;

/// Handle of the controller thread. The thread runs until [`ControllerThread::end`].
pub(crate) struct ControllerThread {
    /// Dropped in order to end the thread.
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl ControllerThread {
    /// Ends the thread and waits for it.
    pub(crate) fn end<W: Work>(self, shared: &SchedulerState<W>) {
        drop(self.stop);
        shared.controller.unpark_parked();
        // A panic of the thread has been reported by the panic hook.
        _ = self.thread.join();
    }
}

/// Starts the controller thread if the number of threads of some pool is controlled.
///
/// # Errors
/// Fails if the system does not start another thread.
pub(crate) fn start<W: Work>(
    shared: &Arc<SchedulerState<W>>,
    period: Duration,
) -> std::io::Result<Option<ControllerThread>> {
    if !shared.pools.iter().any(|running| running.pool.control.is_controlled()) {
        return Ok(None);
    }
    let (stop, stopped) = mpsc::channel();
    let shared = Arc::clone(shared);
    let control = move || {
        let mut controller = Controller::new(&shared);
        while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
            if controller.run_period(&shared) == AfterPeriod::Park {
                shared.park_controller(|| stopped.try_recv() != Err(TryRecvError::Empty));
                controller.begin(&shared);
            }
        }
    };
    let thread = Builder::new().name("weir-controller".into()).spawn(control)?;
    Ok(Some(ControllerThread { stop, thread }))
}

/// The controller's next action after a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterPeriod {
    /// Measure another period.
    Continue,
    /// Park until an item is taken up.
    Park,
}

/// State of the controller between periods.
struct Controller {
    pools: Vec<PoolController>,
    load: ProcessorLoad,
    /// The start of the current period.
    last: Instant,
}

impl Controller {
    fn new<W: Work>(shared: &SchedulerState<W>) -> Self {
        let pools = shared.pools.iter().map(PoolController::new).collect();
        let (processors, now) = (shared.platform().processors(), shared.platform().now());
        Controller { pools, load: ProcessorLoad::new(processors, now), last: now }
    }

    /// Begins a period now, and ignores the time and the items before it.
    fn begin<W: Work>(&mut self, shared: &SchedulerState<W>) {
        self.last = shared.platform().now();
        self.load.busy_by_others(self.last);
        self.pools.iter_mut().zip(&shared.pools).for_each(|(pool, running)| pool.items = running.items());
    }

    /// Ends a period: measures all pools and sets their numbers of threads.
    fn run_period<W: Work>(&mut self, shared: &SchedulerState<W>) -> AfterPeriod {
        let now = shared.platform().now();
        let elapsed = now.saturating_duration_since(std::mem::replace(&mut self.last, now)).as_secs_f64();
        let free_processors = self.load.processors() - self.load.busy_by_others(now);
        let mut busy = shared.in_flight() > 0;
        for (index, pool) in self.pools.iter_mut().enumerate() {
            busy |= pool.adjust(&shared.pools[index], elapsed, free_processors, || shared.waiting_items(index));
        }
        if busy { AfterPeriod::Continue } else { AfterPeriod::Park }
    }
}

/// State of the controller for one pool between periods.
struct PoolController {
    /// The search for the number of threads, if the pool is elastic.
    elastic: Option<ThreadCountController>,
    /// The random numbers drawn so far.
    draws: u64,
    /// The pool's item count at the end of the last period.
    items: u64,
    /// The epoch and item count of every worker slot at the end of the last period.
    seen: Vec<(u64, u64)>,
}

impl PoolController {
    fn new(running: &RunningPool) -> Self {
        let elastic = match &running.pool.control {
            ThreadControl::Elastic(settings) => Some(ThreadCountController::new(settings.clone())),
            ThreadControl::Fixed(_) | ThreadControl::QueueLength { .. } | ThreadControl::Random { .. } => None,
        };
        PoolController { elastic, items: 0, draws: 0, seen: vec![(0, 0); running.slots.len()] }
    }

    /// Sets the pool's number of threads after a period. Returns true if an item ran or the number changed.
    fn adjust(
        &mut self,
        running: &RunningPool,
        elapsed: f64,
        free_processors: f64,
        waiting: impl Fn() -> usize,
    ) -> bool {
        let items = running.items();
        let done = items - std::mem::replace(&mut self.items, items);
        let threads = running.thread_target.load(Ordering::Relaxed);
        let next = match (&running.pool.control, &mut self.elastic) {
            // A period without items says nothing about throughput.
            (_, Some(elastic)) if done > 0 => elastic.observe(done as f64 / elapsed, (free_processors + 0.5) as usize),
            (ThreadControl::QueueLength { threads_min, threads_max, queue_length }, _) => match waiting() {
                0 => (threads - 1).max(*threads_min),
                length if length >= *queue_length => (threads + 1).min(*threads_max),
                _ => threads,
            },
            (ThreadControl::Random { like, seed }, _) => {
                self.draws += 1;
                1 + (split_mix(seed.wrapping_add(self.draws)) % like.threads_max() as u64) as usize
            }
            _ => threads,
        };
        running.thread_target.store(next, Ordering::Relaxed);
        let stuck = self.find_stuck(running);
        apply(running, next, &stuck);
        done > 0 || (next != threads && !running.pool.control.is_random())
    }

    /// Returns for every worker slot whether its worker has been in one item for the whole period.
    fn find_stuck(&mut self, running: &RunningPool) -> Vec<bool> {
        let threads = running.slots.iter().zip(&mut self.seen);
        threads
            .map(|(slot, last)| {
                let seen = (slot.epoch.load(Ordering::Relaxed), slot.items.load(Ordering::Relaxed));
                seen.0 % 2 == 1 && std::mem::replace(last, seen) == seen
            })
            .collect()
    }
}

/// Returns a pseudo-random number that depends on `number` only (the mixer of SplitMix64; Steele, Lea, Flood, OOPSLA
/// 2014).
fn split_mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Resumes the first `threads` workers that are not stuck, and suspends the others.
fn apply(running: &RunningPool, threads: usize, stuck: &[bool]) {
    let mut working = 0;
    let mut changed = false;
    for (slot, stuck) in running.slots.iter().zip(stuck) {
        let work = !stuck && working < threads;
        working += usize::from(work);
        let suspended = !work && !stuck;
        let before = slot.suspended.swap(suspended, Ordering::AcqRel);
        changed |= before != suspended;
        if before && !suspended {
            slot.thread.get().into_iter().for_each(std::thread::Thread::unpark);
        }
    }
    if changed {
        // Every sleeping worker has to look at its `suspended` flag: a suspended one that stays in the idle set would
        // receive the wake-up that another one needs.
        running.idle.wake_all();
    }
}
