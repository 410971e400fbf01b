//! A small executor that schedules woken tasks as Go does: a woken task runs next, on the worker that woke it.
//!
//! The channels of weir-events belong to no executor; Go's channels have one of their own. If each value causes a wait,
//! a benchmark mostly measures the executor; with this one, the channels themselves can be compared. It has no clock
//! and no input or output.
//!
//! Terms: a *worker* is a thread of the executor; the caller of [`Crew::run`] is the first one. A *turn* is a task that
//! was woken and is to be polled.
//!
//! The rules, which are Go's:
//! 1. A task that is woken takes the *slot* of the worker on which it is woken, and is polled as soon as the waking
//!    task waits. A task that was in the slot goes to the end of the worker's queue.
//! 2. A worker with an empty slot takes the first of its queue. After [`SLOT_TURNS_MAX`] turns from the slot it takes
//!    from the queue first, so that two tasks cannot starve the others.
//! 3. A worker without work searches the queues of all workers for a while, and then sleeps. It is woken when a task is
//!    queued and no worker is searching. Two tasks that wake each other in turns therefore stay on one thread.
//!
//! One rule is not Go's. A task that moves to another thread moves its cache lines, and the channel's:
//! 4. A searching worker steals a task only if the task would wait for longer than its move costs: if its worker has
//!    been in the same turn for some microseconds, or has a backlog. After an unsuccessful search, workers are woken
//!    less often, down to once in [`SKIPS_MAX`] times.
//!
//! Each worker serves its own queue, so a missed wake-up costs at most some parallelism. Wake-ups that must not be
//! missed, for tasks from outside and for the end of the run, are sent under the lock.

use crate::wakes::Task;
use async_task::Runnable;
use crossbeam_deque::{Injector, Stealer, Worker};
use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, spawn};

/// A task. It holds its future and its scheduler, so that a wake-up changes no reference count.
type Turn = Runnable<Arc<Shared>>;

/// The maximum number of turns from the slot in a row.
const SLOT_TURNS_MAX: u32 = 64;
/// The number of searches before a worker sleeps; together they take about as long as waking it.
const SEARCHES_MAX: u32 = 16;
/// The number of processor pauses between two searches, some microseconds.
const PAUSES: u32 = 128;
/// The length of a queue whose last short turn waits for about as long as a move costs.
const BACKLOG: usize = 32;
/// The maximum number of times in a row that a task is queued and no worker is woken.
const SKIPS_MAX: usize = 1024;

/// The executor and its threads, which end with it.
pub(crate) struct Crew {
    shared: Arc<Shared>,
    /// The first worker's queue, between two runs.
    queue: Cell<Option<Worker<Turn>>>,
    threads: Vec<JoinHandle<()>>,
}

/// The state that the workers share.
struct Shared {
    outside: Injector<Turn>,
    workers: Vec<Colleague>,
    /// The number of tasks, plus one for the executor, that have not ended.
    left: AtomicUsize,
    searching: AtomicUsize,
    /// A copy of the number of sleeping workers that can be read without the lock.
    sleeping: AtomicUsize,
    /// The number of times that no worker is woken, after unsuccessful searches.
    skips: AtomicUsize,
    naps: Mutex<Naps>,
    called: Condvar,
}

/// The part of a worker that other workers access.
#[repr(align(128))]
struct Colleague {
    queue: Stealer<Turn>,
    /// The number of turns so far. Written by the worker only.
    turns: AtomicUsize,
}

/// The workers that sleep.
#[derive(Default)]
struct Naps {
    /// The number of workers that sleep and have not been woken.
    sleeping: usize,
    /// The number of workers that have been woken and have not continued yet; they count as searching.
    called: usize,
}

/// The state of a worker's thread.
struct Local {
    /// `None` on any thread that is not a worker.
    queue: RefCell<Option<Worker<Turn>>>,
    slot: Cell<Option<Turn>>,
    /// The number of times in a row that no worker was woken.
    skipped: Cell<usize>,
}

thread_local! {
    static LOCAL: Local = const { Local { queue: RefCell::new(None), slot: Cell::new(None), skipped: Cell::new(0) } };
}

impl Crew {
    pub(crate) fn new(workers: usize) -> Self {
        let mut queues: Vec<_> = (0..workers).map(|_| Worker::new_fifo()).collect();
        let shared = Arc::new(Shared {
            outside: Injector::new(),
            workers: queues.iter().map(Colleague::of).collect(),
            left: AtomicUsize::new(1),
            searching: AtomicUsize::new(0),
            sleeping: AtomicUsize::new(0),
            skips: AtomicUsize::new(0),
            naps: Mutex::default(),
            called: Condvar::new(),
        });
        let start = |(number, queue)| {
            let shared = shared.clone();
            spawn(move || drop(shared.work(number + 1, queue, 0)))
        };
        let threads = queues.split_off(1).into_iter().enumerate().map(start).collect();
        Crew { shared, queue: Cell::new(queues.pop()), threads }
    }

    /// Runs all tasks to their end.
    pub(crate) fn run(&self, tasks: Vec<Task>) {
        let queue = self.queue.take().expect("a crew runs one set of tasks at a time");
        self.shared.left.fetch_add(tasks.len(), AcqRel);
        tasks.into_iter().for_each(|task| self.shared.start(task));
        self.queue.set(Some(self.shared.work(0, queue, 1)));
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.shared.ended();
        self.threads.drain(..).for_each(|thread| thread.join().expect("no task panics"));
    }
}

impl Shared {
    fn start(self: &Arc<Self>, task: Task) {
        let counted = |shared: &Arc<Shared>| {
            let shared = shared.clone();
            async move {
                task.await;
                shared.ended();
            }
        };
        let (turn, task) = async_task::Builder::new().metadata(self.clone()).spawn(counted, schedule);
        task.detach();
        self.outside.push(turn);
        self.call();
    }

    /// Records that a task or the executor has ended, and wakes workers that may wait for that.
    fn ended(&self) {
        if self.left.fetch_sub(1, AcqRel) <= 2 {
            drop(self.naps());
            self.called.notify_all();
        }
    }

    /// Works until at most `left` tasks are left, and returns the queue.
    fn work(&self, number: usize, queue: Worker<Turn>, left: usize) -> Worker<Turn> {
        LOCAL.with(|local| {
            local.queue.replace(Some(queue));
            let is_over = || self.left.load(Acquire) <= left;
            let (mut slot_turns, mut turns) = (0, self.workers[number].turns.load(Relaxed));
            while !is_over() {
                if let Some(turn) = local.next(&mut slot_turns).or_else(|| self.search(&is_over)) {
                    turns += 1;
                    self.workers[number].turns.store(turns, Relaxed);
                    turn.run();
                }
            }
            local.queue.take().expect("a worker's thread has its queue")
        })
    }

    /// Returns a task from outside or from another worker; `None` if there is none or the run is over.
    fn search(&self, is_over: &impl Fn() -> bool) -> Option<Turn> {
        self.searching.fetch_add(1, AcqRel);
        let mut seen = vec![usize::MAX; self.workers.len()];
        let mut searches = 0;
        let found = loop {
            let found = self.steal(&mut seen);
            if found.is_some() || is_over() {
                break found;
            }
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
            searches += 1;
            if searches == SEARCHES_MAX {
                self.skips.store((self.skips.load(Relaxed) * 2).clamp(1, SKIPS_MAX), Relaxed);
                self.sleep(is_over);
                searches = 0;
            }
        };
        if found.is_some() {
            self.skips.store(0, Relaxed);
        }
        self.searching.fetch_sub(1, AcqRel);
        found
    }

    /// Takes a task from outside, or one that another worker will not run soon; `seen` holds the other workers' turn
    /// counts at the last search.
    fn steal(&self, seen: &mut [usize]) -> Option<Turn> {
        let outside = self.outside.steal().success();
        outside.or_else(|| self.workers.iter().zip(seen).find_map(|(worker, seen)| worker.help(seen)))
    }

    /// Lets a searching worker sleep until it is woken.
    fn sleep(&self, is_over: &impl Fn() -> bool) {
        let mut naps = self.naps();
        self.searching.fetch_sub(1, AcqRel);
        naps.sleeping += 1;
        self.sleeping.store(naps.sleeping, Release);
        while naps.called == 0 && !is_over() && self.outside.is_empty() {
            naps = self.called.wait(naps).unwrap_or_else(PoisonError::into_inner);
        }
        if naps.called > 0 {
            naps.called -= 1;
            return;
        }
        naps.sleeping -= 1;
        self.sleeping.store(naps.sleeping, Release);
        self.searching.fetch_add(1, AcqRel);
    }

    /// Wakes a worker after a task was queued, if one sleeps and none is searching.
    fn call_for_help(&self, skipped: &Cell<usize>) {
        if self.sleeping.load(Relaxed) == 0 || self.searching.load(Relaxed) > 0 {
            return;
        }
        skipped.set(skipped.get() + 1);
        if skipped.get() > self.skips.load(Relaxed) {
            skipped.set(0);
            self.call();
        }
    }

    /// Wakes a sleeping worker, if there is one.
    fn call(&self) {
        let mut naps = self.naps();
        if naps.sleeping > 0 {
            naps.sleeping -= 1;
            naps.called += 1;
            self.sleeping.store(naps.sleeping, Release);
            self.searching.fetch_add(1, AcqRel);
            drop(naps);
            self.called.notify_one();
        }
    }

    fn naps(&self) -> MutexGuard<'_, Naps> {
        self.naps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Colleague {
    fn of(worker: &Worker<Turn>) -> Self {
        Colleague { queue: worker.stealer(), turns: AtomicUsize::new(0) }
    }

    fn help(&self, seen: &mut usize) -> Option<Turn> {
        let turns = self.turns.load(Relaxed);
        let is_long = std::mem::replace(seen, turns) == turns;
        if is_long || self.queue.len() >= BACKLOG { self.queue.steal().success() } else { None }
    }
}

impl Local {
    /// Returns the next task of this worker.
    fn next(&self, slot_turns: &mut u32) -> Option<Turn> {
        if *slot_turns < SLOT_TURNS_MAX
            && let Some(turn) = self.slot.take()
        {
            *slot_turns += 1;
            return Some(turn);
        }
        *slot_turns = 0;
        let queue = self.queue.borrow();
        queue.as_ref().and_then(Worker::pop).or_else(|| self.slot.take())
    }
}

/// Schedules a task that was woken.
fn schedule(turn: Turn) {
    LOCAL.with(|local| match &*local.queue.borrow() {
        Some(queue) => {
            if let Some(displaced) = local.slot.take() {
                queue.push(displaced);
                turn.metadata().call_for_help(&local.skipped);
            }
            local.slot.set(Some(turn));
        }
        None => {
            let shared = turn.metadata().clone();
            shared.outside.push(turn);
            shared.call();
        }
    });
}
