//! Rounds of `for`s over lists, whose results are lists.

use weir_host::{Type, Value};

use super::program::Generator;
use super::values::value;
use crate::expr::{Atom, Let, Op};

/// The number of elements that a list has at most if there are many rounds.
const ROUNDS_MAX: usize = 12;

impl Generator {
    /// Makes a list of the type of a binding, often.
    pub(super) fn list_of_rounds(&mut self, ty: Type) -> Type {
        if self.rounds && self.random.chance(50) { Type::list(Type::Int) } else { ty }
    }

    /// Generates a `for`, if a list is requested.
    pub(super) fn of_rounds(&mut self, ty: &Type, nests: bool, lets: &mut Vec<Let>) -> Option<Op> {
        match ty {
            Type::List(element) if self.rounds && nests && self.random.chance(80) => Some(self.map(element, lets)),
            _ => None,
        }
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
