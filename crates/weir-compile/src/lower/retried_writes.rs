//! Reports writes of tables that a `retry` may repeat (W0706): something behind them fails, and the next attempt writes again.
//!
//! The check follows the paths of an attempt when it is lowered. It keeps what was written on the path and, for a value with variants
//! such as a `Result`, what was written if the value is which variant: a statement that fails has written nothing, and what a
//! transaction writes is there when it commits. If an attempt ends with an `Err` on a path on which something was written, the next
//! one may write it again. Writes that are harmless to repeat ([`super::attempt_values`]) do not count.
//!
//! A write that has failed is uncertain if its connection was lost. A `retry` ends with such a failure, but not with another one that the
//! attempt makes in its place.

use std::collections::BTreeMap;

use weir_host::{Text, Value};
use weir_ir::expr::{ArmTest, Atom, Block, Call, Let, Op, Origin, Var, Variable};
use weir_ir::prim::Prim;
use weir_syntax::{Code, Diagnostic, Span};

use super::Lowering;
use super::attempt_values::{AttemptValues, Dependence};
use super::block_builder::{OpenBlock, Terminator};
use super::written_paths::{WriteState, Written, WrittenByVariant, WrittenVariant, joined, narrowed, union};
use crate::declarations::Declarations;
use crate::lang_items::{BEGIN, COMMIT, ROLL_BACK};

impl Lowering<'_, '_> {
    /// Reports the writes of an attempt that the next one may repeat.
    pub(super) fn report_repeated_writes(&mut self, attempt: &OpenBlock, retry: Span) {
        if !self.writes_tables_in(attempt) {
            return;
        }
        let values = AttemptValues::new(self.context.library, attempt);
        let mut check = AttemptCheck::new(&self.program.declarations, values);
        check.open_block(attempt);
        let AttemptCheck { repeated, mut statements, .. } = check;
        for (statement, if_uncertain) in repeated {
            if let Some(statement) = statements.remove(&statement) {
                self.report_repeated_write(&statement, if_uncertain, retry);
            }
        }
    }

    /// Returns true if an attempt writes tables.
    pub(super) fn writes_tables_in(&self, attempt: &OpenBlock) -> bool {
        let mut writes = false;
        attempt.each_binding(&mut |binding| {
            writes |= matches!(&binding.op, Op::Call(call) if self.writes_table(call));
        });
        writes
    }

    fn report_repeated_write(&mut self, statement: &WritingStatement, if_uncertain: bool, retry: Span) {
        let WritingStatement { table, function, origin, .. } = statement;
        let span = self.context.span(*origin);
        let table = self.context.name_at(table, span);
        let statement = match function.as_str() {
            "replace" | "place_replace" => "update",
            "replace_rows" => "update_all",
            "delete_rows" => "delete_all",
            other => other,
        };
        let write = format!("{table}.{statement}");
        let found = Diagnostic::new(Code::RetriedEffect, format!("`{write}` may happen more than once"));
        let found = if if_uncertain { replaced_failure(found, span) } else { failure_behind(found, span, &write) };
        self.context.report_once(found.because(retry, "the attempt is repeated then"));
    }
}

/// The way to have a write that may be repeated.
const SAME_KEY: &str = "write a row whose key or `unique` column is the same in each attempt";

/// Explains that an attempt may end with another failure than that of a write.
fn replaced_failure(found: Diagnostic, write: Span) -> Diagnostic {
    found
        .at(write, "the attempt may end with another failure than this write's own")
        .note(
            "if the connection to the database is lost, nobody knows whether the row was written: the `retry` ends with that failure, of \
             the kind \"uncertain\", but not with another one that is made of it",
        )
        .hint(format!("end the attempt with the failure itself, by `?` or `fail(failure)`, or {SAME_KEY}"))
}

/// Explains that an attempt may fail behind a write.
fn failure_behind(found: Diagnostic, write: Span, named: &str) -> Diagnostic {
    found
        .at(write, "something behind it may fail")
        .note("an attempt that fails behind it leaves what it has written, and the next one writes again")
        .hint(format!(
            "put all statements of the attempt into one `atomic`, move `{named}` out of the `retry`, or {SAME_KEY}"
        ))
}

/// A statement that writes.
struct WritingStatement {
    table: Text,
    function: Text,
    origin: Origin,
    /// False if its failure says that it has written nothing, as that of a table in memory does.
    may_be_uncertain: bool,
}

/// The check of one attempt.
struct AttemptCheck<'l> {
    declarations: &'l Declarations,
    values: AttemptValues<'l>,
    variants: BTreeMap<Var, WrittenByVariant>,
    /// The uncertain writes whose failures these variables are.
    failures: BTreeMap<Var, Written>,
    /// The writes on the current path; `None` if the place is unreachable.
    path: Option<Written>,
    /// The writes at the places where the body of the innermost `within` may have been cancelled.
    given_up: Option<Written>,
    statements: BTreeMap<Var, WritingStatement>,
    /// The statements behind which the attempt may fail; true if they are repeated only if they are uncertain.
    repeated: BTreeMap<Var, bool>,
}

/// The end of a block: the dependence of its value, what was written by then, and by the variants of the value.
type BlockEnd = (Dependence, Option<(Written, Option<WrittenByVariant>)>);

impl<'l> AttemptCheck<'l> {
    fn new(declarations: &'l Declarations, values: AttemptValues<'l>) -> Self {
        AttemptCheck {
            declarations,
            values,
            variants: BTreeMap::new(),
            failures: BTreeMap::new(),
            path: Some(Written::new()),
            given_up: None,
            statements: BTreeMap::new(),
            repeated: BTreeMap::new(),
        }
    }

    fn open_block(&mut self, block: &OpenBlock) {
        block.lets.iter().for_each(|binding| self.binding(binding));
        match &block.end {
            Terminator::FallThrough(value) => {
                let Some(written) = self.written_if(value, Value::ERR) else { return };
                // The `retry` ends with the failure of an uncertain write.
                let failure_of = self.variant_of(value, Value::ERR).unwrap_or_default().failure_of;
                for (statement, state) in written.difference(&failure_of).filter(|(_, state)| !state.is_open) {
                    *self.repeated.entry(*statement).or_insert(true) &= state.is_uncertain;
                }
            }
            // Leaves the `retry`.
            Terminator::Exit(..) | Terminator::Diverge => {}
            Terminator::Switch { subject, arms, .. } => {
                let arms = arms.iter().map(|arm| (&arm.test, &arm.payload[..], &arm.body));
                self.arms(subject, arms, |check, body| check.open_block(body));
            }
        }
    }

    fn block(&mut self, block: &Block) -> BlockEnd {
        block.lets.iter().for_each(|binding| self.binding(binding));
        let variants = self.variants_of(&block.result);
        let dependence = self.values.of(&block.result).max(self.values.around);
        (dependence, self.path.clone().map(|written| (written, variants)))
    }

    fn binding(&mut self, binding: &Let) {
        let bound = binding.bound.var;
        if self.path.is_none() {
            return;
        }
        match &binding.op {
            Op::Call(call) => self.call(call, bound, binding.origin),
            Op::Prim(prim, operands) => self.prim(prim, operands, bound),
            Op::Switch { subject, arms } => {
                let mut ends = Vec::new();
                let arms = arms.iter().map(|arm| (&arm.test, &arm.payload[..], &arm.body));
                self.arms(subject, arms, |check, body| ends.push(check.block(body)));
                self.join(bound, ends);
                self.values.bind(bound, self.values.of_all([subject, &Atom::Var(bound)]));
            }
            Op::Within { body, .. } => self.within(body, bound),
            // A step is not cancelled half done.
            Op::Atomic { body, .. } => {
                self.may_be_given_up();
                let given_up = self.given_up.take();
                let end = self.block(body);
                self.given_up = given_up;
                self.join(bound, vec![end]);
            }
            Op::Transaction { body, .. } | Op::Catch { body } => {
                let end = self.block(body);
                self.join(bound, vec![end]);
            }
            Op::Race { bodies } => {
                let before = self.path.clone();
                let ends = bodies.iter().map(|body| {
                    self.path.clone_from(&before);
                    self.block(body)
                });
                let ends = ends.collect();
                self.join(bound, ends);
            }
            Op::Map { body, .. } | Op::Fold { body, .. } | Op::Loop { body, .. } => {
                self.rounds(&binding.op, body, bound)
            }
            Op::Return(_) | Op::Fail(_) => self.path = None,
        }
    }

    fn call(&mut self, call: &Call, bound: Var, origin: Origin) {
        self.may_be_given_up();
        self.values.bind(bound, self.values.of_call(call));
        let Some(before) = self.path.clone() else { return };
        match (call.function.as_str(), self.harmful_write(call, bound, origin)) {
            (BEGIN | ROLL_BACK, _) => {
                let closed = before.iter().copied().filter(|(_, state)| !state.is_open).collect::<Written>();
                self.succeeds_or_fails(bound, closed.clone(), Some(closed));
            }
            (COMMIT, _) => self.commit(call, bound, &before),
            (_, Some(statement)) => {
                let state = WriteState { is_open: self.values.is_in_transaction(call), ..WriteState::default() };
                let may_be_uncertain = statement.may_be_uncertain && !state.is_open;
                self.statements.insert(bound, statement);
                let uncertain = may_be_uncertain.then(|| (bound, state.uncertain()));
                let with = |write| before.iter().copied().chain(write).collect();
                self.succeeds_or_fails(bound, with(Some((bound, state))), Some(with(uncertain)));
            }
            _ => {}
        }
    }

    /// Visits the commit of one table of a transaction.
    fn commit(&mut self, call: &Call, bound: Var, before: &Written) {
        // The last stored table commits for those before it, and the commit of one in memory does not fail.
        let table = call.arguments.first().and_then(Atom::shared);
        let is_stored = table.is_some_and(|table| self.declarations.tables[table.as_str()].soft.is_none());
        if is_stored && call.arguments.get(3) != Some(&Atom::Value(Value::Bool(true))) {
            return;
        }
        let failed = before.iter().copied().filter_map(|(statement, state)| match state.is_open {
            true => self.statements[&statement].may_be_uncertain.then(|| (statement, state.uncertain())),
            false => Some((statement, state)),
        });
        let failed = is_stored.then(|| failed.collect());
        let commits = |&(statement, state): &_| (statement, WriteState { is_open: false, ..state });
        self.succeeds_or_fails(bound, before.iter().map(commits).collect(), failed);
    }

    /// Goes on behind a call, whose result tells what is written: this if it has succeeded, and that if it may fail and has failed.
    fn succeeds_or_fails(&mut self, result: Var, done: Written, failed: Option<Written>) {
        let before = self.path.take().unwrap_or_default();
        let all: Written = done.iter().chain(failed.iter().flatten()).copied().collect();
        let fails = failed.map(|written| {
            let failure_of = written.difference(&before).filter(|(_, state)| state.is_uncertain).copied().collect();
            (Value::ERR, WrittenVariant { written, payload: None, failure_of })
        });
        let succeeds = WrittenVariant { written: done, ..WrittenVariant::default() };
        let variants = fails.into_iter().chain([(Value::OK, succeeds)]).collect();
        self.variants.insert(result, WrittenByVariant { all: all.clone(), variants, rest: None });
        self.path = Some(all);
    }

    /// Returns the statement of a call that writes what another attempt should not write again.
    fn harmful_write(&self, call: &Call, result: Var, origin: Origin) -> Option<WritingStatement> {
        let statement = self.values.statement_that_writes(call)?;
        let Some(Atom::Shared(name)) = call.arguments.first() else { return None };
        let table = self.declarations.tables.get(name.as_str())?;
        let is_harmless = self.values.is_harmless((statement, call), result, table);
        let may_be_uncertain = table.soft.is_none();
        (!is_harmless).then(|| WritingStatement {
            table: name.clone(),
            function: statement.into(),
            origin,
            may_be_uncertain,
        })
    }

    fn prim(&mut self, prim: &Prim, operands: &[Atom], bound: Var) {
        self.values.bind_prim(bound, prim, operands);
        let all = self.path.clone().unwrap_or_default();
        let variants = match (prim, operands) {
            (Prim::Variant(tag), operands) => {
                let only = if let [only] = operands { Some(only) } else { None };
                let payload = only.and_then(|only| self.variants_of(only)).map(Box::new);
                let failure = only.filter(|_| *tag == Value::ERR).and_then(Atom::variable);
                let failure_of = failure.and_then(|failure| self.failures.get(&failure)).cloned().unwrap_or_default();
                let variant = WrittenVariant { written: all.clone(), payload, failure_of };
                WrittenByVariant { all, variants: [(*tag, variant)].into(), rest: None }
            }
            (Prim::Copy, [value]) => {
                if let Some(of) = value.variable().and_then(|value| self.failures.get(&value)).cloned() {
                    self.failures.insert(bound, of);
                }
                match self.variants_of(value) {
                    Some(variants) => variants,
                    None => return,
                }
            }
            _ => return,
        };
        self.variants.insert(bound, variants);
    }

    /// Visits each arm of a switch from the path before, if the subject can be its variant.
    fn arms<'b, B: 'b>(
        &mut self,
        subject: &Atom,
        arms: impl Iterator<Item = (&'b ArmTest, &'b [Variable], B)>,
        mut visit: impl FnMut(&mut Self, B),
    ) {
        let (before, around, dependence) = (self.path.clone(), self.values.around, self.values.of(subject));
        let mut after = None;
        for (test, payload, body) in arms {
            self.path.clone_from(&before);
            payload.iter().for_each(|payload| self.values.bind(payload.var, dependence));
            if let ArmTest::Tag(tag) = test {
                self.path = self.written_if(subject, *tag);
                if let (Some(variant), [payload]) = (self.variant_of(subject, *tag), payload) {
                    self.failures.insert(payload.var, variant.failure_of);
                    self.variants.extend(variant.payload.map(|held| (payload.var, *held)));
                }
            }
            if dependence == Dependence::Changes {
                self.values.around = dependence;
            }
            visit(self, body);
            self.values.around = around;
            after = union(after, self.path.take());
        }
        self.path = after;
    }

    fn within(&mut self, body: &Block, bound: Var) {
        let outer = self.given_up.replace(self.path.clone().unwrap_or_default());
        let (dependence, end) = self.block(body);
        let given_up = self.given_up.take().unwrap_or_default();
        self.given_up = outer.map(|outer| outer.union(&given_up).copied().collect());
        let none = WrittenVariant { written: given_up.clone(), ..WrittenVariant::default() };
        let mut variants = BTreeMap::from([(Value::NONE, none)]);
        let mut all = given_up;
        if let Some((written, payload)) = end {
            all.extend(&written);
            variants.insert(
                Value::SOME,
                WrittenVariant { written, payload: payload.map(Box::new), ..WrittenVariant::default() },
            );
        }
        self.values.bind(bound, dependence.max(Dependence::Reads));
        self.variants.insert(bound, WrittenByVariant { all: all.clone(), variants, rest: None });
        self.path = Some(all);
    }

    /// Notes what was written where a body may be cancelled.
    fn may_be_given_up(&mut self) {
        if let (Some(given_up), Some(path)) = (&mut self.given_up, &self.path) {
            given_up.extend(path);
        }
    }

    /// Visits the body of a loop twice: a round may fail behind what an earlier one has written.
    fn rounds(&mut self, op: &Op, body: &Block, bound: Var) {
        let before = self.path.clone();
        let mut dependence = self.values.of_all(op.operands());
        for _ in 0..2 {
            op.binders().for_each(|binder| self.values.bind(binder.var, dependence));
            if let Op::Map { list, element, .. } | Op::Fold { list, element, .. } = op {
                self.values.bind(element.var, self.values.of(list));
            }
            let (of_round, _) = self.block(body);
            dependence = dependence.max(of_round);
            let of_loop =
                self.path.iter().flatten().filter(|written| before.as_ref().is_none_or(|all| !all.contains(written)));
            let earlier = |(statement, state): &_| (*statement, WriteState { is_earlier: true, ..*state });
            let earlier = of_loop.map(earlier).collect();
            self.path = union(union(before.clone(), self.path.take()), Some(earlier));
        }
        self.values.bind(bound, dependence);
    }

    /// Goes on behind blocks of which one was executed.
    fn join(&mut self, bound: Var, ends: Vec<BlockEnd>) {
        let dependence = ends.iter().map(|(dependence, _)| *dependence).max().unwrap_or_default();
        self.values.bind(bound, dependence);
        let reached: Vec<_> = ends.into_iter().filter_map(|(_, end)| end).collect();
        self.path = None;
        if !reached.is_empty() {
            let joined = joined(&reached);
            self.path = Some(joined.all.clone());
            self.variants.insert(bound, joined);
        }
    }

    /// Returns what was written if a value is this variant; `None` if it cannot be.
    fn written_if(&self, value: &Atom, tag: u32) -> Option<Written> {
        let path = self.path.as_ref()?;
        let Some(of) = self.variants_of(value) else { return Some(path.clone()) };
        narrowed(path, &of, of.variants.get(&tag).map(|variant| &variant.written).or(of.rest.as_ref()))
    }

    fn variant_of(&self, value: &Atom, tag: u32) -> Option<WrittenVariant> {
        self.variants.get(&value.variable()?)?.variants.get(&tag).cloned()
    }

    /// Returns what was written by the variants of a value, if something is known of it.
    fn variants_of(&self, value: &Atom) -> Option<WrittenByVariant> {
        match value {
            Atom::Var(var) => self.variants.get(var).cloned(),
            Atom::Value(Value::Variant(tag, _)) => {
                let all = self.path.clone().unwrap_or_default();
                let variant = WrittenVariant { written: all.clone(), ..WrittenVariant::default() };
                Some(WrittenByVariant { all, variants: [(*tag, variant)].into(), rest: None })
            }
            _ => None,
        }
    }
}
