//! Programs with much to rewrite, for the tests of passes: equal calls, records that loops carry, and calls that fault.

use weir_host::{Type, Value};

use super::program::Generator;
use super::values::{flagged, pair};
use crate::expr::{Atom, Block, Let, Op, Variable};
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

    /// Returns a body that takes its state apart and puts the next one together, if the state is a record.
    pub(super) fn carried(&mut self, own: &[Variable], state: &Variable, want: &Type) -> Option<Block> {
        let fields = match &state.ty {
            ty if *ty == pair() => vec![Type::Int, Type::Text],
            ty if *ty == flagged(Type::Int) => vec![Type::Int, Type::Bool],
            _ => return None,
        };
        if !self.rewritable || !self.random.chance(80) {
            return None;
        }
        let from = self.scope.len();
        self.scope.extend(own.iter().filter(|variable| variable.var != state.var).cloned());
        let mut lets = Vec::new();
        let take = |generator: &mut Self, ty: &Type, index: u32, lets: &mut Vec<Let>| {
            generator.bind(ty.clone(), Op::Prim(Prim::Field(index), vec![Atom::Var(state.var)]), lets)
        };
        let taken: Vec<_> = fields.iter().zip(0..).map(|(ty, index)| take(self, ty, index, &mut lets)).collect();
        let mut next = Vec::new();
        for (ty, field) in fields.iter().zip(taken) {
            let stays = self.random.chance(50);
            next.push(if stays { Atom::Var(field) } else { self.operand(ty, &mut lets) });
        }
        let mut result = self.bind(state.ty.clone(), Op::Prim(Prim::Record, next), &mut lets);
        if *want != state.ty {
            let done = match self.random.chance(60) {
                true => Atom::Value(Value::Bool(true)),
                false => self.operand(&Type::Bool, &mut lets),
            };
            result = self.bind(want.clone(), Op::Prim(Prim::Record, vec![Atom::Var(result), done]), &mut lets);
        }
        self.scope.truncate(from);
        Some(Block { lets, result: Atom::Var(result) })
    }
}
