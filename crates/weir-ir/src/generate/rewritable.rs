//! Programs with much to rewrite, for the tests of passes: equal calls, records that loops carry, numbers that calls change,
//! and calls that fault.

use weir_host::{Type, Value};

use super::program::Generator;
use super::values::{flagged, pair};
use crate::expr::{Arm, ArmTest, Atom, Block, Let, Op, Var, Variable, state_type};
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

    /// Returns a switch on a condition of a number, between two equal operations of that number. Most often, a call or a loop
    /// changes the number before the switch.
    pub(super) fn around_a_change(&mut self, ty: &Type, lets: &mut Vec<Let>) -> Option<Op> {
        if !(self.rewritable || self.computing) || *ty != Type::Int || !self.random.chance(8) {
            return None;
        }
        let from = self.scope.len();
        let start = self.known_int();
        let number = Atom::Var(self.bind(Type::Int, Op::Prim(Prim::Copy, vec![start]), lets));
        let limit = Atom::Value(Value::Int(i64::try_from(self.random.below(20)).unwrap_or(0)));
        let first = self.mixed(&number, lets);
        let mut holds = self.bind(Type::Bool, Op::Prim(Prim::Less, vec![number.clone(), limit]), lets);
        if self.random.chance(30) {
            holds = self.bind(Type::Bool, Op::Prim(Prim::Not, vec![Atom::Var(holds)]), lets);
        }
        self.change(&number, lets);
        let second = self.mixed(&number, lets);
        self.scope.truncate(from);
        let arm = |test, result| Arm { test, payload: Vec::new(), body: Block { lets: Vec::new(), result } };
        let arms = vec![
            arm(ArmTest::Value(Value::Bool(true)), Atom::Var(first)),
            arm(ArmTest::Value(Value::Bool(false)), Atom::Var(second)),
        ];
        Some(Op::Switch { subject: Atom::Var(holds), arms })
    }

    fn mixed(&mut self, number: &Atom, lets: &mut Vec<Let>) -> Var {
        let call = self.call_of("a.mix", vec![number.clone()]);
        self.bind(Type::Int, call, lets)
    }

    /// Changes a number by a call, by a call in a loop, or not at all.
    fn change(&mut self, number: &Atom, lets: &mut Vec<Let>) {
        let by = Atom::Value(Value::Int(7));
        match self.random.below(4) {
            0 => {}
            1 => {
                let element = self.variable(Type::Int);
                let call = self.call_of("data.raise", vec![number.clone(), Atom::Var(element.var)]);
                let mut raised = Vec::new();
                let sum = self.bind(Type::Int, call, &mut raised);
                let body = Block { lets: raised, result: Atom::Var(sum) };
                let list = Atom::Value(Value::list(vec![Value::Int(5), Value::Int(8)]));
                self.bind(Type::list(Type::Int), Op::Map { list, element, body }, lets);
            }
            _ => {
                let call = self.call_of("data.raise", vec![number.clone(), by]);
                self.bind(Type::Int, call, lets);
            }
        }
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
