//! Operations on slots that steps and regions share: primitives, payloads of switches, and answers of calls.

use std::any::Any;

use smallvec::SmallVec;
use weir_host::{Argument, Elements, Failure, FailureKind, Outcome, Signature, Value, Values};
use weir_ir::evaluate::failure_of;
use weir_ir::prim::{Prim, interpolate, parts};

use crate::prim_units;

/// Stands for "none" where an index is expected.
pub(crate) const NONE: u32 = u32::MAX;

/// A primitive.
pub(crate) struct PrimStep {
    /// The primitive.
    pub prim: Prim,
    /// Its operands.
    pub operands: Box<[Argument]>,
    /// The slots that are not used afterwards.
    pub dead: Box<[u32]>,
    /// True if its operands may have to be moved.
    pub moves: bool,
    /// True if it may change its first operand in place ([`Prim::apply_reusing`]), because this is its last use.
    pub reuses: bool,
    /// The slot of the output.
    pub out: u32,
}

/// The destination of a call's answer.
pub(crate) enum Out {
    /// The slot of the value; the function cannot fail.
    Value(u32),
    /// The slot of a `Result`.
    Result(u32),
    /// The arms of the switch that tests the answer, so that no `Result` is made: Flux's branch on success.
    OfResult {
        /// The switch.
        switch: u32,
        /// The arm of success, and the slot of its payload.
        ok: (u32, u32),
        /// The arm of failure, and the slot of its payload.
        err: (u32, u32),
    },
    /// The arms of the switch that tests the answer, so that no `Option` is made.
    OfOption {
        /// The switch.
        switch: u32,
        /// The arm of `Some`, and the slot of its payload.
        some: (u32, u32),
        /// The arm of `None`, which has no payload.
        none: (u32, u32),
    },
}

/// A call whose failure is an answer instead of the end of the flow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptFailure {
    /// The function itself cannot fail: the answer is a `Result` of its value.
    OfValue,
    /// The function returns a `Result`, of which the answer is a `Result`.
    OfResult,
}

impl KeptFailure {
    /// Returns the form of a call of a function.
    pub(crate) fn of(signature: &Signature) -> KeptFailure {
        if signature.failure.is_some() { KeptFailure::OfResult } else { KeptFailure::OfValue }
    }

    /// Returns the outcome with its failure as an answer. A transaction that is executed again has no answer.
    pub(crate) fn seen(self, outcome: Outcome) -> Outcome {
        match (self, outcome) {
            (_, Outcome::Fault(failure)) if failure.is_refusal() => Outcome::Fault(failure),
            (_, Outcome::Fault(failure)) => Outcome::Error(Value::Failure(failure)),
            (KeptFailure::OfValue, Outcome::Error(error)) => Outcome::Error(Value::Failure(failure_of(error))),
            (KeptFailure::OfValue, outcome) => outcome,
            (KeptFailure::OfResult, outcome) => match outcome.returned() {
                Ok(Ok(value)) => Outcome::Value(Value::ok(value)),
                Ok(Err(error)) => Outcome::Value(Value::err(error)),
                Err(failure) => Outcome::Error(Value::Failure(failure)),
            },
        }
    }
}

/// Returns the units of applying a primitive to the values of slots and constants.
#[inline]
pub(crate) fn units_of(step: &PrimStep, slots: &[Value], constants: &[Value]) -> u64 {
    prim_units::units(step.prim, step.operands.iter().map(|operand| place(operand, slots, constants)), step.reuses)
}

/// Applies arithmetic to two integers, unless it fails; returns false if this is something else.
#[inline]
pub(crate) fn calculate(step: &PrimStep, slots: &mut [Value], constants: &[Value]) -> bool {
    let [one, other] = &step.operands[..] else { return false };
    let (Value::Int(one), Value::Int(other)) = (place(one, slots, constants), place(other, slots, constants)) else {
        return false;
    };
    let Some(result) = step.prim.calculate(*one, *other) else { return false };
    forget(&step.dead, slots);
    slots[step.out as usize].put(Value::Int(result));
    true
}

/// Copies a field of a record; returns false if this is something else, or a field that may have to be moved.
#[inline]
pub(crate) fn copy_field(step: &PrimStep, slots: &mut [Value], constants: &[Value]) -> bool {
    let (Prim::Field(index), [record], false) = (step.prim, &step.operands[..], step.moves) else { return false };
    let Value::Record(fields) = place(record, slots, constants) else { return false };
    let field = fields[index as usize].clone();
    forget(&step.dead, slots);
    slots[step.out as usize].put(field);
    true
}

/// Applies a primitive to the values of slots and constants, and puts its result into a slot.
///
/// # Errors
/// Fails if the primitive does.
pub(crate) fn apply(step: &PrimStep, slots: &mut [Value], constants: &[Value]) -> Result<(), Box<Failure>> {
    if let [one, other] = step.operands[..]
        && let Some(decided) = step.prim.decide(place(&one, slots, constants), place(&other, slots, constants))
    {
        forget(&step.dead, slots);
        slots[step.out as usize].put(Value::Bool(decided));
        return Ok(());
    }
    let computed = computed(step, slots, constants);
    forget(&step.dead, slots);
    slots[step.out as usize].put(computed?);
    Ok(())
}

fn computed(step: &PrimStep, slots: &mut [Value], constants: &[Value]) -> Result<Value, Box<Failure>> {
    match (&step.operands[..], step.prim) {
        _ if step.moves => moved(step.prim, step, slots, constants),
        ([first, others @ ..], prim) if step.reuses => {
            let first = value(*first, slots, constants);
            let others: SmallVec<[&Value; 2]> = others.iter().map(|operand| place(operand, slots, constants)).collect();
            prim.apply_reusing(first, &others)
        }
        (_, prim) if prim.detaches() => detach(step, slots, constants),
        ([one], Prim::Copy) => Ok(value(*one, slots, constants)),
        (all, Prim::List) => Ok(Value::List(values(all, slots, constants).collect())),
        (all, Prim::Record) => Ok(Value::Record(values(all, slots, constants).collect())),
        (all @ [_, ..], Prim::Variant(tag)) => Ok(Value::Variant(tag, Some(values(all, slots, constants).collect()))),
        (all, Prim::Interpolate) => {
            interpolate(all.iter().map(|operand| place(operand, slots, constants))).map(Value::Text)
        }
        ([one], prim) => prim.apply(&[place(one, slots, constants)]),
        ([one, other], prim) => prim.apply(&[place(one, slots, constants), place(other, slots, constants)]),
        (all, prim) => {
            let operands = all.iter().map(|operand| place(operand, slots, constants));
            prim.apply(&operands.collect::<SmallVec<[&Value; 8]>>())
        }
    }
}

/// Applies a primitive that may move a part out of its first operand; the rest stays in its slot.
fn detach(step: &PrimStep, slots: &mut [Value], constants: &[Value]) -> Result<Value, Box<Failure>> {
    let mut whole = match step.operands[0] {
        Argument::Slot { index, .. } => slots[index as usize].take(),
        constant => value(constant, slots, constants),
    };
    let key = step.operands.get(1).map(|operand| place(operand, slots, constants));
    let part = step.prim.apply_detaching(&mut whole, key.as_slice());
    if let Argument::Slot { index, .. } = step.operands[0] {
        slots[index as usize].put(whole);
    }
    part
}

/// Applies a primitive to operands that may hold move-only values, which it moves out; the other values go back into
/// the operands' slots.
#[cold]
fn moved(prim: Prim, step: &PrimStep, slots: &mut [Value], constants: &[Value]) -> Result<Value, Box<Failure>> {
    let take = |operand: &Argument| match *operand {
        Argument::Slot { index, .. } => slots[index as usize].take(),
        Argument::Constant(index) => constants[index as usize].clone(),
        Argument::Shared(_) => Value::Absent,
    };
    let mut operands: SmallVec<[Value; 4]> = step.operands.iter().map(take).collect();
    let computed = prim.apply_moving(&mut operands);
    for (operand, rest) in step.operands.iter().zip(operands) {
        if let Argument::Slot { index, .. } = operand {
            slots[*index as usize] = rest;
        }
    }
    computed
}

/// Drops the values of slots.
#[inline]
pub(crate) fn forget(dead: &[u32], slots: &mut [Value]) {
    for slot in dead {
        slots[*slot as usize].put(Value::Absent);
    }
}

/// Returns the value of an argument, moved out if this is its last use.
#[inline]
pub(crate) fn value(argument: Argument, slots: &mut [Value], constants: &[Value]) -> Value {
    match argument {
        Argument::Slot { index, last: true } => slots[index as usize].take(),
        Argument::Slot { index, last: false } => slots[index as usize].clone(),
        Argument::Constant(index) => constants[index as usize].clone(),
        Argument::Shared(_) => Value::Absent,
    }
}

/// Returns a reference to the value of an argument.
#[inline]
pub(crate) fn place<'a>(argument: &Argument, slots: &'a [Value], constants: &'a [Value]) -> &'a Value {
    match *argument {
        Argument::Slot { index, .. } => &slots[index as usize],
        Argument::Constant(index) => &constants[index as usize],
        Argument::Shared(_) => &Value::Absent,
    }
}

fn values<'a>(
    operands: &'a [Argument],
    slots: &'a mut [Value],
    constants: &'a [Value],
) -> impl Iterator<Item = Value> + 'a {
    operands.iter().map(|operand| value(*operand, slots, constants))
}

/// Puts the payload of the arm that a switch chose into the slots of its ports; `moves` if it may be move-only.
#[inline]
pub(crate) fn unpack(subject: Argument, ports: &[u32], moves: bool, slots: &mut [Value], constants: &[Value]) {
    if ports.is_empty() {
        if let Argument::Slot { index, last: true } = subject {
            slots[index as usize].put(Value::Absent);
        }
    } else if moves {
        unpack_moving(subject, ports, slots);
    } else if let Value::Variant(_, Some(payload)) = value(subject, slots, constants) {
        unpack_fields(payload, ports, slots);
    }
}

/// Moves the move-only fields out of the payload; the others stay for later users.
#[cold]
fn unpack_moving(subject: Argument, ports: &[u32], slots: &mut [Value]) {
    let Argument::Slot { index, .. } = subject else { return };
    let mut rest = slots[index as usize].take();
    if let Value::Variant(_, Some(payload)) = &mut rest {
        for (port, field) in ports.iter().zip(parts(payload)) {
            slots[*port as usize] = field;
        }
    }
    slots[index as usize] = rest;
}

/// Moves the fields out of a payload that is not shared, and clones them otherwise.
fn unpack_fields(mut payload: Values, ports: &[u32], slots: &mut [Value]) {
    match payload.unshared() {
        Some(fields) => {
            for (port, field) in ports.iter().zip(fields) {
                slots[*port as usize] = field.take();
            }
        }
        None => {
            for (port, field) in ports.iter().zip(payload.iter()) {
                slots[*port as usize] = field.clone();
            }
        }
    }
}

/// Puts the answer of a call where it belongs. Returns the switch that the answer decides, with the arm.
///
/// # Errors
/// Fails if the call ends the flow.
#[inline]
pub(crate) fn answer(outcome: Outcome, out: &Out, slots: &mut [Value]) -> Result<Option<(u32, u32)>, Box<Failure>> {
    match (outcome, out) {
        (Outcome::Filled, _) => {}
        (Outcome::Value(value), Out::Value(slot)) => slots[*slot as usize].put(value),
        (Outcome::Value(value), Out::Result(slot)) => slots[*slot as usize] = Value::ok(value),
        (Outcome::Error(error), Out::Result(slot)) => slots[*slot as usize] = Value::err(error),
        (Outcome::Value(value), Out::OfResult { switch, ok, .. }) => return Ok(decided(*switch, *ok, value, slots)),
        (Outcome::Error(error), Out::OfResult { switch, err, .. }) => return Ok(decided(*switch, *err, error, slots)),
        (Outcome::Some(value), Out::OfOption { switch, some, .. }) => return Ok(decided(*switch, *some, value, slots)),
        (Outcome::None, Out::OfOption { switch, none, .. }) => {
            return Ok(decided(*switch, *none, Value::Absent, slots));
        }
        (Outcome::Error(error), Out::Value(_) | Out::OfOption { .. }) => return Err(failure_of(error)),
        (Outcome::Fault(failure), _) => return Err(failure),
        (Outcome::ExceedsUnits, _) => return Err(Outcome::refused()),
        (outcome, out) => return other_answer(outcome, out, slots),
    }
    Ok(None)
}

/// Puts an answer that is an `Option` where it belongs, if it has not the form that its place expects.
#[inline(never)]
fn other_answer(outcome: Outcome, out: &Out, slots: &mut [Value]) -> Result<Option<(u32, u32)>, Box<Failure>> {
    let expected = match (outcome, out) {
        (Outcome::Value(option), Out::OfOption { .. }) => taken_apart(option),
        (Outcome::Some(value), _) => Outcome::Value(Value::some(value)),
        (Outcome::None, _) => Outcome::Value(Value::none()),
        _ => unreachable!("every other answer has its place"),
    };
    answer(expected, out, slots)
}

#[inline]
fn decided(switch: u32, (arm, port): (u32, u32), payload: Value, slots: &mut [Value]) -> Option<(u32, u32)> {
    if port != NONE {
        slots[port as usize].put(payload);
    }
    Some((switch, arm))
}

/// Converts an `Option` value to an outcome.
fn taken_apart(option: Value) -> Outcome {
    match option {
        Value::Variant(Value::SOME, Some(mut payload)) => {
            parts(&mut payload).into_iter().next().map_or(Outcome::None, Outcome::Some)
        }
        _ => Outcome::None,
    }
}

/// Returns an element, moved out if the list is not shared.
pub(crate) fn element(list: &mut Elements, index: usize) -> Value {
    list.take(index).expect("the index is below the length")
}

/// Returns the failure of a step that is never reached. If an earlier end is still pending, that one takes precedence.
#[cold]
pub(crate) fn never() -> Box<Failure> {
    Box::new(Failure::new(FailureKind::Program, "this is never reached"))
}

/// Returns the failure of a switch none of whose arms fits.
#[cold]
pub(crate) fn no_arm(subject: &Value) -> Box<Failure> {
    Box::new(Failure::new(FailureKind::Program, format!("no arm of the match fits {subject}")))
}

/// Returns the failure of a host function that panicked.
pub(crate) fn panicked(path: &str, panic: &(dyn Any + Send)) -> Box<Failure> {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Box::new(Failure::new(FailureKind::Panic, format!("`{path}` panicked: {}", said.unwrap_or("no message"))))
}
