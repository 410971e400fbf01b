//! Offloading: a helper on an idle core runs a flow that waits for its turn on a busy event loop.
//!
//! 1. The event loop *offers* the flow ([`OffloadedFlow::offer`]), which keeps its place among the flows that wait for a turn.
//! 2. Whoever is first takes it: the loop, if the turn of the flow comes ([`OffloadedFlow::take_back`]), or a helper. The helper
//!    runs slice after slice until the flow ends or waits, until the threads of the program or other processes need the core
//!    ([`Helpers::must_leave`], [`Helpers::do_others_need_core`]), or until the loop *recalls* the flow because nobody awaits its
//!    answer any more.
//! 3. The helper returns the flow with the outcome, and wakes the task that awaits the answer. A flow that waits is polled again
//!    by that task, so that it waits on its own loop.
//!
//! All state that both sides access is behind one mutex; flows are dropped and wakers are called after its release.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Waker};

use parking_lot::Mutex;
use weir_host::{Failure, Value};

use crate::flow::ActiveFlow;
use crate::helpers::HelperBeats;
#[cfg(doc)]
use crate::helpers::Helpers;
use crate::units::{Advanced, Units};

/// The event loop's handle to a flow that it has offered.
pub(super) struct OffloadedFlow(Arc<Mutex<OffloadState>>);

struct OffloadState {
    place: FlowPlace,
    /// The task that awaits the answer.
    waiter: Waker,
    /// True if the helper is to return the flow after its slice.
    is_recalled: bool,
    /// True if the helper is to drop the flow, because there is no event loop any more.
    is_abandoned: bool,
}

/// The place of a flow that was offered.
enum FlowPlace {
    /// No helper has begun with it.
    Offered(ActiveFlow),
    /// A helper runs it.
    OnHelper,
    /// The helper has returned it.
    Returned(ActiveFlow, OffloadOutcome),
    /// The event loop has it again.
    OnLoop,
}

/// The outcome of the slices that a helper has run.
pub(super) type OffloadOutcome = Advanced<Result<Value, Failure>>;

/// The progress of a flow that was offered, as its event loop sees it.
pub(super) enum OffloadProgress {
    /// No helper has begun with the flow.
    Offered,
    /// A helper runs it.
    OnHelper,
    /// It is back.
    Returned(ActiveFlow, OffloadOutcome),
}

impl OffloadedFlow {
    /// Returns true if a core is idle for a flow that waits for its turn.
    pub(super) fn is_wanted(flow: &ActiveFlow) -> bool {
        flow.program().helpers.has_core_for_flow()
    }

    /// Offers a flow to the helpers; `waker` is that of the task that awaits the answer.
    pub(super) fn offer(flow: ActiveFlow, waker: &Waker) -> OffloadedFlow {
        let program = Arc::clone(flow.program());
        let (place, waiter) = (FlowPlace::Offered(flow), waker.clone());
        let state = Arc::new(Mutex::new(OffloadState { place, waiter, is_recalled: false, is_abandoned: false }));
        let event_loop = program.first_loop.get().expect("it is set before any flow begins");
        let offered = Arc::clone(&state);
        program.helpers.run(event_loop, move || run(&offered));
        OffloadedFlow(state)
    }

    /// Returns the progress of the flow, and registers the task to be woken when it is back.
    pub(super) fn poll(&self, context: &Context<'_>) -> OffloadProgress {
        let mut state = self.0.lock();
        match mem::replace(&mut state.place, FlowPlace::OnLoop) {
            FlowPlace::Returned(flow, outcome) => return OffloadProgress::Returned(flow, outcome),
            place => state.place = place,
        }
        state.waiter.clone_from(context.waker());
        if matches!(state.place, FlowPlace::Offered(_)) { OffloadProgress::Offered } else { OffloadProgress::OnHelper }
    }

    /// Takes the flow back, unless a helper runs it.
    pub(super) fn take_back(&self) -> Option<ActiveFlow> {
        let mut state = self.0.lock();
        match mem::replace(&mut state.place, FlowPlace::OnLoop) {
            FlowPlace::Offered(flow) | FlowPlace::Returned(flow, _) => Some(flow),
            place => {
                state.place = place;
                None
            }
        }
    }

    /// Has the helper return the flow after its slice.
    pub(super) fn recall(&self) {
        self.0.lock().is_recalled = true;
    }

    /// Has the helper drop the flow after its slice, because no event loop awaits it.
    pub(super) fn abandon(&self) {
        let mut state = self.0.lock();
        (state.is_recalled, state.is_abandoned) = (true, true);
        let place = mem::replace(&mut state.place, FlowPlace::OnHelper);
        drop(state);
        drop(place);
    }
}

/// Runs a flow that was offered, unless the event loop has taken it back.
fn run(offered: &Mutex<OffloadState>) {
    let mut state = offered.lock();
    let mut flow = match mem::replace(&mut state.place, FlowPlace::OnHelper) {
        FlowPlace::Offered(flow) => flow,
        place => {
            state.place = place;
            return;
        }
    };
    let waker = state.waiter.clone();
    drop(state);
    let (program, mut beats) = (Arc::clone(flow.program()), HelperBeats::default());
    let outcome = loop {
        let outcome = flow.advance(&Units::slice(flow.slice()), &mut Context::from_waker(&waker));
        if !matches!(outcome, Advanced::Yields) {
            program.helpers.note_end();
            break outcome;
        }
        let is_recalled = offered.lock().is_recalled;
        if is_recalled || program.helpers.must_leave(&mut beats) || program.helpers.do_others_need_core() {
            break outcome;
        }
    };
    let mut state = offered.lock();
    if state.is_abandoned {
        drop(state);
        drop(flow);
        return;
    }
    state.place = FlowPlace::Returned(flow, outcome);
    let waiter = state.waiter.clone();
    drop(state);
    waiter.wake();
}
