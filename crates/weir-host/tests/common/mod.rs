//! A frame with a few slots, from which a function is called.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::task::{Context, Poll, Waker};

use weir_host::{
    Argument, Call, Environment, Function, FunctionCode, HostType, Outcome, Pending, Settled, Shared, Value,
};

/// The frame and the environment of calls.
#[derive(Default)]
pub(crate) struct Frame {
    pub(crate) slots: Vec<Value>,
    pub(crate) shared: Vec<Shared>,
    pub(crate) state: Option<Shared>,
    pub(crate) environment: Environment,
}

/// Converts a Rust value into a Weir value.
#[track_caller]
pub(crate) fn value(rust: impl HostType) -> Value {
    rust.into_value().unwrap()
}

impl Frame {
    /// Creates a frame with these slots.
    pub(crate) fn of(slots: impl IntoIterator<Item = Value>) -> Self {
        Frame { slots: slots.into_iter().collect(), ..Frame::default() }
    }

    /// Creates a frame in which this value is shared.
    pub(crate) fn sharing(value: Value) -> Self {
        Frame { shared: vec![Shared::new(value)], ..Frame::default() }
    }

    fn call<'a>(&'a mut self, arguments: &'a [Argument]) -> Call<'a> {
        Call {
            slots: &mut self.slots,
            constants: &[],
            shared: &self.shared,
            state: self.state.as_ref(),
            arguments,
            out: None,
            environment: &self.environment,
            units: weir_host::UnitBudget::UNLIMITED,
            awaited: None,
        }
    }

    /// Calls the function with all slots in order, each at its last use.
    pub(crate) fn run(&mut self, function: &Function) -> Outcome {
        let arguments: Vec<_> = (0..self.slots.len()).map(slot).collect();
        self.run_with(function, &arguments)
    }

    /// Calls a function that returns immediately, with a slot for its answer.
    pub(crate) fn run_into(&mut self, out: u32, function: &Function, arguments: &[Argument]) -> Outcome {
        let FunctionCode::Immediate(code) = &function.code else { panic!("{} waits", function.signature.name) };
        code(&mut Call { out: Some(out), ..self.call(arguments) })
    }

    /// Calls the function and runs it to completion.
    pub(crate) fn run_with(&mut self, function: &Function, arguments: &[Argument]) -> Outcome {
        if let (None, Some(state)) = (&self.state, &function.signature.state) {
            self.state = Some(Shared::new((state.make)(&[]).unwrap()));
        }
        match &function.code {
            FunctionCode::Immediate(code) => code(&mut self.call(arguments)),
            FunctionCode::Blocking(code) => match code(&mut self.call(arguments)) {
                Ok(job) => self.settle(job(), arguments),
                Err(failure) => Outcome::Fault(failure),
            },
            FunctionCode::Waiting(code) => match code(&mut self.call(arguments)) {
                Ok(pending) => {
                    let settled = ready(pending).expect("nothing in these tests waits for long");
                    self.settle(settled, arguments)
                }
                Err(outcome) => outcome,
            },
        }
    }

    /// Begins a call that waits.
    pub(crate) fn begin(&mut self, function: &Function, arguments: &[Argument]) -> Pending {
        let FunctionCode::Waiting(code) = &function.code else { panic!("{} does not wait", function.signature.name) };
        code(&mut self.call(arguments)).unwrap()
    }

    /// Puts back the values that a call that waited took out.
    pub(crate) fn settle(&mut self, settled: Settled, arguments: &[Argument]) -> Outcome {
        let mut call = self.call(arguments);
        for (index, value) in settled.restored {
            call.restore(index, value);
        }
        settled.outcome
    }
}

/// Returns the argument in this slot, at its last use.
pub(crate) fn slot(index: usize) -> Argument {
    Argument::Slot { index: u32::try_from(index).unwrap(), last: true }
}

/// Polls a call once; returns its completion.
pub(crate) fn ready(mut pending: Pending) -> Option<Settled> {
    match pending.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(settled) => Some(settled),
        Poll::Pending => None,
    }
}

/// Returns the value of the call.
#[track_caller]
pub(crate) fn given(outcome: Outcome) -> Value {
    match outcome.returned() {
        Ok(Ok(value)) => value,
        other => panic!("{other:?}"),
    }
}

/// Returns the message of the fault that ended the call.
#[track_caller]
pub(crate) fn fault(outcome: Outcome) -> String {
    match outcome {
        Outcome::Fault(failure) => failure.to_string(),
        other => panic!("{other:?}"),
    }
}
