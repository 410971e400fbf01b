//! The engine `pool`: a fixed number of threads take flows from one queue, first in, first out.
//!
//! Flux §3.2.1. One event loop runs the sources. A flow holds its thread until it is through, also while it waits; the
//! queue is bounded, and over its bound nothing begins.
//!
//! Protocol of one flow:
//! 1. the loop puts a [`Job`] into the queue, and awaits its [`Answer`];
//! 2. a thread takes it out and runs it to its end;
//! 3. it gives the answer, which wakes the loop;
//! 4. where the loop drops the answer first, the flow is given up: before it begins, or at its next wait.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;
use weir_host::{Begun, Failure, LocalFuture, Value};

use super::{Engine, EngineRow, Setup};
use crate::crowd::{Crowd, Member};
use crate::flow::Flow;
use crate::live::Blocking;

/// The engine's row.
pub(super) const ROW: EngineRow = EngineRow {
    name: "pool",
    doc: "a pool of threads; flows queue, first in, first out",
    loops: |_| 1,
    blocking: Blocking::InPlace,
    start: |setup| Ok(Arc::new(Pool::start(setup)?)),
};

struct Pool {
    queue: Arc<Queue>,
    queued: Arc<Crowd>,
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

/// Where a flow's answer is put and awaited.
#[derive(Default)]
struct Answer(Mutex<Answering>);

#[derive(Default)]
struct Answering {
    answer: Option<Result<Value, Failure>>,
    /// Nobody waits any more.
    given_up: bool,
    /// Who waits for the answer.
    asker: Option<Waker>,
    /// The thread that runs the flow, while the flow waits.
    runner: Option<Waker>,
}

/// The loop's end of an answer.
struct Awaited(Arc<Answer>);

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
    fn begin(&self, make: &mut dyn FnMut() -> Flow) -> Begun {
        if !self.queued.has_room() {
            return Begun::Full;
        }
        let answer = Arc::<Answer>::default();
        let (queued, member) = (self.queued.enter(), self.flows.enter());
        let job = Job { flow: make(), answer: Arc::clone(&answer), queued, member };
        self.queue.jobs.lock().waiting.push_back(job);
        self.queue.arrived.notify_one();
        let mut awaited = Awaited(answer);
        Begun::Going(Box::pin(poll_fn(move |context| awaited.poll(context))))
    }

    fn room(&self) -> LocalFuture<()> {
        Box::pin(Arc::clone(&self.queued).room())
    }

    fn drained(&self) -> LocalFuture<()> {
        Box::pin(Arc::clone(&self.flows).empty())
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
    while let Some(job) = queue.next() {
        let Job { mut flow, answer, queued, member } = job;
        drop(queued);
        if let Some(given) = run(&mut flow, &answer, handle) {
            answer.give(given);
        }
        drop(flow);
        drop(member);
    }
}

/// Runs a flow to its end; `None` where it was given up.
fn run(flow: &mut Flow, answer: &Answer, handle: &Handle) -> Option<Result<Value, Failure>> {
    if answer.0.lock().given_up {
        return None;
    }
    if let Poll::Ready(given) = flow.advance(&mut Context::from_waker(Waker::noop())) {
        return Some(given);
    }
    handle.block_on(poll_fn(|context| {
        if answer.is_given_up(context) {
            return Poll::Ready(None);
        }
        flow.advance(context).map(Some)
    }))
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

impl Answer {
    fn give(&self, answer: Result<Value, Failure>) {
        let mut state = self.0.lock();
        state.answer = Some(answer);
        let asker = state.asker.take();
        drop(state);
        asker.into_iter().for_each(Waker::wake);
    }

    fn is_given_up(&self, context: &Context<'_>) -> bool {
        let mut state = self.0.lock();
        state.runner = Some(context.waker().clone());
        state.given_up
    }
}

impl Awaited {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Value, Failure>> {
        let mut state = self.0.0.lock();
        if let Some(answer) = state.answer.take() {
            return Poll::Ready(answer);
        }
        state.asker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.given_up = true;
        let runner = state.runner.take();
        drop(state);
        runner.into_iter().for_each(Waker::wake);
    }
}
