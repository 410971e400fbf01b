//! Rules of operations that the evaluator and all that runs graphs share: tests of arms, states of loops, failures.

use weir_host::{Failure, FailureKind, Value};

use crate::expr::ArmTest;

/// Returns the parts of a tuple.
#[must_use]
pub fn taken_apart(tuple: Value) -> Vec<Value> {
    match tuple {
        Value::Record(mut parts) => match parts.unshared() {
            Some(parts) => parts.iter_mut().map(Value::take).collect(),
            None => parts.to_vec(),
        },
        other => panic!("the verifier let {other:?} pass for a tuple"),
    }
}

/// Returns the only state of a loop, or the tuple of its states.
#[must_use]
pub fn put_together(mut states: Vec<Value>) -> Value {
    match states.len() {
        1 => states.remove(0),
        _ => Value::Record(states.into()),
    }
}

/// Returns true if the test holds for the subject.
#[must_use]
pub fn test_holds(test: &ArmTest, subject: &Value) -> bool {
    match (test, subject) {
        (ArmTest::Tag(tag), Value::Variant(actual, _)) => tag == actual,
        (ArmTest::Tag(_), _) => false,
        (ArmTest::Value(value), subject) => value == subject,
        (ArmTest::Otherwise, _) => true,
    }
}

/// Returns the failure that [`Op::Fail`](crate::expr::Op::Fail) ends a flow with: its operand, or a failure with the text of any other error.
#[must_use]
pub fn failure_of(value: Value) -> Box<Failure> {
    match value {
        Value::Failure(failure) => failure,
        other => Box::new(Failure::new(FailureKind::Program, other.to_string())),
    }
}

/// Returns the failure of a loop that was not done after its bound.
#[must_use]
pub fn rounds_exceeded(at_most: u64) -> Box<Failure> {
    Box::new(Failure::new(FailureKind::Limit, format!("the loop was not done after {at_most} rounds")))
}
