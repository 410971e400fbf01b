//! Lock ordering: reports the locks that the pass [`order_locks`] hoists.

use weir_host::{Mode, Resource, Text};
use weir_ir::expr::Program;
use weir_ir::passes::{Hoisting, order_locks};
use weir_syntax::{Code, Diagnostic, Span};

use crate::context::CheckContext;
use crate::declarations::Declarations;
use crate::lang_items::TABLES;

/// Hoists constraints in every step of a program, and reports each that makes flows wait longer.
pub(crate) fn order(program: &mut Program, declarations: &Declarations, context: &mut CheckContext<'_>) {
    for hoisting in order_locks(program, context.library) {
        if !hoisting.is_used_throughout && !is_read_in_transaction(&hoisting, declarations) {
            report(&hoisting, context);
        }
    }
}

/// Returns `true` for a stored table that a transaction reads. It delays nobody: whoever writes the table needs the database, which
/// the transaction holds anyway, and readers go together.
fn is_read_in_transaction(hoisting: &Hoisting, declarations: &Declarations) -> bool {
    let Resource::Shared(name) = &hoisting.resource else { return false };
    let is_stored =
        declarations.tables.get(name.as_str()).is_some_and(|table| table.soft.is_none() && table.existing.is_none());
    let has_database = matches!(&hoisting.last, Resource::Constraint(last) if last.as_str() == TABLES);
    is_stored && has_database && hoisting.mode == Mode::Read
}

/// Returns the span of a step's keyword, `atomic`.
fn keyword(step: Span) -> Span {
    Span { end: (step.start + "atomic".len() as u32).min(step.end), ..step }
}

/// Reports a lock that was hoisted.
fn report(hoisting: &Hoisting, context: &mut CheckContext<'_>) {
    let Hoisting { resource, mode, per_session, at, step, last, .. } = hoisting;
    let (name, last) = (shown(resource), shown(last));
    let cost = match mode {
        Mode::Read => format!("no other flow can change {name} during the step"),
        Mode::Write => format!("every other flow that uses {name} waits during the step"),
    };
    let step = context.span(*step);
    let begin = keyword(step);
    // A write of a table outside of a transaction is a step without a keyword.
    let named = context.text.get(step.range()).and_then(|text| text.strip_prefix("atomic"));
    let named = named.and_then(|rest| rest.split_once('{')).map(|(named, _)| named.trim());
    let diagnostic = Diagnostic::new(
        Code::HoistedConstraint,
        format!("{name} is held for the whole step, not only while it is used"),
    )
    .at(if named.is_some() { begin } else { step }, format!("holds {last}, and therefore {name} too"))
    .because(context.span(*at), format!("uses {name}"))
    .note(format!("all flows take {name} before {last}: taking them in different orders could deadlock"))
    .note(cost);
    let scope = if *per_session { " per session" } else { "" };
    // A step finds out by itself whether it only reads a shared value.
    let read = if *mode == Mode::Read && matches!(resource, Resource::Constraint(_)) { "read " } else { "" };
    let whole = name_of(resource);
    let here = context.name_at(&whole, step);
    let held = format!("{read}{here}{scope}");
    context.report_once(match named {
        Some(named) if here.contains('.') => diagnostic.hint(format!(
            "use {name} before or after the step, or make the step hold it, if it is public: `atomic {held}, {named} {{ … }}`"
        )),
        Some(named) => diagnostic.fix(
            format!("use {name} before or after the step, or make the step hold it: `atomic {held}, {named} {{ … }}`"),
            begin.at_end(),
            format!(" {held},"),
        ),
        None => diagnostic.hint(format!("use {name} before or after this write, which is a step of its own")),
    });
}

/// Returns a resource as a message names it.
fn shown(resource: &Resource) -> String {
    match resource {
        Resource::Constraint(name) if name.as_str() == TABLES => "the database of the tables".to_owned(),
        _ => format!("`{}`", name_of(resource)),
    }
}

fn name_of(resource: &Resource) -> Text {
    match resource {
        Resource::Shared(name) | Resource::Constraint(name) | Resource::World(name) | Resource::State(name) => {
            name.clone()
        }
    }
}
