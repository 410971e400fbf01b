//! The values of an attempt of a `retry`: whether another attempt has the same ones.
//!
//! A write that has the same key in each attempt, and values that do not depend on what the attempts change, is harmless to repeat: the
//! last attempt decides what is stored.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Library, Passing, Value, World};
use weir_ir::expr::{Atom, Call, Op, Var};
use weir_ir::prim::Prim;

use super::block_builder::OpenBlock;
use super::result_uses::ResultUses;
use super::tables::outside;
use crate::declarations::DeclaredTable;
use crate::lang_items::{BEGIN, TABLES};

/// The dependence of a value on its attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dependence {
    /// Each attempt has the same value.
    #[default]
    None,
    /// On what the attempt reads elsewhere, such as a clock.
    Reads,
    /// On what the attempts change themselves, such as the number of rows.
    Changes,
}

/// The values of an attempt that are known to depend on it.
pub(super) struct AttemptValues<'l> {
    library: &'l Library,
    /// The shared values and variables that a call of the attempt changes.
    changed: BTreeSet<Atom>,
    /// The transactions that begin in the attempt.
    transactions: BTreeSet<Atom>,
    results: ResultUses,
    dependences: BTreeMap<Var, Dependence>,
    /// The fields of the records that are made in the attempt.
    records: BTreeMap<Var, Vec<Dependence>>,
    /// The dependence of the switches around the current place.
    pub(super) around: Dependence,
}

impl<'l> AttemptValues<'l> {
    pub(super) fn new(library: &'l Library, attempt: &OpenBlock) -> Self {
        let (mut changed, mut transactions) = (BTreeSet::new(), BTreeSet::new());
        attempt.each_binding(&mut |binding| {
            let Op::Call(call) = &binding.op else { return };
            let parameters = library.function(&call.function).map_or(&[][..], |found| &found.signature.parameters);
            let passed = call.arguments.iter().zip(parameters);
            changed.extend(passed.filter(|(_, of)| of.passing == Passing::Change).map(|(atom, _)| atom.clone()));
            if call.function.as_str() == BEGIN {
                transactions.insert(Atom::Var(binding.bound.var));
            }
        });
        let (dependences, records) = (BTreeMap::new(), BTreeMap::new());
        let results = ResultUses::of(attempt);
        AttemptValues { library, changed, transactions, results, dependences, records, around: Dependence::None }
    }

    /// Returns the statement's name behind the module if a call writes a table.
    pub(super) fn statement_that_writes<'c>(&self, call: &'c Call) -> Option<&'c str> {
        let function =
            self.library.function(&call.function).filter(|found| found.signature.module.as_str() == TABLES)?;
        let changes = function.signature.parameters.first().is_some_and(|first| first.passing == Passing::Change);
        changes.then(|| &call.function.as_str()[TABLES.len() + 1..])
    }

    /// Returns whether a statement belongs to a transaction that begins in the attempt.
    pub(super) fn is_in_transaction(&self, call: &Call) -> bool {
        call.arguments.get(1).is_some_and(|number| *number != outside() && self.transactions.contains(number))
    }

    /// Returns whether a write of a table may be repeated: it fails then because the row is there, or stores or deletes what it has
    /// stored or deleted before, and the attempt makes nothing of a result that is another one then.
    pub(super) fn is_harmless(&self, (statement, call): (&str, &Call), result: Var, table: &DeclaredTable) -> bool {
        let Some(written) = call.arguments.get(2) else { return false };
        let is_same = |columns: &[usize]| columns.iter().all(|at| self.column(written, *at) == Dependence::None);
        let is_required = |columns: &[usize]| columns.iter().all(|at| !table.columns[*at].optional);
        match statement {
            "insert" => {
                let unique = table.indexes.iter().filter(|(columns, unique)| *unique && is_required(columns));
                let unique = unique.map(|(columns, _)| columns);
                let is_refused = unique.chain((!table.auto).then_some(&table.key)).any(|columns| is_same(columns));
                is_refused && !self.results.decides_by_failure(result)
            }
            "upsert" => {
                let values = (0..table.columns.len()).map(|at| self.column(written, at)).max();
                is_same(&table.key) && values.max(Some(self.around)) < Some(Dependence::Changes)
            }
            "delete" => {
                let is_same = self.of(written) == Dependence::None && self.around < Dependence::Changes;
                is_same && !self.results.uses_value(result)
            }
            _ => false,
        }
    }

    /// Returns the dependence of a value; a variable from outside of the attempt is the same in each.
    pub(super) fn of(&self, atom: &Atom) -> Dependence {
        match atom {
            _ if self.changed.contains(atom) => Dependence::Changes,
            Atom::Shared(_) => Dependence::Reads,
            Atom::Var(var) => self.dependences.get(var).copied().unwrap_or_default(),
            Atom::Value(_) => Dependence::None,
        }
    }

    pub(super) fn of_all<'a>(&self, atoms: impl IntoIterator<Item = &'a Atom>) -> Dependence {
        atoms.into_iter().map(|atom| self.of(atom)).max().unwrap_or_default()
    }

    /// Notes the dependence of a variable.
    pub(super) fn bind(&mut self, var: Var, dependence: Dependence) {
        self.dependences.insert(var, dependence);
    }

    /// Notes the dependence of the value of a primitive.
    pub(super) fn bind_prim(&mut self, var: Var, prim: &Prim, operands: &[Atom]) {
        let fields = match (prim, operands) {
            (Prim::Record, fields) => Some(fields.iter().map(|field| self.of(field)).collect()),
            (Prim::WithField(at), [Atom::Var(record), value]) => self.records.get(record).cloned().map(|mut fields| {
                if let Some(field) = fields.get_mut(*at as usize) {
                    *field = self.of(value);
                }
                fields
            }),
            _ => None,
        };
        let dependence = match (prim, operands) {
            (Prim::Field(at), [record]) => self.column(record, *at as usize),
            _ => self.of_all(operands),
        };
        self.bind(var, dependence);
        if let Some(fields) = fields {
            self.records.insert(var, fields);
        }
    }

    /// Returns the dependence of what a call returns.
    pub(super) fn of_call(&self, call: &Call) -> Dependence {
        let signature = self.library.function(&call.function).map(|found| &found.signature);
        let own = match signature {
            Some(signature) if signature.state.is_some() => Dependence::Changes,
            Some(signature) if signature.effects.world == World::Pure => Dependence::None,
            _ => Dependence::Reads,
        };
        // These tell what was written, and not what is in the table: the key of a row, or that a commit has succeeded.
        let tells_written =
            matches!(self.statement_that_writes(call), Some("insert" | "upsert" | "delete" | "commit" | "roll_back"));
        let arguments = call.arguments.iter().filter(|atom| !(tells_written && matches!(atom, Atom::Shared(_))));
        self.of_all(arguments).max(own)
    }

    fn column(&self, row: &Atom, at: usize) -> Dependence {
        let fields = row.variable().and_then(|var| self.records.get(&var));
        match (row, fields.and_then(|fields| fields.get(at))) {
            (_, Some(field)) => *field,
            (Atom::Value(Value::Record(_)), None) => Dependence::None,
            _ => self.of(row),
        }
    }
}
