//! The value that a state of a loop has in the next round, field by field.

use weir_host::Value;

use crate::expr::{Atom, Block, Let, Op, Var, Variable};
use crate::prim::Prim;

/// The next value of one state.
pub(super) struct NextState {
    /// The next values of its fields.
    pub fields: Vec<Next>,
    /// The replacements of fields that make it, each used for nothing else.
    pub made_by: Vec<Var>,
    /// The number of times that they use the state.
    uses: usize,
}

/// The next value of a field.
#[derive(Clone)]
pub(super) enum Next {
    /// The value of this round.
    Unchanged,
    /// This operand.
    Is(Atom),
}

impl NextState {
    /// Returns the next value of the state at this index, which has so many fields.
    pub(super) fn of(op: &Op, at: usize, fields: usize) -> Option<NextState> {
        let (_, states, body) = parts(op)?;
        let is_loop = matches!(op, Op::Loop { .. });
        let next = if states.len() == 1 && !is_loop {
            &body.result
        } else {
            let round = binding_of(body, &body.result).filter(|_| is_used_once(body, &body.result))?;
            &operands_of_record(round)?[at]
        };
        let mut found = NextState { fields: vec![Next::Unchanged; fields], made_by: Vec::new(), uses: 0 };
        found.follow(body, next, states[at].var)?;
        Some(found)
    }

    /// Follows the operand to the record that it was made of, over the replacements of fields.
    fn follow(&mut self, body: &Block, next: &Atom, state: Var) -> Option<()> {
        let mut next = next;
        // Of several replacements of one field, the last one counts.
        let replace = |fields: &mut Vec<Next>, index: usize, atom: &Atom| {
            if let Some(field @ Next::Unchanged) = fields.get_mut(index) {
                *field = Next::Is(atom.clone());
            }
        };
        loop {
            if *next == Atom::Var(state) {
                self.uses += 1;
                return Some(());
            }
            if let Atom::Value(Value::Record(fields)) = next {
                let constants = fields.iter().cloned().map(Atom::Value).enumerate();
                constants.for_each(|(index, atom)| replace(&mut self.fields, index, &atom));
                return Some(());
            }
            let binding = binding_of(body, next)?;
            match &binding.op {
                Op::Prim(Prim::WithField(index), operands) if is_used_once(body, next) => {
                    self.made_by.push(binding.bound.var);
                    replace(&mut self.fields, *index as usize, &operands[1]);
                    next = &operands[0];
                }
                Op::Prim(Prim::Record, operands) => {
                    operands.iter().enumerate().for_each(|(index, atom)| replace(&mut self.fields, index, atom));
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    /// Returns true if the body uses the state otherwise only to take fields out of it.
    pub(super) fn is_only_other_use(&self, body: &Block, state: Var) -> bool {
        let (mut fields, mut all) = (0, 0);
        body.each_operand(&mut |atom| all += usize::from(*atom == Atom::Var(state)));
        body.each_binding(&mut |binding| {
            let is_field = matches!(&binding.op, Op::Prim(Prim::Field(_), operands) if operands[0] == Atom::Var(state));
            fields += usize::from(is_field);
        });
        fields + self.uses == all
    }

    /// Returns true if a round may change this field.
    pub(super) fn changes(&self, body: &Block, state: Var, index: usize) -> bool {
        match &self.fields[index] {
            Next::Unchanged => false,
            Next::Is(atom) => !is_field(body, atom, state, index),
        }
    }
}

/// Returns the binding of the block itself that binds the operand.
fn binding_of<'b>(body: &'b Block, operand: &Atom) -> Option<&'b Let> {
    let var = operand.variable()?;
    body.lets.iter().find(|binding| binding.bound.var == var)
}

fn is_used_once(body: &Block, operand: &Atom) -> bool {
    let mut uses = 0;
    body.each_operand(&mut |atom| uses += usize::from(atom == operand));
    uses == 1
}

fn operands_of_record(binding: &Let) -> Option<&[Atom]> {
    match &binding.op {
        Op::Prim(Prim::Record, operands) => Some(operands),
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

/// Returns the initial states, the states and the body of a loop or fold.
pub(super) fn parts(op: &Op) -> Option<(&[Atom], &[Variable], &Block)> {
    match op {
        Op::Loop { init, state, body, .. } | Op::Fold { init, state, body, .. } => Some((init, state, body)),
        _ => None,
    }
}
