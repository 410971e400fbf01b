//! Lock ordering: reports the locks that the pass [`order_locks`] hoists.

use weir_host::{Mode, Resource, Text};
use weir_ir::expr::Program;
use weir_ir::passes::{Hoisting, order_locks};
use weir_syntax::{Code, Diagnostic, Span};

use crate::context::CheckContext;
use crate::declarations::Declarations;
use crate::lang_items::{TABLES, existing_database, is_database};
use crate::move_checker::is_move_only;

/// Hoists constraints in every step of a program, and reports each that makes flows wait longer.
pub(crate) fn order(program: &mut Program, declarations: &Declarations, context: &mut CheckContext<'_>) {
    for hoisting in order_locks(program, context.library) {
        let is_silent = hoisting.is_used_throughout
            || is_read_in_transaction(&hoisting, declarations)
            || is_written_by_statement(&hoisting, declarations, context)
            || is_refused(&hoisting, declarations, context)
            || is_of_two_databases(&hoisting);
        if !is_silent {
            report(&hoisting, declarations, context);
        }
    }
}

/// Returns `true` for a stored table of the program that a transaction of its database reads. It delays nobody: whoever writes the table
/// needs the database, which the transaction holds anyway, and readers go together.
fn is_read_in_transaction(hoisting: &Hoisting, declarations: &Declarations) -> bool {
    let Resource::Shared(name) = &hoisting.resource else { return false };
    let is_stored =
        declarations.tables.get(name.as_str()).is_some_and(|table| table.soft.is_none() && table.existing.is_none());
    is_stored && hoisting.last == Resource::Constraint(TABLES.into()) && hoisting.mode == Mode::Read
}

/// Returns `true` for a table that the function of an `update`, `update_all` or `delete_all` writes. The statement is a transaction:
/// without the write in it, the two would not take effect together, and an `atomic` over both tables would hold them as long.
fn is_written_by_statement(hoisting: &Hoisting, declarations: &Declarations, context: &CheckContext<'_>) -> bool {
    let Resource::Shared(name) = &hoisting.resource else { return false };
    let is_table = declarations.tables.contains_key(name.as_str());
    is_table && has_database(hoisting) && hoisting.mode == Mode::Write && named_in(hoisting, context).is_none()
}

/// Returns `true` if the step holds the database of tables.
fn has_database(hoisting: &Hoisting) -> bool {
    matches!(&hoisting.last, Resource::Constraint(last) if is_database(last))
}

/// Returns `true` for the database of a table that a transaction of another database writes, which is an error.
fn is_of_two_databases(hoisting: &Hoisting) -> bool {
    has_database(hoisting) && matches!(&hoisting.resource, Resource::Constraint(name) if is_database(name))
}

/// Returns `true` for a table of another database than that of the transaction which reads it: the transaction cannot name it.
fn is_elsewhere(hoisting: &Hoisting, declarations: &Declarations) -> bool {
    let (Resource::Shared(name), Resource::Constraint(last)) = (&hoisting.resource, &hoisting.last) else {
        return false;
    };
    let is_stored = declarations.tables.get(name.as_str()).is_some_and(|table| table.soft.is_none());
    let of_step = existing_database(last).and_then(|table| declarations.existing_database(table));
    is_stored && is_database(last) && declarations.existing_database(name) != of_step
}

/// Returns `true` for a shared value that a transaction changes and cannot restore. That is an error, whether the step holds the value
/// from its beginning or not.
fn is_refused(hoisting: &Hoisting, declarations: &Declarations, context: &CheckContext<'_>) -> bool {
    let Resource::Shared(name) = &hoisting.resource else { return false };
    let Some(shared) = declarations.shared.get(name.as_str()) else { return false };
    let changes = has_database(hoisting) && hoisting.mode == Mode::Write;
    let is_transaction = changes && named_in(hoisting, context).is_some();
    let definition = |name: &Text| {
        let own = declarations.types.get(name).map(|declared| &declared.definition);
        own.or_else(|| context.library.definition(name))
    };
    let is_part = hoisting.per_session && !shared.per_session;
    is_transaction && (is_part || is_move_only(&shared.ty.to_type(), &definition))
}

/// Returns the names behind the `atomic` of a step. A write of a table outside of a transaction is a step without that word.
fn named_in<'t>(hoisting: &Hoisting, context: &CheckContext<'t>) -> Option<&'t str> {
    let text = context.text.get(context.span(hoisting.step).range())?.strip_prefix("atomic")?;
    text.split_once('{').map(|(named, _)| named.trim())
}

/// Returns the span of a step's keyword, `atomic`.
fn keyword(step: Span) -> Span {
    Span { end: (step.start + "atomic".len() as u32).min(step.end), ..step }
}

/// Reports a lock that was hoisted.
fn report(hoisting: &Hoisting, declarations: &Declarations, context: &mut CheckContext<'_>) {
    let Hoisting { resource, mode, per_session, at, step, last, .. } = hoisting;
    let (name, last) = (shown(resource), shown(last));
    let cost = match mode {
        Mode::Read => format!("no other flow can change {name} during the step"),
        Mode::Write => format!("every other flow that uses {name} waits during the step"),
    };
    let [_, used_at] = context.in_common_body(*step, *at);
    let (used_at, used) = (used_at.span, used_at.named(format!("uses {name}")));
    let step = context.span(*step);
    let begin = keyword(step);
    let named = named_in(hoisting, context);
    let diagnostic = Diagnostic::new(
        Code::HoistedConstraint,
        format!("{name} is held for the whole step, not only while it is used"),
    )
    .at(if named.is_some() { begin } else { step }, format!("holds {last}, and therefore {name} too"))
    .because(used_at, used)
    .note(format!("all flows take {name} before {last}: taking them in different orders could deadlock"))
    .note(cost);
    let scope = if *per_session { " per session" } else { "" };
    // A step finds out by itself whether it only reads a shared value.
    let read = if *mode == Mode::Read && matches!(resource, Resource::Constraint(_)) { "read " } else { "" };
    let whole = name_of(resource);
    let here = context.name_at(&whole, step);
    let held = format!("{read}{here}{scope}");
    let is_restored = has_database(hoisting) && *mode == Mode::Write && matches!(resource, Resource::Shared(_));
    let advice = |named: &str, if_public: &str| {
        let holding = format!("make the step hold it{if_public}: `atomic {held}, {named} {{ … }}`");
        match is_restored {
            true => format!("{holding}; before or after it, {name} is not restored if the transaction fails"),
            false => format!("use {name} before or after the step, or {holding}"),
        }
    };
    context.report_once(match named {
        Some(_) if is_elsewhere(hoisting, declarations) => {
            diagnostic.hint(format!("use {name} before or after the step, which holds another database"))
        }
        Some(named) if here.contains('.') => diagnostic.hint(advice(named, ", if it is public")),
        Some(named) => diagnostic.fix(advice(named, ""), begin.at_end(), format!(" {held},")),
        None => diagnostic.hint(format!("use {name} before or after this write, which is a step of its own")),
    });
}

/// Returns a resource as a message names it.
fn shown(resource: &Resource) -> String {
    match resource {
        Resource::Constraint(name) if is_database(name) => match existing_database(name) {
            Some(table) => format!("the database of `{table}`"),
            None => "the database of the tables".to_owned(),
        },
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
