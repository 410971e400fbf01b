//! Blocks in the making, whose ends are not yet decided.
//!
//! The expression IR can end a flow from anywhere, but it cannot leave an inlined `fn`: what follows has to be nested
//! into the branches that do not leave. A [`Draft`] is a tree of blocks whose leaves say how they end: they *fall*
//! through with a value, they *leave* a `fn` with its result, or they never end.
//!
//! How drafts become blocks:
//! 1. A branch is drafted in a [`Scope`] of its own.
//! 2. No leaf leaves: the branches are blocks, and the value is the switch's.
//! 3. One leaf falls through, the others leave: what follows is written into that leaf ([`Scope::continue_in`]).
//! 4. Several fall through and some leave: they yield `Ok(value)` or `Err(result)`, and what follows goes into the `Ok`
//!    arm of a second switch, so that no code is written twice.
//! 5. At the end of the `fn` its leaves fall through.

use weir_host::{Type, Value};
use weir_ir::expr::{Arm, ArmTest, Atom, Block, Let, Op, Origin, Variable};
use weir_ir::prim::Prim;

/// The number of an inlined call of a `fn`, within its flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct FrameId(pub(super) u32);

/// A block whose ends are not yet decided.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) lets: Vec<Let>,
    pub(super) end: End,
}

/// How a draft ends.
#[derive(Debug)]
pub(super) enum End {
    /// It goes on, with this value.
    Fall(Atom),
    /// It leaves the inlined `fn` with this result.
    Leave(FrameId, Atom),
    /// Its last binding never yields.
    Never,
    /// The arms decide.
    Switch { subject: Atom, arms: Vec<DraftArm>, origin: Origin },
}

#[derive(Debug)]
pub(super) struct DraftArm {
    pub(super) test: ArmTest,
    pub(super) payload: Vec<Variable>,
    pub(super) body: Draft,
}

impl Draft {
    /// How many leaves fall through.
    pub(super) fn falls(&self) -> usize {
        match &self.end {
            End::Fall(_) => 1,
            End::Leave(..) | End::Never => 0,
            End::Switch { arms, .. } => arms.iter().map(|arm| arm.body.falls()).sum(),
        }
    }

    /// The `fn`s that its leaves leave, outermost first.
    pub(super) fn targets(&self, found: &mut Vec<FrameId>) {
        match &self.end {
            End::Leave(frame, _) => {
                if let Err(at) = found.binary_search(frame) {
                    found.insert(at, *frame);
                }
            }
            End::Fall(_) | End::Never => {}
            End::Switch { arms, .. } => arms.iter().for_each(|arm| arm.body.targets(found)),
        }
    }

    /// Lets every leaf that leaves `frame` fall through.
    pub(super) fn arrive(&mut self, frame: FrameId) {
        match &mut self.end {
            End::Leave(target, result) if *target == frame => self.end = End::Fall(result.clone()),
            End::Switch { arms, .. } => arms.iter_mut().for_each(|arm| arm.body.arrive(frame)),
            _ => {}
        }
    }

    /// The block; `value` turns what a leaf ends with into what the block yields there.
    pub(super) fn close(mut self, closing: &mut Closing<'_>) -> Block {
        let result = match self.end {
            End::Never => Atom::Value(Value::Unit),
            End::Fall(value) => (closing.fall)(closing.vars, &mut self.lets, value),
            End::Leave(frame, value) => (closing.leave)(closing.vars, &mut self.lets, frame, value),
            End::Switch { subject, arms, origin } => {
                let yields = arms.iter().any(|arm| arm.body.yields());
                let arms = arms.into_iter().map(|arm| Arm {
                    test: arm.test,
                    payload: arm.payload,
                    body: arm.body.close(closing),
                });
                let op = Op::Switch { subject, arms: arms.collect() };
                let ty = if yields { closing.ty.clone() } else { Type::Never };
                closing.vars.push(&mut self.lets, op, ty, origin)
            }
        };
        Block { lets: self.lets, result }
    }

    /// Whether any leaf gets to an end.
    pub(super) fn yields(&self) -> bool {
        match &self.end {
            End::Fall(_) | End::Leave(..) => true,
            End::Never => false,
            End::Switch { arms, .. } => arms.iter().any(|arm| arm.body.yields()),
        }
    }
}

/// How the leaves of a draft are closed.
pub(super) struct Closing<'c> {
    pub(super) vars: &'c mut Vars,
    /// The type of what the block yields.
    pub(super) ty: Type,
    pub(super) fall: &'c Fall<'c>,
    pub(super) leave: &'c Leave<'c>,
}

/// What a block yields where it falls through with a value; may add bindings.
type Fall<'c> = dyn Fn(&mut Vars, &mut Vec<Let>, Atom) -> Atom + 'c;

/// What a block yields where it leaves a frame with a result; may add bindings.
type Leave<'c> = dyn Fn(&mut Vars, &mut Vec<Let>, FrameId, Atom) -> Atom + 'c;

/// The variables of one flow.
#[derive(Default)]
pub(super) struct Vars {
    count: u32,
}

impl Vars {
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

/// A draft to which bindings are added.
#[derive(Default)]
pub(super) struct Scope {
    /// The switches in one of whose arms the scope goes on, from the outermost.
    open: Vec<OpenSwitch>,
    lets: Vec<Let>,
    /// Set once nothing can follow.
    ended: Option<End>,
}

struct OpenSwitch {
    lets: Vec<Let>,
    subject: Atom,
    arms: Vec<DraftArm>,
    /// The index of the arm in which the scope goes on, with its test and payload.
    at: usize,
    test: ArmTest,
    payload: Vec<Variable>,
    origin: Origin,
}

impl Scope {
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
    pub(super) fn end(&mut self, end: End) {
        self.ended.get_or_insert(end);
    }

    /// Goes on in the one leaf of the draft that falls through, and gives its value.
    pub(super) fn continue_in(&mut self, draft: Draft) -> Atom {
        self.lets.extend(draft.lets);
        match draft.end {
            End::Fall(value) => value,
            End::Switch { subject, mut arms, origin } => {
                let Some(at) = arms.iter().position(|arm| arm.body.falls() > 0) else {
                    self.end(End::Switch { subject, arms, origin });
                    return Atom::Value(Value::Unit);
                };
                let DraftArm { test, payload, body } = arms.remove(at);
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

    /// The draft, which falls through with the value unless it has ended before.
    pub(super) fn finish(self, value: Atom) -> Draft {
        let end = self.ended.unwrap_or(End::Fall(value));
        let innermost = Draft { lets: self.lets, end };
        self.open.into_iter().rev().fold(innermost, |body, open| {
            let OpenSwitch { lets, subject, mut arms, at, test, payload, origin } = open;
            arms.insert(at, DraftArm { test, payload, body });
            Draft { lets, end: End::Switch { subject, arms, origin } }
        })
    }
}
