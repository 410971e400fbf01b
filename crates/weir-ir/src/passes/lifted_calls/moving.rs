//! Moves the early part of the body of a `fold` into a `for` before it.
//!
//! The `for` yields a row for each element: the element, and the results of what was moved. The results of an arm are an `Option`,
//! which is `Some` if the `for` has chosen that arm. The `fold` chooses the same arm, and takes the results out of it. If calls keep
//! their failures, a result that depends on one is a `Result`, which the `fold` unwraps at the place of the operation.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Type, Value};

use super::early::{Early, EarlyPart};
use crate::expr::{Arm, Atom, Block, Let, Op, Origin, Var, Variable};
use crate::passes::facts::Facts;
use crate::prim::Prim;

/// Moves the early part of a body out of it. Returns the block that evaluates it for the element `own`, and the variable that stands
/// for its result in the `fold`, whose first field is the element. If it `keeps` failures, those of calls become values.
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

/// An arm of the `for`, with its block and the type of its row if it has one.
struct MadeArm {
    payload: Vec<Variable>,
    body: Option<(Block, Type)>,
}

impl MadeArm {
    /// Returns the type of its rows, if it has any.
    fn row(&self) -> Option<Type> {
        self.body.as_ref().map(|(_, ty)| Type::option(ty.clone()))
    }
}

/// Returns the type of the rows of several arms: a tuple, unless there is one.
fn rows_type(types: &[Type]) -> Type {
    if let [only] = types { only.clone() } else { Type::Tuple(types.into()) }
}

/// A result that the `fold` takes out of a row, by the position of the binding that it stands for.
struct TakenResult {
    position: usize,
    what: TakenValue,
}

enum TakenValue {
    /// The result of the binding, which is this one of the row.
    Result(usize),
    /// The same, which is a `Result` that may have the failure of a call; the variable is bound to that.
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
    /// True if calls keep their failures.
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
                (Early::Arms(parts), Let { op: Op::Switch { subject, arms }, .. }) => {
                    let arms = self.arms((&*subject, arms), parts, made);
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

    /// Adds a switch with the early parts of its arms, and takes their results in the arms of the `fold`. Returns the variables that
    /// have these results.
    fn arms(
        &mut self,
        (subject, arms): (&Atom, &mut [Arm]),
        parts: &[EarlyPart],
        made: &mut ForBlock,
    ) -> Vec<TakenValue> {
        let first = made.results.len();
        let mut taken = Vec::new();
        let mut types = Vec::new();
        let kept = subject.variable().into_iter().filter(|var| self.kept.contains(var)).collect::<Vec<_>>();
        let rows = self.with_values(&kept, Mover::no_rows, &mut made.lets, &mut |mover, lets| {
            let made_arms = mover.made_arms((arms, parts), first, &mut taken);
            types = made_arms.iter().filter_map(MadeArm::row).collect();
            let op = mover.switch_of_rows(subject, (arms, made_arms), &types);
            mover.push(op, rows_type(&types), lets)
        });
        self.add_rows(rows, &types, made);
        taken
    }

    /// Returns the arms of the `for` with the early parts of those of the `fold`, and takes their results in these.
    fn made_arms(
        &mut self,
        (arms, parts): (&mut [Arm], &[EarlyPart]),
        first: usize,
        taken: &mut Vec<TakenValue>,
    ) -> Vec<MadeArm> {
        let mut made_arms: Vec<MadeArm> = Vec::new();
        for (arm, part) in arms.iter_mut().zip(parts) {
            let payload = arm.payload.iter().map(|variable| self.renewed(variable)).collect();
            if part.is_empty() {
                made_arms.push(MadeArm { payload, body: None });
                continue;
            }
            let mut inner = ForBlock { lets: Vec::new(), results: Vec::new() };
            let in_arm = self.block(&mut arm.body, part, &mut inner);
            let is_tuple = inner.results.len() != 1;
            let (block, ty) = self.row(inner);
            // In the `fold`, the arm takes its row, and what it needs out of that.
            let (rows, row) = (self.facts.variable(Type::option(ty.clone())), self.facts.variable(ty.clone()));
            self.take(&mut arm.body, in_arm, &ResultRow { variable: row.clone(), is_tuple });
            let op = Op::Prim(Prim::Payload(0), vec![Atom::Var(rows.var)]);
            arm.body.lets.insert(0, Let { bound: row, op, origin: self.origin });
            taken.push(TakenValue::Arm(first + taken.len(), rows));
            made_arms.push(MadeArm { payload, body: Some((block, ty)) });
        }
        made_arms
    }

    /// Returns the switch of the `for` that yields the rows of its arms, of these types.
    fn switch_of_rows(&mut self, subject: &Atom, (arms, made_arms): (&[Arm], Vec<MadeArm>), types: &[Type]) -> Op {
        let mut subject = subject.clone();
        self.rename(&mut subject);
        let mut copies = Vec::new();
        let mut filled = 0;
        for (arm, MadeArm { payload, body }) in arms.iter().zip(made_arms) {
            let at = body.is_some().then_some(filled);
            filled += usize::from(body.is_some());
            let body = self.arm_rows(body, at, types);
            copies.push(Arm { test: arm.test.clone(), payload, body });
        }
        Op::Switch { subject, arms: copies }
    }

    /// Returns `None` for each arm of a switch on a value that there is not.
    fn no_rows(&mut self, ty: &Type, _: &Variable, lets: &mut Vec<Let>) -> Atom {
        match ty {
            Type::Tuple(parts) => {
                let rows = vec![Atom::Value(Value::none()); parts.len()];
                Atom::Var(self.push(Op::Prim(Prim::Record, rows), ty.clone(), lets).var)
            }
            _ => Atom::Value(Value::none()),
        }
    }

    /// Returns the block of an arm of the `for`: it yields `Some` of its row if it has one, and `None` for each other arm that has one.
    fn arm_rows(&mut self, body: Option<(Block, Type)>, at: Option<usize>, types: &[Type]) -> Block {
        let mut rows = vec![Atom::Value(Value::none()); types.len()];
        let mut lets = Vec::new();
        if let (Some((block, ty)), Some(at)) = (body, at) {
            lets = block.lets;
            let some = Op::Prim(Prim::Variant(Value::SOME), vec![block.result]);
            rows[at] = Atom::Var(self.push(some, Type::option(ty), &mut lets).var);
        }
        let result = match <[Atom; 1]>::try_from(rows) {
            Ok([only]) => only,
            Err(rows) => {
                let ty = Type::Tuple(types.into());
                Atom::Var(self.push(Op::Prim(Prim::Record, rows), ty, &mut lets).var)
            }
        };
        Block { lets, result }
    }

    /// Makes a result of the rows of each arm.
    fn add_rows(&mut self, all: Variable, types: &[Type], made: &mut ForBlock) {
        if types.len() == 1 {
            made.results.push(all);
            return;
        }
        for (ty, index) in types.iter().zip(0..) {
            let op = Op::Prim(Prim::Field(index), vec![Atom::Var(all.var)]);
            let rows = self.push(op, ty.clone(), &mut made.lets);
            made.results.push(rows);
        }
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
                    block.lets[position].op = Op::Prim(Prim::Unwrap, vec![Atom::Var(bound.var)]);
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

    pub(super) fn rename(&self, atom: &mut Atom) {
        if let Atom::Var(var) = atom
            && let Some(now) = self.renamed.get(var)
        {
            *var = *now;
        }
    }
}
