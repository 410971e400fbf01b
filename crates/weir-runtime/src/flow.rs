//! Flows: executions of an entry point's body, from the inputs to the answer.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};

use weir_host::{Failure, FlowTrace, Value, memory};
use weir_trace::{Detail, EventKind, FlowKey};

use crate::batching::KeptClaims;
use crate::flow_section::{FlowSection, NodeSection};
use crate::flow_sessions::FlowSessions;
use crate::fork_account::FlowForks;
use crate::frame::{Finished, Frame};
use crate::instance::{BlockingPlacement, ProgramInstance};
use crate::overload::FlowTurns;
use crate::platform::Platform;
use crate::units::{Advanced, QUANTA_ON_LOOP, SliceLength, Units};
#[cfg(doc)]
use crate::{instance::EntryInstance, resources::Resources};

mod advance;
mod end;

/// A flow that can be polled. Dropping it cancels it, and releases everything that it holds.
///
/// A flow that ends at once only borrows the program, and so increments no reference count.
pub(crate) struct ActiveFlow<L: Deref<Target = ProgramInstance> = Arc<ProgramInstance>> {
    instance: L,
    state: FlowState,
}

/// The means of a flow: the threads on which functions run that block their thread, and the units of its slice.
pub(crate) type Means<'a> = (BlockingPlacement, &'a Units);

/// The state of a flow without a reference to its program, to be moved between threads: otherwise the reference count
/// of the program would move between their caches with each flow. The owner of the state has access to the program by
/// other means. Dropping the state does not cancel the flow; [`FlowState::give_up`] does.
pub(crate) struct FlowState {
    key: FlowKey,
    /// Taken when the flow ends.
    frame: Option<Box<Frame>>,
    /// The time when a watched flow began; 0 if the flow is not watched.
    began_ns: u64,
    records_nodes: bool,
    /// The bytes that the flow holds, while it does not run ([`memory`]).
    balance: i64,
    /// The balance to which the flow may grow while it is in an atomic step; 0 otherwise.
    assured: i64,
    /// True if the flow is to be cancelled once it is in no atomic step.
    given_up: bool,
    turns: FlowTurns,
    /// True if the flow has yielded and waits for its turn; it then counts in [`EntryInstance::computing`].
    computes: bool,
    /// The account of its forks.
    forks: FlowForks,
    /// The section in which it runs.
    section: FlowSection,
    /// The sessions that it uses.
    sessions: FlowSessions,
    /// The batches that wait for the flow, while it does not run because its slice was over.
    claims: KeptClaims,
    /// Its relation to batches.
    batches: FlowBatches,
    /// The trace that its calls of other services pass on.
    trace: FlowTrace,
}

/// The relation of a flow to batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlowBatches {
    /// It has joined none.
    None,
    /// It has joined one.
    Joined,
    /// It has joined one and come to rest after that: it counts in [`Resources::in_batches`] until it ends.
    Counted,
}

/// The way in which a flow goes on that was advanced without blocking the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextPlace {
    /// It waits for peers only, and has registered the task that polled it: any thread may go on with it.
    WhenWoken,
    /// Another thread has to go on with it, which may block.
    OnThread,
}

/// A flow that is about to begin.
pub(crate) struct NewFlow<'a> {
    instance: &'a Arc<ProgramInstance>,
    entry: u32,
    route: u32,
    /// The inputs; they are moved out of this list.
    inputs: &'a mut Vec<Value>,
}

impl<'a> NewFlow<'a> {
    /// Returns a new flow of this route of this entry point.
    pub(crate) fn new(instance: &'a Arc<ProgramInstance>, entry: u32, route: u32, inputs: &'a mut Vec<Value>) -> Self {
        NewFlow { instance, entry, route, inputs }
    }

    /// Returns the sequence number that the flow will have in its source, unless another one begins before.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.instance.entries[self.entry as usize].flows[self.route as usize].1.begun.load(Ordering::Relaxed)
    }

    /// Returns the flow. To be called once.
    pub(crate) fn flow(&mut self) -> ActiveFlow {
        self.borrow().into_owned(self.instance)
    }

    /// Returns the length of slices.
    pub(crate) fn slice(&self) -> SliceLength {
        self.instance.slice
    }

    /// Runs the flow without blocking the thread ([`ActiveFlow::advance_without_blocking`]), and returns its answer;
    /// or, if it has not ended, the flow and where it goes on.
    pub(crate) fn run_without_blocking(&mut self) -> Result<Result<Value, Failure>, (ActiveFlow, NextPlace)> {
        let mut flow = self.borrow();
        let advanced = flow.advance_without_blocking(&mut Context::from_waker(Waker::noop()));
        advanced.map_err(|continuation| (flow.into_owned(self.instance), continuation))
    }

    /// Returns the flow, borrowing the program. To be called once.
    #[inline]
    pub(crate) fn borrow(&mut self) -> ActiveFlow<&'a ProgramInstance> {
        let instance: &'a ProgramInstance = self.instance;
        let key = instance.next_key(self.entry, self.route);
        let mut frame = Frame::take(&instance.flow(key).body, false);
        // Without `zip`, which is a call of its own unless the whole program is optimised at link time.
        let mut slots = frame.slots.iter_mut();
        for input in self.inputs.drain(..) {
            let Some(slot) = slots.next() else { break };
            slot.put(input);
        }
        instance.record(Detail::Flows, || EventKind::FlowBegan { flow: key });
        let records_nodes = instance.recorder.wants(Detail::Nodes);
        let began_ns = if instance.recorder.wants(Detail::Sections) { instance.platform.now_ns() } else { 0 };
        let balance = memory::take_opening_balance();
        let frame = Some(frame);
        let (assured, given_up, turns, computes) = (0, false, FlowTurns::default(), false);
        let (forks, section, sessions) = (FlowForks::default(), FlowSection::default(), FlowSessions::default());
        let (claims, batches, trace) = (None, FlowBatches::None, FlowTrace::inherited());
        let state = FlowState {
            key,
            frame,
            began_ns,
            records_nodes,
            balance,
            assured,
            given_up,
            turns,
            computes,
            forks,
            section,
            sessions,
            claims,
            batches,
            trace,
        };
        ActiveFlow { instance, state }
    }
}

impl ActiveFlow<&ProgramInstance> {
    /// Converts to a flow that owns a reference to the program.
    pub(crate) fn into_owned(self, instance: &Arc<ProgramInstance>) -> ActiveFlow {
        ActiveFlow { instance: Arc::clone(instance), state: self.into_state() }
    }

    /// Converts to the state of the flow, without the program.
    pub(crate) fn into_state(mut self) -> FlowState {
        let FlowState { key, began_ns, records_nodes, balance, assured, given_up, turns, computes, batches, .. } =
            self.state;
        let (frame, claims) = (self.state.frame.take(), std::mem::take(&mut self.state.claims));
        let (forks, trace) = (std::mem::take(&mut self.state.forks), std::mem::take(&mut self.state.trace));
        let (section, sessions) = (std::mem::take(&mut self.state.section), std::mem::take(&mut self.state.sessions));
        FlowState {
            key,
            frame,
            began_ns,
            records_nodes,
            balance,
            assured,
            given_up,
            turns,
            computes,
            forks,
            section,
            sessions,
            claims,
            batches,
            trace,
        }
    }
}

impl<L: Deref<Target = ProgramInstance>> ActiveFlow<L> {
    /// Advances the flow as far as possible with these units.
    ///
    /// # Panics
    /// Panics if the flow has ended already.
    pub(crate) fn advance(&mut self, units: &Units, context: &mut Context<'_>) -> Advanced<Result<Value, Failure>> {
        let (state, means) = (&mut self.state, (self.instance.blocking, units));
        match state.advance_frame(&self.instance, usize::MAX, means, context) {
            Advanced::Ready(finished) => Advanced::Ready(state.end(&self.instance, finished)),
            Advanced::Waits => Advanced::Waits,
            Advanced::Yields => Advanced::Yields,
        }
    }

    /// Advances the flow as far as possible with the units that an event loop has for it, without blocking the thread
    /// ([`BlockingPlacement::Later`]), and returns the answer if it has ended, or where it goes on. For flows whose body has
    /// no atomic step, ticket gate or time limit.
    ///
    /// # Panics
    /// Panics if the flow has ended already.
    pub(crate) fn advance_without_blocking(
        &mut self,
        context: &mut Context<'_>,
    ) -> Result<Result<Value, Failure>, NextPlace> {
        let units = Units::quanta(self.instance.slice, QUANTA_ON_LOOP);
        match self.state.advance_until(&self.instance, usize::MAX, (BlockingPlacement::Later, &units), context) {
            Advanced::Ready(Some(answer)) => Ok(answer),
            Advanced::Waits if self.state.frame.as_ref().is_some_and(|frame| frame.awaits_peers()) => {
                Err(NextPlace::WhenWoken)
            }
            Advanced::Ready(None) | Advanced::Waits | Advanced::Yields => Err(NextPlace::OnThread),
        }
    }

    /// Returns the length of slices.
    pub(crate) fn slice(&self) -> SliceLength {
        self.instance.slice
    }

    /// Requests that the flow is cancelled, and returns true if it may be dropped now. Otherwise it is in an atomic step:
    /// it goes on to the end of the step, and begins no other.
    pub(crate) fn request_give_up(&mut self) -> bool {
        self.state.request_give_up()
    }

    /// Returns true if the flow, which waits, holds no thread meanwhile ([`Frame::leaves_thread`]).
    pub(crate) fn leaves_thread(&self) -> bool {
        self.state.frame.as_ref().is_some_and(|frame| frame.leaves_thread())
    }

    /// Returns true if the flow waits for batched calls alone, of which none is answered; the task is woken when one is.
    pub(crate) fn awaits_batches(&self, context: &Context<'_>) -> bool {
        self.instance.gathers() && self.state.frame.as_ref().is_some_and(|frame| frame.awaits_batches(context))
    }

    /// Returns the key of the flow.
    pub(crate) fn key(&self) -> FlowKey {
        self.state.key
    }

    /// Returns the turns that the flow has used up.
    pub(crate) fn turns(&self) -> &FlowTurns {
        &self.state.turns
    }

    /// Returns the platform of the program.
    pub(crate) fn platform(&self) -> &dyn Platform {
        &*self.instance.platform
    }

    /// Returns the program, and the state of the flow.
    pub(crate) fn split(&mut self) -> (&ProgramInstance, &mut FlowState) {
        (&self.instance, &mut self.state)
    }
}

impl FlowState {
    /// Returns the first step that the flow has not passed.
    pub(crate) fn at(&self) -> usize {
        self.frame.as_ref().map_or(usize::MAX, |frame| frame.low)
    }

    /// Requests that the flow is cancelled, and returns true if it may be given up now. Otherwise it is in an atomic step:
    /// it goes on to the end of the step, and begins no other.
    pub(crate) fn request_give_up(&mut self) -> bool {
        self.given_up = true;
        !self.is_in_step()
    }

    /// Returns true if the flow is in an atomic step.
    pub(crate) fn is_in_step(&self) -> bool {
        self.frame.as_ref().is_some_and(|frame| frame.is_in_step())
    }

    /// Returns the turns that the flow has used up.
    pub(crate) fn turns(&self) -> &FlowTurns {
        &self.turns
    }

    /// Returns the turns that the flow has used up, to note that it waits for the next.
    pub(crate) fn turns_mut(&mut self) -> &mut FlowTurns {
        &mut self.turns
    }

    /// Returns the section in which the flow goes on: that of its segment, unless it is inside a body that a plan cuts.
    pub(crate) fn section(&self) -> NodeSection {
        self.section.here()
    }

    /// Notes that the flow has reached its next segment.
    pub(crate) fn enter_segment(&mut self) {
        self.section.leave_bodies();
    }

    /// Returns true if a reader of the trace was watching when the flow began.
    pub(crate) fn is_watched(&self) -> bool {
        self.began_ns > 0
    }

    /// Returns the key of the flow.
    pub(crate) fn key(&self) -> FlowKey {
        self.key
    }

    /// Returns the frame of the flow if it begins with this step next, and nothing else is under way.
    pub(crate) fn frame_before(&mut self, step: usize) -> Option<&mut Frame> {
        self.frame.as_deref_mut().filter(|frame| frame.begins_at(step))
    }

    /// Advances the flow as far as possible with these units, but not beyond the step `until`; returns `None` if it has
    /// reached that step. Functions that block their thread run where the first of `means` says.
    ///
    /// # Panics
    /// Panics if the flow has ended already.
    pub(crate) fn advance_until(
        &mut self,
        instance: &ProgramInstance,
        until: usize,
        means: Means<'_>,
        context: &mut Context<'_>,
    ) -> Advanced<Option<Result<Value, Failure>>> {
        self.advance_frame(instance, until, means, context).map(|finished| match finished {
            Finished::SegmentEnd => None,
            finished => Some(self.end(instance, finished)),
        })
    }

    /// Advances a detached flow like [`FlowState::advance_until`], and drops its answer: returning it would take longer
    /// than a small flow takes.
    ///
    /// # Panics
    /// Panics if the flow has ended already.
    pub(crate) fn advance_detached(
        &mut self,
        instance: &ProgramInstance,
        until: usize,
        means: Means<'_>,
        context: &mut Context<'_>,
    ) -> Advanced<Option<()>> {
        let finished = match self.advance_frame(instance, until, means, context) {
            Advanced::Ready(Finished::SegmentEnd) => return Advanced::Ready(None),
            Advanced::Ready(finished) => finished,
            Advanced::Waits => return Advanced::Waits,
            Advanced::Yields => return Advanced::Yields,
        };
        self.release(instance);
        match finished {
            Finished::Ended(ended) if ended.how.is_err() => drop(self.failure(instance, ended)),
            _ => self.answered(instance),
        }
        Advanced::Ready(Some(()))
    }
}

impl<L: Deref<Target = ProgramInstance>> Drop for ActiveFlow<L> {
    #[inline]
    fn drop(&mut self) {
        // Most flows have ended.
        if self.state.frame.is_some() {
            self.state.give_up(&self.instance);
        }
    }
}
