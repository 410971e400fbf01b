//! Shrinking of random programs, so that a difference can be shown by a program that a person can read.
//!
//! Candidates that remove more come first. Many are invalid, for example because a binding that is used is missing; the
//! caller verifies them before trying them.

use weir_host::Value;

use super::Case;
use super::values::plainest;
use crate::expr::{Arm, Atom, Block, Let, Op, Variable};
use crate::prim::Prim;
use crate::program::Origin;

/// One way to make a binding smaller.
#[derive(Clone, Copy)]
enum Reduction {
    /// Leaves it out.
    Drop,
    /// Replaces it by the simplest value of its type.
    Plain,
    /// Replaces it by its first, second, … block.
    Inline(usize),
    /// Replaces its operand of this index by the simplest constant of the operand's type.
    Operand(usize),
}

/// Returns the cases that are smaller than this one by one step.
pub fn smaller(case: &Case) -> impl Iterator<Item = Case> + '_ {
    let rows = (0..case.inputs.len()).filter(|_| case.inputs.len() > 1).map(|row| without_row(case, row));
    let shared = (0..case.program.shared.len()).map(|index| {
        let mut smaller = case.clone();
        smaller.program.shared.remove(index);
        smaller
    });
    let plain = std::iter::once_with(|| plain_result(case)).flatten();
    let edits = edits(case).into_iter().filter_map(|(block, binding, edit)| edited(case, block, binding, edit));
    rows.chain(edits).chain(shared).chain(plain).chain(smaller_inputs(case))
}

fn without_row(case: &Case, row: usize) -> Case {
    let mut smaller = case.clone();
    smaller.inputs.remove(row);
    smaller
}

/// Returns the case whose flow yields a constant.
fn plain_result(case: &Case) -> Option<Case> {
    let mut smaller = case.clone();
    let flow = smaller.program.entries.first_mut()?.flows.first_mut()?;
    let plain = Atom::Value(plainest(&flow.result)?);
    let changes = flow.body.result != plain;
    flow.body.result = plain;
    changes.then_some(smaller)
}

/// Returns every edit of every binding, large ones first: by block, in the order of a walk, and by binding, from the
/// last.
fn edits(case: &Case) -> Vec<(usize, usize, Reduction)> {
    let mut all = Vec::new();
    let mut block = 0;
    for flow in case.program.entries.iter().flat_map(|entry| &entry.flows) {
        visit(&flow.body, &mut |of| {
            for (index, binding) in of.lets.iter().enumerate().rev() {
                all.extend(edits_of(binding).map(|edit| (block, index, edit)));
            }
            block += 1;
        });
    }
    all.sort_by_key(|(_, _, edit)| match edit {
        Reduction::Drop => 0,
        Reduction::Plain | Reduction::Inline(_) => 1,
        Reduction::Operand(_) => 2,
    });
    all
}

fn edits_of(binding: &Let) -> impl Iterator<Item = Reduction> + use<> {
    let is_plain = matches!(&binding.op, Op::Prim(Prim::Copy, operands) if matches!(operands[..], [Atom::Value(_)]));
    let is_copy = matches!(&binding.op, Op::Prim(Prim::Copy, _));
    let operands = if is_copy { 0 } else { binding.op.operands().count() };
    let inline = (0..binding.op.blocks().count()).map(Reduction::Inline);
    let plain = (!is_plain).then_some(Reduction::Plain);
    std::iter::once(Reduction::Drop).chain(plain).chain(inline).chain((0..operands).map(Reduction::Operand))
}

fn edited(case: &Case, block: usize, binding: usize, edit: Reduction) -> Option<Case> {
    let mut smaller = case.clone();
    let mut index = 0;
    let mut changed = false;
    for flow in smaller.program.entries.iter_mut().flat_map(|entry| &mut entry.flows) {
        visit_mut(&mut flow.body, &mut |of| {
            if index == block {
                changed = apply(of, binding, edit).is_some();
            }
            index += 1;
            index <= block
        });
    }
    changed.then_some(smaller)
}

/// Edits a binding; returns `None` if the edit does not apply there.
fn apply(block: &mut Block, index: usize, edit: Reduction) -> Option<()> {
    match edit {
        Reduction::Drop => _ = block.lets.remove(index),
        Reduction::Plain => {
            let binding = &mut block.lets[index];
            binding.op = Op::Prim(Prim::Copy, vec![Atom::Value(plainest(&binding.bound.ty)?)]);
        }
        Reduction::Inline(inner) => {
            let binding = &mut block.lets[index];
            let mut body = binding.op.blocks().nth(inner)?.clone();
            if let Op::Switch { subject, arms } = &binding.op {
                settle_payload(subject, &arms[inner], &mut body);
            }
            binding.op = Op::Prim(Prim::Copy, vec![body.result]);
            block.lets.splice(index..index, body.lets);
        }
        Reduction::Operand(operand) => {
            let atom = block.lets[index].op.operands_mut().nth(operand)?;
            let Atom::Value(value) = atom else { return None };
            *value = plainer(value)?;
        }
    }
    Some(())
}

/// Replaces what an arm took from the payload by constants, because without its switch the tag may be another.
fn settle_payload(subject: &Atom, arm: &Arm, body: &mut Block) {
    let plain =
        |variable: &Variable| Op::Prim(Prim::Copy, plainest(&variable.ty).map(Atom::Value).into_iter().collect());
    for binding in &mut body.lets {
        if matches!(&binding.op, Op::Prim(Prim::Payload(_), operands) if operands[0] == *subject) {
            binding.op = plain(&binding.bound);
        }
    }
    let named = arm.payload.iter().map(|variable| Let {
        bound: variable.clone(),
        op: plain(variable),
        origin: Origin::default(),
    });
    body.lets.splice(0..0, named);
}

/// Returns a smaller value of the same type; `None` for the simplest.
fn plainer(value: &Value) -> Option<Value> {
    match value {
        Value::Int(0) | Value::Bool(false) => None,
        Value::Int(int) => Some(Value::Int(int / 2)),
        Value::Bool(true) => Some(Value::Bool(false)),
        Value::Float(float) if *float != 0.0 => Some(Value::Float(0.0)),
        Value::Text(text) if !text.is_empty() => Some(Value::text("")),
        Value::List(elements) if !elements.is_empty() => Some(Value::List(elements.range(1, elements.len()))),
        _ => None,
    }
}

fn smaller_inputs(case: &Case) -> impl Iterator<Item = Case> + '_ {
    let places = case.inputs.iter().enumerate().flat_map(|(row, inputs)| (0..inputs.len()).map(move |at| (row, at)));
    places.filter_map(|(row, at)| {
        let value = plainer(&case.inputs[row][at])?;
        let mut smaller = case.clone();
        smaller.inputs[row][at] = value;
        Some(smaller)
    })
}

fn visit(block: &Block, see: &mut impl FnMut(&Block)) {
    see(block);
    block.lets.iter().for_each(|binding| binding.op.blocks().for_each(|inner| visit(inner, see)));
}

/// Visits the blocks in the order of [`visit`] as long as `see` returns true.
fn visit_mut(block: &mut Block, see: &mut impl FnMut(&mut Block) -> bool) -> bool {
    see(block) && block.lets.iter_mut().all(|binding| binding.op.blocks_mut().all(|inner| visit_mut(inner, see)))
}
