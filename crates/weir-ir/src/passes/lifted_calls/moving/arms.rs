//! Moves the early parts of the arms of a switch into a switch of the `for`.
//!
//! This switch yields its *columns*: for each arm whose results the `fold` takes, an `Option` of the row of that arm, and then the value
//! of the switch itself, if the `for` needs it.

use weir_host::{Type, Value};

use super::{ForBlock, Mover, ResultRow, TakenValue};
use crate::expr::{Arm, Atom, Block, Let, Op, Variable};
use crate::passes::lifted_calls::early::{ArmValue, EarlyArms};
use crate::prim::Prim;

/// An arm of the switch of the `for`.
struct MadeArm {
    payload: Vec<Variable>,
    lets: Vec<Let>,
    /// Its row and the type of that, if the `fold` takes results out of it.
    row: Option<(Atom, Type)>,
    /// The value of the switch, if the `for` needs it.
    value: Option<Atom>,
}

impl MadeArm {
    /// Returns the type of the column of its rows, if it has one.
    fn column(&self) -> Option<Type> {
        self.row.as_ref().map(|(_, ty)| Type::option(ty.clone()))
    }
}

/// Returns the type of several columns: a tuple, unless there is one.
fn columns_type(columns: &[Type]) -> Type {
    if let [only] = columns { only.clone() } else { Type::Tuple(columns.into()) }
}

impl Mover<'_, '_> {
    /// Adds a switch with the early parts of the arms of one of the `fold`, and takes their results in the arms of the `fold`. Returns the
    /// variables that have these results.
    pub(super) fn arms(
        &mut self,
        (bound, subject, arms): (&Variable, &Atom, &mut [Arm]),
        early: &EarlyArms,
        made: &mut ForBlock,
    ) -> Vec<TakenValue> {
        let first = made.results.len();
        let of_value = early.has_value.then(|| self.type_in_for(&bound.ty));
        let (mut taken, mut types) = (Vec::new(), Vec::new());
        let kept = subject.variable().into_iter().filter(|var| self.kept.contains(var)).collect::<Vec<_>>();
        let all = self.with_values(&kept, Mover::no_columns, &mut made.lets, &mut |mover, lets| {
            let made_arms = mover.made_arms((arms, early, of_value.as_ref()), first, &mut taken);
            types = made_arms.iter().filter_map(MadeArm::column).chain(of_value.clone()).collect();
            let op = mover.switch_of_columns(subject, (arms, made_arms), &types);
            mover.push(op, columns_type(&types), lets)
        });
        let mut columns = self.columns(all, &types, &mut made.lets);
        if early.has_value
            && let Some(value) = columns.pop()
        {
            self.renamed.insert(bound.var, value.var);
            self.kept.extend(self.keeps.then_some(bound.var));
        }
        made.results.extend(columns);
        taken
    }

    /// Returns the arms of the `for` with the early parts of those of the `fold`, and takes their results in these. The value of the
    /// switch is of this type, if there is one.
    fn made_arms(
        &mut self,
        (arms, early, of_value): (&mut [Arm], &EarlyArms, Option<&Type>),
        first: usize,
        taken: &mut Vec<TakenValue>,
    ) -> Vec<MadeArm> {
        let mut made_arms = Vec::new();
        for (arm, part) in arms.iter_mut().zip(&early.parts) {
            let payload = arm.payload.iter().map(|variable| self.renewed(variable)).collect();
            let mut inner = ForBlock { lets: Vec::new(), results: Vec::new() };
            let in_arm = self.block(&mut arm.body, part, &mut inner);
            let value = of_value.map(|ty| self.arm_value(&arm.body, ty, &mut inner.lets));
            if inner.results.is_empty() {
                made_arms.push(MadeArm { payload, lets: inner.lets, row: None, value });
                continue;
            }
            let is_tuple = inner.results.len() != 1;
            let (Block { lets, result }, ty) = self.row(inner);
            // In the `fold`, the arm takes its row, and what it needs out of that.
            let (rows, row) = (self.facts.variable(Type::option(ty.clone())), self.facts.variable(ty.clone()));
            self.take(&mut arm.body, in_arm, &ResultRow { variable: row.clone(), is_tuple });
            let op = Op::Prim(Prim::Payload(0), vec![Atom::Var(rows.var)]);
            arm.body.lets.insert(0, Let { bound: row, op, origin: self.origin });
            taken.push(TakenValue::Arm(first + taken.len(), rows));
            made_arms.push(MadeArm { payload, lets, row: Some((result, ty)), value });
        }
        made_arms
    }

    /// Adds what an arm of the `for` yields as the value of the switch, which is of this type.
    fn arm_value(&mut self, block: &Block, ty: &Type, lets: &mut Vec<Let>) -> Atom {
        match ArmValue::of(block).expect("the value of each arm is early") {
            ArmValue::Yields(value) if !self.keeps => self.renamed_atom(value),
            ArmValue::Yields(value) => self.kept_value(value, ty, lets),
            ArmValue::Fails(failure) => self.kept_end(failure, &[], ty, lets),
        }
    }

    /// Returns the switch of the `for` that yields columns of these types.
    fn switch_of_columns(&mut self, subject: &Atom, (arms, made_arms): (&[Arm], Vec<MadeArm>), types: &[Type]) -> Op {
        let subject = self.renamed_atom(subject);
        let mut copies = Vec::new();
        let mut filled = 0;
        for (arm, MadeArm { payload, mut lets, row, value }) in arms.iter().zip(made_arms) {
            let mut columns = vec![Atom::Value(Value::none()); types.len() - usize::from(value.is_some())];
            if let Some((row, ty)) = row {
                let some = Op::Prim(Prim::Variant(Value::SOME), vec![row]);
                columns[filled] = Atom::Var(self.push(some, Type::option(ty), &mut lets).var);
                filled += 1;
            }
            columns.extend(value);
            let result = self.columns_of(columns, &columns_type(types), &mut lets);
            copies.push(Arm { test: arm.test.clone(), payload, body: Block { lets, result } });
        }
        Op::Switch { subject, arms: copies }
    }

    /// Returns the columns of a switch on a value that there is not: no rows, and the failure.
    fn no_columns(&mut self, ty: &Type, failure: &Variable, lets: &mut Vec<Let>) -> Atom {
        let types = if let Type::Tuple(types) = ty { types.to_vec() } else { vec![ty.clone()] };
        let mut columns = Vec::new();
        for column in &types {
            columns.push(match column {
                Type::Result(_) => self.failed(column, failure, lets),
                _ => Atom::Value(Value::none()),
            });
        }
        self.columns_of(columns, ty, lets)
    }

    /// Returns the tuple of several columns, which is of this type, or the only one.
    fn columns_of(&mut self, columns: Vec<Atom>, ty: &Type, lets: &mut Vec<Let>) -> Atom {
        match <[Atom; 1]>::try_from(columns) {
            Ok([only]) => only,
            Err(columns) => Atom::Var(self.push(Op::Prim(Prim::Record, columns), ty.clone(), lets).var),
        }
    }

    /// Returns the variables of the columns, which are of these types.
    fn columns(&mut self, all: Variable, types: &[Type], lets: &mut Vec<Let>) -> Vec<Variable> {
        if types.len() == 1 {
            return vec![all];
        }
        let field = |(ty, index): (&Type, u32)| {
            self.push(Op::Prim(Prim::Field(index), vec![Atom::Var(all.var)]), ty.clone(), lets)
        };
        types.iter().zip(0..).map(field).collect()
    }
}
