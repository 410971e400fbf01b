//! Blocks in the making, whose ends are not yet decided.
//!
//! The expression IR can end a flow from anywhere, but it cannot leave an inlined `fn`: what follows has to be nested
//! into the branches that do not leave. A [`OpenBlock`] is a tree of blocks whose leaves say how they end: they *fall*
//! through with a value, they *leave* a `fn` with its result, or they never end.
//!
//! How drafts become blocks:
//! 1. A branch is drafted in a [`BlockBuilder`] of its own.
//! 2. No leaf leaves: the branches are blocks, and the value is the switch's.
//! 3. One leaf fall_through_count through, the others leave: what follows is written into that leaf ([`BlockBuilder::continue_in`]).
//! 4. Several fall through and some leave: they yield `Ok(value)` or `Err(result)`, and what follows goes into the `Ok`
//!    arm of a second switch, so that no code is written twice.
//! 5. Projection the end of the `fn` its leaves fall through.

use weir_host::{Type, Value};
use weir_ir::expr::{Arm, ArmTest, Atom, Block, Let, Op, Origin, Variable};
use weir_ir::prim::Prim;

/// The number of an inlined call of a `fn`, within its flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct InlineFrameId(pub(super) u32);

/// A block whose ends are not yet decided.
#[derive(Debug)]
pub(super) struct OpenBlock {
    pub(super) lets: Vec<Let>,
    pub(super) end: Terminator,
}

/// How a open_block ends.
#[derive(Debug)]
pub(super) enum Terminator {
    /// It goes on, with this value.
    FallThrough(Atom),
    /// It leaves the inlined `fn` with this result.
    Exit(InlineFrameId, Atom),
    /// Its last binding never yields.
    Diverge,
    /// The arms decide.
    Switch { subject: Atom, arms: Vec<OpenArm>, origin: Origin },
}

#[derive(Debug)]
pub(super) struct OpenArm {
    pub(super) test: ArmTest,
    pub(super) payload: Vec<Variable>,
    pub(super) body: OpenBlock,
}

impl OpenBlock {
    /// How many leaves fall through.
    pub(super) fn fall_through_count(&self) -> usize {
        match &self.end {
            Terminator::FallThrough(_) => 1,
            Terminator::Exit(..) | Terminator::Diverge => 0,
            Terminator::Switch { arms, .. } => arms.iter().map(|arm| arm.body.fall_through_count()).sum(),
        }
    }

    /// The `fn`s that its leaves leave, outermost first.
    pub(super) fn exit_targets(&self, found: &mut Vec<InlineFrameId>) {
        match &self.end {
            Terminator::Exit(frame, _) => {
                if let Err(at) = found.binary_search(frame) {
                    found.insert(at, *frame);
                }
            }
            Terminator::FallThrough(_) | Terminator::Diverge => {}
            Terminator::Switch { arms, .. } => arms.iter().for_each(|arm| arm.body.exit_targets(found)),
        }
    }

    /// Lets every leaf that leaves `frame` fall through.
    pub(super) fn resolve_exits(&mut self, frame: InlineFrameId) {
        match &mut self.end {
            Terminator::Exit(target, result) if *target == frame => self.end = Terminator::FallThrough(result.clone()),
            Terminator::Switch { arms, .. } => arms.iter_mut().for_each(|arm| arm.body.resolve_exits(frame)),
            _ => {}
        }
    }

    /// The block; `value` turns what a leaf ends with into what the block yields there.
    pub(super) fn close(mut self, rules: &mut ClosingRules<'_>) -> Block {
        let result = match self.end {
            Terminator::Diverge => Atom::Value(Value::Unit),
            Terminator::FallThrough(value) => (rules.fall)(rules.vars, &mut self.lets, value),
            Terminator::Exit(frame, value) => (rules.leave)(rules.vars, &mut self.lets, frame, value),
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

    /// Whether any leaf gets to an end.
    pub(super) fn yields(&self) -> bool {
        match &self.end {
            Terminator::FallThrough(_) | Terminator::Exit(..) => true,
            Terminator::Diverge => false,
            Terminator::Switch { arms, .. } => arms.iter().any(|arm| arm.body.yields()),
        }
    }
}

/// How the leaves of a open_block are closed.
pub(super) struct ClosingRules<'c> {
    pub(super) vars: &'c mut VariableSupply,
    /// The type of what the block yields.
    pub(super) ty: Type,
    pub(super) fall: &'c YieldValue<'c>,
    pub(super) leave: &'c YieldExit<'c>,
}

/// What a block yields where it fall_through_count through with a value; may add bindings.
type YieldValue<'c> = dyn Fn(&mut VariableSupply, &mut Vec<Let>, Atom) -> Atom + 'c;

/// What a block yields where it leaves a frame with a result; may add bindings.
type YieldExit<'c> = dyn Fn(&mut VariableSupply, &mut Vec<Let>, InlineFrameId, Atom) -> Atom + 'c;

/// The variables of one flow.
#[derive(Default)]
pub(super) struct VariableSupply {
    count: u32,
}

impl VariableSupply {
    /// How many there are; the next one has this number.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn variable(&mut self, name: &str, ty: Type) -> Variable {
        self.count += 1;
        Variable { var: weir_ir::expr::Var(self.count - 1), name: name.into(), ty }
    }

    /// Binds the operation, and gives its variable; `()` where it never yields.
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

/// A open_block to which bindings are added.
#[derive(Default)]
pub(super) struct BlockBuilder {
    /// The switches in one of whose arms the scope goes on, from the outermost.
    open: Vec<OpenSwitch>,
    lets: Vec<Let>,
    /// Set once nothing can follow.
    ended: Option<Terminator>,
}

struct OpenSwitch {
    lets: Vec<Let>,
    subject: Atom,
    arms: Vec<OpenArm>,
    /// The index of the arm in which the scope goes on, with its test and payload.
    at: usize,
    test: ArmTest,
    payload: Vec<Variable>,
    origin: Origin,
}

impl BlockBuilder {
    /// Whether nothing can follow.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// In how many arms it goes on.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    pub(super) fn lets_mut(&mut self) -> &mut Vec<Let> {
        &mut self.lets
    }

    /// Nothing follows.
    pub(super) fn end(&mut self, end: Terminator) {
        self.ended.get_or_insert(end);
    }

    /// Goes on in the one leaf of the open_block that fall_through_count through, and gives its value.
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

    /// The open_block, which fall_through_count through with the value unless it has ended before.
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
