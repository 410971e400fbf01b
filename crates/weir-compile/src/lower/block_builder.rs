//! The block builder: builds blocks whose exits are not resolved yet.
//!
//! The expression IR can end a flow from anywhere, but it cannot exit an inlined `fn`. The continuation therefore has
//! to be nested into the branches that do not exit. An [`OpenBlock`] is a tree of blocks whose leaves have a
//! [`Terminator`]: they *fall through* with a value, *exit* a `fn` with its result, or *diverge*.
//!
//! An open block is closed as follows:
//! 1. Each branch is built by a [`BlockBuilder`] of its own.
//! 2. If no leaf exits, the branches are blocks, and the value is that of the switch.
//! 3. If one leaf falls through and others exit, the continuation is built inside that leaf
//!    ([`BlockBuilder::continue_in`]).
//! 4. If several leaves fall through and some exit, the block yields `Ok(value)` or `Err(result)`. The continuation
//!    goes into the `Ok` arm of a second switch (a join point), so that no code is duplicated.
//! 5. At the end of the `fn` its exits become fall-throughs.

use weir_host::{Type, Value};
use weir_ir::expr::{Arm, ArmTest, Atom, Block, Let, LoopExit, Op, Origin, Var, Variable};
use weir_ir::prim::Prim;

/// The number of an inlined call of a `fn`, within its flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct InlineFrameId(pub(super) u32);

/// A block whose exits are not resolved yet.
#[derive(Debug)]
pub(super) struct OpenBlock {
    pub(super) lets: Vec<Let>,
    pub(super) end: Terminator,
}

/// The end of an open block.
#[derive(Debug)]
pub(super) enum Terminator {
    /// Continues with this value.
    FallThrough(Atom),
    /// Exits the inlined `fn` with this result, in this way.
    Exit(InlineFrameId, Atom, LoopExit),
    /// Unreachable: the last binding never yields.
    Diverge,
    /// Branches to the arms.
    Switch { subject: Atom, arms: Vec<OpenArm>, origin: Origin },
}

#[derive(Debug)]
pub(super) struct OpenArm {
    pub(super) test: ArmTest,
    pub(super) payload: Vec<Variable>,
    pub(super) body: OpenBlock,
}

/// The exits of an open block.
#[derive(Default)]
pub(super) struct BlockExits {
    /// The `fn`s that it exits, outermost first.
    pub(super) targets: Vec<InlineFrameId>,
    /// The way: by a `return`, or by failures alone.
    pub(super) how: LoopExit,
}

impl BlockExits {
    pub(super) fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }
}

impl OpenBlock {
    /// Returns the number of leaves that fall through.
    pub(super) fn fall_through_count(&self) -> usize {
        match &self.end {
            Terminator::FallThrough(_) => 1,
            Terminator::Exit(..) | Terminator::Diverge => 0,
            Terminator::Switch { arms, .. } => arms.iter().map(|arm| arm.body.fall_through_count()).sum(),
        }
    }

    /// Returns the exits of the leaves.
    pub(super) fn exits(&self) -> BlockExits {
        let mut exits = BlockExits::default();
        self.add_exits(&mut exits);
        exits
    }

    /// Adds the exits of the leaves.
    pub(super) fn add_exits(&self, exits: &mut BlockExits) {
        match &self.end {
            Terminator::Exit(frame, _, how) => {
                if let Err(at) = exits.targets.binary_search(frame) {
                    exits.targets.insert(at, *frame);
                }
                exits.how = exits.how.or(*how);
            }
            Terminator::FallThrough(_) | Terminator::Diverge => {}
            Terminator::Switch { arms, .. } => arms.iter().for_each(|arm| arm.body.add_exits(exits)),
        }
    }

    /// Returns whether this holds of a binding, outside of the blocks of operations.
    pub(super) fn any_binding(&self, holds: &impl Fn(&Let) -> bool) -> bool {
        self.lets.iter().any(holds)
            || match &self.end {
                Terminator::Switch { arms, .. } => arms.iter().any(|arm| arm.body.any_binding(holds)),
                _ => false,
            }
    }

    /// Visits the bindings, those within operations too.
    pub(super) fn each_binding(&self, see: &mut impl FnMut(&Let)) {
        for binding in &self.lets {
            see(binding);
            binding.op.blocks().for_each(|inner| inner.each_binding(see));
        }
        if let Terminator::Switch { arms, .. } = &self.end {
            arms.iter().for_each(|arm| arm.body.each_binding(see));
        }
    }

    /// Turns the exits of `frame` into fall-throughs.
    pub(super) fn resolve_exits(&mut self, frame: InlineFrameId) {
        match &mut self.end {
            Terminator::Exit(target, result, _) if *target == frame => {
                self.end = Terminator::FallThrough(result.clone())
            }
            Terminator::Switch { arms, .. } => arms.iter_mut().for_each(|arm| arm.body.resolve_exits(frame)),
            _ => {}
        }
    }

    /// Closes the block. The rules turn the value of each leaf into what the block yields there.
    pub(super) fn close(mut self, rules: &mut ClosingRules<'_>) -> Block {
        let result = match self.end {
            Terminator::Diverge => Atom::Value(Value::Unit),
            Terminator::FallThrough(value) => (rules.fall)(rules.vars, &mut self.lets, value),
            Terminator::Exit(frame, value, _) => (rules.leave)(rules.vars, &mut self.lets, frame, value),
            Terminator::Switch { subject, arms, origin } => {
                let yields = arms.iter().any(|arm| arm.body.yields());
                let arms = arms.into_iter().map(|arm| Arm {
                    test: arm.test,
                    payload: arm.payload,
                    body: arm.body.close(rules),
                });
                let op = Op::Switch { subject, arms: arms.collect() };
                let ty = if yields { rules.ty.clone() } else { Type::Never };
                rules.vars.push(&mut self.lets, op, ty, origin)
            }
        };
        Block { lets: self.lets, result }
    }

    /// Returns whether any leaf is reachable.
    pub(super) fn yields(&self) -> bool {
        match &self.end {
            Terminator::FallThrough(_) | Terminator::Exit(..) => true,
            Terminator::Diverge => false,
            Terminator::Switch { arms, .. } => arms.iter().any(|arm| arm.body.yields()),
        }
    }
}

/// The values that a closed block yields at its leaves.
pub(super) struct ClosingRules<'c> {
    pub(super) vars: &'c mut VariableSupply,
    /// The type of the block's value.
    pub(super) ty: Type,
    pub(super) fall: &'c YieldValue<'c>,
    pub(super) leave: &'c YieldExit<'c>,
}

/// Computes what the block yields if it falls through with a value; may add bindings.
type YieldValue<'c> = dyn Fn(&mut VariableSupply, &mut Vec<Let>, Atom) -> Atom + 'c;

/// Computes what the block yields if it exits a frame with a result; may add bindings.
type YieldExit<'c> = dyn Fn(&mut VariableSupply, &mut Vec<Let>, InlineFrameId, Atom) -> Atom + 'c;

/// Yields a value as it is.
pub(super) fn yield_value(_: &mut VariableSupply, _: &mut Vec<Let>, value: Atom) -> Atom {
    value
}

/// Yields the result of an exit as it is.
pub(super) fn yield_exit_value(_: &mut VariableSupply, _: &mut Vec<Let>, _: InlineFrameId, value: Atom) -> Atom {
    value
}

/// The supply of variables of one flow.
#[derive(Default)]
pub(super) struct VariableSupply {
    /// Their types.
    types: Vec<Type>,
}

impl VariableSupply {
    /// Returns the number of variables, which is the number of the next one.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.types.len()).expect("a program has fewer than 2^32 variables")
    }

    /// Returns the type of a variable.
    pub(super) fn type_of(&self, var: Var) -> Option<&Type> {
        self.types.get(var.0 as usize)
    }

    pub(super) fn variable(&mut self, name: &str, ty: Type) -> Variable {
        let var = Var(self.count());
        self.types.push(ty.clone());
        Variable { var, name: name.into(), ty }
    }

    /// Appends a binding and returns its variable, or `()` if the operation never yields.
    pub(super) fn push(&mut self, lets: &mut Vec<Let>, op: Op, ty: Type, origin: Origin) -> Atom {
        let never = ty == Type::Never;
        let bound = self.variable("", ty);
        let atom = if never { Atom::Value(Value::Unit) } else { Atom::Var(bound.var) };
        lets.push(Let { bound, op, origin });
        atom
    }

    pub(super) fn variant(&mut self, lets: &mut Vec<Let>, tag: u32, value: Atom, ty: Type) -> Atom {
        self.push(lets, Op::Prim(Prim::Variant(tag), vec![value]), ty, Origin::default())
    }
}

/// Builds an open block by appending bindings.
#[derive(Default)]
pub(super) struct BlockBuilder {
    /// The switches around the current position, each with the arm that contains it, outermost first.
    open: Vec<OpenSwitch>,
    lets: Vec<Let>,
    /// Set once the current position is unreachable.
    ended: Option<Terminator>,
}

struct OpenSwitch {
    lets: Vec<Let>,
    subject: Atom,
    arms: Vec<OpenArm>,
    /// The index of the arm that contains the current position.
    at: usize,
    test: ArmTest,
    payload: Vec<Variable>,
    origin: Origin,
}

impl BlockBuilder {
    /// Returns whether the current position is unreachable.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns the number of arms around the current position.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    pub(super) fn lets_mut(&mut self) -> &mut Vec<Let> {
        &mut self.lets
    }

    /// Ends the block, unless it has ended.
    pub(super) fn end(&mut self, end: Terminator) {
        self.ended.get_or_insert(end);
    }

    /// Continues in the only leaf of a block that falls through, and returns its value.
    pub(super) fn continue_in(&mut self, open_block: OpenBlock) -> Atom {
        self.lets.extend(open_block.lets);
        match open_block.end {
            Terminator::FallThrough(value) => value,
            Terminator::Switch { subject, mut arms, origin } => {
                let Some(at) = arms.iter().position(|arm| arm.body.fall_through_count() > 0) else {
                    self.end(Terminator::Switch { subject, arms, origin });
                    return Atom::Value(Value::Unit);
                };
                let OpenArm { test, payload, body } = arms.remove(at);
                let lets = std::mem::take(&mut self.lets);
                self.open.push(OpenSwitch { lets, subject, arms, at, test, payload, origin });
                self.continue_in(body)
            }
            end => {
                self.end(end);
                Atom::Value(Value::Unit)
            }
        }
    }

    /// Returns the open block, which falls through with the value unless it has ended.
    pub(super) fn finish(self, value: Atom) -> OpenBlock {
        let end = self.ended.unwrap_or(Terminator::FallThrough(value));
        let innermost = OpenBlock { lets: self.lets, end };
        self.open.into_iter().rev().fold(innermost, |body, open| {
            let OpenSwitch { lets, subject, mut arms, at, test, payload, origin } = open;
            arms.insert(at, OpenArm { test, payload, body });
            OpenBlock { lets, end: Terminator::Switch { subject, arms, origin } }
        })
    }
}
