//! Loop state: a tuple or record among the states of a loop or fold is split into its fields, and fields that no round
//! changes leave the state.
//!
//! *Source.* Scalar replacement of aggregates over loop-carried values (Muchnick 1997, §12.2), and loop-invariant code
//! (§13.2), for the strictly sequential `scan` of Ohua thesis §4.2.2.
//!
//! *Law.* The body uses the state only to take fields out of it, and to make the next one: a record of the next fields, or the
//! state with some fields replaced. A field whose next value is the field itself has its initial value in every round, and
//! its initial value never changes; so the body may use that, and the record that the loop yields is made of it behind the
//! loop. Every other field is a state of its own. Rounds, their order, and the failure of the last one stay as they are.

use weir_host::{Type, Value};

use super::facts::Facts;
use crate::expr::{Atom, Block, Let, Op, Origin, Var, Variable, state_type};
use crate::prim::Prim;

mod next;

use next::{Next, NextState, parts};

pub(super) fn run(body: &mut Block, facts: &mut Facts<'_>) {
    block(body, facts);
}

/// Splits the states of the loops of a block, inner ones first.
fn block(body: &mut Block, facts: &mut Facts<'_>) {
    for mut binding in std::mem::take(&mut body.lets) {
        binding.op.blocks_mut().for_each(|inner| block(inner, facts));
        // What stands behind the loop, the last one first.
        let mut behind = Vec::new();
        while let Some(split) = Split::of(&binding, facts) {
            let mut made = Vec::new();
            binding = split.apply(binding, facts, &mut body.lets, &mut made);
            behind.extend(made.into_iter().rev());
        }
        body.lets.push(binding);
        body.lets.extend(behind.into_iter().rev());
    }
}

/// A state of a loop or fold that can be split.
struct Split {
    /// Its index among the states.
    at: usize,
    /// The types of its fields.
    fields: Vec<Type>,
    /// The fields that rounds change.
    varying: Vec<usize>,
    /// Its next value.
    next: NextState,
}

impl Split {
    /// Returns the first state of the loop that can be split.
    fn of(binding: &Let, facts: &Facts<'_>) -> Option<Split> {
        let (_, states, _) = parts(&binding.op)?;
        let may = facts.never_changes(binding.bound.var) && binding.bound.yields();
        if may { (0..states.len()).find_map(|at| Split::of_state(&binding.op, at, facts)) } else { None }
    }

    fn of_state(op: &Op, at: usize, facts: &Facts<'_>) -> Option<Split> {
        let (init, states, body) = parts(op)?;
        let state = &states[at];
        let fields = facts.fields(&state.ty)?;
        if !facts.is_steady(&init[at]) || !facts.never_changes(state.var) {
            return None;
        }
        let next = NextState::of(op, at, fields.len())?;
        if !next.is_only_other_use(body, state.var) {
            return None;
        }
        let varying: Vec<usize> = (0..fields.len()).filter(|index| next.changes(body, state.var, *index)).collect();
        let has_state = states.len() > 1 || !varying.is_empty();
        has_state.then_some(Split { at, fields, varying, next })
    }

    /// Returns the loop with the fields in the place of the state; puts what its initial state needs `before` it, and what
    /// makes its former result `behind` it.
    fn apply(self, binding: Let, facts: &mut Facts<'_>, before: &mut Vec<Let>, behind: &mut Vec<Let>) -> Let {
        let Let { bound, mut op, origin } = binding;
        let (init, states, _) = parts(&op).expect("only loops are split");
        let count = states.len();
        let kept: Vec<Type> = states.iter().map(|state| state.ty.clone()).collect();
        let init = self.initial(init[self.at].clone(), origin, facts, before);
        let new: Vec<Variable> = self.varying.iter().map(|index| facts.variable(self.fields[*index].clone())).collect();
        self.rewrite(&mut op, &new, &init, facts);
        let (_, states, _) = parts(&op).expect("it is the loop");
        let types: Vec<Type> = states.iter().map(|state| state.ty.clone()).collect();
        let last = facts.variable(state_type(&types));
        let mut unpacked = Unpacking { last: &last, types: &types, origin, facts, to: behind };
        let mut fields = init;
        for (offset, index) in self.varying.iter().enumerate() {
            fields[*index] = unpacked.state(self.at + offset);
        }
        let split = Op::Prim(Prim::Record, fields);
        let whole = if count == 1 {
            split
        } else {
            let own = unpacked.bind(kept[self.at].clone(), split);
            let state = |index: usize| match index.cmp(&self.at) {
                std::cmp::Ordering::Less => unpacked.state(index),
                std::cmp::Ordering::Equal => own.clone(),
                std::cmp::Ordering::Greater => unpacked.state(index + self.varying.len() - 1),
            };
            Op::Prim(Prim::Record, (0..count).map(state).collect())
        };
        behind.push(Let { bound, op: whole, origin });
        Let { bound: last, op, origin }
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

    /// Gives the loop the fields as its states.
    fn rewrite(&self, op: &mut Op, new: &[Variable], initial: &[Atom], facts: &mut Facts<'_>) {
        let is_loop = matches!(op, Op::Loop { .. });
        let (Op::Loop { init, state, body, .. } | Op::Fold { init, state, body, .. }) = op else {
            unreachable!("only loops are split")
        };
        let old = state[self.at].var;
        let count = state.len();
        state.splice(self.at..=self.at, new.iter().cloned());
        init.splice(self.at..=self.at, self.varying.iter().map(|index| initial[*index].clone()));
        let types: Vec<Type> = state.iter().map(|state| state.ty.clone()).collect();
        let origin = body.lets.last().map_or(Origin::default(), |last| last.origin);
        self.use_fields(body, old, new, initial);
        let next = self.varying.iter().map(|index| match &self.next.fields[*index] {
            Next::Is(atom) => atom.clone(),
            Next::Unchanged => unreachable!("this field changes"),
        });
        if count == 1 && !is_loop {
            let mut next: Vec<Atom> = next.collect();
            body.result = if next.len() == 1 {
                next.remove(0)
            } else {
                let bound = facts.variable(state_type(&types));
                let result = Atom::Var(bound.var);
                body.lets.push(Let { bound, op: Op::Prim(Prim::Record, next), origin });
                result
            };
        } else {
            let round = body.lets.iter().position(|binding| Atom::Var(binding.bound.var) == body.result);
            let mut round = body.lets.remove(round.expect("the round was found"));
            let Op::Prim(Prim::Record, operands) = &mut round.op else { unreachable!("a round is a record") };
            operands.splice(self.at..=self.at, next);
            let done = is_loop.then_some(Type::Bool);
            let parts: Vec<Type> = types.iter().cloned().chain(done).collect();
            if parts.len() == 1 {
                body.result = operands.remove(0);
            } else {
                round.bound.ty = Type::Tuple(parts.into());
                body.lets.push(round);
            }
        }
        body.lets.retain(|binding| !self.next.made_by.contains(&binding.bound.var));
    }

    /// Replaces the fields of the old state.
    fn use_fields(&self, block: &mut Block, old: Var, new: &[Variable], init: &[Atom]) {
        for binding in &mut block.lets {
            if let Op::Prim(Prim::Field(index), operands) = &mut binding.op
                && operands[0] == Atom::Var(old)
            {
                let index = *index as usize;
                let value = match self.varying.iter().position(|varying| *varying == index) {
                    None => init[index].clone(),
                    Some(at) => Atom::Var(new[at].var),
                };
                binding.op = Op::Prim(Prim::Copy, vec![value]);
            }
            binding.op.blocks_mut().for_each(|inner| self.use_fields(inner, old, new, init));
        }
    }
}

/// Takes the states out of what a loop yields.
struct Unpacking<'u, 'a> {
    last: &'u Variable,
    types: &'u [Type],
    origin: Origin,
    facts: &'u mut Facts<'a>,
    to: &'u mut Vec<Let>,
}

impl Unpacking<'_, '_> {
    fn state(&mut self, index: usize) -> Atom {
        if self.types.len() == 1 {
            return Atom::Var(self.last.var);
        }
        let field = u32::try_from(index).expect("a record has few fields");
        self.bind(self.types[index].clone(), Op::Prim(Prim::Field(field), vec![Atom::Var(self.last.var)]))
    }

    fn bind(&mut self, ty: Type, op: Op) -> Atom {
        let bound = self.facts.variable(ty);
        let atom = Atom::Var(bound.var);
        self.to.push(Let { bound, op, origin: self.origin });
        atom
    }
}
