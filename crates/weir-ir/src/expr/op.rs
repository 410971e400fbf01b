//! Operations of the expression IR: what each is, and the two tables by which programs are walked.
//!
//! One table has the operands, blocks and binders of each operation: the `match` in the macro below, which is expanded for
//! shared and for mutable references. The other, `row`, has all else. The verifier, the printer, the parser, the lowering,
//! the passes and the checks of the compiler follow them, and match on [`Op`] only if an operation needs a treatment of its
//! own.

use weir_host::Text;

use super::{Arm, Atom, Block, Call, Constraint, LoopExit, Var, Variable};
use crate::body_types::BodyTypes;
use crate::prim::Prim;

/// Maximum number of times that a transaction is tried which the database refuses.
pub const TRANSACTION_ATTEMPTS_MAX: u32 = 8;

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
        /// The way in which it ends before the list does.
        exit: LoopExit,
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
        /// The shared values that get back the values that they had when the step began, unless it completes what it has begun in the
        /// environment ([`StepEnd::has_completed`](weir_host::StepEnd::has_completed)). The step, or one around it, holds them
        /// exclusively. It names a constraint of [`StepEnds`](weir_host::StepEnds).
        restores: Vec<Text>,
        /// The session, if a constraint is per session.
        session: Option<Atom>,
        /// True if the flow may be cancelled within the step, because it is a call and no more: the locks are released.
        cancellable: bool,
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
    /// Evaluates the body, which is a transaction, and yields what it yields. If an operation in it fails because the database refuses
    /// the transaction ([`weir_host::Failure::is_refusal`]), evaluates the body again: nothing of the attempt has taken effect. There are
    /// at most [`TRANSACTION_ATTEMPTS_MAX`] attempts.
    Transaction {
        /// True in the last attempt, whose failure is one of the program.
        is_last: Variable,
        /// The body.
        body: Block,
    },
    /// Evaluates the body: `Ok` of what it yields or, if an operation in it fails, `Err` of the tuple of the failure and its
    /// position in the source. [`Op::Return`] and [`Op::Fail`] in the body end the flow.
    ///
    /// Only tests catch failures, and tests run in the evaluator: the graph has no such operation.
    Catch {
        /// The body, which ends at the first failure; its effects so far remain.
        body: Block,
    },
    /// Ends the flow with an answer.
    Return(Atom),
    /// Ends the flow with a failure.
    Fail(Atom),
}

/// The number of times that a block runs when its operation is evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runs {
    /// Exactly once, unless the flow or the body ends early: the body of an atomic step.
    #[default]
    Once,
    /// At most once: an arm of a switch, of which exactly one runs.
    IfChosen,
    /// Once for each element or round.
    Repeatedly,
    /// Once, unless it is cancelled before its end.
    UnlessCancelled,
}

/// The properties of an operation besides its parts.
struct OpRow {
    /// The word in the printed program.
    word: &'static str,
    runs: Runs,
    /// The types around its bodies; `None` for operations without bodies, and for those whose blocks are arms.
    bodies: Option<BodyTypes>,
    may_end: bool,
}

impl OpRow {
    const fn plain(word: &'static str) -> OpRow {
        OpRow { word, runs: Runs::Once, bodies: None, may_end: false }
    }

    const fn with_bodies(word: &'static str, runs: Runs, types: BodyTypes) -> OpRow {
        OpRow { word, runs, bodies: Some(types), may_end: false }
    }
}

impl Op {
    fn row(&self) -> OpRow {
        match self {
            Op::Prim(prim, _) => OpRow { may_end: prim.may_fail(), ..OpRow::plain(prim.name()) },
            Op::Call(_) => OpRow::plain("call"),
            Op::Switch { .. } => OpRow { runs: Runs::IfChosen, ..OpRow::plain("switch") },
            Op::Map { .. } => OpRow::with_bodies("for", Runs::Repeatedly, BodyTypes::MAP),
            Op::Fold { .. } => OpRow::with_bodies("fold", Runs::Repeatedly, BodyTypes::FOLD),
            Op::Loop { .. } => OpRow { may_end: true, ..OpRow::with_bodies("loop", Runs::Repeatedly, BodyTypes::LOOP) },
            Op::Atomic { .. } => OpRow::with_bodies("atomic", Runs::Once, BodyTypes::RESULT),
            Op::Within { .. } => OpRow::with_bodies("within", Runs::UnlessCancelled, BodyTypes::WITHIN),
            Op::Race { .. } => OpRow::with_bodies("race", Runs::UnlessCancelled, BodyTypes::RESULT),
            Op::Transaction { .. } => OpRow::with_bodies("transaction", Runs::Once, BodyTypes::TRANSACTION),
            Op::Catch { .. } => OpRow::with_bodies("catch", Runs::Once, BodyTypes::CATCH),
            Op::Return(_) => OpRow { may_end: true, ..OpRow::plain("return") },
            Op::Fail(_) => OpRow { may_end: true, ..OpRow::plain("fail") },
        }
    }

    /// Returns the operations that the printed program shows by their word and their operand alone, without their blocks.
    pub(crate) fn without_details() -> [Op; 6] {
        let (operand, body) = (Atom::Value(weir_host::Value::Unit), Block::empty());
        [
            Op::Switch { subject: operand.clone(), arms: Vec::new() },
            Op::Within { limit: operand.clone(), body: body.clone() },
            Op::Catch { body },
            Op::Race { bodies: Vec::new() },
            Op::Return(operand.clone()),
            Op::Fail(operand),
        ]
    }

    /// Returns the bodies, if there can be any number of them: the printed program then has a heading above each.
    pub(crate) fn branches_mut(&mut self) -> Option<&mut Vec<Block>> {
        if let Op::Race { bodies } = self { Some(bodies) } else { None }
    }

    /// Returns true if there can be any number of bodies.
    pub(crate) fn has_branches(&self) -> bool {
        matches!(self, Op::Race { .. })
    }

    /// Returns the word for the operation in the printed program.
    #[must_use]
    pub fn word(&self) -> &'static str {
        self.row().word
    }

    /// Returns the number of times that its blocks run.
    #[must_use]
    pub fn runs(&self) -> Runs {
        self.row().runs
    }

    /// Returns the types around the bodies, if it has bodies.
    pub(crate) fn body_types(&self) -> Option<BodyTypes> {
        self.row().bodies
    }

    /// Returns true if the operation itself may end the flow, apart from the operations in its blocks.
    ///
    /// Calls do not count. Faults of theirs (a panic, an argument outside the Rust type's range) are bugs of a function or its caller,
    /// and if every effect were ordered after every earlier call, nothing could overlap. A function that may end the flow without
    /// a fault says so ([`weir_host::Effects::may_end`]).
    #[must_use]
    pub fn may_end(&self) -> bool {
        self.row().may_end
    }
}

macro_rules! traversal {
    ($Parts:ident, $Scope:ident, $parts:ident, $operands:ident, $scopes:ident, $blocks:ident,
     $as_option:ident, $one:path $(, $mutable:tt)?) => {
        /// The parts of an operation, by their multiplicity.
        #[derive(Default)]
        struct $Parts<'a> {
            operands: &'a $($mutable)? [Atom],
            single: Option<&'a $($mutable)? Atom>,
            arms: &'a $($mutable)? [Arm],
            bodies: &'a $($mutable)? [Block],
            /// The variables that the only body binds.
            binders: [&'a $($mutable)? [Variable]; 2],
        }

        /// A block of an operation, with the variables that the operation binds in it.
        pub struct $Scope<'a> {
            /// The variables that the operation binds in the block.
            pub binders: [&'a $($mutable)? [Variable]; 2],
            /// The block.
            pub block: &'a $($mutable)? Block,
            /// The number of times that it runs.
            pub runs: Runs,
        }

        impl Op {
            fn $parts(&$($mutable)? self) -> $Parts<'_> {
                let none = $Parts::default();
                match self {
                    Op::Prim(_, operands) => $Parts { operands, ..none },
                    Op::Call(call) => $Parts { operands: &$($mutable)? call.arguments, ..none },
                    Op::Switch { subject, arms } => $Parts { single: Some(subject), arms, ..none },
                    Op::Map { list, element, body } => $Parts {
                        single: Some(list),
                        bodies: $one(body),
                        binders: [$one(element), Default::default()],
                        ..none
                    },
                    Op::Fold { list, init, state, element, body, exit: _ } => $Parts {
                        operands: init,
                        single: Some(list),
                        bodies: $one(body),
                        binders: [state, $one(element)],
                        ..none
                    },
                    Op::Loop { init, state, body, at_most: _ } => $Parts {
                        operands: init,
                        bodies: $one(body),
                        binders: [state, Default::default()],
                        ..none
                    },
                    Op::Atomic { constraints: _, restores: _, session, cancellable: _, body } => {
                        $Parts { single: session.$as_option(), bodies: $one(body), ..none }
                    }
                    Op::Within { limit, body } => {
                        $Parts { single: Some(limit), bodies: $one(body), ..none }
                    }
                    Op::Race { bodies } => $Parts { bodies, ..none },
                    Op::Transaction { is_last, body } => $Parts {
                        bodies: $one(body),
                        binders: [$one(is_last), Default::default()],
                        ..none
                    },
                    Op::Catch { body } => $Parts { bodies: $one(body), ..none },
                    Op::Return(atom) | Op::Fail(atom) => $Parts { single: Some(atom), ..none },
                }
            }

            /// Returns the operands, without those of inner blocks.
            pub fn $operands(&$($mutable)? self) -> impl Iterator<Item = &$($mutable)? Atom> {
                let parts = self.$parts();
                parts.single.into_iter().chain(parts.operands)
            }

            /// Returns the blocks with their binders.
            pub fn $scopes(&$($mutable)? self) -> impl Iterator<Item = $Scope<'_>> {
                let runs = self.runs();
                let parts = self.$parts();
                let mut binders = Some(parts.binders);
                let arms = parts.arms.into_iter().map(move |arm| $Scope {
                    binders: [&$($mutable)? arm.payload, Default::default()],
                    block: &$($mutable)? arm.body,
                    runs,
                });
                let bodies = parts.bodies.into_iter().map(move |block| {
                    let binders = binders.take().unwrap_or_default();
                    $Scope { binders, block, runs }
                });
                arms.chain(bodies)
            }

            /// Returns the blocks.
            pub fn $blocks(&$($mutable)? self) -> impl Iterator<Item = &$($mutable)? Block> {
                self.$scopes().map(|scope| scope.block)
            }
        }
    };
}

traversal!(Parts, Scope, parts, operands, scopes, blocks, as_ref, std::slice::from_ref);
traversal!(PartsMut, ScopeMut, parts_mut, operands_mut, scopes_mut, blocks_mut, as_mut, std::slice::from_mut, mut);

impl<'a> Scope<'a> {
    /// Returns the variables that the operation binds in the block.
    pub fn variables(&self) -> impl Iterator<Item = &'a Variable> + use<'a> {
        self.binders.into_iter().flatten()
    }
}

impl Op {
    /// Returns the variables that the operation binds in its blocks.
    pub fn binders(&self) -> impl Iterator<Item = &Variable> {
        self.scopes().flat_map(|scope| scope.variables())
    }

    /// Returns the variables among its operands, without those that only inner blocks use.
    pub fn uses(&self) -> impl Iterator<Item = Var> {
        self.operands().filter_map(Atom::variable)
    }
}
