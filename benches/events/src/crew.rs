//! A small executor that wakes as Go's scheduler does: whoever is woken runs next, where the waker runs.
//!
//! The channels of weir-events belong to no executor, Go's have one of their own. Where each value is a wait, most of what is
//! measured is the executor; with this one the channels can be compared. It has no clock and no input or output.
//!
//! Words: a *worker* is a thread of the crew; who calls [`Crew::run`] is the first one. A *turn* is a task that was woken and
//! is to be polled.
//!
//! The rules, which are Go's:
//! 1. A task that is woken takes the *slot* of the worker on which it is woken, and has its turn as soon as the waker waits.
//!    What was in the slot goes to the end of the worker's queue.
//! 2. A worker with an empty slot takes the first of its queue. After [`SLOT_TURNS_MAX`] turns from the slot it looks into
//!    the queue first, so that two tasks cannot keep others out.
//! 3. A worker that has nothing searches the queues of all for a while, and then sleeps. It is called when something is
//!    queued and nobody searches. So two tasks that wake each other in turns stay on one thread.
//!
//! One is ours. Work that is moved takes its cache lines with it, and the channel's:
//! 4. A searching worker takes what would wait for longer than that costs: where the other one is in the same turn as some
//!    microseconds ago, or has a backlog. After a search in vain it is called less often, up to every [`SKIPS_MAX`] times.
//!
//! Each worker serves its own queue, so a call that is missed costs parallel work at the most. The ends of sleep that must not be
//! missed, of what comes from outside and of the run, are told under the lock.

use crate::wakes::Task;
use async_task::Runnable;
use crossbeam_deque::{Injector, Stealer, Worker};
use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, spawn};

/// A task's future lies in it with who schedules it, so that a wake needs no count of references.
type Turn = Runnable<Arc<Shared>>;

/// So many turns from the slot in a row.
const SLOT_TURNS_MAX: u32 = 64;
/// So many times a worker looks for something to do before it sleeps: for as long as it takes to wake it.
const SEARCHES_MAX: u32 = 16;
/// Pauses of the processor between two of them, some microseconds.
const PAUSES: u32 = 128;
/// So many short turns wait for as long.
const BACKLOG: usize = 32;
/// So many times at the most something is queued and nobody is called.
const SKIPS_MAX: usize = 1024;

/// The executor with its threads, which end with it.
pub(crate) struct Crew {
    shared: Arc<Shared>,
    /// The first worker's, between two runs.
    queue: Cell<Option<Worker<Turn>>>,
    threads: Vec<JoinHandle<()>>,
}

/// The state that the workers share.
struct Shared {
    outside: Injector<Turn>,
    workers: Vec<Colleague>,
    /// Tasks that have not ended, and one for each crew that has not.
    left: AtomicUsize,
    searching: AtomicUsize,
    /// As in the naps, to be looked at without the lock.
    sleeping: AtomicUsize,
    /// So many times nobody is called, after searches in vain.
    skips: AtomicUsize,
    naps: Mutex<Naps>,
    called: Condvar,
}

/// The part of a worker that others see.
#[repr(align(128))]
struct Colleague {
    queue: Stealer<Turn>,
    /// Counted by the worker alone.
    turns: AtomicUsize,
}

/// The workers that sleep.
#[derive(Default)]
struct Naps {
    /// Workers that nobody has called.
    sleeping: usize,
    /// Workers that were called and do not know it yet; they count as searching.
    called: usize,
}

/// The state of a worker's thread.
struct Local {
    /// None on any other thread.
    queue: RefCell<Option<Worker<Turn>>>,
    slot: Cell<Option<Turn>>,
    /// Times that nobody was called.
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

    /// A task or the crew has ended, and with it perhaps what somebody waits for.
    fn ended(&self) {
        if self.left.fetch_sub(1, AcqRel) <= 2 {
            drop(self.naps());
            self.called.notify_all();
        }
    }

    /// Works until no more than so many are left; gives the queue back.
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

    /// Something to do that is anybody's, unless it is over.
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

    /// Takes a task from outside, or one that a colleague will not run soon; `seen` are the colleagues' batch counts
    /// at the last look.
    fn steal(&self, seen: &mut [usize]) -> Option<Turn> {
        let outside = self.outside.steal().success();
        outside.or_else(|| self.workers.iter().zip(seen).find_map(|(worker, seen)| worker.help(seen)))
    }

    /// Lets a searching worker sleep until it is called.
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

    /// There is more to do: calls a worker, if one sleeps and nobody searches.
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

    /// Calls a worker that sleeps, if there is one.
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

/// A task was woken.
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
