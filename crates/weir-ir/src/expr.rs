//! The expression IR: a λ-calculus in A-normal form, from which every `fn` has been inlined.
//!
//! A [`Block`] is a sequence of [`Let`]s and the [`Atom`] that it yields. Every operand is an atom, so the order of
//! evaluation is the order of the `let`s. Three operations leave a block early: [`Op::Return`], [`Op::Fail`], and any
//! other operation that fails ([`Op::may_end`]); all of them end the flow. An early exit from an inlined `fn` is
//! expressed by nesting: the continuation is moved into the branches that do not exit.

use weir_host::{Mode, Resource, Text, Type, Value};

mod op;
mod relocate;
mod traverse;

pub use crate::body_types::{round_type, state_type};
use crate::program;
pub use crate::program::{InlinedCall, InlinedCallId, LoopExit, Origin, Var, Variable};
pub use op::{Op, Runs, Scope, ScopeMut, TRANSACTION_ATTEMPTS_MAX};

/// A program whose bodies are blocks.
pub type Program = program::Program<Block>;

/// An operand: a variable, a constant or a shared value, none of which needs evaluation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Atom {
    /// A variable.
    Var(Var),
    /// A constant.
    Value(Value),
    /// A shared value, passed to a host function that takes it by `&` or `&mut`.
    Shared(Text),
}

/// A sequence of bindings and the value that it yields.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The bindings, evaluated in this order.
    pub lets: Vec<Let>,
    /// The value that the block yields. A block whose last binding never yields has `()` here, which nothing reads.
    pub result: Atom,
}

/// One binding.
#[derive(Clone, Debug, PartialEq)]
pub struct Let {
    /// The variable that it binds, of [`weir_host::Type::Never`] if the operation never yields.
    pub bound: Variable,
    /// The operation that is evaluated.
    pub op: Op,
    /// The position in the text.
    pub origin: Origin,
}

/// A call of a host function.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its path: `image.to_jpeg`.
    pub function: Text,
    /// The name of this call site in plans and messages, unique within the flow: `thumbnail/image.to_jpeg`, `files.read#2`.
    pub site: Text,
    /// The arguments, one for each parameter.
    pub arguments: Vec<Atom>,
    /// True if a failure with which the call would end the flow is a value instead: it yields `Ok` of what it would yield, or `Err`
    /// of the failure.
    pub keeps_failure: bool,
}

impl Call {
    /// Returns a call whose failure ends the flow.
    #[must_use]
    pub fn new(function: Text, site: Text, arguments: Vec<Atom>) -> Self {
        Call { function, site, arguments, keeps_failure: false }
    }

    /// Returns the type of its result if the function yields this one.
    #[must_use]
    pub fn result(keeps_failure: bool, ty: Type) -> Type {
        if keeps_failure { Type::result(ty, Type::Failure) } else { ty }
    }
}

/// One arm of a switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// The test that chooses this arm.
    pub test: ArmTest,
    /// Names for the payload of the variant that was tested; empty, or one for each field.
    pub payload: Vec<Variable>,
    /// The body that runs if the arm is chosen.
    pub body: Block,
}

/// The test of one arm of a switch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArmTest {
    /// The variant with this tag.
    Tag(u32),
    /// Exactly this value.
    Value(Value),
    /// Anything.
    Otherwise,
}

/// One constraint of an atomic step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Constraint {
    /// The resource that is held.
    pub resource: Resource,
    /// Shared with other readers, or exclusive.
    pub mode: Mode,
    /// True if it is held for the flow's session only.
    pub per_session: bool,
}
