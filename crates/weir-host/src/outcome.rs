//! The result of a call of a host function.

use crate::{Failure, FailureKind, Value};

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The function's value; for a function that can fail, the payload of its `Ok`.
    Value(Value),
    /// The function's value is in the slot that the call named for it.
    Filled,
    /// The payload of the `Some` that the function returned. The `Option` itself is not created if the program takes it
    /// apart immediately.
    Some(Value),
    /// The function returned the `None` of an `Option`.
    None,
    /// The failure that the function returned: the payload of its `Err`.
    Error(Value),
    /// The call could not be made or did not complete; the flow ends with this failure.
    Fault(Box<Failure>),
    /// The call needs more units than its budget ([`UnitBudget::most`](crate::UnitBudget)), and has not begun.
    ExceedsUnits,
}

impl From<Box<Failure>> for Outcome {
    fn from(fault: Box<Failure>) -> Outcome {
        Outcome::Fault(fault)
    }
}

impl Outcome {
    /// Returns the failure of a caller that gives no other thread the call that exceeds its budget.
    #[must_use]
    pub fn refused() -> Box<Failure> {
        Box::new(Failure::new(FailureKind::Limit, "the call takes longer than it may take here"))
    }

    /// Returns the function's value, or its own failure.
    ///
    /// # Errors
    /// Fails if the call could not be made or did not complete.
    ///
    /// # Panics
    /// Panics if the value is in a slot: a caller that names a slot must read it there.
    pub fn returned(self) -> Result<Result<Value, Value>, Box<Failure>> {
        match self {
            Outcome::Value(value) => Ok(Ok(value)),
            Outcome::Filled => unreachable!("who names a slot looks there"),
            Outcome::Some(value) => Ok(Ok(Value::some(value))),
            Outcome::None => Ok(Ok(Value::none())),
            Outcome::Error(error) => Ok(Err(error)),
            Outcome::Fault(failure) => Err(failure),
            Outcome::ExceedsUnits => Err(Outcome::refused()),
        }
    }
}
