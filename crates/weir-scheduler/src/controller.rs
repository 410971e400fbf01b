//! The thread that steers: once a period it measures the crews and changes how many threads they have.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError, Sender, TryRecvError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::processor_load::ProcessorLoad;
use crate::state::SchedulerState;
use crate::thread_count::ThreadCountController;
use crate::thread_pool::{RunningPool, ThreadControl};
use crate::work::Work;

/// The steering thread. Ends with [`ControllerThread::end`].
pub(crate) struct ControllerThread {
    /// Dropped to end the thread.
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl ControllerThread {
    pub(crate) fn end<W: Work>(self, shared: &SchedulerState<W>) {
        drop(self.stop);
        shared.controller.unpark_parked();
        // A thread that panicked has said so already.
        _ = self.thread.join();
    }
}

/// Starts the steering thread, where some crew is to be steered.
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

/// What comes after a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterPeriod {
    /// Another.
    Continue,
    /// None, before something is put in.
    Park,
}

/// What steering remembers between periods.
struct Controller {
    pools: Vec<PoolController>,
    load: ProcessorLoad,
    last: Instant,
}

impl Controller {
    fn new<W: Work>(shared: &SchedulerState<W>) -> Self {
        let pools = shared.pools.iter().map(PoolController::new).collect();
        Controller { pools, load: ProcessorLoad::new(), last: Instant::now() }
    }

    /// Begins a period. What came before it is not looked at.
    fn begin<W: Work>(&mut self, shared: &SchedulerState<W>) {
        self.last = Instant::now();
        self.load.busy_by_others();
        self.pools.iter_mut().zip(&shared.pools).for_each(|(pool, running)| pool.items = running.items());
    }

    /// Looks at all crews after a period, and steers them. Where nothing was done, nothing is to be done and nothing has
    /// changed, there is nothing to steer before something is put in.
    fn run_period<W: Work>(&mut self, shared: &SchedulerState<W>) -> AfterPeriod {
        let elapsed = std::mem::replace(&mut self.last, Instant::now()).elapsed().as_secs_f64();
        let free_processors = self.load.processors() - self.load.busy_by_others();
        let mut busy = shared.in_flight() > 0;
        for (index, pool) in self.pools.iter_mut().enumerate() {
            busy |= pool.adjust(&shared.pools[index], elapsed, free_processors, || shared.waiting_items(index));
        }
        if busy { AfterPeriod::Continue } else { AfterPeriod::Park }
    }
}

/// What steering one crew remembers between periods.
struct PoolController {
    elastic: Option<ThreadCountController>,
    /// How many levels have been drawn at random.
    draws: u64,
    items: u64,
    /// The turns and items of each thread when they were last looked at.
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

    /// Steers the crew; whether something was done or has changed.
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
            // Without work there is nothing to learn.
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

    /// Which threads have been working on one and the same item for a whole period.
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

/// A number that looks random, the same for the same `number` (the mixer of SplitMix64; Steele, Lea, Flood, OOPSLA 2014).
fn split_mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Lets the first `level` threads that are not stuck work, and suspends the rest.
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
        // Those that sleep are woken to see whether they are suspended, lest one swallow a wake-up.
        running.idle.wake_all();
    }
}
