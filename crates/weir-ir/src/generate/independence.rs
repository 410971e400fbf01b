//! Loops and calls that need nothing of those before them.

use weir_host::Type;

use super::program::{DEPTH_MAX, Generator};
use super::values::{data_type, fallible, refusable};
use crate::expr::{Atom, Let, Op};

impl Generator {
    /// Generates a loop or a call that may take long, which uses nothing that the block has bound before, often; returns
    /// false if it does not.
    pub(super) fn of_independence(&mut self, lets: &mut Vec<Let>) -> bool {
        if !self.independent || self.budget == 0 || self.depth >= DEPTH_MAX || self.random.chance(40) {
            return false;
        }
        let mut bound = self.scope.split_off(self.block_from);
        let (ty, op) = self.computation(lets);
        self.bind(ty, op, lets);
        // Counters that the computation has made are the newest.
        bound.extend(self.scope.drain(self.block_from..));
        self.scope.append(&mut bound);
        true
    }

    fn computation(&mut self, lets: &mut Vec<Let>) -> (Type, Op) {
        self.budget -= 1;
        let ty = if self.random.chance(40) { Type::Int } else { data_type(&mut self.random) };
        match self.random.below(6) {
            0 | 1 => (ty.clone(), self.fold(&ty, lets)),
            2 => (ty.clone(), self.repeat(&ty, lets)),
            3 => (Type::list(ty.clone()), self.map(&ty, lets)),
            _ => {
                let functions = [("picky", Type::Int), ("half", fallible()), ("refuse", refusable())];
                let (function, ty) = self.random.pick(&functions).clone();
                let argument = self.operand(&Type::Int, lets);
                (ty, self.call_of(&format!("a.{function}"), vec![argument]))
            }
        }
    }

    /// Generates a tuple of operands of these types.
    pub(super) fn of_all(&mut self, want: &Type, lets: &mut Vec<Let>) -> Atom {
        let op = self.prim(want, lets);
        Atom::Var(self.bind(want.clone(), op, lets))
    }
}
