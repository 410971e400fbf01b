//! Signatures of host functions, for the compiler.

use std::fmt;

use crate::{Batch, Failure, Mode, Passing, Text, Type, Value, source_text};

/// The signature of a host function: its parameters, results and effects, derived from its Rust signature and its
/// marks.
#[derive(Clone, Debug)]
pub struct Signature {
    /// The module of the function: `image`. Empty until the function is added to a [`crate::Module`].
    pub module: Text,
    /// The name within the module: `to_jpeg`.
    pub name: Text,
    /// The documentation.
    pub doc: Text,
    /// The parameters, in order.
    pub parameters: Vec<Parameter>,
    /// The type of the result.
    pub result: Type,
    /// The type of the failure; `None` for a function that cannot fail. Callers see `Result(result, failure)`.
    pub failure: Option<Type>,
    /// Effects beyond the parameters, and the resulting freedom in executing calls.
    pub effects: Effects,
    /// The private state behind `&mut self` or `&self`, one instance for each call site.
    pub state: Option<StateOf>,
    /// Limits on gathering calls into one; `None` if calls cannot be gathered.
    pub batch: Option<Batch>,
    /// True if only the compiler and the library call it: neither documentation nor completion shows it.
    pub internal: bool,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The name, by which a call may pass it.
    pub name: Text,
    /// The type.
    pub ty: Type,
    /// The passing mode.
    pub passing: Passing,
    /// The value if a call leaves the parameter out.
    pub default: Option<Value>,
}

impl Parameter {
    /// Returns the parameter as a signature shows it: its name, its type and its default. `…` stands for any named arguments.
    #[must_use]
    pub fn shown(&self) -> String {
        if self.passing == Passing::Named {
            return "…".to_owned();
        }
        let default = self.shown_default().map_or_else(String::new, |default| format!(" = {default}"));
        format!("{}: {}{default}", self.name, self.ty)
    }

    /// Returns the default as source text.
    #[must_use]
    pub fn shown_default(&self) -> Option<String> {
        self.default.as_ref().map(|default| source_text(default, &self.ty, &[]))
    }
}

/// Effects of a call beyond its parameters, and the resulting freedom in executing it.
///
/// The default is conservative: it writes the library's part of the world, and its calls are never cached, deferred,
/// retried or executed twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effects {
    /// The effect on the library's part of the world.
    pub world: World,
    /// The time in nanoseconds for which the result may be reused, if any.
    pub fresh_ns: Option<u64>,
    /// `true` if the effect may take place after the response.
    pub deferrable: bool,
    /// `true` if executing a call twice has the same effect as once, so that it may be retried.
    pub idempotent: bool,
    /// `true` if calls of it leave an argument that they change the same in whichever order they are executed.
    pub commutes: bool,
    /// `true` if a call is ordered with all calls of its flow that are not pure, as `time.sleep` is: it begins when those
    /// before it in the text have ended, and those behind it begin when it has ended.
    pub barrier: bool,
    /// `true` if the function blocks its thread, so that it must not run on an event loop.
    pub blocking: bool,
    /// `true` if the function may wait (`async`).
    pub waits: bool,
    /// `true` if it waits for the peer of a connection, or for others whose work it shares: an engine whose flows hold their
    /// threads while they wait does not let this one hold its thread, because peers take any time they like, and the others
    /// may need the thread.
    pub awaits_peer: bool,
    /// True if it returns for all arguments of its types: it neither panics nor refuses an argument nor ends the flow in
    /// another way. A failure that it returns counts as returning.
    pub total: bool,
    /// True if a call may end the flow for a reason outside of the program and of its arguments, such as a database that does not
    /// answer: effects behind it in the text wait for it.
    pub may_end: bool,
    /// True if its result is its first argument with the third one as the element at the second, a position or key: the
    /// element that was there before is not read.
    pub replaces_element: bool,
    /// True if a call that reads shared values of a store which has snapshots ([`HostValue::snapshots`](crate::HostValue::snapshots))
    /// sees one of them, so that it need not wait for calls and atomic steps that change the values.
    pub sees_snapshot: bool,
    /// True if a call declares its units, because it may take long.
    pub declares_units: bool,
    /// True if a call may go on without the thread of its flow, which then waits for it.
    pub leaves_thread: bool,
}

/// Effect of a call on its library's part of the outside world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum World {
    /// None: equal inputs give equal outputs.
    Pure,
    /// Observes the world without changing it.
    Reads,
    /// May change the world.
    Writes,
}

impl Default for Effects {
    fn default() -> Self {
        Effects {
            world: World::Writes,
            fresh_ns: None,
            deferrable: false,
            idempotent: false,
            commutes: false,
            barrier: false,
            blocking: false,
            waits: false,
            awaits_peer: false,
            total: false,
            may_end: false,
            replaces_element: false,
            sees_snapshot: false,
            declares_units: false,
            leaves_thread: false,
        }
    }
}

/// The private state of a stateful function.
#[derive(Clone)]
pub struct StateOf {
    /// The name of the Rust type, for messages.
    pub name: Text,
    /// The access mode of a call: `Write` for `&mut self`, `Read` for `&self`.
    pub mode: Mode,
    /// Makes the state of a call site from its arguments for the parameters that are [`Passing::Start`].
    pub make: fn(&[Value]) -> Result<Value, Box<Failure>>,
}

impl fmt::Debug for StateOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StateOf").field(&self.name).finish()
    }
}

impl Signature {
    /// Returns the name by which programs call the function: `image.to_jpeg`.
    #[must_use]
    pub fn path(&self) -> String {
        if self.module.is_empty() { self.name.to_string() } else { format!("{}.{}", self.module, self.name) }
    }

    /// Returns the parameters that a call may write arguments for.
    #[must_use]
    pub fn written(&self) -> &[Parameter] {
        let is_written = |parameter: &&Parameter| !matches!(parameter.passing, Passing::TypeOf(_));
        &self.parameters[..self.parameters.iter().take_while(is_written).count()]
    }

    /// Returns the indices of the parameters of the state's constructor.
    pub fn start_parameters(&self) -> impl Iterator<Item = usize> + '_ {
        let parameters = self.parameters.iter().enumerate();
        parameters.filter_map(|(index, parameter)| (parameter.passing == Passing::Start).then_some(index))
    }

    /// Returns the type of a call: `Result(…)` for a function that can fail.
    #[must_use]
    pub fn call_type(&self) -> Type {
        match &self.failure {
            Some(failure) => Type::result(self.result.clone(), failure.clone()),
            None => self.result.clone(),
        }
    }
}
