//! The engine `pool`: a fixed number of threads take flows from one queue, first in, first out.
//!
//! Flux §3.2.1. One event loop runs the sources. A flow holds its thread until it is through, also while it waits; the
//! queue is bounded, and over its bound nothing begins.
//!
//! A queue and two switches of threads cost more than most flows do before they wait. So, other than in Flux:
//! 1. Whoever takes a new flow first *begins* it ([`Flow::begin`]), as far as it neither holds the thread nor is in
//!    anybody's way. Where nobody queues, that may be the loop.
//! 2. What is not through by then goes on on a thread of the pool.
//! 3. The loop begins flows of those routes only whose beginnings are brief, as it was measured on the threads
//!    ([`Pace`]): the pool is there for what takes long, be it waiting or work. The elements of a stream go to the threads
//!    always: there is no answer to be taken back, and several may be worked on at a time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;
use weir_host::{Begun, LocalFuture};
use weir_trace::EventKind;

use super::answer::{Answer, run};
use super::pace::Pace;
use super::{Drive, Engine, EngineRow, Setup, whole};
use crate::crowd::{Crowd, Member};
use crate::flow::{Beginning, Flow};
use crate::live::{Blocking, Live};
use crate::machine::Machine;
use crate::prepare::PreparedFlow;
use crate::step::Action;

/// The engine's row.
pub(super) const ROW: EngineRow = EngineRow {
    name: "pool",
    doc: "a pool of threads; flows queue, first in, first out",
    loops: |_| 1,
    blocking: Blocking::InPlace,
    drive: Drive::Flows(|setup| Ok(Arc::new(Pool::start(setup)?))),
};

/// What takes less is brief: about what the loop has to do to hand a flow to another thread and take its answer back.
const BRIEF_NS: u64 = 10_000;
/// The same on a thread of the pool, which was just switched to and finds nothing where it left it.
const BRIEF_ON_THREAD_NS: u64 = 2 * BRIEF_NS;

struct Pool {
    machine: Arc<dyn Machine>,
    queue: Arc<Queue>,
    queued: Arc<Crowd>,
    /// All flows, and all who await an answer.
    flows: Arc<Crowd>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Queue {
    jobs: Mutex<Jobs>,
    arrived: Condvar,
    /// How many flows wait, to be looked at without the lock.
    waiting: AtomicUsize,
    /// For each entry and route, how its flows begin.
    paces: Vec<Vec<Option<Pace>>>,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    closed: bool,
}

/// A flow in the queue.
struct Job {
    flow: Flow,
    begun: bool,
    answer: Arc<Answer>,
    queued: Member,
    member: Member,
}

/// The pace of a route's beginnings; `None` where its flows never begin on the loop.
fn pace_of(flow: &PreparedFlow, answers: bool) -> Option<Pace> {
    // What these wait for they wait for in a queue of their own, in which a flow without a thread would hold up others.
    let queues = flow.body.has(&|action| match action {
        Action::Acquire(_) | Action::Timed(_) => true,
        Action::Call(call) => call.turn.is_some(),
        _ => false,
    });
    (answers && !queues).then(Pace::new)
}

/// Has a flow begun, and notes whether that was brief.
fn noted<T>(pace: &Pace, brief_ns: u64, machine: &dyn Machine, begin: impl FnOnce() -> T) -> T {
    let began_ns = machine.now_ns();
    let made = begin();
    pace.note(machine.now_ns().saturating_sub(began_ns), brief_ns);
    made
}

impl Pool {
    fn start(setup: Setup<'_>) -> std::io::Result<Pool> {
        let paces = setup.live.entries.iter().map(|entry| {
            let flows = entry.flows.iter();
            flows.map(|(flow, _)| pace_of(flow, entry.answers)).collect()
        });
        let queue = Arc::new(Queue {
            jobs: Mutex::default(),
            arrived: Condvar::new(),
            waiting: AtomicUsize::new(0),
            paces: paces.collect(),
        });
        let mut threads = Vec::new();
        for index in 0..setup.threads {
            let (queue, machine, handle) = (Arc::clone(&queue), Arc::clone(setup.machine), setup.handle.clone());
            let name = format!("weir pool {index}");
            threads.push(setup.machine.thread(&name, Box::new(move || work(&queue, &*machine, &handle)))?);
        }
        let (machine, threads) = (Arc::clone(setup.machine), Mutex::new(threads));
        Ok(Pool { machine, queue, queued: Crowd::new(setup.flows_max), flows: Crowd::new(usize::MAX), threads })
    }
}

impl Engine for Pool {
    fn begin(&self, entry: usize, route: usize, beginning: &mut Beginning<'_>) -> Begun {
        if !self.queued.has_room() {
            return Begun::Full;
        }
        let pace = self.queue.paces[entry][route].as_ref().filter(|pace| pace.is_brief() && self.queue.is_empty());
        let flow = match pace.map(|pace| noted(pace, BRIEF_NS, &*self.machine, || beginning.run_briefly())) {
            Some(Ok(answer)) => return Begun::Done(answer),
            Some(Err(flow)) => flow,
            None => beginning.flow(),
        };
        let begun = pace.is_some();
        let answer = Arc::<Answer>::default();
        let (queued, member) = (self.queued.enter(), self.flows.enter());
        self.queue.add(Job { flow, begun, answer: Arc::clone(&answer), queued, member });
        answer.going(self.flows.enter())
    }

    fn room(&self) -> LocalFuture<()> {
        Box::pin(Arc::clone(&self.queued).room())
    }

    fn drained(&self) -> LocalFuture<()> {
        Box::pin(Arc::clone(&self.flows).empty())
    }

    fn sections(&self, live: &Live) -> Vec<EventKind> {
        whole(ROW.name, self.threads.lock().len(), &self.queued, live)
    }

    fn close(&self) {
        self.queue.jobs.lock().closed = true;
        self.queue.arrived.notify_all();
        for thread in self.threads.lock().drain(..) {
            // A thread of the pool catches every panic of a flow; there is nothing to hand on.
            let _ = thread.join();
        }
    }
}

/// What each thread of the pool does.
fn work(queue: &Queue, machine: &dyn Machine, handle: &Handle) {
    let _inside = handle.enter();
    while let Some(Job { mut flow, begun, answer, queued, member }) = queue.next() {
        drop(queued);
        let key = flow.key();
        let pace = queue.paces[key.entry as usize][key.route as usize].as_ref();
        let pace = pace.filter(|_| !begun && !answer.is_given_up());
        match pace.and_then(|pace| noted(pace, BRIEF_ON_THREAD_NS, machine, || flow.begin())) {
            Some(given) => answer.give(given),
            None => run(flow, &answer, handle),
        }
        drop(member);
    }
}

impl Queue {
    /// Whether nobody waits; only the loop adds.
    fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0
    }

    fn add(&self, job: Job) {
        let mut jobs = self.jobs.lock();
        jobs.waiting.push_back(job);
        self.waiting.store(jobs.waiting.len(), Ordering::Relaxed);
        drop(jobs);
        self.arrived.notify_one();
    }

    fn next(&self) -> Option<Job> {
        let mut jobs = self.jobs.lock();
        loop {
            if let Some(job) = jobs.waiting.pop_front() {
                self.waiting.store(jobs.waiting.len(), Ordering::Relaxed);
                return Some(job);
            }
            if jobs.closed {
                return None;
            }
            self.arrived.wait(&mut jobs);
        }
    }
}
