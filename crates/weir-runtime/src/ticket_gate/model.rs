//! The model check of a ticket gate: every interleaving of three flows that pass it, by loom.
//!
//! The file under test is compiled a second time here, over loom's primitives instead of the system's. Every mutant leaves out
//! one step of the protocol, and must be caught.

use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use loom::thread;

use gate::TicketGate;
use sync::{MUTANT, Mutex, TicketMutant};

#[path = "gate.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
mod gate;

/// Loom's primitives under the names of those in `super::sync`.
mod sync {
    use std::cell::Cell;

    pub(crate) use super::super::sync::TicketMutant;
    pub(crate) use crate::loom_support::ModelMutex as Mutex;

    thread_local! {
        /// The mutant under test. All threads of a model run on one thread of the system.
        pub(crate) static MUTANT: Cell<Option<TicketMutant>> = const { Cell::new(None) };
    }

    pub(crate) fn is(mutant: TicketMutant) -> bool {
        MUTANT.get() == Some(mutant)
    }
}

/// A gate, and the flows that have made their calls there.
struct TicketModel {
    gate: TicketGate,
    calls: Mutex<Vec<u64>>,
}

/// Wakes a thread of the model.
struct UnparkWaker(thread::Thread);

impl Wake for UnparkWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl TicketModel {
    fn new() -> Arc<TicketModel> {
        Arc::new(TicketModel { gate: TicketGate::default(), calls: Mutex::new(Vec::new()) })
    }

    /// Makes the call of a flow, which passes the gate at the end of the call and at its own.
    fn call(&self, sequence: u64) {
        let waker = Waker::from(Arc::new(UnparkWaker(thread::current())));
        while self.gate.poll(sequence, &mut Context::from_waker(&waker)).is_pending() {
            thread::park();
        }
        self.calls.lock().push(sequence);
        self.gate.pass(sequence);
        self.gate.pass(sequence);
    }
}

/// Checks a model of three flows. The number of preemptions is bounded, because more would take minutes.
fn interleaved(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Three flows make their calls in the order of the source.
fn calls_are_in_order() {
    interleaved(|| {
        let model = TicketModel::new();
        let flows = [2, 1].map(|sequence| {
            let model = Arc::clone(&model);
            thread::spawn(move || model.call(sequence))
        });
        model.call(0);
        flows.into_iter().for_each(|flow| flow.join().unwrap());
        assert_eq!(*model.calls.lock(), [0, 1, 2]);
    });
}

/// A flow ends without its call, before its turn or in it.
fn a_flow_that_ends_holds_up_nobody() {
    interleaved(|| {
        let model = TicketModel::new();
        let (last, ends) = (Arc::clone(&model), Arc::clone(&model));
        let flows = [thread::spawn(move || last.call(2)), thread::spawn(move || ends.gate.pass(1))];
        model.call(0);
        flows.into_iter().for_each(|flow| flow.join().unwrap());
        assert_eq!(*model.calls.lock(), [0, 2]);
    });
}

fn caught(mutant: TicketMutant, model: fn()) -> bool {
    crate::loom_support::caught(&MUTANT, mutant, model)
}

#[test]
fn flows_pass_a_gate_in_their_order_and_none_waits_for_one_that_has_passed() {
    calls_are_in_order();
    a_flow_that_ends_holds_up_nobody();
}

#[test]
fn every_mutant_of_the_gate_is_caught() {
    assert!(caught(TicketMutant::LeavesWaiting, calls_are_in_order));
    assert!(caught(TicketMutant::PassesAgain, calls_are_in_order));
    assert!(caught(TicketMutant::ForgetsPassed, a_flow_that_ends_holds_up_nobody));
}
