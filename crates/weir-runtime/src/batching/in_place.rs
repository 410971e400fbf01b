//! Batches that a flow sends itself, in place, because nothing is gained by a sender.
//!
//! A sender is a task. To start it, to give all other tasks a turn, and to wake the flow takes several microseconds, which is longer
//! than a small query of a database in the process. So a flow that has come to rest sends the batches that it has begun itself,
//! and goes on with their answers, if all this holds:
//!
//! 1. The functions of all batches that it has begun since it ran are *prompt*: the last batches of each were answered when they
//!    were first polled, and soon ([`Promptness`](super::latency::Promptness)). Requests to a slower store would be sent later otherwise.
//! 2. No other flow that has come to rest has calls in batches ([`FlowsInBatches`]): such flows often go on at the same time,
//!    because one batch has answered them all, and their next calls should share a batch again.
//! 3. Of each batch, all flows that have joined it are at rest. One that waits for further calls, because these come before the flow
//!    could go on anyway, is considered again when the flow comes to rest for the next time.
//!
//! Otherwise, and if a batch is not answered at the first poll after all, senders take the batches over.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};

use tokio::runtime::Handle;

use super::Gatherer;
use super::batch::GatheredBatch;
use super::sender::{BatchSender, RestOfSender};
use crate::platform::Platform;

/// The time for which a flow may go on with answers of batches that it has sent itself before others have a turn: that of a slice.
const IN_PLACE_NS_MAX: u64 = 500_000;

/// The same as a number of rounds, for clocks that stand still. Chosen by judgement: more than most flows have.
const ROUNDS_IN_PLACE: u32 = 32;

/// The batches that a flow has sent in place since others had a turn.
#[derive(Default)]
pub(crate) struct BatchesInPlace {
    /// The time of the first round.
    since_ns: u64,
    rounds: u32,
    /// True if the flow has come to rest without a forecast of how long its batches may wait.
    is_forecast_deferred: bool,
}

thread_local! {
    /// The senders of the batches of prompt functions that the flow of this thread has begun and not passed on.
    static BEGUN: RefCell<Vec<BatchSender>> = const { RefCell::new(Vec::new()) };
    /// True if the flow of this thread has begun batches of other functions, whose senders wait for their turn.
    static HAS_STARTED: Cell<bool> = const { Cell::new(false) };
}

/// The number of flows of a program that are at rest and have calls in batches, or have had some.
#[derive(Default)]
pub(crate) struct FlowsInBatches(AtomicUsize);

impl FlowsInBatches {
    /// Adds a flow.
    pub(crate) fn enter(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a flow.
    pub(crate) fn leave(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns true if there is none but so many.
    pub(crate) fn has_only(&self, own: usize) -> bool {
        self.0.load(Ordering::Relaxed) == own
    }
}

impl BatchesInPlace {
    /// Sends the batches that the flow of this thread has begun and that may leave, if the functions of all it has begun are prompt:
    /// those of functions that do not `wait`. Returns true if there is one: then the flow goes on. `context` is that of the flow,
    /// which need not be woken for them.
    pub(crate) fn send(
        &mut self,
        platform: &dyn Platform,
        context: &Context<'_>,
        waits: impl Fn(&Arc<Gatherer>) -> bool,
    ) -> bool {
        if !has_only_prompt_batches() {
            return false;
        }
        let (mut now_ns, Ok(handle)) = (platform.now_ns(), Handle::try_current()) else { return false };
        if !self.has_time(now_ns) {
            return false;
        }
        let mut begun = BEGUN.take();
        let (mut place, mut goes_on) = (0, false);
        while let Some(sender) = begun.get(place) {
            let sent = if waits(sender.gatherer()) { None } else { sender.send_if_at_rest(now_ns, context.waker()) };
            let Some(sent) = sent else {
                place += 1;
                continue;
            };
            goes_on = true;
            now_ns = match begun.remove(place).run_in_place(sent) {
                Ok(ended_ns) => ended_ns,
                Err(left) => {
                    go_on(left, &handle);
                    platform.now_ns()
                }
            };
        }
        BEGUN.with_borrow_mut(|others| begun.append(others));
        BEGUN.set(begun);
        goes_on
    }

    /// Notes whether the flow has come to rest without a forecast.
    pub(crate) fn defer_forecast(&mut self, defers: bool) {
        self.is_forecast_deferred = defers;
    }

    /// Returns true if the flow has come to rest without a forecast.
    pub(crate) fn is_forecast_deferred(&self) -> bool {
        self.is_forecast_deferred
    }

    /// Returns true if the flow has come to rest without a forecast, which is made now.
    pub(crate) fn take_deferred_forecast(&mut self) -> bool {
        std::mem::take(&mut self.is_forecast_deferred)
    }

    /// Notes a round, and returns true if there is time for it.
    fn has_time(&mut self, now_ns: u64) -> bool {
        if self.rounds == 0 {
            self.since_ns = now_ns;
        }
        self.rounds += 1;
        self.rounds <= ROUNDS_IN_PLACE && now_ns.saturating_sub(self.since_ns) <= IN_PLACE_NS_MAX
    }
}

/// Returns true if the flow of this thread has begun batches, all of them of prompt functions.
pub(crate) fn has_only_prompt_batches() -> bool {
    !HAS_STARTED.get() && has_begun_any()
}

/// Returns true if the flow of this thread has the sender of a batch.
pub(super) fn has_begun_any() -> bool {
    BEGUN.with_borrow(|begun| !begun.is_empty())
}

/// Returns true if the flow of this thread has the sender of this batch.
pub(super) fn has_begun(batch: &Arc<GatheredBatch>) -> bool {
    BEGUN.with_borrow(|begun| begun.iter().any(|sender| sender.sends(batch)))
}

/// Shows the batches of which the flow of this thread has the senders.
pub(super) fn each_begun(see: impl FnMut(&Arc<GatheredBatch>)) {
    BEGUN.with_borrow(|begun| begun.iter().filter_map(BatchSender::batch).for_each(see));
}

/// Notes a batch of a prompt function that the flow of this thread has begun.
pub(super) fn begin(sender: BatchSender) {
    BEGUN.with_borrow_mut(|begun| begun.push(sender));
}

/// Starts the sender of a batch of another function that the flow of this thread has begun.
pub(super) fn start_at_once(sender: BatchSender) {
    HAS_STARTED.set(true);
    start(sender);
}

/// Passes the batches that the flow of this thread has begun to senders.
pub(crate) fn pass_to_senders() {
    HAS_STARTED.set(false);
    BEGUN.with_borrow_mut(|begun| begun.drain(..).for_each(start));
}

fn start(sender: BatchSender) {
    match Handle::try_current() {
        Ok(handle) => drop(handle.spawn(sender.run())),
        // At the end of the program there is no event loop any more.
        Err(_) => drop(sender),
    }
}

/// Polls the rest of the work of a sender. Unless that is done, a task goes on with it.
fn go_on(mut left: RestOfSender, handle: &Handle) {
    if left.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        drop(handle.spawn(left));
    }
}
