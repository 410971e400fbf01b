//! The race check: reports `race` bodies that write a table, and those that access one shared value or constraint concurrently inside an
//! atomic step.
//!
//! A body that loses may have written before it is cancelled or not, and rows are to stay: which ones are there would be a matter of chance.
//!
//! The bodies of a `race` run concurrently. Usually each call locks the shared value that it takes. A value that an
//! atomic step around the race holds is not locked again, so that nothing would keep the bodies apart. The check runs
//! on the expression IR, after the lock-order analysis.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Mode, Passing, Resource, Text};
use weir_ir::expr::{Atom, Block, Call, Constraint, Op, Origin};
use weir_syntax::{Code, Diagnostic};

use crate::context::CheckContext;
use crate::lang_items::{COMMIT, PLACE_COMMIT, ROLL_BACK, TABLES, is_database};

/// Checks one body. Returns whether it contains a race at all.
pub(crate) fn check(body: &Block, context: &mut CheckContext<'_>) -> bool {
    let mut races = RaceChecker { context, has_race: false };
    races.block(body, &BTreeSet::new());
    races.has_race
}

struct RaceChecker<'a, 'c> {
    context: &'a mut CheckContext<'c>,
    has_race: bool,
}

/// The strongest access of a body to each shared value, and the place of the first.
type SharedAccesses = BTreeMap<Text, (Mode, Origin)>;

impl RaceChecker<'_, '_> {
    /// Checks a block; `held` holds the shared values of the steps around it.
    fn block(&mut self, block: &Block, held: &BTreeSet<Text>) {
        for binding in &block.lets {
            self.has_race |= matches!(binding.op, Op::Race { .. });
            if let Op::Race { bodies } = &binding.op {
                self.table_writes(bodies, binding.origin);
            }
            match &binding.op {
                Op::Atomic { constraints, body, .. } => {
                    let held = held.iter().cloned().chain(shared_of(constraints)).collect();
                    self.block(body, &held);
                    continue;
                }
                Op::Race { bodies } if !held.is_empty() => self.race(bodies, held, binding.origin),
                _ => {}
            }
            binding.op.blocks().for_each(|body| self.block(body, held));
        }
    }

    /// Reports the first write of a table in the bodies of a race.
    fn table_writes(&mut self, bodies: &[Block], race: Origin) {
        let mut written = None;
        for body in bodies {
            body.each_binding(&mut |binding| match &binding.op {
                Op::Call(call) if written.is_none() => {
                    written = self.table_written(call).map(|table| (table.clone(), binding.origin))
                }
                _ => {}
            });
        }
        if let Some((table, at)) = written {
            self.report_write(&table, at, race);
        }
    }

    /// Returns the table that a call writes. The end of a transaction writes nothing by itself.
    fn table_written<'c>(&self, call: &'c Call) -> Option<&'c Text> {
        if !is_statement(call) || [COMMIT, PLACE_COMMIT, ROLL_BACK].contains(&call.function.as_str()) {
            return None;
        }
        let mut accesses = self.shared_arguments(call).into_iter();
        accesses.find_map(|(name, mode)| (mode == Mode::Write).then_some(name))
    }

    fn race(&mut self, bodies: &[Block], held: &BTreeSet<Text>, origin: Origin) {
        let mut earlier = SharedAccesses::new();
        for body in bodies {
            let mut touched = SharedAccesses::new();
            self.touched(body, &mut touched);
            for (name, (mode, at)) in touched.into_iter().filter(|(name, _)| held.contains(name)) {
                match earlier.get_mut(&name) {
                    Some((before, first)) if mode == Mode::Write || *before == Mode::Write => {
                        self.report(&name, *first, at, origin);
                        return;
                    }
                    Some((before, _)) => *before = mode.max(*before),
                    None => _ = earlier.insert(name, (mode, at)),
                }
            }
        }
    }

    fn touched(&self, block: &Block, found: &mut SharedAccesses) {
        block.each_binding(&mut |binding| {
            let accesses = match &binding.op {
                // A table that a body writes is reported by itself.
                Op::Call(call) if !is_statement(call) => self.shared_arguments(call),
                Op::Atomic { constraints, .. } => constraints.iter().filter_map(constraint_held).collect(),
                _ => return,
            };
            for (name, mode) in accesses {
                let entry = found.entry(name.clone()).or_insert((mode, binding.origin));
                entry.0 = entry.0.max(mode);
            }
        });
    }

    fn shared_arguments<'c>(&self, call: &'c Call) -> Vec<(&'c Text, Mode)> {
        let parameters = self.context.parameters(&call.function);
        let arguments = call.arguments.iter().zip(parameters).filter_map(|(atom, parameter)| match atom {
            Atom::Shared(name) if parameter.passing == Passing::Change => Some((name, Mode::Write)),
            Atom::Shared(name) => Some((name, Mode::Read)),
            Atom::Var(_) | Atom::Value(_) => None,
        });
        arguments.collect()
    }

    fn report_write(&mut self, table: &Text, write: Origin, race: Origin) {
        let [place, race] = self.context.in_common_body(write, race);
        let name = self.context.name_at(table, place.span);
        let mut diagnostic = Diagnostic::new(Code::RaceWritesTable, format!("a body of this race writes `{name}`"))
            .at(place.span, "may have happened or not if another body wins")
            .because(race.span, race.named("the race"));
        if place.function.is_some() {
            diagnostic = diagnostic.because(self.context.span(write), format!("writes `{name}`"));
        }
        let hint = format!("let the race choose a value, and write `{name}` behind it");
        self.context.report_once(diagnostic.hint(hint));
    }

    fn report(&mut self, name: &Text, first: Origin, second: Origin, race: Origin) {
        let [first, second] = self.context.in_common_body(first, second);
        let diagnostic =
            Diagnostic::new(Code::RaceInStep, format!("two bodies of this race access `{name}` in one atomic step"))
                .at(second.span, second.named("accessed here"))
                .because(first.span, first.named("also accessed here"))
                .because(
                    self.context.span(race),
                    format!("the bodies run concurrently, and the step around them holds `{name}`"),
                )
                .hint(format!("move the race out of `atomic {name}`, or access it in only one body"));
        self.context.report_once(diagnostic);
    }
}

/// Returns whether a call is a statement on a table.
fn is_statement(call: &Call) -> bool {
    call.function.as_str().strip_prefix(TABLES).is_some_and(|name| name.starts_with('.'))
}

fn shared_of(constraints: &[Constraint]) -> impl Iterator<Item = Text> {
    constraints.iter().filter_map(|held| match &held.resource {
        Resource::Shared(name) => Some(name.clone()),
        _ => constraint_held(held).map(|(name, _)| name.clone()),
    })
}

/// Returns the declared constraint that a step holds, and how.
fn constraint_held(held: &Constraint) -> Option<(&Text, Mode)> {
    match &held.resource {
        Resource::Constraint(name) if !is_database(name) => Some((name, held.mode)),
        _ => None,
    }
}
