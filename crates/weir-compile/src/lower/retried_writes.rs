//! Reports writes of tables that a `retry` may repeat (W0706): something behind them fails, and the next attempt writes again.
//!
//! The check follows the paths of an attempt when it is lowered. It keeps what was written on the path and, for a value with variants
//! such as a `Result`, what was written if the value is which variant: a statement that fails has written nothing, and what a
//! transaction writes is there when it commits. If an attempt ends with an `Err` on a path on which something was written, the next
//! one may write it again. Writes that are harmless to repeat ([`super::attempt_values`]) do not count.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Text, Value};
use weir_ir::expr::{ArmTest, Atom, Block, Call, Let, Op, Origin, Var, Variable};
use weir_ir::prim::Prim;
use weir_syntax::{Code, Diagnostic};

use super::Lowering;
use super::attempt_values::{AttemptValues, Dependence};
use super::block_builder::{OpenBlock, Terminator};
use crate::declarations::Declarations;
use crate::lang_items::{BEGIN, COMMIT, ROLL_BACK};

impl Lowering<'_, '_> {
    /// Reports the writes of an attempt that the next one may repeat.
    pub(super) fn report_repeated_writes(&mut self, attempt: &OpenBlock) {
        if !self.writes_tables_in(attempt) {
            return;
        }
        let mut check = AttemptCheck {
            declarations: &self.program.declarations,
            values: AttemptValues::new(self.context.library, attempt),
            variants: BTreeMap::new(),
            path: Some(Written::new()),
            given_up: None,
            statements: BTreeMap::new(),
            repeated: BTreeSet::new(),
        };
        check.open_block(attempt);
        let AttemptCheck { repeated, mut statements, .. } = check;
        let repeated: Vec<_> = repeated.into_iter().filter_map(|statement| statements.remove(&statement)).collect();
        repeated.into_iter().for_each(|statement| self.report_repeated_write(&statement));
    }

    /// Returns true if an attempt writes tables.
    pub(super) fn writes_tables_in(&self, attempt: &OpenBlock) -> bool {
        let mut writes = false;
        attempt.each_binding(&mut |binding| {
            writes |= matches!(&binding.op, Op::Call(call) if self.writes_table(call));
        });
        writes
    }

    fn report_repeated_write(&mut self, (table, function, origin): &(Text, Text, Origin)) {
        let span = self.context.span(*origin);
        let table = self.context.name_at(table, span);
        let statement = match function.as_str() {
            "replace" | "place_replace" => "update",
            "replace_rows" => "update_all",
            "delete_rows" => "delete_all",
            other => other,
        };
        let diagnostic =
            Diagnostic::new(Code::RetriedEffect, format!("`{table}.{statement}` may happen more than once"))
                .at(span, "inside a `retry`, and something behind it may fail")
                .note("an attempt that fails behind it leaves what it has written, and the next one writes again")
                .hint(format!(
                    "put all statements of the attempt into one `atomic`, move `{table}.{statement}` out of the `retry`, or write a row whose \
                     key or `unique` column is the same in each attempt"
                ));
        self.context.report_once(diagnostic);
    }
}

/// The statements that have written on a path, by their variables.
type Written = BTreeSet<(Var, WriteState)>;

/// The state of what a statement has written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct WriteState {
    /// True if its transaction has not committed yet.
    is_open: bool,
    /// True if it was written in an earlier round of a loop than the current one.
    is_earlier: bool,
}

/// The writes on a path, by the variant that a value is.
#[derive(Clone, Default)]
struct WrittenByVariant {
    /// The writes if the variant is not known.
    all: Written,
    /// The variants that the value may be; the others are those of `rest`.
    variants: BTreeMap<u32, WrittenVariant>,
    /// The writes if the value is another variant; `None` if it is none.
    rest: Option<Written>,
}

#[derive(Clone, Default)]
struct WrittenVariant {
    written: Written,
    payload: Option<Box<WrittenByVariant>>,
}

/// The check of one attempt.
struct AttemptCheck<'l> {
    declarations: &'l Declarations,
    values: AttemptValues<'l>,
    variants: BTreeMap<Var, WrittenByVariant>,
    /// The writes on the current path; `None` if the place is unreachable.
    path: Option<Written>,
    /// The writes at the places where the body of the innermost `within` may have been cancelled.
    given_up: Option<Written>,
    /// The statements that write, with the table and the function.
    statements: BTreeMap<Var, (Text, Text, Origin)>,
    /// The statements behind which the attempt may fail.
    repeated: BTreeSet<Var>,
}

/// The end of a block: the dependence of its value, what was written by then, and by the variants of the value.
type BlockEnd = (Dependence, Option<(Written, Option<WrittenByVariant>)>);

impl AttemptCheck<'_> {
    fn open_block(&mut self, block: &OpenBlock) {
        block.lets.iter().for_each(|binding| self.binding(binding));
        match &block.end {
            Terminator::FallThrough(value) => {
                let Some(written) = self.written_if(value, Value::ERR) else { return };
                self.repeated
                    .extend(written.iter().filter(|(_, state)| !state.is_open).map(|(statement, _)| *statement));
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
        let closed = || Some(before.iter().copied().filter(|(_, state)| !state.is_open).collect::<Written>());
        let (done, failed) = match (call.function.as_str(), self.harmful_write(call, bound)) {
            (BEGIN | ROLL_BACK, _) => (closed(), closed()),
            (COMMIT, _) => {
                // The last stored table commits for those before it, and the commit of one in memory does not fail.
                let table = call.arguments.first().and_then(Atom::shared);
                let is_stored = table.is_some_and(|table| self.declarations.tables[table.as_str()].soft.is_none());
                if is_stored && call.arguments.get(3) != Some(&Atom::Value(Value::Bool(true))) {
                    return;
                }
                let commits = |(statement, state)| (statement, WriteState { is_open: false, ..state });
                let failed = if is_stored { closed() } else { None };
                (Some(before.iter().copied().map(commits).collect()), failed)
            }
            (_, Some((table, function))) => {
                self.statements.insert(bound, (table, function, origin));
                let state = WriteState { is_open: self.values.is_in_transaction(call), is_earlier: false };
                (Some(before.iter().copied().chain([(bound, state)]).collect()), Some(before))
            }
            _ => return,
        };
        let by_variant = |(tag, written): (u32, &Option<Written>)| {
            Some((tag, WrittenVariant { written: written.clone()?, payload: None }))
        };
        let variants = [(Value::OK, &done), (Value::ERR, &failed)].into_iter().filter_map(by_variant).collect();
        let all = done.clone().unwrap_or_default();
        self.variants.insert(bound, WrittenByVariant { all, variants, rest: None });
        self.path = done;
    }

    /// Returns the table and the function of a call that writes what another attempt should not write again.
    fn harmful_write(&self, call: &Call, result: Var) -> Option<(Text, Text)> {
        let statement = self.values.statement_that_writes(call)?;
        let Some(Atom::Shared(name)) = call.arguments.first() else { return None };
        let table = self.declarations.tables.get(name.as_str())?;
        (!self.values.is_harmless((statement, call), result, table)).then(|| (name.clone(), statement.into()))
    }

    fn prim(&mut self, prim: &Prim, operands: &[Atom], bound: Var) {
        self.values.bind_prim(bound, prim, operands);
        let all = self.path.clone().unwrap_or_default();
        let variants = match (prim, operands) {
            (Prim::Variant(tag), operands) => {
                let payload = if let [only] = operands { self.variants_of(only).map(Box::new) } else { None };
                let variant = WrittenVariant { written: all.clone(), payload };
                WrittenByVariant { all, variants: [(*tag, variant)].into(), rest: None }
            }
            (Prim::Copy, [value]) => match self.variants_of(value) {
                Some(variants) => variants,
                None => return,
            },
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
                if let (Some(held), [payload]) = (self.payload_of(subject, *tag), payload) {
                    self.variants.insert(payload.var, held);
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
        let none = WrittenVariant { written: given_up.clone(), payload: None };
        let mut variants = BTreeMap::from([(Value::NONE, none)]);
        let mut all = given_up;
        if let Some((written, payload)) = end {
            all.extend(&written);
            variants.insert(Value::SOME, WrittenVariant { written, payload: payload.map(Box::new) });
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

    fn payload_of(&self, value: &Atom, tag: u32) -> Option<WrittenByVariant> {
        let var = value.variable()?;
        self.variants.get(&var)?.variants.get(&tag)?.payload.as_deref().cloned()
    }

    /// Returns what was written by the variants of a value, if something is known of it.
    fn variants_of(&self, value: &Atom) -> Option<WrittenByVariant> {
        match value {
            Atom::Var(var) => self.variants.get(var).cloned(),
            Atom::Value(Value::Variant(tag, _)) => {
                let all = self.path.clone().unwrap_or_default();
                let variant = WrittenVariant { written: all.clone(), payload: None };
                Some(WrittenByVariant { all, variants: [(*tag, variant)].into(), rest: None })
            }
            _ => None,
        }
    }
}

/// Returns what was written by the variants of a value that is one of these, on each path what was written and its variants.
fn joined(values: &[(Written, Option<WrittenByVariant>)]) -> WrittenByVariant {
    let known = values.iter().filter_map(|(_, variants)| variants.as_ref());
    let tags: BTreeSet<u32> = known.flat_map(|of| of.variants.keys().copied()).collect();
    let rest = |(written, variants): &(Written, Option<WrittenByVariant>)| match variants {
        Some(of) => narrowed(written, of, of.rest.as_ref()),
        None => Some(written.clone()),
    };
    let with_tag = |tag: u32| {
        let of_each = values.iter().filter_map(|value| {
            let known = value.1.as_ref().and_then(|of| Some((of, of.variants.get(&tag)?)));
            Some(match known {
                Some((of, variant)) => {
                    (narrowed(&value.0, of, Some(&variant.written))?, variant.payload.as_deref().cloned())
                }
                None => (rest(value)?, None),
            })
        });
        let of_each: Vec<_> = of_each.collect();
        let written = of_each.iter().flat_map(|(written, _)| written.iter().copied()).collect();
        let is_known = of_each.iter().any(|(_, payload)| payload.is_some());
        (tag, WrittenVariant { written, payload: is_known.then(|| Box::new(joined(&of_each))) })
    };
    WrittenByVariant {
        all: values.iter().flat_map(|(written, _)| written.iter().copied()).collect(),
        variants: tags.into_iter().map(with_tag).collect(),
        rest: values.iter().map(rest).fold(None, union),
    }
}

/// Returns what was written on a path on which a value turns out to be a variant, with which this was written.
fn narrowed(path: &Written, of: &WrittenByVariant, with_variant: Option<&Written>) -> Option<Written> {
    let with_variant = with_variant?;
    Some(path.iter().filter(|written| !of.all.contains(written) || with_variant.contains(written)).copied().collect())
}

fn union(one: Option<Written>, other: Option<Written>) -> Option<Written> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.union(&other).copied().collect()),
        (one, other) => one.or(other),
    }
}
