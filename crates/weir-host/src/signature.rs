//! Signatures: all that the compiler knows of a host function.

use std::fmt;

use crate::{Batch, Failure, Mode, Text, Type, Value};

/// What a host function takes, gives and touches, read off its Rust signature and its marks.
#[derive(Clone, Debug)]
pub struct Signature {
    /// The module that it belongs to: `image`. Empty until the function joins a [`crate::Module`].
    pub module: Text,
    /// Its name within the module: `to_jpeg`.
    pub name: Text,
    /// What its author says of it.
    pub doc: Text,
    /// What it takes, in order.
    pub parameters: Vec<Parameter>,
    /// What it gives when it does not fail.
    pub result: Type,
    /// What it gives when it fails; `None` for a function that cannot. Callers see `Result(result, failure)`.
    pub failure: Option<Type>,
    /// What it touches beyond its parameters, and what may be done with its calls.
    pub effects: Effects,
    /// The private state that it takes by `&mut self` or `&self`, one instance for each call site.
    pub state: Option<StateOf>,
    /// How calls of it may be gathered into one; `None` where they may not.
    pub batch: Option<Batch>,
}

/// One parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name, by which a call may name it.
    pub name: Text,
    /// Its type.
    pub ty: Type,
    /// How it is taken.
    pub passing: Passing,
    /// What it is where a call leaves it out.
    pub default: Option<Value>,
}

/// How a parameter is taken. Given a shared value, `Borrow` makes the call a reader and `Change` a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Passing {
    /// By value: shared, cloned, or moved where it can be neither.
    Value,
    /// By `&`.
    Borrow,
    /// By `&mut`.
    Change,
    /// By value, and with its type: the function gets the pair of both, a [`crate::Typed`].
    Typed,
    /// By what makes the private state, before there are flows; the function itself never sees it. What a call gives is
    /// a constant.
    Start,
}

impl Passing {
    /// Whether the call takes the value for itself.
    #[must_use]
    pub fn takes(self) -> bool {
        matches!(self, Passing::Value | Passing::Typed)
    }
}

/// What a call touches beyond its parameters, and what may be done with it.
///
/// Nothing is assumed that was not said: the default writes the library's part of the world, and its calls are never
/// cached, deferred, retried or executed twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effects {
    /// What it does to its library's part of the world.
    pub world: World,
    /// Whether its result may be reused, for how many nanoseconds.
    pub fresh_ns: Option<u64>,
    /// Whether its effect may follow the response.
    pub deferrable: bool,
    /// Whether doing it twice is as doing it once, so that it may be retried.
    pub idempotent: bool,
    /// Whether it holds its thread while it works or waits, so that it must not run on an event loop.
    pub blocking: bool,
    /// Whether it may wait (`async`).
    pub waits: bool,
    /// True if it returns for all arguments of its types: it neither panics nor refuses an argument nor ends the flow in
    /// another way. A failure that it returns counts as returning.
    pub total: bool,
}

/// What a call does to its library's part of the outside world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum World {
    /// Nothing: same input, same output, no effect.
    Pure,
    /// Looks at it, and leaves it as it was.
    Reads,
    /// May change it.
    Writes,
}

impl Default for Effects {
    fn default() -> Self {
        Effects {
            world: World::Writes,
            fresh_ns: None,
            deferrable: false,
            idempotent: false,
            blocking: false,
            waits: false,
            total: false,
        }
    }
}

/// The private state of a stateful function.
#[derive(Clone)]
pub struct StateOf {
    /// The Rust type's name, for messages.
    pub name: Text,
    /// Whether a call changes it (`&mut self`) or only looks at it (`&self`).
    pub mode: Mode,
    /// Makes the state of one call site, out of its arguments for the parameters that are [`Passing::Start`].
    pub make: fn(&[Value]) -> Result<Value, Box<Failure>>,
}

impl fmt::Debug for StateOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StateOf").field(&self.name).finish()
    }
}

impl Signature {
    /// The name by which programs call it: `image.to_jpeg`.
    #[must_use]
    pub fn path(&self) -> String {
        if self.module.is_empty() { self.name.to_string() } else { format!("{}.{}", self.module, self.name) }
    }

    /// The parameters that what makes the state takes, by their indices.
    pub fn start_parameters(&self) -> impl Iterator<Item = usize> + '_ {
        let parameters = self.parameters.iter().enumerate();
        parameters.filter_map(|(index, parameter)| (parameter.passing == Passing::Start).then_some(index))
    }

    /// What a call has as its type: `Result(…)` for a function that can fail.
    #[must_use]
    pub fn call_type(&self) -> Type {
        match &self.failure {
            Some(failure) => Type::result(self.result.clone(), failure.clone()),
            None => self.result.clone(),
        }
    }
}
