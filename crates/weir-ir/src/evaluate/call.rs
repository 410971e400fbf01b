//! Evaluation of calls of host functions.
//!
//! 1. Every variable among the arguments moves into a slot of its own; a move-only by-value argument is
//!    marked as the last use of its slot.
//! 2. The function's adaptor takes, borrows and puts back (the protocol of [`weir_host::Call`]).
//! 3. The slots move back to the variables: moved ones are empty, and changed ones are changed.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::Instant;

use weir_host::{
    Argument, Failure, FailureKind, Function, FunctionCode, Outcome, Passing, Pending, Settled, Shared, Signature,
    Value,
};

use super::Evaluator;
use super::flow::{FlowEnd, FlowEvaluation};
use super::rules::failure_of;
use super::time_limits::RivalCall;
use super::wait::{CallWait, poll_once, wait};
use crate::expr::{Atom, Block, Call, Op, Var};
use crate::prim::moves;

/// The arguments of one call, in the layout that an adaptor expects.
#[derive(Default)]
struct Scratch {
    slots: Vec<Value>,
    /// The variable of each slot.
    variables: Vec<Var>,
    constants: Vec<Value>,
    arguments: Vec<Argument>,
}

impl Evaluator<'_> {
    /// Creates the private states of all calls in a block, in source order, before the first flow.
    pub(super) fn make_states(&mut self, place: (usize, usize), block: &Block) -> Result<(), Box<Failure>> {
        for binding in &block.lets {
            if let Op::Call(call) = &binding.op
                && let Some(function) = self.library.function(&call.function)
            {
                self.state(place, call, function)?;
            }
            binding.op.blocks().try_for_each(|inner| self.make_states(place, inner))?;
        }
        Ok(())
    }

    /// Returns the private state of the call's site, and creates it if there is none.
    fn state(
        &mut self,
        place: (usize, usize),
        call: &Call,
        function: &Function,
    ) -> Result<Option<Shared>, Box<Failure>> {
        let Some(state) = &function.signature.state else { return Ok(None) };
        let key = (place.0, place.1, call.site.clone());
        if let Some(made) = self.states.get(&key) {
            return Ok(Some(made.clone()));
        }
        let constants = function.signature.start_parameters().map(|index| match &call.arguments[index] {
            Atom::Value(value) => value.clone(),
            other => panic!("the verifier let {other:?} pass for a constant"),
        });
        let made = Shared::new((state.make)(&constants.collect::<Vec<_>>())?);
        self.states.insert(key, made.clone());
        Ok(Some(made))
    }
}

impl FlowEvaluation<'_, '_> {
    pub(super) fn call(&mut self, call: &Call) -> Result<Value, FlowEnd> {
        let library = self.evaluator.library;
        let Some(function) = library.function(&call.function) else {
            let message = format!("there is no function `{}`", call.function);
            return Err(FlowEnd::OperationFailed(Box::new(Failure::function(message))));
        };
        let state = self.evaluator.state(self.place, call, function)?;
        let mut scratch = self.scratch(call, &function.signature);
        // A call that is given up returns nothing that it has borrowed, and other bodies of a race use it meanwhile.
        let borrowed = if self.evaluator.limits.may_give_up() { self.copies(&scratch) } else { Vec::new() };
        let settled = match self.begin(function, &mut scratch, state.as_ref()) {
            BegunCall::Settled(settled) => settled,
            BegunCall::Pending(pending) => {
                self.variables.extend(borrowed);
                self.wait_for(pending, &function.signature)?
            }
        };
        let restored = settled.restored.into_iter();
        let slots = restored.filter_map(|(argument, value)| match scratch.arguments[argument] {
            Argument::Slot { index, .. } => Some((index as usize, value)),
            _ => None,
        });
        slots.for_each(|(slot, value)| scratch.slots[slot] = value);
        self.variables.extend(scratch.variables.into_iter().zip(scratch.slots));
        match answer(&function.signature, settled.outcome) {
            Ok(value) if call.keeps_failure => Ok(Value::ok(value)),
            Ok(value) => Ok(value),
            Err(failure) if call.keeps_failure && !failure.is_refusal() => Ok(Value::err(Value::Failure(failure))),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Waits for a call, within the limits around it.
    fn wait_for(&mut self, mut pending: Pending, signature: &Signature) -> Result<Settled, FlowEnd> {
        let (begun, waited_before, left) =
            (Instant::now(), self.evaluator.limits.waited(), self.evaluator.limits.left());
        let next = match self.evaluator.limits.next_race() {
            Some(race) => match guarded(signature, || poll_once(&mut pending)) {
                Ok(Poll::Pending) => self.overtake(race, RivalCall::Pending(pending)),
                Ok(Poll::Ready(settled)) | Err(settled) => Ok(settled),
            },
            None => match guarded(signature, || wait(pending, &mut self.evaluator.limits)) {
                Ok(CallWait::Settled(settled)) | Err(settled) => Ok(settled),
                Ok(CallWait::Expired(limit)) => Err(FlowEnd::TimeUp(limit)),
            },
        };
        // What a call returns is used, even if it comes late. The waits of other bodies are those of this call, too.
        let counted = self.evaluator.limits.waited() - waited_before;
        let waited = begun.elapsed();
        self.evaluator.limits.wait(left.map_or(waited, |left| waited.min(left)).saturating_sub(counted));
        next
    }

    /// Returns copies of the variables that a call borrows, except for those that can only be moved.
    fn copies(&self, scratch: &Scratch) -> Vec<(Var, Value)> {
        let slots = scratch.variables.iter().zip(&scratch.slots).filter(|(var, _)| !self.move_only.contains(var));
        slots.map(|(var, value)| (*var, value.clone())).collect()
    }

    fn scratch(&mut self, call: &Call, signature: &Signature) -> Scratch {
        let mut scratch = Scratch::default();
        for (atom, parameter) in call.arguments.iter().zip(&signature.parameters) {
            let argument = match atom {
                Atom::Var(var) => self.slot(&mut scratch, *var, parameter.passing),
                Atom::Value(value) => {
                    scratch.constants.push(value.clone());
                    Argument::Constant(index_of_last(&scratch.constants))
                }
                Atom::Shared(name) => Argument::Shared(self.shared_index(name)),
            };
            scratch.arguments.push(argument);
        }
        scratch
    }

    fn slot(&mut self, scratch: &mut Scratch, var: Var, passing: Passing) -> Argument {
        let known = scratch.variables.iter().position(|other| *other == var);
        let index = known.unwrap_or_else(|| {
            scratch.variables.push(var);
            scratch.slots.push(self.variables.get_mut(&var).map_or(Value::Absent, Value::take));
            scratch.slots.len() - 1
        });
        let last = passing.takes() && self.move_only.contains(&var) && moves(&scratch.slots[index]);
        Argument::Slot { index: u32::try_from(index).expect("a call has few arguments"), last }
    }

    fn shared_index(&self, name: &str) -> u32 {
        let index = self.evaluator.program.shared.iter().position(|shared| shared.name.as_str() == name);
        let index = index.expect("the verifier has seen the shared value");
        u32::try_from(index).expect("a program has few shared values")
    }

    /// Calls the function. A panic in it is a fault of this flow only.
    fn begin(&self, function: &Function, scratch: &mut Scratch, state: Option<&Shared>) -> BegunCall {
        let mut call = weir_host::Call {
            slots: &mut scratch.slots,
            constants: &scratch.constants,
            shared: &self.evaluator.shared,
            state,
            arguments: &scratch.arguments,
            out: None,
            environment: &self.evaluator.library.environment,
            units: weir_host::UnitBudget::UNLIMITED,
            awaited: None,
        };
        let begun = guarded(&function.signature, || begin(&function.code, &mut call));
        begun.unwrap_or_else(BegunCall::Settled)
    }
}

/// A call whose function has been called.
enum BegunCall {
    Settled(Settled),
    Pending(Pending),
}

fn begin(code: &FunctionCode, call: &mut weir_host::Call<'_>) -> BegunCall {
    BegunCall::Settled(match code {
        FunctionCode::Immediate(code) => Settled { outcome: code(call), restored: Vec::new() },
        FunctionCode::Waiting(code) => match code(call) {
            Ok(pending) => return BegunCall::Pending(pending),
            Err(outcome) => Settled { outcome, restored: Vec::new() },
        },
        FunctionCode::Blocking(code) => match code(call) {
            Ok(job) => job(),
            Err(failure) => fault(failure),
        },
    })
}

/// Runs code of a function; a panic in it is a fault.
fn guarded<T>(signature: &Signature, code: impl FnOnce() -> T) -> Result<T, Settled> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| fault(panicked(signature, &*panic)))
}

fn fault(failure: Box<Failure>) -> Settled {
    Settled { outcome: Outcome::Fault(failure), restored: Vec::new() }
}

/// Returns the value of the call, a `Result` if the function can fail.
fn answer(signature: &Signature, outcome: Outcome) -> Result<Value, Box<Failure>> {
    match (outcome.returned()?, &signature.failure) {
        (Ok(value), Some(_)) => Ok(Value::ok(value)),
        (Ok(value), None) => Ok(value),
        (Err(error), Some(_)) => Ok(Value::err(error)),
        (Err(error), None) => Err(failure_of(error)),
    }
}

fn panicked(signature: &Signature, panic: &(dyn Any + Send)) -> Box<Failure> {
    let text = panic.downcast_ref::<&str>().copied();
    let said = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    Box::new(Failure::new(FailureKind::Panic, format!("`{}` panicked: {said}", signature.path())))
}

fn index_of_last(values: &[Value]) -> u32 {
    u32::try_from(values.len() - 1).expect("a call has few arguments")
}
