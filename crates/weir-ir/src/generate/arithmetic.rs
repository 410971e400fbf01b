//! Arithmetic that engines combine: choices between two numbers by a comparison, and sums of products.

use weir_host::{Type, Value};

use super::operations::TESTS;
use super::program::Generator;
use crate::expr::{Arm, ArmTest, Atom, Block, Let, Op};
use crate::prim::Prim;

impl Generator {
    /// Generates an operation on numbers in which several primitives belong together.
    pub(super) fn of_numbers(&mut self, ty: &Type, lets: &mut Vec<Let>) -> Option<Op> {
        if !self.arithmetic || self.random.chance(40) {
            return None;
        }
        match ty {
            Type::Int => Some(self.choice(lets)),
            Type::Float => Some(self.sum_of_product(lets)),
            _ => None,
        }
    }

    /// Generates a choice between the compared numbers, or between 0 and 1.
    fn choice(&mut self, lets: &mut Vec<Let>) -> Op {
        let (one, other) = (self.operand(&Type::Int, lets), self.operand(&Type::Int, lets));
        let test = *self.random.pick(&TESTS);
        let subject = self.part(&Type::Bool, Op::Prim(test, vec![one.clone(), other.clone()]), lets);
        let number = |number| Atom::Value(Value::Int(number));
        let arms = self
            .random
            .pick(&[
                [one.clone(), other.clone()],
                [other.clone(), one.clone()],
                [number(0), number(1)],
                [number(1), number(0)],
                [one, number(1)],
            ])
            .clone();
        let arm = |(truth, result): (bool, Atom)| Arm {
            test: ArmTest::Value(Value::Bool(truth)),
            payload: Vec::new(),
            body: Block { lets: Vec::new(), result },
        };
        Op::Switch { subject, arms: [true, false].into_iter().zip(arms).map(arm).collect() }
    }

    fn sum_of_product(&mut self, lets: &mut Vec<Let>) -> Op {
        let mut float = |lets: &mut Vec<Let>| self.operand(&Type::Float, lets);
        let (one, other, term) = (float(lets), float(lets), float(lets));
        let product = self.part(&Type::Float, Op::Prim(Prim::Multiply, vec![one, other]), lets);
        let terms = if self.random.chance(50) { vec![product, term] } else { vec![term, product] };
        Op::Prim(Prim::Add, terms)
    }

    /// Binds an operation, most often such that nothing else uses it.
    fn part(&mut self, ty: &Type, op: Op, lets: &mut Vec<Let>) -> Atom {
        let var = self.bind(ty.clone(), op, lets);
        if self.random.chance(80) {
            self.scope.retain(|known| known.var != var);
        }
        Atom::Var(var)
    }
}
