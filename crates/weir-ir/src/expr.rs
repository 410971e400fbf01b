//! The expression IR: a λ-calculus in A-normal form, from which every `fn` has been inlined.
//!
//! A [`Block`] is a sequence of [`Let`]s and the [`Atom`] that it yields. Every operand is an atom, so the order of
//! evaluation is the order of the `let`s. Three operations leave a block early: [`Op::Return`], [`Op::Fail`], and any
//! other operation that fails ([`Op::may_end`]); all of them end the flow. An early exit from an inlined `fn` is
//! expressed by nesting: the continuation is moved into the branches that do not exit.

use weir_host::{Mode, Resource, Text, Type, Value};

mod traverse;

use crate::prim::Prim;
use crate::program;
pub use crate::program::{Origin, Var, Variable};
pub use traverse::{Runs, Scope, ScopeMut};

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

/// An operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// A primitive: arithmetic, comparison, construction and deconstruction of values.
    Prim(Prim, Vec<Atom>),
    /// A call of a host function.
    Call(Call),
    /// Chooses the first arm whose test holds, and yields what it yields. Tests cover every value.
    Switch {
        /// The value that the arms test.
        subject: Atom,
        /// The arms.
        arms: Vec<Arm>,
    },
    /// Maps a list, in order: `for x in xs { … }` (the thesis's `smap`).
    Map {
        /// The list.
        list: Atom,
        /// The element within the body.
        element: Variable,
        /// The body, which yields one element of the result.
        body: Block,
    },
    /// Folds a list from its front. Several states are yielded as a tuple.
    Fold {
        /// The list.
        list: Atom,
        /// The initial states, at least one.
        init: Vec<Atom>,
        /// The states, within the body.
        state: Vec<Variable>,
        /// The element, within the body.
        element: Variable,
        /// The body, which yields the next state, or the tuple of the next states.
        body: Block,
    },
    /// `loop state = init { body } until … at most n`: evaluates the body with the states, whose result is the tuple
    /// `(next states…, done)`; yields the next state, or the tuple of the next states, when done. Fails with
    /// [`weir_host::FailureKind::Limit`] after `at_most` rounds.
    Loop {
        /// The initial states, at least one.
        init: Vec<Atom>,
        /// The states, within the body.
        state: Vec<Variable>,
        /// The body, which yields the tuple.
        body: Block,
        /// The bound, at least 1.
        at_most: u64,
    },
    /// Evaluates the body while it holds the constraints, and yields what it yields.
    Atomic {
        /// The constraints that the step holds, in the canonical order, each once.
        constraints: Vec<Constraint>,
        /// The session, if a constraint is per session.
        session: Option<Atom>,
        /// The body, which is one atomic step.
        body: Block,
    },
    /// Evaluates the body for as long as the limit allows: `Some` of what it yields, or `None`. When the limit expires,
    /// the body is cancelled at its current wait; its effects so far remain.
    ///
    /// A captured variable that the body changes, or whose value can only be moved, is moved out in either case.
    Within {
        /// The time limit, a `Duration`.
        limit: Atom,
        /// The body, which is cancelled when the limit expires.
        body: Block,
    },
    /// Evaluates the bodies concurrently, and yields the result of the first that ends; the others are cancelled at
    /// their current waits. For captured variables, see [`Op::Within`].
    Race {
        /// The bodies, at least one.
        bodies: Vec<Block>,
    },
    /// Ends the flow with an answer.
    Return(Atom),
    /// Ends the flow with a failure.
    Fail(Atom),
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

/// Returns the type of what a loop or fold with states of these types yields: the type of the only state, or a tuple.
#[must_use]
pub fn state_type(types: &[Type]) -> Type {
    match types {
        [only] => only.clone(),
        _ => Type::Tuple(types.into()),
    }
}

/// Returns the type of what a round of a loop with states of these types yields.
#[must_use]
pub fn round_type(types: &[Type]) -> Type {
    Type::Tuple(types.iter().cloned().chain([Type::Bool]).collect())
}

impl Op {
    /// Returns true if the operation itself may end the flow, apart from the operations in its blocks.
    ///
    /// Faults of calls (a panic, an argument outside the Rust type's range) do not count: they are bugs of a function
    /// or its caller, and if every effect were ordered after every earlier call, nothing could overlap.
    #[must_use]
    pub fn may_end(&self) -> bool {
        match self {
            Op::Prim(prim, _) => prim.may_fail(),
            Op::Return(_) | Op::Fail(_) | Op::Loop { .. } => true,
            Op::Call(_)
            | Op::Switch { .. }
            | Op::Map { .. }
            | Op::Fold { .. }
            | Op::Atomic { .. }
            | Op::Within { .. }
            | Op::Race { .. } => false,
        }
    }
}
