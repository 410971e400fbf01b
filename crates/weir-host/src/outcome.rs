//! What one call of a host function gave.

use crate::{Failure, Value};

/// What a call answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The function's value; of one that can fail, the payload of its `Ok`.
    Value(Value),
    /// The function's value lies in the slot that the call has named for it.
    Filled,
    /// The value of a function that yields an `Option`, where it is `Some`: what that holds. No `Option` is made where the
    /// program looks into it at once.
    Some(Value),
    /// The value of a function that yields an `Option`, where it is `None`.
    None,
    /// The failure that the function returned: the payload of its `Err`.
    Error(Value),
    /// The call could not be made or ended badly; the flow ends with this failure.
    Fault(Box<Failure>),
}

impl Outcome {
    /// What the function returned: its value, or its own failure.
    ///
    /// # Errors
    /// Fails where the call could not be made or ended badly.
    ///
    /// # Panics
    /// Panics where the value lies in a slot: who names one looks there.
    pub fn returned(self) -> Result<Result<Value, Value>, Box<Failure>> {
        match self {
            Outcome::Value(value) => Ok(Ok(value)),
            Outcome::Filled => unreachable!("who names a slot looks there"),
            Outcome::Some(value) => Ok(Ok(Value::some(value))),
            Outcome::None => Ok(Ok(Value::none())),
            Outcome::Error(error) => Ok(Err(error)),
            Outcome::Fault(failure) => Err(failure),
        }
    }
}
