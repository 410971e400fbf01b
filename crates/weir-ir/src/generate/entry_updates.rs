//! Loops whose rounds are a single change: an entry of a map is read, changed and put back, a list gets an element, which may
//! be the result of a typed call, and every n-th element of a list is replaced.
//!
//! Between the reading and the putting back, other bindings sometimes read the entry or the map, and sometimes others hold the
//! map, so that an engine may not change it where it is.

use weir_host::{Type, Value};

use super::program::Generator;
use super::replacing::MAPS;
use super::values::{entry, value};
use crate::expr::{Arm, ArmTest, Atom, Block, Let, LoopExit, Op, Var, Variable, round_type};
use crate::prim::Prim;

/// The number of elements that a list has at most.
const ELEMENTS_MAX: usize = 20;

impl Generator {
    /// Generates a block of such loops, which yields their results as a text.
    pub(super) fn block_of_updates(&mut self) -> Block {
        let (mut lets, mut results) = (Vec::new(), Vec::new());
        for _ in 0..1 + self.random.below(4) {
            let result = match self.random.below(5) {
                0 => self.filled(&mut lets),
                1 => self.same_results(&mut lets),
                2 => {
                    let list = match self.random.chance(70) {
                        true => self.elements(&Type::Int),
                        false => self.any_operand(&Type::list(Type::Int)),
                    };
                    let (ty, rounds) = self.rounds_of_calls(list);
                    vec![Atom::Var(self.bind(ty, rounds, &mut lets))]
                }
                _ => self.updated(&mut lets),
            };
            results.extend(result);
        }
        let text = self.bind(Type::Text, Op::Prim(Prim::Interpolate, results), &mut lets);
        Block { lets, result: Atom::Var(text) }
    }

    /// Returns a value of a type that the evaluator and a pass cannot know: that of a parameter, if there is one.
    pub(super) fn any_operand(&mut self, ty: &Type) -> Atom {
        let known: Vec<Var> = self.scope.iter().filter(|known| known.ty == *ty).map(|known| known.var).collect();
        match known.is_empty() || self.random.chance(30) {
            true => Atom::Value(value(&mut self.random, ty)),
            false => Atom::Var(*self.random.pick(&known)),
        }
    }

    fn elements(&mut self, of: &Type) -> Atom {
        let count = self.random.below(ELEMENTS_MAX);
        Atom::Value(Value::list((0..count).map(|_| value(&mut self.random, of)).collect()))
    }

    /// Binds a fold that changes entries of a map; returns the map, and sometimes the one before.
    fn updated(&mut self, lets: &mut Vec<Let>) -> Vec<Atom> {
        let (function, key_type, value_type) = *self.random.pick(&MAPS);
        let (key_type, value_type) = (key_type(), value_type());
        let ty = Type::map(key_type.clone(), value_type.clone());
        let has_fields = self.random.chance(50);
        let is_gathered = !has_fields && value_type == Type::list(Type::Text);
        let element = self.variable(match has_fields {
            true => entry(),
            false if is_gathered => Type::Text,
            false => key_type.clone(),
        });
        let list = self.elements(&element.ty);
        let init = self.any_operand(&ty);
        // A copy of the binding, which others hold.
        let init = Atom::Var(self.bind(ty.clone(), Op::Prim(Prim::Copy, vec![init]), lets));
        let state = self.variable(ty.clone());
        let from = self.scope.len();
        self.scope.extend([state.clone(), element.clone()]);
        let mut inner = Vec::new();
        let field = |number| Op::Prim(Prim::Field(number), vec![Atom::Var(element.var)]);
        let key = match has_fields {
            true => {
                let field = field(u32::from(key_type == Type::Int));
                Atom::Var(self.bind(key_type, field, &mut inner))
            }
            false if is_gathered => {
                let length = Op::Prim(Prim::Length, vec![Atom::Var(element.var)]);
                Atom::Var(self.bind(Type::Int, length, &mut inner))
            }
            false => Atom::Var(element.var),
        };
        let next = self.update_of_entry(function, &state, &key, &value_type, &mut inner);
        let next = match self.random.chance(15) {
            true => {
                self.update_of_entry(function, &Variable { var: next, ..state.clone() }, &key, &value_type, &mut inner)
            }
            false => next,
        };
        self.scope.truncate(from);
        let body = Block { lets: inner, result: Atom::Var(next) };
        let fold =
            Op::Fold { list, init: vec![init.clone()], state: vec![state], element, body, exit: LoopExit::Never };
        let result = Atom::Var(self.bind(ty, fold, lets));
        if self.random.chance(30) { vec![result, init] } else { vec![result] }
    }

    /// Binds a map with one entry changed.
    fn update_of_entry(&mut self, function: &str, map: &Variable, key: &Atom, of: &Type, lets: &mut Vec<Let>) -> Var {
        let whole = Atom::Var(map.var);
        let index = Op::Prim(Prim::Index, vec![whole.clone(), key.clone()]);
        let found = self.bind(Type::option(of.clone()), index, lets);
        let payload = self.variable(of.clone());
        let missing = match of {
            Type::List(_) => Value::list(Vec::new()),
            // With 0, rounds may run on several threads.
            Type::Int if self.random.chance(60) => Value::Int(0),
            of => value(&mut self.random, of),
        };
        let arm = |test, payload: Vec<_>, result| Arm { test, payload, body: Block { lets: Vec::new(), result } };
        let some = arm(ArmTest::Tag(1), vec![payload.clone()], Atom::Var(payload.var));
        let none = arm(ArmTest::Tag(0), Vec::new(), Atom::Value(missing));
        let old = self.bind(of.clone(), Op::Switch { subject: Atom::Var(found), arms: vec![some, none] }, lets);
        let added = match of {
            Type::List(element) => {
                let element = self.addend(element, lets);
                Atom::Var(self.bind(of.clone(), Op::Prim(Prim::List, vec![element]), lets))
            }
            of => self.addend(of, lets),
        };
        let terms = if self.random.chance(85) || matches!(of, Type::List(_)) {
            [Atom::Var(old), added]
        } else {
            [added, Atom::Var(old)]
        };
        let mut new = self.bind(of.clone(), Op::Prim(Prim::Add, terms.into()), lets);
        match self.random.below(10) {
            // The old value is needed once more.
            0 => new = self.bind(of.clone(), Op::Prim(Prim::Add, vec![Atom::Var(new), Atom::Var(old)]), lets),
            // Somebody else holds the map in between.
            1 => _ = self.bind(map.ty.clone(), Op::Prim(Prim::Copy, vec![whole.clone()]), lets),
            _ => {}
        }
        let put = self.call_of(&format!("data.{function}"), vec![whole, key.clone(), Atom::Var(new)]);
        self.bind(map.ty.clone(), put, lets)
    }

    /// Returns a value that is added to an entry: a known one or, behind the look-up, a field of the element, or a sum or
    /// product, which may fail.
    fn addend(&mut self, ty: &Type, lets: &mut Vec<Let>) -> Atom {
        let known = self.any_operand(ty);
        let element = self.scope.iter().find(|known| known.ty == entry()).map(|known| Atom::Var(known.var));
        let op = match (self.random.below(4), ty, element) {
            (0, Type::Text, Some(element)) => Op::Prim(Prim::Field(0), vec![element]),
            (0, Type::Int, Some(element)) => Op::Prim(Prim::Field(1), vec![element]),
            (1, Type::Int, _) => Op::Prim(Prim::Multiply, vec![known, self.any_operand(ty)]),
            (1 | 2, Type::Int | Type::Text | Type::Float, _) => Op::Prim(Prim::Add, vec![known, self.any_operand(ty)]),
            _ => return known,
        };
        Atom::Var(self.bind(ty.clone(), op, lets))
    }

    /// Binds a `for` whose results are all the same, most often.
    fn same_results(&mut self, lets: &mut Vec<Let>) -> Vec<Atom> {
        let ty =
            self.random.pick(&[Type::Int, Type::Float, Type::Bool, Type::Duration, Type::Size, Type::Text]).clone();
        let element = self.variable(Type::Int);
        let list = self.elements(&Type::Int);
        if self.random.chance(20) {
            self.scope.push(element.clone());
        }
        let result = self.any_operand(&ty);
        self.scope.retain(|known| known.var != element.var);
        let map = Op::Map { list, element, body: Block { lets: Vec::new(), result } };
        vec![Atom::Var(self.bind(Type::list(ty), map, lets))]
    }

    /// Binds a loop that replaces elements at some distance from each other.
    fn filled(&mut self, lets: &mut Vec<Let>) -> Vec<Atom> {
        let (position, list) = (self.variable(Type::Int), self.variable(Type::list(Type::Int)));
        let before = self.elements(&Type::Int);
        let before = Atom::Var(self.bind(list.ty.clone(), Op::Prim(Prim::Copy, vec![before]), lets));
        let small = |generator: &mut Self, most: usize| {
            let number = i64::try_from(generator.random.below(most)).unwrap_or(0);
            match generator.random.chance(10) {
                true => generator.any_operand(&Type::Int),
                false => Atom::Value(Value::Int(number)),
            }
        };
        let (from, step, bound) = (small(self, 6), small(self, 5), small(self, ELEMENTS_MAX + 4));
        let word = if self.random.chance(10) { Atom::Var(position.var) } else { self.any_operand(&Type::Int) };
        let outer = self.scope.len();
        let mut inner = Vec::new();
        let add = Op::Prim(Prim::Add, vec![Atom::Var(position.var), step]);
        let place = Atom::Var(position.var);
        let fill = |generator: &mut Self, inner: &mut Vec<Let>| {
            let call = generator.call_of("data.fill", vec![Atom::Var(list.var), place.clone(), word.clone()]);
            Atom::Var(generator.bind(list.ty.clone(), call, inner))
        };
        let is_first = self.random.chance(50);
        let filled = is_first.then(|| fill(self, &mut inner));
        let next = Atom::Var(self.bind(Type::Int, add, &mut inner));
        let filled = filled.unwrap_or_else(|| fill(self, &mut inner));
        let test = if self.random.chance(80) { Prim::GreaterOrEqual } else { Prim::Greater };
        let done = Atom::Var(self.bind(Type::Bool, Op::Prim(test, vec![next.clone(), bound]), &mut inner));
        let types = [Type::Int, list.ty.clone()];
        let round = Op::Prim(Prim::Record, vec![next, filled, done]);
        let result = Atom::Var(self.bind(round_type(&types), round, &mut inner));
        self.scope.truncate(outer);
        let at_most = 1 + u64::try_from(self.random.below(30)).unwrap_or(0);
        let states = Type::Tuple(types.into());
        let body = Block { lets: inner, result };
        let filling = Op::Loop { init: vec![from, before.clone()], state: vec![position, list], body, at_most };
        let result = Atom::Var(self.bind(states, filling, lets));
        if self.random.chance(30) { vec![result, before] } else { vec![result] }
    }
}
