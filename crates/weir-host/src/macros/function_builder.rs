//! Builder of a function's signature from its Rust types.

use std::sync::Arc;

use crate::convert::Borrowable;
use crate::macros::waiting;
use crate::{
    Batch, BatchCode, Call, Effects, Failure, Function, FunctionCode, HostType, Location, Mode, Outcome, Parameter,
    Passing, Settled, Signature, StateOf, Type, TypeDefinition, Value, WordCode,
};

/// Builder of a [`Function`].
pub struct FunctionBuilder {
    signature: Signature,
    types: Vec<TypeDefinition>,
    location: Option<Location>,
    words: Option<WordCode>,
}

impl FunctionBuilder {
    /// Begins with a function without parameters that returns `()`.
    #[must_use]
    pub fn new(name: &str, doc: &str, effects: Effects) -> Self {
        let signature = Signature {
            module: "".into(),
            name: name.into(),
            doc: doc.into(),
            parameters: Vec::new(),
            result: Type::Unit,
            failure: None,
            effects,
            state: None,
            batch: None,
            internal: false,
        };
        FunctionBuilder { signature, types: Vec::new(), location: None, words: None }
    }

    /// Sets the source location.
    #[must_use]
    pub fn located_at(mut self, location: Location) -> Self {
        self.location = Some(location);
        self
    }

    /// Hides the function from documentation and completion.
    #[must_use]
    pub fn internal(mut self) -> Self {
        self.signature.internal = true;
        self
    }

    /// Sets the typed entry point, if the function has one.
    #[must_use]
    pub fn words(mut self, words: Option<WordCode>) -> Self {
        self.words = words;
        self
    }

    /// Adds a parameter that is taken by value.
    #[must_use]
    pub fn takes<T: HostType>(self, name: &str, default: Option<T>) -> Self {
        self.parameter(name, T::PASSING, default)
    }

    /// Adds a parameter that is taken by `&`.
    #[must_use]
    pub fn borrows<T: Borrowable + ?Sized>(self, name: &str, default: Option<T::Owned>) -> Self {
        self.parameter(name, Passing::Borrow, default)
    }

    /// Adds a parameter that is taken by `&mut`.
    #[must_use]
    pub fn changes<T: HostType>(self, name: &str) -> Self {
        self.parameter::<T>(name, Passing::Change, None)
    }

    /// Adds the parameters that are fields of this type.
    #[must_use]
    pub fn options<T: FunctionOptions>(self) -> Self {
        T::describe(self)
    }

    /// Adds a parameter of the state's constructor that is taken by value.
    #[must_use]
    pub fn constructor_takes<T: HostType>(self, name: &str, default: Option<T>) -> Self {
        self.parameter(name, Passing::Start, default)
    }

    /// Adds a parameter of the state's constructor that is taken by `&`.
    #[must_use]
    pub fn constructor_borrows<T: Borrowable + ?Sized>(self, name: &str, default: Option<T::Owned>) -> Self {
        self.parameter(name, Passing::Start, default)
    }

    fn parameter<T: HostType>(mut self, name: &str, passing: Passing, default: Option<T>) -> Self {
        T::define(&mut self.types);
        let default = default.map(|value| default_value(name, value));
        self.signature.parameters.push(Parameter { name: name.into(), ty: T::ty(), passing, default });
        self
    }

    /// Sets the type of the result.
    #[must_use]
    pub fn returns<T: HostType>(mut self) -> Self {
        T::define(&mut self.types);
        self.signature.result = T::ty();
        self
    }

    /// Sets the type of the failure, with a function that adds its definitions.
    #[must_use]
    pub fn fails(mut self, failure: Type, define: impl FnOnce(&mut Vec<TypeDefinition>)) -> Self {
        define(&mut self.types);
        self.signature.failure = Some(failure);
        self
    }

    /// Gives the function private state of this type.
    #[must_use]
    pub fn with_state<T>(mut self, mode: Mode, make: fn(&[Value]) -> Result<Value, Box<Failure>>) -> Self {
        let path = std::any::type_name::<T>();
        let name = path.rsplit("::").next().unwrap_or(path);
        self.signature.state = Some(StateOf { name: name.into(), mode, make });
        self
    }

    /// Builds a function whose calls may be gathered within these limits. A parameter that is taken by `&` stands for shared values,
    /// of which the batch gets the handles, before the other arguments that its calls have in common.
    #[must_use]
    pub fn build_batched(mut self, limits: Batch, batch: Arc<BatchCode>) -> Function {
        let count = self.signature.parameters.len();
        self.signature.batch = Some(limits);
        let alone = batch.clone();
        let mut function = self.build(waiting(move |call| {
            let gathered = call.value(limits.gathered);
            let common = (0..count).filter(|index| *index != limits.gathered).map(|index| call.value_or_handle(index));
            let common: Vec<Value> = common.collect();
            let answers = alone(vec![gathered], &common, call.environment)?;
            Ok(Box::pin(async move { Settled { outcome: only(answers.await.answers), restored: Vec::new() } }))
        }));
        function.batch = Some(batch);
        function
    }

    /// Builds the function.
    #[must_use]
    pub fn build(self, code: FunctionCode) -> Function {
        Function {
            signature: self.signature,
            code,
            words: self.words,
            batch: None,
            types: self.types,
            location: self.location,
        }
    }
}

/// A struct whose fields are parameters of host functions, each by value and with its own default.
/// `#[derive(weir::FunctionOptions)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not describe parameters",
    label = "`#[options]` takes a struct with `#[derive(weir::FunctionOptions)]`"
)]
pub trait FunctionOptions: Sized {
    /// Adds the parameters to those of a function.
    fn describe(builder: FunctionBuilder) -> FunctionBuilder;

    /// Takes the values from a call; `first` is the index of the first one among the call's arguments.
    ///
    /// # Errors
    /// Fails if a value is outside the range of its Rust type; the message names the parameter.
    fn take(call: &mut Call<'_>, first: usize) -> Result<Self, Box<Failure>>;
}

/// Returns the answer of a batch of one.
fn only(mut answers: Vec<Outcome>) -> Outcome {
    answers.pop().unwrap_or_else(|| Outcome::Fault(Box::new(Failure::function("the function returned no answer"))))
}

/// Converts the default of a parameter.
///
/// # Panics
/// Panics if the default is outside the range of Weir's type: a mistake of the function's author, detected at start-up.
fn default_value<T: HostType>(name: &str, value: T) -> Value {
    value.into_value().unwrap_or_else(|failure| panic!("the default of `{name}` cannot be passed: {failure}"))
}
