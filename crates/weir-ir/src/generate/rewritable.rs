//! Programs with much to rewrite, for the tests of passes: equal calls, records that loops carry, and calls that fault.

use weir_host::{Type, Value};

use super::program::Generator;
use super::values::{flagged, pair};
use crate::expr::{Arm, Atom, Block, Let, Op, Var, Variable, state_type};
use crate::prim::Prim;

/// The functions of generated programs that passes may evaluate less often.
const PURE: [&str; 6] = ["mix", "half", "refuse", "quarter", "made_quarter", "picky"];

impl Generator {
    /// Returns an operation of the block once more, if one gives this type.
    pub(super) fn again(&mut self, ty: &Type, lets: &[Let]) -> Option<Op> {
        if !self.rewritable || !self.random.chance(20) {
            return None;
        }
        let fits = |binding: &&Let| {
            let is_pure = match &binding.op {
                Op::Prim(..) => true,
                Op::Call(call) => PURE.iter().any(|name| call.function.ends_with(&format!(".{name}"))),
                _ => false,
            };
            is_pure && binding.bound.ty == *ty
        };
        let known: Vec<Op> = lets.iter().filter(fits).map(|binding| binding.op.clone()).collect();
        if known.is_empty() {
            return None;
        }
        let mut op = self.random.pick(&known).clone();
        if let Op::Call(call) = &mut op {
            call.site = self.site(&call.function.clone());
        }
        Some(op)
    }

    /// Adds a total call before a switch whose result only one arm uses.
    pub(super) fn use_in_one_arm(&mut self, arms: &mut [Arm], lets: &mut Vec<Let>) {
        if !self.rewritable || !self.random.chance(25) {
            return;
        }
        let argument = self.known_int();
        let call = self.call_of("a.mix", vec![argument]);
        let var = self.bind(Type::Int, call, lets);
        self.scope.retain(|known| known.var != var);
        let arm = self.random.below(arms.len());
        let mut first = Vec::new();
        let user =
            self.bind(Type::Int, Op::Prim(Prim::Add, vec![Atom::Var(var), Atom::Value(Value::Int(1))]), &mut first);
        self.scope.retain(|known| known.var != user);
        arms[arm].body.lets.splice(0..0, first);
    }

    /// Returns a body that takes those of its states apart that are records, and puts the next ones together.
    pub(super) fn carried(&mut self, own: &[Variable], states: &[Variable], want: &Type) -> Option<Block> {
        let carried = |variable: &Variable| states.contains(variable) && fields(&variable.ty).is_some();
        if !self.rewritable || !own.iter().any(carried) || !self.random.chance(80) {
            return None;
        }
        let from = self.scope.len();
        // Most of these bodies use their records only field by field.
        let whole = self.random.chance(15);
        self.scope.extend(own.iter().filter(|variable| whole || !carried(variable)).cloned());
        let mut lets = Vec::new();
        let mut next = Vec::new();
        for state in states {
            next.push(match fields(&state.ty) {
                Some(fields) => Atom::Var(self.next_record(state, &fields, &mut lets)),
                None => self.operand(&state.ty, &mut lets),
            });
        }
        let types: Vec<Type> = states.iter().map(|state| state.ty.clone()).collect();
        if *want != state_type(&types) {
            next.push(match self.random.chance(60) {
                true => Atom::Value(Value::Bool(true)),
                false => self.operand(&Type::Bool, &mut lets),
            });
        }
        let result = match &next[..] {
            [only] => only.clone(),
            _ => Atom::Var(self.bind(want.clone(), Op::Prim(Prim::Record, next), &mut lets)),
        };
        self.scope.truncate(from);
        Some(Block { lets, result })
    }

    /// Makes the next value of a state that is a record: of all fields, or by replacing some.
    fn next_record(&mut self, state: &Variable, fields: &[Type], lets: &mut Vec<Let>) -> Var {
        let take = |generator: &mut Self, (ty, index): (&Type, u32), lets: &mut Vec<Let>| {
            generator.bind(ty.clone(), Op::Prim(Prim::Field(index), vec![Atom::Var(state.var)]), lets)
        };
        let taken: Vec<Var> = fields.iter().zip(0..).map(|field| take(self, field, lets)).collect();
        let replaces = self.random.chance(40);
        let (mut next, mut whole) = (Vec::new(), state.var);
        if replaces && self.random.chance(40) {
            // Most often the same field is replaced once more.
            let value = self.operand(&fields[0], lets);
            let operands = vec![Atom::Var(whole), value];
            whole = self.bind(state.ty.clone(), Op::Prim(Prim::WithField(0), operands), lets);
        }
        for ((ty, field), index) in fields.iter().zip(taken).zip(0..) {
            let stays = self.random.chance(50);
            let value = if stays { Atom::Var(field) } else { self.operand(ty, lets) };
            if replaces && !stays {
                let operands = vec![Atom::Var(whole), value.clone()];
                whole = self.bind(state.ty.clone(), Op::Prim(Prim::WithField(index), operands), lets);
                if self.random.chance(15) {
                    self.bind(Type::Text, Op::Prim(Prim::Interpolate, vec![Atom::Var(whole)]), lets);
                }
            }
            next.push(value);
        }
        if replaces && whole != state.var {
            return whole;
        }
        self.bind(state.ty.clone(), Op::Prim(Prim::Record, next), lets)
    }
}

/// Returns the types of the fields of the records that loops carry.
fn fields(ty: &Type) -> Option<Vec<Type>> {
    match ty {
        ty if *ty == pair() => Some(vec![Type::Int, Type::Text]),
        ty if *ty == flagged(Type::Int) => Some(vec![Type::Int, Type::Bool]),
        _ => None,
    }
}
