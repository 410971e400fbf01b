//! Moves the early part of the body of a `fold` into a `for` before it.
//!
//! The `for` yields a row for each element: the element, and the results of what was moved. The results of an arm are an `Option`,
//! which is `Some` if the `for` has chosen that arm. The `fold` chooses the same arm, and takes the results out of it. If failures are
//! kept, a result that depends on one is a `Result`, which the `fold` unwraps at the place of the operation.
//!
//! * `arms` moves the early parts of the arms of a switch.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Type, Value};

use super::early::{Early, EarlyPart};
use crate::expr::{Arm, ArmTest, Atom, Block, Let, Op, Origin, Var, Variable};
use crate::passes::facts::Facts;
use crate::prim::Prim;

mod arms;

/// Moves the early part of a body out of it. Returns the block that evaluates it for the element `own`, and the variable that stands
/// for its result in the `fold`, whose first field is the element. If it `keeps` failures, they become values.
pub(super) fn move_out(
    body: &mut Block,
    (element, own): (&Variable, &Variable),
    early: &EarlyPart,
    (origin, keeps): (Origin, bool),
    facts: &mut Facts<'_>,
) -> (Block, Variable) {
    let renamed = BTreeMap::from([(element.var, own.var)]);
    let mut mover = Mover { facts, renamed, kept: BTreeSet::new(), keeps, origin };
    let mut made = ForBlock { lets: Vec::new(), results: vec![own.clone()] };
    let taken = mover.block(body, early, &mut made);
    let (made, ty) = mover.row(made);
    let row = mover.facts.variable(ty);
    mover.take(body, taken, &ResultRow { variable: row.clone(), is_tuple: true });
    (made, row)
}

/// A block of the `for` while it is built.
struct ForBlock {
    lets: Vec<Let>,
    /// The fields of its row.
    results: Vec<Variable>,
}

/// A result that the `fold` takes out of a row, by the position of the binding that it stands for.
struct TakenResult {
    position: usize,
    what: TakenValue,
}

enum TakenValue {
    /// The result of the binding, which is this one of the row.
    Result(usize),
    /// The same, which is a `Result` that may have a failure; the variable is bound to that.
    Kept(usize, Variable),
    /// The rows of arms of the switch: this variable, which is bound before the switch.
    Arm(usize, Variable),
    /// The results that are taken in this arm.
    InArm(usize, Vec<TakenResult>),
}

/// The results of a block of the `for`: a tuple, or the only one.
struct ResultRow {
    variable: Variable,
    is_tuple: bool,
}

impl ResultRow {
    fn field(&self, index: usize) -> Op {
        let prim = if self.is_tuple { Prim::Field(u32::try_from(index).unwrap_or(u32::MAX)) } else { Prim::Copy };
        Op::Prim(prim, vec![Atom::Var(self.variable.var)])
    }
}

pub(super) struct Mover<'f, 'a> {
    pub(super) facts: &'f mut Facts<'a>,
    /// The variables of the `for` that stand for those of the `fold`.
    pub(super) renamed: BTreeMap<Var, Var>,
    /// The variables of the `fold` for which a `Result` of a kept failure stands.
    pub(super) kept: BTreeSet<Var>,
    /// True if failures become values.
    pub(super) keeps: bool,
    pub(super) origin: Origin,
}

impl Mover<'_, '_> {
    /// Adds the early part of a block to the block of the `for`. Returns what the block of the `fold` takes from it.
    fn block(&mut self, block: &mut Block, early: &EarlyPart, made: &mut ForBlock) -> Vec<TakenResult> {
        let mut taken = Vec::new();
        for (&position, early) in &early.bindings {
            match (early, &mut block.lets[position]) {
                (Early::Copied, binding) => _ = self.copy(binding, &mut made.lets),
                (Early::Moved, binding) => {
                    let at = made.results.len();
                    let copy = self.copy(binding, &mut made.lets);
                    let what = match self.kept.contains(&binding.bound.var) {
                        true => TakenValue::Kept(at, self.facts.variable(copy.ty.clone())),
                        false => TakenValue::Result(at),
                    };
                    made.results.push(copy);
                    taken.push(TakenResult { position, what });
                }
                (Early::Arms(early), Let { bound, op: Op::Switch { subject, arms }, origin }) => {
                    let outside = std::mem::replace(&mut self.origin, *origin);
                    let arms = self.arms((bound, subject, arms), early, made);
                    self.origin = outside;
                    taken.extend(arms.into_iter().map(|what| TakenResult { position, what }));
                }
                (Early::Going(going, part), Let { op: Op::Switch { arms, .. }, .. }) => {
                    let what = TakenValue::InArm(*going, self.block(&mut arms[*going].body, part, made));
                    taken.push(TakenResult { position, what });
                }
                _ => unreachable!("only a switch has arms"),
            }
        }
        taken
    }

    /// Adds a copy of a binding; returns its variable.
    pub(super) fn copy(&mut self, binding: &Let, lets: &mut Vec<Let>) -> Variable {
        if self.may_fail(&binding.op) {
            return self.copy_kept(binding, lets);
        }
        let copy = Let { bound: self.renewed(&binding.bound), op: self.renamed_op(&binding.op), ..*binding };
        let bound = copy.bound.clone();
        lets.push(copy);
        bound
    }

    /// Returns the operation with the variables of the `for`.
    pub(super) fn renamed_op(&self, op: &Op) -> Op {
        let mut copy = op.clone();
        copy.operands_mut().for_each(|atom| self.rename(atom));
        copy.blocks_mut().for_each(|block| block.each_operand_mut(&mut |atom| self.rename(atom)));
        copy
    }

    /// Ends a block of the `for` with its row; returns the block and the type of the row.
    fn row(&mut self, made: ForBlock) -> (Block, Type) {
        let ForBlock { mut lets, results } = made;
        if let [only] = &results[..] {
            return (Block { lets, result: Atom::Var(only.var) }, only.ty.clone());
        }
        let ty = Type::Tuple(results.iter().map(|result| result.ty.clone()).collect());
        let fields = results.iter().map(|result| Atom::Var(result.var)).collect();
        let row = self.push(Op::Prim(Prim::Record, fields), ty.clone(), &mut lets);
        (Block { lets, result: Atom::Var(row.var) }, ty)
    }

    /// Lets a block of the `fold` take its results out of a row.
    fn take(&mut self, block: &mut Block, taken: Vec<TakenResult>, row: &ResultRow) {
        for TakenResult { position, what } in taken.into_iter().rev() {
            match what {
                TakenValue::Result(index) => block.lets[position].op = row.field(index),
                TakenValue::Kept(index, bound) => {
                    let kept = &mut block.lets[position];
                    kept.op = self.unwrapped(kept, &bound);
                    block.lets.insert(position, Let { bound, op: row.field(index), origin: self.origin });
                }
                TakenValue::Arm(index, bound) => {
                    block.lets.insert(position, Let { bound, op: row.field(index), origin: self.origin });
                }
                TakenValue::InArm(arm, inner) => {
                    let Op::Switch { arms, .. } = &mut block.lets[position].op else {
                        unreachable!("only a switch has arms")
                    };
                    self.take(&mut arms[arm].body, inner, row);
                }
            }
        }
    }

    /// Returns the operation that yields the value of a `Result` in the place of an operation of the `fold`, or fails. What has an
    /// effect waits for a failure of the program, and not for one of a call.
    fn unwrapped(&mut self, instead_of: &Let, kept: &Variable) -> Op {
        if !may_end(&instead_of.op) {
            return Op::Prim(Prim::Unwrap, vec![Atom::Var(kept.var)]);
        }
        let (value, failure) = (self.facts.variable(instead_of.bound.ty.clone()), self.facts.variable(Type::Failure));
        let never = self.facts.variable(Type::Never);
        let fails = Let { bound: never, op: Op::Fail(Atom::Var(failure.var)), origin: instead_of.origin };
        let going = Block { lets: Vec::new(), result: Atom::Var(value.var) };
        let failed = Block { lets: vec![fails], result: Atom::Value(Value::Unit) };
        Op::Switch { subject: Atom::Var(kept.var), arms: result_arms((value, going), (failure, failed)) }
    }

    pub(super) fn push(&mut self, op: Op, ty: Type, lets: &mut Vec<Let>) -> Variable {
        let bound = self.facts.variable(ty);
        lets.push(Let { bound: bound.clone(), op, origin: self.origin });
        bound
    }

    /// Returns the variable of the `for` that stands for one of the `fold`.
    pub(super) fn renewed(&mut self, variable: &Variable) -> Variable {
        let renewed = Variable { name: variable.name.clone(), ..self.facts.variable(variable.ty.clone()) };
        self.renamed.insert(variable.var, renewed.var);
        renewed
    }

    /// Returns the operand with the variable of the `for`.
    pub(super) fn renamed_atom(&self, atom: &Atom) -> Atom {
        let mut renamed = atom.clone();
        self.rename(&mut renamed);
        renamed
    }

    pub(super) fn rename(&self, atom: &mut Atom) {
        if let Atom::Var(var) = atom
            && let Some(now) = self.renamed.get(var)
        {
            *var = *now;
        }
    }
}

/// Returns true if an operation or one within may end the flow by a failure that effects wait for.
fn may_end(op: &Op) -> bool {
    op.may_end() || op.blocks().any(|block| block.lets.iter().any(|inner| may_end(&inner.op)))
}

/// Returns the arms of a switch on a `Result`.
pub(super) fn result_arms((value, going): (Variable, Block), (failure, failed): (Variable, Block)) -> Vec<Arm> {
    vec![
        Arm { test: ArmTest::Tag(Value::OK), payload: vec![value], body: going },
        Arm { test: ArmTest::Tag(Value::ERR), payload: vec![failure], body: failed },
    ]
}
