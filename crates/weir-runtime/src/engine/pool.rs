//! The engine `pool`: a fixed number of threads take flows from one queue, first in, first out.
//!
//! Flux §3.2.1. One event loop runs the sources. A flow holds its thread until it is through, also while it waits; the
//! queue is bounded, and over its bound nothing begins.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;
use weir_host::{Begun, LocalFuture};
use weir_trace::What;

use super::answer::{Answer, run};
use super::{Drive, Engine, EngineRow, Setup, whole};
use crate::crowd::{Crowd, Member};
use crate::flow::Flow;
use crate::live::{Blocking, Live};

/// The engine's row.
pub(super) const ROW: EngineRow = EngineRow {
    name: "pool",
    doc: "a pool of threads; flows queue, first in, first out",
    loops: |_| 1,
    blocking: Blocking::InPlace,
    drive: Drive::Flows(|setup| Ok(Arc::new(Pool::start(setup)?))),
};

struct Pool {
    queue: Arc<Queue>,
    queued: Arc<Crowd>,
    /// All flows, and all who await an answer.
    flows: Arc<Crowd>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    jobs: Mutex<Jobs>,
    arrived: Condvar,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    closed: bool,
}

/// A flow in the queue.
struct Job {
    flow: Flow,
    answer: Arc<Answer>,
    queued: Member,
    member: Member,
}

impl Pool {
    fn start(setup: Setup<'_>) -> std::io::Result<Pool> {
        let queue = Arc::<Queue>::default();
        let mut threads = Vec::new();
        for index in 0..setup.threads {
            let (queue, handle) = (Arc::clone(&queue), setup.handle.clone());
            let name = format!("weir pool {index}");
            threads.push(setup.machine.thread(&name, Box::new(move || work(&queue, &handle)))?);
        }
        let threads = Mutex::new(threads);
        Ok(Pool { queue, queued: Crowd::new(setup.flows_max), flows: Crowd::new(usize::MAX), threads })
    }
}

impl Engine for Pool {
    fn begin(&self, _entry: usize, _route: usize, make: &mut dyn FnMut() -> Flow) -> Begun {
        if !self.queued.has_room() {
            return Begun::Full;
        }
        let answer = Arc::<Answer>::default();
        let (queued, member) = (self.queued.enter(), self.flows.enter());
        let job = Job { flow: make(), answer: Arc::clone(&answer), queued, member };
        self.queue.jobs.lock().waiting.push_back(job);
        self.queue.arrived.notify_one();
        answer.going(self.flows.enter())
    }

    fn room(&self) -> LocalFuture<()> {
        Box::pin(Arc::clone(&self.queued).room())
    }

    fn drained(&self) -> LocalFuture<()> {
        Box::pin(Arc::clone(&self.flows).empty())
    }

    fn sections(&self, live: &Live) -> Vec<What> {
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
fn work(queue: &Queue, handle: &Handle) {
    let _inside = handle.enter();
    while let Some(Job { flow, answer, queued, member }) = queue.next() {
        drop(queued);
        run(flow, &answer, handle);
        drop(member);
    }
}

impl Queue {
    fn next(&self) -> Option<Job> {
        let mut jobs = self.jobs.lock();
        loop {
            if let Some(job) = jobs.waiting.pop_front() {
                return Some(job);
            }
            if jobs.closed {
                return None;
            }
            self.arrived.wait(&mut jobs);
        }
    }
}
