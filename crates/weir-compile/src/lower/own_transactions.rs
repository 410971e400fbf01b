//! Transactions of statements that read before they write, such as `update`: other programs may write the table, too.
//!
//! Such a statement is a step that holds the table, and calls `begin` and `commit` like an `atomic`. What the function of an
//! `update` writes in other tables belongs to it. A read or a commit that fails is the `Err` of the statement. A statement on a table
//! in memory whose functions write no table needs no transaction.

use std::collections::BTreeSet;

use weir_host::{Mode, Resource, Text, Type, Value};
use weir_ir::expr::{ArmTest, Atom, Block, Constraint};
use weir_ir::prim::Prim;
use weir_syntax::Span;

use super::tables::WriteFailure;
use super::{Binding, Callable, Lowering, StepScope, Transaction, TriedCall};
use crate::lang_items::TABLES;

/// A statement that reads before it writes.
pub(super) struct OwnStatement<'t> {
    pub(super) table: &'t Text,
    pub(super) deletes: bool,
    /// True if its functions may write tables.
    pub(super) functions_write: bool,
}

impl<'a> Lowering<'a, '_> {
    /// Returns true if one of the functions of a statement may write a table.
    pub(super) fn may_write_tables(&self, functions: [Option<&Binding<'a>>; 2]) -> bool {
        functions.into_iter().flatten().any(|function| match function {
            Binding::Callable(Callable::Closure { body, scope, .. }) => scope.code.typed.may_write_tables(body),
            Binding::Callable(Callable::Function(at, scope)) => {
                let effects = scope.code.typed.fn_effects.get(*at);
                effects.is_some_and(|effects| scope.code.typed.writes_tables(effects))
            }
            Binding::Callable(Callable::Host(_)) | Binding::Atom(_) => false,
        })
    }

    /// Runs `body` in a step that writes the table, unless a transaction holds it already.
    pub(super) fn holding(
        &mut self,
        statement: &OwnStatement<'_>,
        ty: &Type,
        span: Span,
        body: impl FnOnce(&mut Self) -> Atom,
    ) -> Atom {
        let OwnStatement { table, deletes, .. } = *statement;
        let named = |step: &StepScope| step.transaction.as_ref().is_some_and(|of| of.tables.contains(table));
        if self.steps.iter().any(named) {
            return body(self);
        }
        self.settle_before_existing(std::iter::once(table.as_str()), span);
        let open_block = self.build_block(|lowering| {
            let frame_count = lowering.frames.len();
            let transaction = lowering.begin_own(statement, span);
            lowering.steps.push(StepScope { resources: Vec::new(), readers: Vec::new(), frame_count, transaction });
            let value = body(lowering);
            // With the tables that the function has written.
            let transaction = lowering.steps.pop().and_then(|step| step.transaction);
            match transaction {
                Some(transaction) => lowering.commit_own(&transaction, (value, ty), span),
                None => value,
            }
        });
        self.step(open_block, (ty.clone(), None), span, |lowering, body| {
            let of_table = lowering.writer_of(table, deletes);
            (of_table.into_iter().chain(lowering.held_for_joined(body)).collect(), Vec::new())
        })
    }

    /// Returns the constraints of a step for the tables that its functions write: those in memory are held to its end, because a
    /// statement that finds their transaction unfinished takes it back, and for the others their database.
    fn held_for_joined(&self, body: &Block) -> Vec<Constraint> {
        let mut written = BTreeSet::new();
        self.written_in(body, &mut written);
        written.retain(|name| self.program.declarations.tables.contains_key(name.as_str()));
        let in_memory = written.iter().filter(|table| !self.is_stored(table)).cloned().map(Resource::Shared);
        let held = |resource| Constraint { resource, mode: Mode::Write, per_session: false };
        let databases = self.databases_to_write(written.iter().map(Text::as_str));
        in_memory.map(held).chain(databases).collect()
    }

    /// Begins the transaction of a statement, unless there is one around it, or it needs none.
    fn begin_own(&mut self, statement: &OwnStatement<'_>, span: Span) -> Option<Transaction> {
        let OwnStatement { table, deletes, functions_write } = *statement;
        let needs_one = self.is_stored(table) || functions_write;
        if !needs_one || self.steps.iter().any(|step| step.transaction.is_some()) {
            return None;
        }
        let number = self.begin_transaction(span);
        let mut transaction = Transaction { number, span, tables: Vec::new(), is_own: true };
        self.join_transaction(&mut transaction, table, deletes);
        Some(transaction)
    }

    /// Adds a table that is written to the transaction of a statement, and those from which a deletion deletes rows as well.
    pub(super) fn join_transaction(&self, transaction: &mut Transaction, table: &Text, deletes: bool) {
        let others = if deletes { self.program.declarations.cascades_to(table) } else { Default::default() };
        let others = others.into_iter().map(|other| Text::from(&*other));
        for joined in std::iter::once(table.clone()).chain(others) {
            if !transaction.tables.contains(&joined) {
                transaction.tables.push(joined);
            }
        }
        // The last of the stored tables commits them all; those in memory follow.
        transaction.tables.sort_by_key(|table| !self.is_stored(table));
    }

    /// Reads a table for a statement that writes it, and goes on with what is read. If that fails, so does the statement. `read` is the
    /// function of the module `tables`, its arguments and the type of what it reads.
    pub(super) fn behind_read(
        &mut self,
        table: &Text,
        (function, given, read): (&str, Vec<Atom>, Type),
        (ty, fails): (&Type, WriteFailure),
        span: Span,
        then: impl FnOnce(&mut Self, Atom) -> Atom,
    ) -> Atom {
        // What is kept in memory can always be read.
        if !self.is_stored(table) {
            let found = self.call_tables(function, given, read, span);
            return then(self, found);
        }
        let given = given.into_iter().map(|atom| Some(Binding::Atom(atom))).collect();
        let of = Type::result(read.clone(), Type::Failure);
        let subject = self.call_host(&format!("{TABLES}.{function}_to_change").into(), given, of, (span, &[]));
        let (found, failure) = (self.vars.variable("", read), self.vars.variable("", Type::Failure));
        let (held, failed) = (Atom::Var(found.var), Atom::Var(failure.var));
        let arms = vec![
            self.arm(ArmTest::Tag(Value::OK), vec![found], |lowering| then(lowering, held)),
            self.arm(ArmTest::Tag(Value::ERR), vec![failure], |lowering| {
                lowering.write_failed(failed, (ty, fails), span)
            }),
        ];
        self.switch(subject, arms, ty, span)
    }

    /// Passes on the failure of a part of a statement, whose result has the type `ty`.
    pub(super) fn write_failed(&mut self, failure: Atom, (ty, fails): (&Type, WriteFailure), span: Span) -> Atom {
        match fails {
            WriteFailure::Tried(TriedCall { to, of, span, .. }) => {
                self.failed(failure, &Type::Failure, (to, of.as_ref(), Vec::new()), span)
            }
            WriteFailure::Returned | WriteFailure::OfCommit => {
                self.prim(Prim::Variant(Value::ERR), vec![failure], ty.clone(), span)
            }
        }
    }

    /// Commits the transaction of a statement, unless its result is an `Err`. Returns the result.
    pub(super) fn commit_own(&mut self, transaction: &Transaction, (value, ty): (Atom, &Type), span: Span) -> Atom {
        let Type::Result(pair) = ty else { return value };
        let held = self.vars.variable("", pair.0.clone());
        let failure = self.vars.variable("", pair.1.clone());
        let (kept, failed) = (Atom::Var(held.var), Atom::Var(failure.var));
        let number = transaction.number.clone();
        let fails_by_any = transaction.is_own || self.is_of_existing(transaction);
        let arms = vec![
            self.arm(ArmTest::Tag(Value::OK), vec![held], |lowering| {
                lowering.commit_rest((&transaction.tables, fails_by_any), (0, number), (kept, ty), span)
            }),
            self.arm(ArmTest::Tag(Value::ERR), vec![failure], |lowering| {
                lowering.roll_back(transaction, span);
                lowering.prim(Prim::Variant(Value::ERR), vec![failed], ty.clone(), span)
            }),
        ];
        self.switch(value, arms, ty, span)
    }

    /// Commits the tables from this one on. Returns the result of the statement.
    fn commit_rest(
        &mut self,
        (tables, fails_by_any): (&[Text], bool),
        (at, number): (usize, Atom),
        (kept, ty): (Atom, &Type),
        span: Span,
    ) -> Atom {
        if at == tables.len() {
            return self.prim(Prim::Variant(Value::OK), vec![kept], ty.clone(), span);
        }
        let given = self.commit_arguments(tables, (at, number));
        let given = given.into_iter().map(|atom| Some(Binding::Atom(atom))).collect();
        let of = Type::result(Type::Int, Type::Failure);
        let committed = self.call_host(&format!("{TABLES}.commit").into(), given, of, (span, &[]));
        let (number, failure) = (self.vars.variable("", Type::Int), self.vars.variable("", Type::Failure));
        let (next, failed) = (Atom::Var(number.var), Atom::Var(failure.var));
        let arms = vec![
            self.arm(ArmTest::Tag(Value::OK), vec![number], |lowering| {
                lowering.commit_rest((tables, fails_by_any), (at + 1, next), (kept, ty), span)
            }),
            self.arm(ArmTest::Tag(Value::ERR), vec![failure], |lowering| {
                lowering.err_of_commit(fails_by_any, failed, (ty, span))
            }),
        ];
        self.switch(committed, arms, ty, span)
    }
}
