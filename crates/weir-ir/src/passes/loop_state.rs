//! Loop state: a tuple or record that is the state of a loop or the accumulator of a fold is split into its fields, and
//! fields that no round changes leave the state.
//!
//! *Source.* Scalar replacement of aggregates over loop-carried values (Muchnick 1997, §12.2), and loop-invariant code
//! (§13.2), for the strictly sequential `scan` of Ohua thesis §4.2.2.
//!
//! *Law.* The body uses the state only to take fields out of it, and yields a record of the next fields. A field whose next
//! value is the field itself has its initial value in every round, and its initial value never changes; so the body may
//! use that, and the record that the loop yields is made of it behind the loop. If one field is left, the state is that
//! field. Rounds, their order, and the failure of the last one stay as they are.

use weir_host::{Type, Value};

use super::facts::Facts;
use crate::expr::{Atom, Block, Let, Op, Origin, Var, Variable};
use crate::prim::Prim;

pub(super) fn run(body: &mut Block, facts: &mut Facts<'_>) {
    block(body, facts);
}

/// Splits the states of the loops of a block, inner ones first.
fn block(body: &mut Block, facts: &mut Facts<'_>) {
    for mut binding in std::mem::take(&mut body.lets) {
        binding.op.blocks_mut().for_each(|inner| block(inner, facts));
        match Split::of(&binding, facts) {
            Some(split) => split.apply(binding, facts, &mut body.lets),
            None => body.lets.push(binding),
        }
    }
}

/// A loop or fold whose state can be split.
struct Split {
    /// The types of the fields.
    fields: Vec<Type>,
    /// The fields that rounds change.
    varying: Vec<usize>,
    /// The operands that the next state is made of.
    next: Vec<Atom>,
}

impl Split {
    fn of(binding: &Let, facts: &Facts<'_>) -> Option<Split> {
        let (init, state, body) = parts(&binding.op)?;
        let fields = facts.fields(&state.ty)?;
        let steady = facts.is_steady(init) && facts.never_changes(state.var) && facts.never_changes(binding.bound.var);
        if !steady || !binding.bound.yields() || !only_fields_are_used(body, state.var) {
            return None;
        }
        let next = record(body, next_state(&binding.op)?)?;
        let changes = |index: &usize| !is_field(body, &next[*index], state.var, *index);
        let varying: Vec<usize> = (0..fields.len()).filter(changes).collect();
        let smaller = !varying.is_empty() && (varying.len() < fields.len() || fields.len() == 1);
        smaller.then_some(Split { fields, varying, next })
    }

    /// Puts the loop with the smaller state, and the record behind it, in the place of the loop.
    fn apply(self, binding: Let, facts: &mut Facts<'_>, to: &mut Vec<Let>) {
        let Let { bound, mut op, origin } = binding;
        let (init, ..) = parts(&op).expect("only loops are split");
        let init = self.initial(init.clone(), origin, facts, to);
        let ty = self.state_type();
        let state = facts.variable(ty.clone());
        let varying: Vec<Atom> = self.varying.iter().map(|index| init[*index].clone()).collect();
        let first = self.packed(varying, origin, facts, to);
        self.rewrite(&mut op, first, &state, &init, facts);
        let last = facts.variable(ty);
        to.push(Let { bound: last.clone(), op, origin });
        let mut fields = init;
        for (at, index) in self.varying.iter().enumerate() {
            fields[*index] = self.unpacked(&last, at, origin, facts, to);
        }
        to.push(Let { bound, op: Op::Prim(Prim::Record, fields), origin });
    }

    /// Returns the fields of the initial state.
    fn initial(&self, init: Atom, origin: Origin, facts: &mut Facts<'_>, to: &mut Vec<Let>) -> Vec<Atom> {
        if let Atom::Value(Value::Record(fields)) = init {
            return fields.iter().cloned().map(Atom::Value).collect();
        }
        let field = |(ty, index): (&Type, u32)| {
            let bound = facts.variable(ty.clone());
            let atom = Atom::Var(bound.var);
            to.push(Let { bound, op: Op::Prim(Prim::Field(index), vec![init.clone()]), origin });
            atom
        };
        self.fields.iter().zip(0..).map(field).collect()
    }

    /// Returns the type of the smaller state: the only field, or a tuple.
    fn state_type(&self) -> Type {
        let mut types = self.varying.iter().map(|index| self.fields[*index].clone());
        if self.varying.len() == 1 { types.next().expect("one field varies") } else { Type::Tuple(types.collect()) }
    }

    /// Returns the smaller state of these fields.
    fn packed(&self, mut fields: Vec<Atom>, origin: Origin, facts: &mut Facts<'_>, to: &mut Vec<Let>) -> Atom {
        if fields.len() == 1 {
            return fields.remove(0);
        }
        let bound = facts.variable(self.state_type());
        let atom = Atom::Var(bound.var);
        to.push(Let { bound, op: Op::Prim(Prim::Record, fields), origin });
        atom
    }

    /// Returns a field of the smaller state.
    fn unpacked(&self, state: &Variable, at: usize, origin: Origin, facts: &mut Facts<'_>, to: &mut Vec<Let>) -> Atom {
        if self.varying.len() == 1 {
            return Atom::Var(state.var);
        }
        let bound = facts.variable(self.fields[self.varying[at]].clone());
        let atom = Atom::Var(bound.var);
        let index = u32::try_from(at).expect("a record has few fields");
        to.push(Let { bound, op: Op::Prim(Prim::Field(index), vec![Atom::Var(state.var)]), origin });
        atom
    }

    /// Gives the loop the smaller state.
    fn rewrite(&self, op: &mut Op, first: Atom, state: &Variable, init: &[Atom], facts: &mut Facts<'_>) {
        let (old, body) = match op {
            Op::Loop { init, state: old, body, .. } | Op::Fold { init, accumulator: old, body, .. } => {
                *init = first;
                (std::mem::replace(old, state.clone()).var, body)
            }
            _ => unreachable!("only loops are split"),
        };
        self.use_fields(body, old, state.var, init);
        let origin = body.lets.last().map_or(Origin::default(), |last| last.origin);
        let next = self.varying.iter().map(|index| self.next[*index].clone()).collect();
        // The record of the next state stands where it stood, in front of the pair of a loop.
        let pair = body.result.variable().and_then(|var| body.lets.iter().position(|inner| inner.bound.var == var));
        let mut lets = Vec::new();
        let next = self.packed(next, origin, facts, &mut lets);
        if let Op::Loop { body, .. } = op {
            let at = pair.expect("the pair was found");
            let mut pair = body.lets.remove(at);
            let done = pair.op.operands().nth(1).cloned().expect("a pair has two parts");
            pair.bound.ty = Type::Tuple([state.ty.clone(), Type::Bool].into());
            pair.op = Op::Prim(Prim::Record, vec![next, done]);
            lets.push(pair);
            body.lets.append(&mut lets);
        } else if let Op::Fold { body, .. } = op {
            body.lets.append(&mut lets);
            body.result = next;
        }
    }

    /// Replaces the fields of the old state.
    fn use_fields(&self, block: &mut Block, old: Var, state: Var, init: &[Atom]) {
        for binding in &mut block.lets {
            if let Op::Prim(Prim::Field(index), operands) = &mut binding.op
                && operands[0] == Atom::Var(old)
            {
                let index = *index as usize;
                binding.op = match self.varying.iter().position(|varying| *varying == index) {
                    None => Op::Prim(Prim::Copy, vec![init[index].clone()]),
                    Some(_) if self.varying.len() == 1 => Op::Prim(Prim::Copy, vec![Atom::Var(state)]),
                    Some(at) => {
                        let at = u32::try_from(at).expect("a record has few fields");
                        Op::Prim(Prim::Field(at), vec![Atom::Var(state)])
                    }
                };
            }
            binding.op.blocks_mut().for_each(|inner| self.use_fields(inner, old, state, init));
        }
    }
}

/// Returns the initial state, the state and the body of a loop or fold.
fn parts(op: &Op) -> Option<(&Atom, &Variable, &Block)> {
    match op {
        Op::Loop { init, state, body, .. } | Op::Fold { init, accumulator: state, body, .. } => {
            Some((init, state, body))
        }
        _ => None,
    }
}

/// Returns the operand that is the state of the next round.
fn next_state(op: &Op) -> Option<&Atom> {
    match op {
        Op::Fold { body, .. } => Some(&body.result),
        Op::Loop { body, .. } => {
            let pair = body.result.variable()?;
            let mut others = 0;
            body.each_operand(&mut |atom| others += usize::from(*atom == body.result));
            match &body.lets.iter().find(|binding| binding.bound.var == pair)?.op {
                Op::Prim(Prim::Record, operands) if others == 1 => operands.first(),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns the operands of the record that the operand is.
fn record(body: &Block, operand: &Atom) -> Option<Vec<Atom>> {
    if let Atom::Value(Value::Record(fields)) = operand {
        return Some(fields.iter().cloned().map(Atom::Value).collect());
    }
    let var = operand.variable()?;
    match &body.lets.iter().find(|binding| binding.bound.var == var)?.op {
        Op::Prim(Prim::Record, operands) => Some(operands.clone()),
        _ => None,
    }
}

/// Returns true if the operand is this field of the state.
fn is_field(body: &Block, operand: &Atom, state: Var, index: usize) -> bool {
    let Some(var) = operand.variable() else { return false };
    body.lets.iter().any(|binding| {
        let is_it = matches!(&binding.op, Op::Prim(Prim::Field(field), operands)
            if *field as usize == index && operands[0] == Atom::Var(state));
        binding.bound.var == var && is_it
    })
}

/// Returns true if the block uses the state only to take fields out of it.
fn only_fields_are_used(body: &Block, state: Var) -> bool {
    let (mut fields, mut all) = (0, 0);
    body.each_operand(&mut |atom| all += usize::from(*atom == Atom::Var(state)));
    body.each_binding(&mut |binding| {
        let is_field = matches!(&binding.op, Op::Prim(Prim::Field(_), operands) if operands[0] == Atom::Var(state));
        fields += usize::from(is_field);
    });
    fields == all
}
