//! The operations of random programs, by the type of their value.

use weir_host::{Type, Value};

use super::functions::counter;
use super::program::Generator;
use super::values::{data_type, fallible, flagged, pair, refusable, shape, value};
use crate::expr::{Arm, ArmTest, Atom, Call, Let, Op, Var, Variable};
use crate::prim::Prim;

/// The functions of one integer that return an integer.
const INT_FUNCTIONS: [&str; 10] = [
    "mix",
    "look",
    "slow_look",
    "change",
    "slow_change",
    "block",
    "change",
    "gathered_look",
    "gathered_look",
    "gathered_change",
];

/// The comparisons.
pub(super) const TESTS: [Prim; 6] =
    [Prim::Equal, Prim::NotEqual, Prim::Less, Prim::LessOrEqual, Prim::Greater, Prim::GreaterOrEqual];

impl Generator {
    /// Generates a call whose value has this type, if a function returns it.
    pub(super) fn call(&mut self, ty: &Type, lets: &mut Vec<Let>) -> Option<Op> {
        let module = *self.random.pick(&["a", "b", "c"]);
        let function = match ty {
            Type::Int => match self.random.below(10) {
                0..=3 => return self.count(),
                4 => self.random.pick(&["step.next", "step.next", "step.peek"]).to_string(),
                5 => "step.slow_next".to_owned(),
                _ if self.rewritable && self.random.chance(15) => format!("{module}.picky"),
                _ if self.rewritable && self.random.chance(10) => format!("{module}.note"),
                _ => format!("{module}.{}", self.random.pick(&INT_FUNCTIONS)),
            },
            ty if *ty == fallible() => {
                format!("{module}.{}", self.random.pick(&["half", "try_change", "try_gathered"]))
            }
            ty if *ty == refusable() => format!("{module}.refuse"),
            ty if *ty == Type::option(Type::Int) => {
                format!("{module}.{}", self.random.pick(&["quarter", "made_quarter"]))
            }
            ty if *ty == counter() => "count.new".to_owned(),
            _ => return None,
        };
        let argument = if *ty == counter() { Atom::Value(Value::Int(0)) } else { self.operand(&Type::Int, lets) };
        Some(self.call_of(&function, vec![argument]))
    }

    /// Generates a call of a function that returns at once, if one returns this type.
    pub(super) fn quick_call(&mut self, ty: &Type, lets: &mut Vec<Let>) -> Option<Op> {
        let functions: &[&str] = match ty {
            Type::Int => &["mix", "mix", "look", "change"],
            ty if *ty == fallible() => &["half", "try_change"],
            ty if *ty == refusable() => &["refuse"],
            ty if *ty == Type::option(Type::Int) => &["quarter", "made_quarter"],
            _ => return None,
        };
        let function = format!("{}.{}", self.random.pick(&["a", "b"]), self.random.pick(functions));
        let argument = self.operand(&Type::Int, lets);
        Some(self.call_of(&function, vec![argument]))
    }

    pub(super) fn call_of(&mut self, function: &str, arguments: Vec<Atom>) -> Op {
        Op::Call(Call::new(function.into(), self.site(function), arguments))
    }

    /// Generates a call on a counter: a shared one, or one of the flow's own.
    fn count(&mut self) -> Option<Op> {
        let own: Vec<usize> = (0..self.scope.len()).filter(|at| self.scope[*at].ty == counter()).collect();
        let shared = self.shared_here().filter(|_| own.is_empty() || self.random.chance(60));
        if let Some(name) = shared {
            return Some(self.count_on(Atom::Shared(name)));
        }
        if own.is_empty() {
            return None;
        }
        let at = *self.random.pick(&own);
        let var = self.scope[at].var;
        // Only the block that created it may move it: a body runs more than once, and another arm may not run.
        if at >= self.block_from && self.random.chance(30) {
            self.scope.remove(at);
            return Some(self.call_of("count.finish", vec![Atom::Var(var)]));
        }
        Some(self.count_on(Atom::Var(var)))
    }

    fn count_on(&mut self, counter: Atom) -> Op {
        let function = *self.random.pick(&["count.value", "count.slow_value", "count.add", "count.slow_add"]);
        let by = self.known_int();
        self.call_of(function, vec![counter, by])
    }

    /// Returns an integer, without a new binding that might move the counter that was picked before.
    pub(super) fn known_int(&mut self) -> Atom {
        let seen: Vec<Var> = self.scope.iter().filter(|known| known.ty == Type::Int).map(|known| known.var).collect();
        if seen.is_empty() {
            Atom::Value(value(&mut self.random, &Type::Int))
        } else {
            Atom::Var(*self.random.pick(&seen))
        }
    }

    fn apply(&mut self, prim: Prim, types: &[Type], lets: &mut Vec<Let>) -> Op {
        Op::Prim(prim, types.iter().map(|ty| self.operand(ty, lets)).collect())
    }

    /// Generates a primitive whose value has this type.
    pub(super) fn prim(&mut self, ty: &Type, lets: &mut Vec<Let>) -> Op {
        let both = [ty.clone(), ty.clone()];
        match ty {
            Type::Int => self.int(lets),
            Type::Bool => self.bool(lets),
            Type::Text => match self.random.below(5) {
                0 => self.apply(Prim::Add, &both, lets),
                1 => self.apply(Prim::Field(1), &[pair()], lets),
                2 | 3 => {
                    let types: Vec<Type> = (0..self.random.below(4)).map(|_| data_type(&mut self.random)).collect();
                    self.apply(Prim::Interpolate, &types, lets)
                }
                _ => self.apply(Prim::Quote, &[Type::Text], lets),
            },
            Type::Float => {
                let prim =
                    *self.random.pick(&[Prim::Add, Prim::Subtract, Prim::Multiply, Prim::Divide, Prim::Remainder]);
                self.apply(prim, &both, lets)
            }
            Type::Duration | Type::Size => match self.random.below(3) {
                0 => self.apply(Prim::Multiply, &[ty.clone(), Type::Int], lets),
                1 => self.apply(Prim::Divide, &[ty.clone(), Type::Int], lets),
                _ => self.apply(Prim::Add, &both, lets),
            },
            Type::List(element) => self.list(element, lets),
            Type::Map(entry) => {
                let types: Vec<Type> =
                    (0..self.random.below(3)).flat_map(|_| [entry.0.clone(), entry.1.clone()]).collect();
                self.apply(Prim::Map, &types, lets)
            }
            Type::Option(some) if self.random.chance(50) => {
                self.apply(Prim::Index, &[Type::map(Type::Text, Type::clone(some)), Type::Text], lets)
            }
            Type::Option(some) => self.apply(Prim::Variant(1), std::slice::from_ref(some), lets),
            ty if *ty == fallible() && self.random.chance(20) => self.checked(lets),
            Type::Result(pair) => {
                let tag = u32::from(self.random.chance(40));
                let payload = if tag == 0 { &pair.0 } else { &pair.1 };
                self.apply(Prim::Variant(tag), std::slice::from_ref(payload), lets)
            }
            Type::Tuple(parts) => self.apply(Prim::Record, parts, lets),
            ty if *ty == pair() => match self.random.below(3) {
                0 => self.apply(Prim::WithField(0), &[pair(), Type::Int], lets),
                _ => self.apply(Prim::Record, &[Type::Int, Type::Text], lets),
            },
            ty if *ty == shape() => match self.random.below(3) {
                0 => self.apply(Prim::Variant(0), &[], lets),
                1 => self.apply(Prim::Variant(1), &[Type::Int], lets),
                _ => self.apply(Prim::Variant(2), &[Type::Int, Type::Text], lets),
            },
            ty if *ty == counter() => self.call_of("count.new", vec![Atom::Value(Value::Int(0))]),
            Type::Failure if self.random.chance(50) => self.apply(Prim::Failure, &[Type::Text], lets),
            Type::Failure if self.random.chance(40) => {
                self.apply(Prim::Propagate, &[Type::Failure, crate::prim::propagation_sites()], lets)
            }
            other => Op::Prim(Prim::Copy, vec![Atom::Value(value(&mut self.random, other))]),
        }
    }

    fn list(&mut self, element: &Type, lets: &mut Vec<Let>) -> Op {
        let list = Type::list(element.clone());
        match (self.random.below(8), element) {
            (0, _) => self.apply(Prim::Add, &[list.clone(), list], lets),
            (1, _) => self.apply(Prim::Rest, &[list, Type::Int], lets),
            (4, _) => self.apply(Prim::Middle, &[list, Type::Int, Type::Int], lets),
            (5 | 6, Type::List(collected)) => self.apply(Prim::Collect, &[list, Type::clone(collected)], lets),
            (5, Type::Tuple(parts)) if parts.len() == 2 => {
                self.apply(Prim::Pairs, &[Type::map(parts[0].clone(), parts[1].clone())], lets)
            }
            // Without a bound, lists would nest without end.
            (5, _) => self.apply(Prim::Flatten, &[Type::list(list)], lets),
            _ => {
                let types = vec![element.clone(); self.random.below(4)];
                self.apply(Prim::List, &types, lets)
            }
        }
    }

    fn int(&mut self, lets: &mut Vec<Let>) -> Op {
        let int = [Type::Int, Type::Int];
        match self.random.below(16) {
            0..=3 => self.apply(Prim::Add, &int, lets),
            4 | 5 => self.apply(Prim::Subtract, &int, lets),
            6 => self.apply(Prim::Multiply, &int, lets),
            7 => self.apply(Prim::Divide, &int, lets),
            8 => self.apply(Prim::Remainder, &int, lets),
            9 => self.apply(Prim::Negate, &int[..1], lets),
            10 => self.apply(Prim::Index, &[Type::list(Type::Int), Type::Int], lets),
            11 => self.apply(Prim::Field(0), &[pair()], lets),
            12 => self.apply(Prim::Field(0), &[flagged(Type::Int)], lets),
            13 => self.apply(Prim::Copy, &int[..1], lets),
            14 => self.apply(Prim::Length, &[Type::Text], lets),
            _ => self.apply(Prim::Length, &[Type::list(Type::Int)], lets),
        }
    }

    /// Generates a primitive of integers whose failure is a value.
    fn checked(&mut self, lets: &mut Vec<Let>) -> Op {
        let fallible =
            [Prim::Add, Prim::Subtract, Prim::Multiply, Prim::Divide, Prim::Remainder, Prim::Index, Prim::Negate];
        let prim = *self.random.pick(&fallible);
        let types: &[Type] = match prim {
            Prim::Negate => &[Type::Int],
            Prim::Index => &[Type::list(Type::Int), Type::Int],
            _ => &[Type::Int, Type::Int],
        };
        self.apply(prim.checked().expect("these may fail"), types, lets)
    }

    /// Generates a condition of which nothing else uses a part: comparisons of scalars, and their combinations.
    fn condition(&mut self, depth: usize, lets: &mut Vec<Let>) -> Atom {
        let (prim, operands) = match self.random.below(if depth < 3 { 5 } else { 3 }) {
            3 => (Prim::Not, vec![self.condition(depth + 1, lets)]),
            4 => {
                let prim = *self.random.pick(&[Prim::And, Prim::Or]);
                (prim, vec![self.condition(depth + 1, lets), self.condition(depth + 1, lets)])
            }
            _ => {
                let ty = self.random.pick(&[Type::Int, Type::Int, Type::Float, Type::Bool]).clone();
                (*self.random.pick(&TESTS), vec![self.operand(&ty, lets), self.operand(&ty, lets)])
            }
        };
        let var = self.bind(Type::Bool, Op::Prim(prim, operands), lets);
        self.scope.retain(|known| known.var != var);
        Atom::Var(var)
    }

    fn bool(&mut self, lets: &mut Vec<Let>) -> Op {
        match self.random.below(12) {
            10 => self.apply(Prim::And, &[Type::Bool, Type::Bool], lets),
            11 => self.apply(Prim::Or, &[Type::Bool, Type::Bool], lets),
            0 => self.apply(Prim::Not, &[Type::Bool], lets),
            1 => self.apply(Prim::IsVariant(1), &[shape()], lets),
            2 => self.apply(Prim::IsVariant(0), &[Type::option(Type::Int)], lets),
            _ => {
                let ty = data_type(&mut self.random);
                let prim = *self.random.pick(&TESTS);
                self.apply(prim, &[ty.clone(), ty], lets)
            }
        }
    }

    /// Generates a switch on a value of a type that has cases.
    pub(super) fn switch(&mut self, ty: &Type, lets: &mut Vec<Let>) -> Op {
        let subjects = [Type::Bool, Type::Int, Type::Text, Type::option(Type::Int), fallible(), refusable(), shape()];
        let of = self.random.pick(&subjects).clone();
        let is_condition = of == Type::Bool && (self.rewritable || self.computing) && self.random.chance(60);
        let subject = if is_condition { self.condition(0, lets) } else { self.operand(&of, lets) };
        let mut tests = self.tests(&of);
        if self.random.chance(30) && tests.len() > 1 {
            tests.pop();
            tests.push((ArmTest::Otherwise, Vec::new()));
        }
        let arms = tests
            .into_iter()
            .enumerate()
            .map(|(index, (test, payload))| self.arm(&subject, test, &payload, ty, index > 0));
        let mut arms: Vec<Arm> = arms.collect();
        self.use_in_one_arm(&mut arms, lets);
        Op::Switch { subject, arms }
    }

    fn tests(&mut self, of: &Type) -> Vec<(ArmTest, Vec<Type>)> {
        let tag = |tag, payload: &[Type]| (ArmTest::Tag(tag), payload.to_vec());
        match of {
            Type::Bool => [true, false].map(|value| (ArmTest::Value(Value::Bool(value)), Vec::new())).into(),
            Type::Option(some) => vec![tag(1, std::slice::from_ref(some)), tag(0, &[])],
            Type::Result(pair) => vec![tag(0, std::slice::from_ref(&pair.0)), tag(1, std::slice::from_ref(&pair.1))],
            Type::Named(_) => vec![tag(0, &[]), tag(1, &[Type::Int]), tag(2, &[Type::Int, Type::Text])],
            other => {
                let tested = value(&mut self.random, other);
                vec![(ArmTest::Value(tested), Vec::new()), (ArmTest::Otherwise, Vec::new())]
            }
        }
    }

    /// Generates an arm that names the payload, or takes it apart by a primitive.
    fn arm(&mut self, subject: &Atom, test: ArmTest, payload: &[Type], ty: &Type, may_end: bool) -> Arm {
        let names: Vec<Variable> = payload.iter().map(|ty| self.variable(ty.clone())).collect();
        if self.random.chance(70) {
            let body = self.body(&names, ty, may_end);
            return Arm { test, payload: names, body };
        }
        let mut body = self.body(&names, ty, may_end);
        let take = |(bound, index): (Variable, u32)| Let {
            bound,
            op: Op::Prim(Prim::Payload(index), vec![subject.clone()]),
            origin: crate::program::Origin::default(),
        };
        body.lets.splice(0..0, names.into_iter().zip(0..).map(take));
        Arm { test, payload: Vec::new(), body }
    }
}
