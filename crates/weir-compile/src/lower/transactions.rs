//! Lowers transactions: `atomic` over tables.
//!
//! `tables.begin` gives a transaction a number, which each of its statements passes, and `tables.commit` ends it on every path
//! except a failure. The statement of another number that finds it unfinished takes it back.

use weir_host::{Passing, Signature, Text, Type, Value, World};
use weir_ir::expr::{ArmTest, Atom, Block, Call, Op};
use weir_ir::prim::Prim;
use weir_syntax::ast::AtomicResource;
use weir_syntax::{Code, Diagnostic, Span};

use super::{Binding, InlineFrameKind, Lowering, Transaction};
use crate::lang_items::{BEGIN, COMMIT, ROLL_BACK, WAIT_FOR_ATTEMPT};

impl Lowering<'_, '_> {
    /// Returns whether a table is stored in the database of the stored tables of a transaction.
    pub(super) fn is_beside(&self, table: &Text, transaction: &Transaction) -> bool {
        let database = |table| self.program.declarations.existing_database(table);
        let named = transaction.tables.iter().find(|named| self.is_stored(named));
        self.is_stored(table) && named.is_some_and(|named| database(named) == database(table))
    }

    /// Reports a transaction whose stored tables are those of several databases.
    pub(super) fn one_database(&mut self, tables: &[Text], span: Span) {
        let declarations = &self.program.declarations;
        let mut stored = tables.iter().filter(|table| self.is_stored(table));
        let Some(first) = stored.next() else { return };
        let of = |table: &Text| declarations.existing_database(table);
        let Some(other) = stored.find(|table| of(table) != of(first)) else { return };
        let message = format!("the transaction writes `{first}` and `{other}`, which are in different databases");
        let diagnostic = Diagnostic::new(Code::TransactionBody, message)
            .at(span, "could commit in one database, and fail in the other")
            .hint("write one of them behind the transaction; a table that is only read needs no name in `atomic`");
        self.context.report_once(diagnostic);
    }

    /// Returns the place in the innermost transaction by which the flow comes to an expression, and how; `None` if the transaction itself
    /// contains the expression.
    pub(super) fn called_in_transaction(&self, of: Span) -> Option<(Span, &'static str)> {
        let step = self.steps.iter().rfind(|step| step.transaction.is_some())?;
        let transaction = step.transaction.as_ref()?;
        if transaction.is_own {
            return Some((transaction.span, "a transaction, too, whose function contains it"));
        }
        let call = self.call_in(transaction.span, step.frame_count, of)?;
        Some((call, "called in a transaction"))
    }

    /// Returns the call by which the flow leaves a text for that of an expression, such as a call of a `fn`, or of a function that a test
    /// replaces by a closure; `None` if the text contains the expression. `frame_count` is the number of frames around the text.
    pub(super) fn call_in(&self, text: Span, frame_count: usize, of: Span) -> Option<Span> {
        let text = self.context.located(text);
        if text.contains(self.context.located(of)) {
            return None;
        }
        let calls = self.frames.iter().skip(frame_count).filter(|frame| frame.kind != InlineFrameKind::Retry);
        let mut calls = calls.map(|frame| self.context.located(frame.called_at));
        calls.rfind(|call| text.contains(*call) && *call != text)
    }

    /// Reports what may not be in a transaction, with the transaction and the call that leads from there to it.
    fn report_in_transaction(&mut self, (diagnostic, span): (Diagnostic, Span)) {
        let Some((place, how)) = self.called_in_transaction(span) else { return self.context.report_once(diagnostic) };
        let innermost = self.steps.iter().rev().find_map(|step| step.transaction.as_ref());
        let named = innermost.filter(|transaction| !transaction.is_own).map(|transaction| transaction.head());
        let diagnostic = match named {
            Some(head) => diagnostic.because(self.context.located(head), "the transaction"),
            None => diagnostic,
        };
        self.context.report_once(diagnostic.because(place, how));
    }

    pub(super) fn not_named(&mut self, table: &Text, transaction: &Transaction, span: Span) {
        let hint = self.naming(table, transaction, span);
        let diagnostic =
            Diagnostic::new(Code::TransactionBody, format!("the transaction writes `{table}`, which it does not name"))
                .at(span, "written here")
                .hint(hint);
        self.report_in_transaction((diagnostic, span));
    }

    /// Returns the advice to name a table in a transaction, in the names of the file.
    pub(super) fn naming(&self, table: &str, transaction: &Transaction, span: Span) -> String {
        let names = transaction.tables.iter().map(Text::as_str).chain([table]);
        let names: Vec<&str> = names.map(|name| self.context.name_at(name, span)).collect();
        let names = names.join(", ");
        let file = &self.program.declarations.files[self.context.files.index_at(span.start)];
        match table.rsplit_once('.') {
            Some((module, _)) if *file.module != *module && !file.modules.values().any(|it| *it.module == *module) => {
                format!("move the step into a file that uses `{module}`, and name it there: `atomic {names}`")
            }
            _ => format!("name it: `atomic {names}`"),
        }
    }

    /// Begins a transaction if a step names tables.
    pub(super) fn begin(&mut self, resources: &[AtomicResource], span: Span) -> Option<Transaction> {
        let declared = &self.program.declarations.tables;
        let tables = resources.iter().map(|resource| self.held_name(resource));
        let tables = tables.filter(|name| declared.contains_key(name));
        let mut tables: Vec<Text> = tables.map(|name| (&*name).into()).collect();
        if tables.is_empty() {
            return None;
        }
        // The last of the stored tables commits them all; those in memory follow.
        tables.sort_by_key(|table| !self.is_stored(table));
        tables.dedup();
        if self.steps.iter().any(|step| step.transaction.is_some()) {
            let diagnostic = Diagnostic::new(Code::TransactionBody, "a transaction inside a transaction")
                .at(span, "begins while another one is open")
                .hint("name all tables in the outer `atomic`, and leave out the inner one");
            self.report_in_transaction((diagnostic, span));
        }
        self.one_database(&tables, span);
        let number = self.begin_transaction(span);
        Some(Transaction { number, span, tables, is_own: false })
    }

    /// Begins a transaction that is executed once, restores no shared value and may write tables, and returns its number.
    pub(super) fn begin_transaction(&mut self, span: Span) -> Atom {
        let given = [true, false, false].map(|truth| Some(Binding::Atom(Atom::Value(Value::Bool(truth)))));
        self.call_host(&BEGIN.into(), given.into(), Type::Int, (span, &[]))
    }

    /// Tells the transaction of a block that it only reads, if nothing in the block writes a table.
    pub(super) fn begin_to_read(&self, body: &mut Block) {
        let mut writes = false;
        body.each_binding(&mut |binding| writes |= matches!(&binding.op, Op::Call(call) if self.writes_table(call)));
        body.each_binding_mut(&mut |binding| match &mut binding.op {
            Op::Call(call) if call.function == Text::from(BEGIN) => {
                call.arguments[2] = Atom::Value(Value::Bool(!writes))
            }
            _ => {}
        });
    }

    /// Returns whether a call writes a table, and does not only end a transaction.
    pub(super) fn writes_table(&self, call: &Call) -> bool {
        let parameters = self.context.library.function(&call.function).map(|function| &function.signature.parameters);
        let mut passed = call.arguments.iter().zip(parameters.into_iter().flatten());
        let is_end = [COMMIT, ROLL_BACK].contains(&call.function.as_str());
        !is_end
            && passed.any(|(atom, parameter)| {
                let table = atom.shared().filter(|name| self.program.declarations.tables.contains_key(name.as_str()));
                parameter.passing == Passing::Change && table.is_some()
            })
    }

    /// Commits the transaction of the innermost step, which ends with this value. Returns the value.
    pub(super) fn commit_innermost(&mut self, value: (Atom, &Type), span: Span) -> Atom {
        match self.steps.last().and_then(|step| Some((step.transaction.clone()?, step.frame_count))) {
            Some((transaction, around)) => self.commit_unless_failed((&transaction, around), value, span),
            None => value.0,
        }
    }

    /// Commits the transaction that a `return` with this value out of a frame leaves. Returns the value.
    pub(super) fn commit_steps_in(&mut self, frame: usize, value: (Atom, &Type), span: Span) -> Atom {
        let left = self.steps.iter().filter(|step| step.frame_count > frame);
        match left.filter_map(|step| Some((step.transaction.clone()?, step.frame_count))).next_back() {
            Some((transaction, around)) => self.commit_unless_failed((&transaction, around), value, span),
            None => value.0,
        }
    }

    /// Commits a transaction, unless the value with which it ends is an `Err`: then the step has failed. Returns the value. `around` is
    /// the number of frames around the step.
    ///
    /// Rules of another program may refuse the commit. Its failure is then the `Err` of a `Result`, and otherwise that of a `?`.
    fn commit_unless_failed(
        &mut self,
        (transaction, around): (&Transaction, usize),
        (value, ty): (Atom, &Type),
        span: Span,
    ) -> Atom {
        let Type::Result(pair) = ty else {
            self.commit((transaction, around), span);
            return value;
        };
        if pair.1 == Type::Failure {
            return self.commit_own(transaction, (value, ty), span);
        }
        let held = self.vars.variable("", pair.0.clone());
        let failure = self.vars.variable("", pair.1.clone());
        let (kept, failed) = (Atom::Var(held.var), Atom::Var(failure.var));
        let arms = vec![
            self.arm(ArmTest::Tag(Value::OK), vec![held], |lowering| {
                lowering.commit((transaction, around), span);
                lowering.prim(Prim::Variant(Value::OK), vec![kept], ty.clone(), span)
            }),
            self.arm(ArmTest::Tag(Value::ERR), vec![failure], |lowering| {
                lowering.roll_back(transaction, span);
                lowering.prim(Prim::Variant(Value::ERR), vec![failed], ty.clone(), span)
            }),
        ];
        self.switch(value, arms, ty, span)
    }

    /// Takes back the transaction that a failure leaves on its way out of a frame; `None` if it ends the flow.
    pub(super) fn roll_back_steps_in(&mut self, frame: Option<usize>, span: Span) {
        let left = self.steps.iter().filter(|step| frame.is_none_or(|frame| step.frame_count > frame));
        if let Some(transaction) = left.filter_map(|step| step.transaction.clone()).next_back() {
            self.roll_back(&transaction, span);
        }
    }

    fn commit(&mut self, (transaction, around): (&Transaction, usize), span: Span) {
        self.end_each(transaction, |lowering, at_number| {
            let given = lowering.commit_arguments(&transaction.tables, at_number);
            lowering.call_tables_or("commit", (given, Type::Int), span, |lowering, failure| {
                lowering.commit_failed((transaction, around), failure, (&Type::Int, span))
            })
        });
    }

    /// Returns whether the tables of a transaction are those of another program's database.
    pub(super) fn is_of_existing(&self, transaction: &Transaction) -> bool {
        transaction.tables.iter().any(|table| self.program.declarations.existing_database(table).is_some())
    }

    /// Returns the arguments of the commit of one of the tables of a transaction: the table, the number, whether the commit must not
    /// be taken back any more because tables in memory follow, and whether it is that of the last stored table.
    pub(super) fn commit_arguments(&self, tables: &[Text], (at, number): (usize, Atom)) -> Vec<Atom> {
        let stored = self.stored_count(tables);
        let last = at + 1 == stored;
        let at_once = last && stored < tables.len();
        vec![
            Atom::Shared(tables[at].clone()),
            number,
            Atom::Value(Value::Bool(at_once)),
            Atom::Value(Value::Bool(last)),
        ]
    }

    /// Takes back a transaction.
    pub(super) fn roll_back(&mut self, transaction: &Transaction, span: Span) {
        let stored = self.stored_count(&transaction.tables);
        self.end_each(transaction, |lowering, (at, number)| {
            let table = Atom::Shared(transaction.tables[at].clone());
            let given = [table, number, Atom::Value(Value::Bool(at + 1 == stored))];
            let given = given.into_iter().map(|atom| Some(Binding::Atom(atom))).collect();
            lowering.call_host(&ROLL_BACK.into(), given, Type::Int, (span, &[]))
        });
    }

    /// Ends a transaction in each of its tables. `end` takes the place of the table among them and the number, and returns the number.
    fn end_each(&mut self, transaction: &Transaction, end: impl Fn(&mut Self, (usize, Atom)) -> Atom) {
        let mut number = transaction.number.clone();
        for at in 0..transaction.tables.len() {
            // Each call takes its number from the one before, so that they follow all statements in this order.
            number = end(self, (at, number));
        }
    }

    /// Returns the number of stored tables among those of a transaction, which are the first ones.
    fn stored_count(&self, tables: &[Text]) -> usize {
        tables.iter().filter(|table| self.is_stored(table)).count()
    }

    /// Returns whether an `atomic` over tables is around the current expression.
    fn is_in_transaction(&self) -> bool {
        self.steps.iter().filter_map(|step| step.transaction.as_ref()).any(|transaction| !transaction.is_own)
    }

    /// Precedes a call of a function that is no statement on a table. Reports one in a transaction that has an effect outside of the
    /// program, and one that waits while tables are held.
    pub(super) fn before_call(&mut self, signature: &Signature, span: Span) {
        let effects = &signature.effects;
        let writes = effects.world == World::Writes;
        let waits = effects.waits || effects.blocking || effects.leaves_thread;
        if self.is_in_transaction() && (writes || waits) {
            self.report_in_transaction((outside_of_transaction(signature, span), span));
        } else if waits && !self.calling_statements.is_empty() {
            self.waits_in_function(signature, span);
        } else if writes && self.steps.is_empty() {
            self.settle(span);
        }
    }
}

/// Returns the report of a call in a transaction that has an effect outside of the program, or waits.
fn outside_of_transaction(signature: &Signature, span: Span) -> Diagnostic {
    let path = signature.path();
    // No call of the program: it wrote a `backoff`.
    if path == WAIT_FOR_ATTEMPT {
        return Diagnostic::new(Code::TransactionBody, "a `backoff` waits, and may not stand in a transaction")
            .at(span, "other flows would wait for its tables during each wait")
            .hint("remove the `backoff`, or put the `retry` around the `atomic`");
    }
    // A barrier, such as `time.sleep`, writes only in order to keep its place among the other calls.
    if signature.effects.world == World::Writes && !signature.effects.barrier {
        return Diagnostic::new(Code::TransactionBody, format!("`{path}` has an effect outside of the transaction"))
            .at(span, "could not be taken back if the transaction fails")
            .hint("move it behind the `atomic`");
    }
    let advice = match signature.result {
        Type::Unit => "move it out of the `atomic`",
        _ => "call it before the `atomic`, and use its value there",
    };
    Diagnostic::new(Code::TransactionBody, format!("`{path}` waits, and may not stand in a transaction"))
        .at(span, "other flows would wait for its tables meanwhile")
        .hint(advice)
}
