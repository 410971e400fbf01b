//! Calls that go on elsewhere: on a thread that may block, or without one, while their flow waits for them.
//!
//! They keep the locks that they need until they end, also if their flow is cancelled.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use weir_host::{
    AwaitedCall, BlockingJob, CallRest, Failure, FailureKind, FlowTrace, Outcome, Pending, SeenCommits, Settled, memory,
};

use super::AtomicScope;
use crate::instance::{CallThreads, Env};
use crate::lock::HeldLock;
use crate::operations::panicked;
use crate::region::LongCall;

impl LongCall {
    /// Begins the call, which keeps these locks until it ends, even if its flow is cancelled.
    pub(super) fn begin(self, held: Vec<HeldLock>, scopes: Vec<AtomicScope>, env: Env<'_>) -> Pending {
        self.begin_on(CallThreads::Long, held, scopes, env)
    }

    /// Begins the call on these threads.
    pub(super) fn begin_on(
        self,
        threads: CallThreads,
        held: Vec<HeldLock>,
        scopes: Vec<AtomicScope>,
        env: Env<'_>,
    ) -> Pending {
        let LongCall { mut call, code, path } = self;
        if matches!(threads, CallThreads::Long)
            && let Some(awaited) = call.begin(&*code)
        {
            return Self::rest(awaited, held, scopes, path, env);
        }
        let job: BlockingJob = Box::new(move || call.run(&*code));
        elsewhere((job, threads), held, scopes, path, env)
    }

    /// Returns the rest of a call that has begun. It keeps the locks that it needs until it ends, even if its flow is cancelled.
    pub(super) fn rest(
        awaited: AwaitedCall,
        mut held: Vec<HeldLock>,
        scopes: Vec<AtomicScope>,
        path: Arc<str>,
        env: Env<'_>,
    ) -> Pending {
        if !awaited.keeps_locks && scopes.is_empty() {
            held.clear();
        }
        match awaited.rest {
            CallRest::Awaited(pending) => without_a_thread(pending, held, scopes, env),
            CallRest::Job(job) => elsewhere((job, CallThreads::Long), held, scopes, path, env),
        }
    }
}

/// Returns the rest of a call that needs no thread.
fn without_a_thread(pending: Pending, held: Vec<HeldLock>, scopes: Vec<AtomicScope>, env: Env<'_>) -> Pending {
    if held.is_empty() && scopes.is_empty() {
        return pending;
    }
    let loop_handle = env.instance.first_loop.get_or_init(Handle::current).clone();
    Box::pin(UncancelledCall { rest: Some((pending, held, scopes)), loop_handle })
}

/// A call that goes on if it is dropped.
struct UncancelledCall {
    /// The rest of the call, and its locks; `None` when it has ended.
    rest: Option<(Pending, Vec<HeldLock>, Vec<AtomicScope>)>,
    loop_handle: Handle,
}

impl Future for UncancelledCall {
    type Output = Settled;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Settled> {
        let Some((pending, ..)) = &mut self.rest else { unreachable!("a call is not polled after its end") };
        let polled = pending.as_mut().poll(context);
        if polled.is_ready() {
            self.rest = None;
        }
        polled
    }
}

impl Drop for UncancelledCall {
    fn drop(&mut self) {
        if let Some((pending, held, scopes)) = self.rest.take() {
            drop(self.loop_handle.spawn(async move {
                drop(pending.await);
                drop((held, scopes));
            }));
        }
    }
}

/// Runs a job on these threads. The job keeps the locks until it ends, even if its flow is cancelled.
pub(super) fn elsewhere(
    (job, threads): (BlockingJob, CallThreads),
    held: Vec<HeldLock>,
    scopes: Vec<AtomicScope>,
    path: Arc<str>,
    env: Env<'_>,
) -> Pending {
    let (balance, assured, mut trace) = (memory::balance(), memory::assured(), FlowTrace::inherited());
    let mut seen = SeenCommits::default();
    let running = env.instance.run_call(env.key, threads, move || {
        let (entered, traced, seeing) = (memory::enter(balance), trace.enter(), seen.enter());
        entered.assure(assured);
        let done = catch_unwind(AssertUnwindSafe(job));
        let (growth, seen) = (entered.leave() - balance, SeenCommits::current());
        drop((traced, seeing, held, scopes));
        (done, growth, seen)
    });
    Box::pin(async move {
        let fault = |failure| Settled { outcome: Outcome::Fault(failure), restored: Vec::new() };
        match running.await {
            Ok((done, growth, seen)) => {
                memory::charge(growth);
                SeenCommits::add(seen);
                done.unwrap_or_else(|panic| fault(panicked(&path, &*panic)))
            }
            Err(_) => fault(Box::new(Failure::new(FailureKind::Cancelled, "the program stops"))),
        }
    })
}
