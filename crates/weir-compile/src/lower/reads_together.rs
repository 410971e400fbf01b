//! Sends the reads of a transaction together that follow each other: each of them is asked for before the flow waits for the first
//! (`tables.expect_select` and others).
//!
//! Reads by keys, queries and counts of stored tables are sent together if all that they need is known before the first of them, and if
//! nothing between them ends the flow, writes, waits, or has another effect: a query that nobody needs would hold up the next transaction,
//! which has to wait for its end. A read in a branch or in a loop stays there.

use weir_host::{Passing, Type, Value, World};
use weir_ir::expr::{Atom, Block, Call, Let, Op, Origin};
use weir_ir::program::Var;

use super::Lowering;
use crate::lang_items::TABLES;

/// Maximum number of reads that are sent together. Chosen by judgement.
const TOGETHER_MAX: usize = 32;
/// Maximum number of operations by which the argument of a read is computed once more. Chosen by judgement.
const COMPUTED_MAX: usize = 32;

/// The reads that are sent together.
struct ReadsTogether {
    /// The place of the first one in its block.
    first: usize,
    /// The operations that ask for them.
    asking: Vec<Let>,
    count: usize,
    /// True if one of them is no read by a key.
    has_query: bool,
    /// True if all before were asked for.
    follows: Atom,
}

impl Lowering<'_, '_> {
    /// Has a transaction send reads together that follow each other.
    pub(super) fn send_reads_together(&mut self, block: &mut Block, transaction: Var) {
        for binding in &mut block.lets {
            if let Op::Switch { .. } | Op::Map { .. } | Op::Fold { .. } = binding.op {
                binding.op.blocks_mut().for_each(|inner| self.send_reads_together(inner, transaction));
            }
        }
        for together in self.reads_together(&block.lets, transaction).into_iter().rev() {
            block.lets.splice(together.first..together.first, together.asking);
        }
    }

    fn reads_together(&mut self, lets: &[Let], transaction: Var) -> Vec<ReadsTogether> {
        let (mut all, mut open) = (Vec::new(), None::<ReadsTogether>);
        for (at, binding) in lets.iter().enumerate() {
            if let Some(read) = self.read_of(binding, transaction) {
                let origin = binding.origin;
                let is_added = open.as_mut().is_some_and(|open| {
                    let behind_first = &lets[open.first..at];
                    self.add_read(open, behind_first, (read, origin))
                });
                if !is_added {
                    let mut alone = ReadsTogether::at(at);
                    self.add_read(&mut alone, &[], (read, origin));
                    all.extend(open.replace(alone));
                }
            } else if !self.may_stand_between_reads(binding, transaction) {
                all.extend(open.take());
            }
        }
        all.extend(open);
        all.retain(|together| together.count > 1 && together.has_query);
        all
    }

    /// Adds a read to those that are sent together, unless it needs something that is not known before `behind_first`, the operations from
    /// the first one on.
    fn add_read(
        &mut self,
        together: &mut ReadsTogether,
        behind_first: &[Let],
        (read, origin): (&Call, Origin),
    ) -> bool {
        let (mut asking, mut left) = (Vec::new(), COMPUTED_MAX);
        let known =
            read.arguments.iter().map(|argument| self.known_before(behind_first, argument, (&mut asking, &mut left)));
        let (true, Some(mut arguments)) = (together.count < TOGETHER_MAX, known.collect::<Option<Vec<Atom>>>()) else {
            return false;
        };
        let name = read.function.rsplit('.').next().unwrap_or_default();
        let is_query = name != "get";
        let function = if is_query { format!("{TABLES}.expect_{name}") } else { format!("{TABLES}.expect") };
        // A further read by a key is asked for when that is known (`expecting`).
        if is_query || together.count == 0 {
            arguments.extend(is_query.then(|| together.follows.clone()));
            let site = self.unique(format!("{}.together", read.site.as_str())).into();
            let bound = self.vars.variable("", Type::Bool);
            together.follows = Atom::Var(bound.var);
            asking.push(Let { bound, op: Op::Call(Call::new(function.into(), site, arguments)), origin });
            together.asking.append(&mut asking);
        }
        together.count += 1;
        together.has_query |= is_query;
        true
    }

    /// Returns the read that a binding is, if it can be sent together with others.
    fn read_of<'l>(&self, binding: &'l Let, transaction: Var) -> Option<&'l Call> {
        let Op::Call(call) = &binding.op else { return None };
        let (Some(Atom::Shared(table)), Some(Atom::Var(number))) = (call.arguments.first(), call.arguments.get(1))
        else {
            return None;
        };
        let statement = call.function.strip_prefix(TABLES)?.strip_prefix('.')?;
        let is_read = ["get", "select", "count"].contains(&statement);
        (is_read && *number == transaction && self.is_stored(table) && !call.keeps_failure).then_some(call)
    }

    /// Returns whether reads before and behind an operation may be sent together: it does nothing that they may see or that decides
    /// whether the later ones are executed.
    fn may_stand_between_reads(&self, binding: &Let, transaction: Var) -> bool {
        match &binding.op {
            Op::Prim(prim, _) => !prim.may_fail(),
            Op::Call(call) => self.asks(call, transaction) || self.has_no_effect(call, transaction),
            op @ (Op::Switch { .. } | Op::Map { .. } | Op::Fold { .. }) => op
                .blocks()
                .all(|inner| inner.lets.iter().all(|binding| self.may_stand_between_reads(binding, transaction))),
            _ => false,
        }
    }

    /// Returns whether a call asks for what the transaction is about to read.
    fn asks(&self, call: &Call, transaction: Var) -> bool {
        let is_request = call.function.strip_prefix(TABLES).is_some_and(|name| name.starts_with(".expect"));
        is_request && call.arguments.get(1) == Some(&Atom::Var(transaction))
    }

    fn has_no_effect(&self, call: &Call, transaction: Var) -> bool {
        let Some(function) = self.context.library.function(&call.function) else { return false };
        let signature = &function.signature;
        let effects = &signature.effects;
        let changes = signature.parameters.iter().any(|parameter| parameter.passing == Passing::Change);
        let takes_time = effects.waits || effects.blocking || effects.barrier;
        effects.world != World::Writes
            && !changes
            && !takes_time
            && signature.state.is_none()
            && !call.arguments.contains(&Atom::Var(transaction))
    }

    /// Returns an atom that has the value of this one, and is known before these operations: those that cannot fail are computed there
    /// once more, as long as some are `left`.
    fn known_before(
        &mut self,
        lets: &[Let],
        atom: &Atom,
        (computed, left): (&mut Vec<Let>, &mut usize),
    ) -> Option<Atom> {
        let Atom::Var(var) = atom else { return Some(atom.clone()) };
        let Some(binding) = lets.iter().find(|binding| binding.bound.var == *var) else { return Some(atom.clone()) };
        let Op::Prim(prim, operands) = &binding.op else { return None };
        if prim.may_fail() {
            return None;
        }
        *left = left.checked_sub(1)?;
        let operands: Option<Vec<Atom>> =
            operands.iter().map(|operand| self.known_before(lets, operand, (computed, left))).collect();
        let bound = self.vars.variable("", binding.bound.ty.clone());
        let known = Atom::Var(bound.var);
        computed.push(Let { bound, op: Op::Prim(*prim, operands?), origin: binding.origin });
        Some(known)
    }
}

impl ReadsTogether {
    fn at(first: usize) -> ReadsTogether {
        let follows = Atom::Value(Value::Bool(true));
        ReadsTogether { first, asking: Vec::new(), count: 0, has_query: false, follows }
    }
}
