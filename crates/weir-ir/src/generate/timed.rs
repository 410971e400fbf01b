//! `within` and `race` whose outcome does not depend on time: limits that no test reaches, and races of bodies that
//! differ only in their duration. And transactions, of which each attempt succeeds.

use weir_host::{Type, Value};

use super::functions::counter;
use super::program::Generator;
use crate::expr::{Arm, ArmTest, Atom, Block, Let, Op, Variable};

/// A day, in nanoseconds.
const LIMIT: i64 = 86_400_000_000_000;

/// The functions that bodies of a race call: some wait, and none changes anything.
const LOOKS: [&str; 7] = ["a.gathered_look", "a.look", "a.slow_look", "b.slow_look", "c.slow_look", "b.mix", "c.look"];

impl Generator {
    /// Generates a `within` whose body has all the time it needs, and a switch on its outcome.
    pub(super) fn within(&mut self, ty: &Type, lets: &mut Vec<Let>) -> Op {
        let body = self.without_counters(|generator| generator.block(ty, false));
        let limit = Atom::Value(Value::Duration(LIMIT));
        let in_time = self.bind(Type::option(ty.clone()), Op::Within { limit, body }, lets);
        let held = self.variable(ty.clone());
        let some = Block { lets: Vec::new(), result: Atom::Var(held.var) };
        let none = self.without_counters(|generator| generator.block(ty, false));
        let arms = vec![
            Arm { test: ArmTest::Tag(Value::SOME), payload: vec![held], body: some },
            Arm { test: ArmTest::Otherwise, payload: Vec::new(), body: none },
        ];
        Op::Switch { subject: Atom::Var(in_time), arms }
    }

    /// Generates a race of bodies that yield the same value, some sooner than others.
    pub(super) fn race(&mut self, ty: &Type, lets: &mut Vec<Let>) -> Op {
        let result = self.operand(ty, lets);
        let bodies = (0..1 + self.random.below(3)).map(|_| self.runner(&result));
        Op::Race { bodies: bodies.collect() }
    }

    /// Generates a transaction that nothing refuses.
    pub(super) fn transaction(&mut self, ty: &Type) -> Op {
        let is_last = self.variable(Type::Bool);
        let body = self.without_counters(|generator| {
            generator.scope.push(is_last.clone());
            generator.block(ty, false)
        });
        Op::Transaction { is_last, body }
    }

    fn runner(&mut self, result: &Atom) -> Block {
        let mut lets = Vec::new();
        let from = self.scope.len();
        for _ in 0..self.random.below(3) {
            let op = self.look();
            self.bind(Type::Int, op, &mut lets);
        }
        self.scope.truncate(from);
        Block { lets, result: result.clone() }
    }

    fn look(&mut self) -> Op {
        let by = self.known_int();
        if let Some(name) = self.shared_here()
            && self.random.chance(40)
        {
            return self.call_of("count.slow_value", vec![Atom::Shared(name), by]);
        }
        let function = *self.random.pick(&LOOKS);
        self.call_of(function, vec![by])
    }

    /// Generates a body without access to counters: they would be lost in a body that may be cancelled.
    fn without_counters(&mut self, make: impl FnOnce(&mut Self) -> Block) -> Block {
        let outside: Vec<Variable> = self.scope.clone();
        let from = self.block_from;
        self.scope.retain(|known| known.ty != counter());
        let body = make(self);
        self.scope = outside;
        self.block_from = from;
        body
    }
}
