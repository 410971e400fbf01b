//! Frames: activation records, each of one execution of a body.
//!
//! A frame runs its steps in the order of the list. If no step waits, that is a straight scan. A step that has to wait
//! is *pending*, and the scan continues with the steps that do not depend on it; those that do are passed over, and
//! reconsidered when a pending step has advanced. Calls that may overlap therefore do so, and everything else happens
//! in order.
//!
//! If the slice of the flow is over (`units.rs`), the frame *yields* as a whole. A step that is interrupted in the middle
//! is its *suspension* if it has no wait number. No step begins while there is one, because slots are assigned as if such a
//! step were finished when it is passed. On resumption the steps that wait are polled first, then the suspended step
//! goes on, and the scan continues as if it had run in one piece. A suspended step may also wait: for a call that takes
//! too long for the flow's thread, and runs on another one ([`LongCall`](crate::region::LongCall)). Then the frame waits. A
//! step with a wait number is stored as a wait that is due, and later steps that do not depend on it may begin.
//!
//! An end of the flow ([`FlowExit`]) stops the scan at its position in the list: steps listed before it still run, and
//! if one of them ends the flow, that end wins; steps listed later do not begin, and those of them that wait are
//! cancelled.
//!
//! Frames are pooled: see `object_pool.rs`.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Context;
use std::thread::LocalKey;

use smallvec::SmallVec;
use weir_host::{Argument, SeenCommits, Value};
use weir_trace::{Detail, EventKind};

use crate::forks::region_run::RegionForks;
use crate::instance::Env;
use crate::object_pool::{self, Depot, LocalPool, Pooled};
use crate::step::{Action, Body, NONE, PreparedStep};
use crate::units::Advanced;
use action::{Stage, StepExit};
use exit::EndingFlow;
pub(crate) use exit::{Finished, FlowExit};
use repeat::Strips;
use step_locks::AtomicScope;
use thread_release::leaves_for_one;
use timed::Timed;

mod action;
mod atomic;
mod attempts;
mod call;
mod columns;
mod exit;
mod gathered;
mod gathered_iterations;
mod group_parts;
mod group_steps;
mod group_waves;
mod grouped_run;
mod iteration_group;
mod long_call;
mod overlapped_run;
mod overlapping;
mod region;
mod repeat;
mod scan;
mod sent_reads;
mod sequential_run;
mod settling;
mod slack;
mod step_locks;
mod stopped;
mod straight;
mod strips;
mod thread_release;
mod timed;
mod waits;

/// The largest number of boxes that a frame keeps for stages. Chosen by judgement: as many as calls of a small page are out.
const SPARE_STAGES_MAX: usize = 4;

/// One execution of a body.
#[derive(Default)]
pub(crate) struct Frame {
    /// The live values.
    pub slots: Vec<Value>,
    /// The words of the region that runs.
    words: Vec<u64>,
    /// The rounds of the region that runs which other threads run.
    forks: RegionForks,
    /// The instruction of the region that runs, whose place is reported if a host function panics.
    region_at: Option<usize>,
    /// The arm that each switch has chosen, or [`NONE`].
    pub choices: Vec<u32>,
    /// The atomic steps that have begun.
    pub scopes: Vec<OpenStep>,
    /// The locks of atomic steps that the frames around this one hold.
    pub inherited: Vec<AtomicScope>,
    /// For each iteration order, the number of steps that have not run yet; empty unless iterations overlap.
    pub order_steps_left: Vec<u32>,
    /// The commits of tables for which the answer of the flow waits, while it does not run.
    pub commits: SeenCommits,
    /// True if the body is within another one.
    pub nested: bool,
    /// The step before which the frame stops, because another section continues from there.
    pub until: usize,
    /// The running step, whose name is reported if it panics.
    cursor: usize,
    /// All steps before this one have run or were skipped.
    pub low: usize,
    /// One bit for each step, set if the step has begun or was skipped; used only once a step had to wait.
    seen: Vec<u64>,
    /// The steps that wait or yield. The suspended step is the last, because no step begins after it.
    waits: Vec<Wait>,
    /// Boxes for stages, so that a call that waits needs no allocation.
    spare_stages: SmallVec<[Box<Stage>; SPARE_STAGES_MAX]>,
    /// The lists of which further strips are left.
    strips: Vec<Strips>,
    /// The step without a wait number that was interrupted.
    suspended: Option<usize>,
    /// True if the frame stops because its slice is over.
    yielded: bool,
    /// True if the frame had stopped before it was last advanced.
    has_stopped_before: bool,
    end: Option<FlowExit>,
    /// The end of the flow, while it waits for calls that it has placed, and until what it has seen is durable.
    ending: Option<Box<EndingFlow>>,
    /// The transaction that has ended the flow by a failure. It keeps its locks until the calls are answered that it has placed.
    failed_transaction: Option<Box<Timed>>,
}

/// An atomic step that has begun.
pub(crate) struct OpenStep {
    /// The node that began it.
    pub node: u32,
    /// Its locks.
    pub locks: AtomicScope,
    /// True if the flow may be cancelled within it.
    pub cancellable: bool,
}

/// A step that waits or yields.
struct Wait {
    node: usize,
    /// `None` only while it is polled.
    stage: Option<Box<Stage>>,
    since_ns: u64,
    /// The iteration orders that the step has left already.
    left_orders: u64,
    /// True if the scan that began the step has polled it last, so that it need not be polled again behind the scan.
    is_polled: bool,
}

/// The position of one iteration of an overlapped `map` among the others.
#[derive(Clone, Copy)]
pub(crate) struct IterationTurn<'a> {
    /// For each iteration order, the iteration whose turn it is.
    pub turns: &'a [u64],
    /// This iteration.
    pub iteration: u64,
}

thread_local! {
    static POOL: LocalPool<Frame> = const { RefCell::new(Vec::new()) };
}
static DEPOT: Depot<Frame> = Depot::new();

impl Pooled for Frame {
    #[inline]
    fn of_thread() -> &'static LocalKey<LocalPool<Frame>> {
        &POOL
    }

    fn depot() -> &'static Depot<Frame> {
        &DEPOT
    }
}

impl Frame {
    /// Takes a frame out of the pool, ready for `body`.
    #[inline]
    pub(crate) fn take(body: &Body, nested: bool) -> Box<Frame> {
        let mut frame = object_pool::take::<Frame>();
        frame.nested = nested;
        frame.commits = SeenCommits { last: body.commits_at_begin, ..SeenCommits::default() };
        frame.until = usize::MAX;
        // Mostly they have their lengths already.
        if frame.slots.len() != body.slots as usize {
            frame.slots.resize(body.slots as usize, Value::Absent);
        }
        if frame.choices.len() != body.switches as usize {
            frame.choices.resize(body.switches as usize, NONE);
        }
        frame
    }

    /// Returns the frame to the pool, which releases everything that it held.
    #[inline]
    pub(crate) fn give_back(mut frame: Box<Frame>) {
        // The next frame is most often one of the same body, for which the lists have their lengths already.
        frame.slots.iter_mut().for_each(Value::empty);
        frame.forget_choices();
        frame.order_steps_left.clear();
        frame.stop();
        frame.inherited.clear();
        object_pool::give_back(frame);
    }

    /// Resets the frame for another run of its body; captured values stay.
    pub(crate) fn rewind(&mut self) {
        self.forget_choices();
        self.stop();
    }

    /// Resets the chosen arms. The test avoids filling an empty list that was never allocated, which on some processors
    /// takes longer than a short flow (a masked store to an unmapped address).
    fn forget_choices(&mut self) {
        if !self.choices.is_empty() {
            self.choices.fill(NONE);
        }
    }

    #[inline]
    fn stop(&mut self) {
        self.give_up_work();
        self.seen.clear();
        (self.end, self.ending) = (None, None);
        self.low = 0;
    }

    /// Gives up what is under way, and the locks.
    #[inline]
    fn give_up_work(&mut self) {
        self.forks.give_up();
        self.waits.clear();
        self.strips.clear();
        (self.suspended, self.yielded) = (None, false);
        self.scopes.clear();
        self.failed_transaction = None;
    }

    /// Runs a flow as far as possible, until its slice is over, or waits for its end.
    #[inline]
    pub(crate) fn advance_flow(&mut self, body: &Body, env: Env<'_>, context: &mut Context<'_>) -> Advanced<Finished> {
        match &mut self.ending {
            None => self.advance(body, env, None, context),
            Some(ending) => ending.poll(context),
        }
    }

    /// Runs as far as possible, until the slice is over.
    pub(crate) fn advance(
        &mut self,
        body: &Body,
        env: Env<'_>,
        place: Option<IterationTurn<'_>>,
        context: &mut Context<'_>,
    ) -> Advanced<Finished> {
        if self.suspended.is_some() {
            self.until = self.until.max(self.end_of_suspended_region(body));
        }
        let had_yielded = self.yielded;
        self.has_stopped_before = had_yielded || !self.waits.is_empty();
        if had_yielded && !self.resume(body, env, context) && self.suspended.is_some() {
            return if self.yielded { Advanced::Yields } else { Advanced::Waits };
        }
        // Whatever does not depend on the steps that wait has begun before, unless it waits for the turn of its iteration.
        let mut scans = had_yielded || self.waits.is_empty() || place.is_some();
        loop {
            // After an end of the flow nothing may be left to do.
            if scans && self.suspended.is_none() && (self.end.is_none() || !self.is_through(body)) {
                self.scan_caught(body, env, place, context);
            }
            if self.is_through(body) {
                return Advanced::Ready(self.finish(body, env));
            }
            if self.yielded {
                return Advanced::Yields;
            }
            if !self.poll_waits(body, env, context) {
                return if self.yielded { Advanced::Yields } else { Advanced::Waits };
            }
            scans = true;
        }
    }

    /// Scans, and converts a panic to an end of the flow.
    #[inline]
    fn scan_caught(&mut self, body: &Body, env: Env<'_>, place: Option<IterationTurn<'_>>, context: &mut Context<'_>) {
        assert!(self.suspended.is_none(), "no step begins while one is suspended");
        let scanned = catch_unwind(AssertUnwindSafe(|| self.scan(body, env, place, context)));
        if let Err(panic) = scanned {
            let first = self.cursor;
            let exit = self.exit_of_panic(first, body, &*panic);
            if self.seen.is_empty() {
                self.low = self.cursor;
            }
            self.see_region(first, body, env);
            self.record_end(self.cursor, exit);
            // The scan has not come to its end, where it passes the steps before this one.
            if !self.seen.is_empty() {
                self.pass_seen(body);
            }
        }
    }

    /// Returns true if nothing is left to do before the end of the body, of the segment, or of the flow.
    #[inline]
    fn is_through(&self, body: &Body) -> bool {
        self.waits.is_empty() && self.low >= self.limit(body)
    }

    fn limit(&self, body: &Body) -> usize {
        self.end.as_ref().map_or(body.steps.len().min(self.until), |end| end.node)
    }

    #[inline]
    fn finish(&mut self, body: &Body, env: Env<'_>) -> Finished {
        self.yielded = false;
        match self.end.take() {
            Some(end) => Finished::Ended(end),
            None if self.until < body.steps.len() => {
                // Every earlier step has run, so the next section may begin with a straight scan.
                self.seen.clear();
                self.skip(body, env);
                Finished::SegmentEnd
            }
            None => Finished::Value(body.result.map_or(Value::Absent, |result| self.value(body, result))),
        }
    }

    /// Skips to the next step in a chosen arm, so that the flow enters no section in which it does nothing.
    fn skip(&mut self, body: &Body, env: Env<'_>) {
        while let Some(step) = body.steps.get(self.low)
            && !self.is_chosen(step)
        {
            self.pass_ticket_gates(step, env);
            self.low = step.skip_to as usize;
        }
    }

    /// Returns the value of an argument, moved out if this is its last use.
    #[inline]
    pub(crate) fn value(&mut self, body: &Body, argument: Argument) -> Value {
        match argument {
            Argument::Slot { index, last: true } => self.slots[index as usize].take(),
            Argument::Slot { index, last: false } => self.slots[index as usize].clone(),
            Argument::Constant(index) => body.constants[index as usize].clone(),
            Argument::Shared(_) => Value::Absent,
        }
    }

    /// Returns true if the frame, or one inside it, is in an atomic step that began there and is no single call. It may not be
    /// given up then.
    pub(crate) fn is_in_step(&self) -> bool {
        let in_stage = |wait: &Wait| wait.stage.as_ref().is_some_and(|stage| stage.is_in_step());
        self.scopes.iter().any(|step| !step.cancellable) || self.waits.iter().any(in_stage)
    }

    /// Returns true if the flow holds no thread while the frame waits.
    pub(crate) fn leaves_thread(&self) -> bool {
        leaves_for_one(self.waits.iter().map(|wait| wait.stage.as_ref().is_some_and(|stage| stage.leaves_thread())))
    }

    /// Returns true if the frame waits for nothing but calls that hold no thread meanwhile, and that take no locks.
    pub(crate) fn awaits_peers(&self) -> bool {
        self.waits.iter().all(|wait| wait.stage.as_ref().is_some_and(|stage| stage.awaits_peer()))
    }

    /// Records that a step has run or was skipped.
    fn through(&mut self, step: &PreparedStep, env: Env<'_>) {
        self.pass_ticket_gates(step, env);
        self.signal(step.signals_orders);
    }

    /// Signals to the next iteration that a step of these iteration orders need not be waited for any more.
    fn signal(&mut self, orders: u64) {
        let mut orders = if self.order_steps_left.is_empty() { 0 } else { orders };
        while orders != 0 {
            self.order_steps_left[orders.trailing_zeros() as usize] -= 1;
            orders &= orders - 1;
        }
    }

    #[inline]
    fn pass_ticket_gates(&self, step: &PreparedStep, env: Env<'_>) {
        if !step.ticket_gates.is_empty() && !self.nested {
            step.ticket_gates.iter().for_each(|gate| env.instance.resources.ticket_gates[*gate].pass(env.key.sequence));
        }
    }

    /// Records an end of the flow, unless an earlier step has ended it; cancels the steps listed later.
    fn record_end(&mut self, node: usize, end: StepExit) {
        let StepExit { within, how } = end;
        if self.end.as_ref().is_none_or(|end| node < end.node) {
            self.end = Some(FlowExit { node, within, how });
            self.waits.retain(|wait| wait.node < node);
            if self.suspended.take_if(|suspended| *suspended >= node).is_some() {
                // A region that goes on before this node would take them for its own.
                self.forks.give_up();
            }
        }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        // Pending calls are dropped before the locks that they work under.
        self.waits.clear();
    }
}

/// Records that a node has run, if every node is recorded.
pub(crate) fn record_ran(body: &Body, env: Env<'_>, node: usize, since_ns: u64) {
    if env.records_nodes {
        let took_ns = env.instance.platform.now_ns().saturating_sub(since_ns);
        let name = || Arc::clone(&body.names[node]);
        env.instance.record(Detail::Nodes, || EventKind::NodeRan { flow: env.key, node: name(), took_ns });
    }
}

/// Returns the path of the function that a step calls, or the name of its node.
fn path_of(body: &Body, node: usize) -> &str {
    match body.steps.get(node).map(|step| step.action.uncut().form()) {
        Some(Action::Simple(call)) => &call.path,
        Some(Action::Call(call)) => &call.path,
        _ => body.names.get(node).map_or("", |name| name),
    }
}
