//! Reads of stored tables by keys in loops are calls that gather (`tables.row`): one statement reads the rows of several rounds.
//!
//! A read keeps the function `tables.get` if nothing would gather with it: outside of `for`s, or if all `for`s around it write the table, so
//! that their rounds read one after the other. In a `fold` it gathers if it needs the element only, because such calls are
//! lifted out of it (`weir-ir/src/passes/lifted_calls.rs`). A read within a step keeps it, too: it reads in the snapshot of the transaction,
//! or under the locks of the step. So does one of a table in memory, which answers at once.

use std::collections::BTreeSet;

use weir_host::{Mode, Passing, Resource, Text, Value, World};
use weir_ir::expr::{ArmTest, Atom, Block, Call, Let, LoopExit, Op, Var};

use super::Lowering;
use crate::lang_items::TABLES;

/// The parts of the body of a `fold` that have to stay in it.
struct LateParts {
    /// The variables that need the rounds before.
    of_rounds: BTreeSet<Var>,
    /// The tables that the body writes.
    written: BTreeSet<Text>,
}

impl Lowering<'_, '_> {
    /// Has the reads of the loops of a block gather.
    pub(super) fn gather_reads(&self, block: &mut Block) {
        if self.program.declarations.tables.values().any(|table| table.soft.is_none()) {
            self.gather_reads_in(block, &mut Vec::new());
        }
    }

    /// Has the reads of a block gather that is in these `for`s, each of which writes these tables.
    fn gather_reads_in(&self, block: &mut Block, around: &mut Vec<BTreeSet<Text>>) {
        for binding in &mut block.lets {
            match &mut binding.op {
                Op::Call(call) if self.is_row_outside(call) && gathers_in(call, around) => gather(call),
                Op::Atomic { .. } => {}
                Op::Map { body, .. } => {
                    let mut written = BTreeSet::new();
                    self.written_in(body, &mut written);
                    around.push(written);
                    self.gather_reads_in(body, around);
                    around.pop();
                }
                Op::Fold { state, body, exit, .. } => {
                    self.gather_reads_in(body, around);
                    let mut written = BTreeSet::new();
                    self.written_in(body, &mut written);
                    if !may_return_or_be_given_up(body) {
                        let left =
                            state.first().filter(|_| matches!(exit, LoopExit::Failure(_))).map(|state| state.var);
                        let of_rounds = state.iter().map(|state| state.var).collect();
                        self.gather_lifted(body, left, &mut LateParts { of_rounds, written });
                    }
                }
                op => op.blocks_mut().for_each(|inner| self.gather_reads_in(inner, around)),
            }
        }
    }

    /// Has the reads of a block of a `fold` gather that need nothing late. `left` is the state of the `fold` if a failure may leave it.
    fn gather_lifted(&self, block: &mut Block, left: Option<Var>, late: &mut LateParts) {
        for binding in &mut block.lets {
            if self.is_lifted_whole(&binding.op, &late.written) && !needs_one_of(&binding.op, &late.of_rounds) {
                self.gather_all(binding);
                continue;
            }
            late.of_rounds.insert(binding.bound.var);
            let Op::Switch { subject, arms } = &mut binding.op else { continue };
            let passes = left.is_some() && subject.variable() == left;
            if !passes && subject.variable().is_some_and(|var| late.of_rounds.contains(&var)) {
                continue;
            }
            for arm in arms.iter_mut().filter(|arm| !passes || arm.test == ArmTest::Tag(Value::OK)) {
                if passes {
                    late.of_rounds.extend(arm.payload.iter().map(|variable| variable.var));
                }
                self.gather_lifted(&mut arm.body, left, late);
            }
            if !passes && arms.iter().all(|arm| value_of(&arm.body).is_none_or(|var| !late.of_rounds.contains(&var))) {
                late.of_rounds.remove(&binding.bound.var);
            }
        }
    }

    /// Returns whether an operation leaves a `fold` as a whole, which writes these tables, if it needs nothing of the rounds before: it
    /// only reads, and its failures can be values.
    fn is_lifted_whole(&self, op: &Op, written: &BTreeSet<Text>) -> bool {
        match op {
            Op::Prim(..) | Op::Fail(_) => true,
            Op::Call(call) if call.arguments.iter().filter_map(Atom::shared).any(|table| written.contains(table)) => {
                false
            }
            Op::Call(call) if self.is_row_outside(call) => true,
            Op::Call(call) => self.context.library.function(&call.function).is_some_and(|function| {
                let (effects, batch) = (&function.signature.effects, &function.signature.batch);
                let reads = effects.world != World::Writes && (effects.waits || batch.is_some());
                reads || (effects.total && effects.world == World::Pure)
            }),
            Op::Switch { .. } | Op::Map { .. } | Op::Fold { .. } => {
                op.blocks().all(|block| block.lets.iter().all(|inner| self.is_lifted_whole(&inner.op, written)))
            }
            _ => false,
        }
    }

    /// Has all reads of an operation gather.
    fn gather_all(&self, binding: &mut Let) {
        match &mut binding.op {
            Op::Call(call) if self.is_row_outside(call) => gather(call),
            op => op.blocks_mut().for_each(|inner| inner.lets.iter_mut().for_each(|inner| self.gather_all(inner))),
        }
    }

    /// Adds the shared values that a block writes.
    pub(super) fn written_in(&self, block: &Block, written: &mut BTreeSet<Text>) {
        for binding in &block.lets {
            match &binding.op {
                Op::Call(call) => {
                    let function = self.context.library.function(&call.function);
                    let passed = |at: usize| Some(function?.signature.parameters.get(at)?.passing);
                    let changed =
                        call.arguments.iter().enumerate().filter(|(at, _)| passed(*at) == Some(Passing::Change));
                    written.extend(changed.filter_map(|(_, atom)| atom.shared().cloned()));
                }
                Op::Atomic { constraints, .. } => {
                    written.extend(constraints.iter().filter_map(|held| match &held.resource {
                        Resource::Shared(name) if held.mode == Mode::Write => Some(name.clone()),
                        _ => None,
                    }));
                }
                _ => {}
            }
            binding.op.blocks().for_each(|inner| self.written_in(inner, written));
        }
    }

    /// Returns whether an operation has calls that gather, or would in a `for`.
    pub(super) fn gathers(&self, binding: &Let) -> bool {
        match &binding.op {
            Op::Call(call) => {
                let function = self.context.library.function(&call.function);
                let is_batched = function.is_some_and(|function| function.signature.batch.is_some());
                is_batched || (self.steps.is_empty() && self.is_row_outside(call))
            }
            Op::Atomic { .. } => false,
            op => op.blocks().any(|block| block.lets.iter().any(|inner| self.gathers(inner))),
        }
    }

    /// Returns whether a call reads a row of a stored table, in no transaction.
    fn is_row_outside(&self, call: &Call) -> bool {
        let [Atom::Shared(table), Atom::Value(Value::Int(0)), _] = &call.arguments[..] else { return false };
        *call.function == format!("{TABLES}.get") && self.is_stored(table)
    }
}

/// Returns the variable that an arm yields, or with whose failure it ends.
fn value_of(arm: &Block) -> Option<Var> {
    match arm.lets.last() {
        Some(Let { op: Op::Fail(failure), .. }) => failure.variable(),
        _ => arm.result.variable(),
    }
}

/// Returns whether an operation of a block returns, or may be given up.
fn may_return_or_be_given_up(block: &Block) -> bool {
    block.lets.iter().any(|binding| {
        matches!(binding.op, Op::Within { .. } | Op::Race { .. } | Op::Return(_))
            || binding.op.blocks().any(may_return_or_be_given_up)
    })
}

fn gather(call: &mut Call) {
    call.function = format!("{TABLES}.row").into();
}

/// Returns whether an operation needs one of these variables, its blocks included.
fn needs_one_of(op: &Op, vars: &BTreeSet<Var>) -> bool {
    let is_one = |atom: &Atom| atom.variable().is_some_and(|var| vars.contains(&var));
    let mut needs = op.operands().any(is_one);
    op.blocks().for_each(|block| block.each_operand(&mut |atom| needs |= is_one(atom)));
    needs
}

/// Returns whether reads of a table gather in one of these `for`s, each of which writes these tables.
fn gathers_in(call: &Call, around: &[BTreeSet<Text>]) -> bool {
    let table = call.arguments.first().and_then(Atom::shared);
    table.is_some_and(|table| around.iter().any(|written| !written.contains(table)))
}
