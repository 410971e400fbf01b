//! Rounds of `for`s over lists, whose results are lists, and folds that count elements.

use weir_host::{Type, Value};

use super::operations::TESTS;
use super::program::Generator;
use super::values::value;
use crate::expr::{Arm, ArmTest, Atom, Block, Let, LoopExit, Op};
use crate::prim::Prim;

/// The number of elements that a list has at most if there are many rounds.
const ROUNDS_MAX: usize = 12;

impl Generator {
    /// Makes a list of the type of a binding, often.
    pub(super) fn list_of_rounds(&mut self, ty: Type) -> Type {
        if self.rounds && self.random.chance(50) { Type::list(Type::Int) } else { ty }
    }

    /// Generates a `for`, if a list is requested; sometimes a fold that counts, if a number is.
    pub(super) fn of_rounds(&mut self, ty: &Type, nests: bool, lets: &mut Vec<Let>) -> Option<Op> {
        match ty {
            Type::Int if self.rounds && !self.batches && nests && self.random.chance(15) => {
                Some(self.count_elements(lets))
            }
            Type::List(element) if self.rounds && nests && self.random.chance(80) => Some(self.map(element, lets)),
            _ => None,
        }
    }

    /// Generates a fold that adds 1 for some elements.
    fn count_elements(&mut self, lets: &mut Vec<Let>) -> Op {
        let list = self.long_list(&Type::Int).unwrap_or_else(|| self.operand(&Type::list(Type::Int), lets));
        let init = self.operand(&Type::Int, lets);
        let (state, element) = (self.variable(Type::Int), self.variable(Type::Int));
        let (from, mut inner) = (self.scope.len(), Vec::new());
        self.scope.extend([state.clone(), element.clone()]);
        let compared = self.known_int();
        let test = Op::Prim(*self.random.pick(&TESTS), vec![Atom::Var(element.var), compared]);
        let subject = Atom::Var(self.bind(Type::Bool, test, &mut inner));
        let mut counted = Vec::new();
        let one = Atom::Value(Value::Int(1));
        let sum = self.bind(Type::Int, Op::Prim(Prim::Add, vec![Atom::Var(state.var), one]), &mut counted);
        let arms = [(true, counted, Atom::Var(sum)), (false, Vec::new(), Atom::Var(state.var))];
        let arms = arms.map(|(value, lets, result)| Arm {
            test: ArmTest::Value(Value::Bool(value)),
            payload: Vec::new(),
            body: Block { lets, result },
        });
        let next = self.bind(Type::Int, Op::Switch { subject, arms: arms.into() }, &mut inner);
        self.scope.truncate(from);
        let body = Block { lets: inner, result: Atom::Var(next) };
        Op::Fold { list, init: vec![init], state: vec![state], element, body, exit: LoopExit::Never }
    }

    /// Returns a constant list, which may have many elements.
    pub(super) fn long_list(&mut self, of: &Type) -> Option<Atom> {
        if !self.rounds || self.random.chance(40) {
            return None;
        }
        let count = self.random.below(ROUNDS_MAX + 1);
        Some(Atom::Value(Value::list((0..count).map(|_| value(&mut self.random, of)).collect())))
    }
}
