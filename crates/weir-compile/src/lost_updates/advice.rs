//! The advice on a lost update: the step that both uses need, in the names of the file where it can stand.

use std::collections::BTreeSet;

use weir_host::Text;

use super::UsePair;
use super::uses::BodyUses;
use crate::context::CheckContext;
use crate::declarations::Declarations;

/// Returns the advice on two uses that should be one step.
pub(super) fn one_step(
    pair: UsePair,
    body: &BodyUses,
    declarations: &Declarations,
    context: &CheckContext<'_>,
) -> String {
    let (one, other) = (&body.uses[pair.first], &body.uses[pair.second]);
    let mut names = [&one.shared, &other.shared].to_vec();
    names.dedup();
    let moved = add_tables(&mut names, pair, body, declarations);
    let owners: BTreeSet<usize> = names.iter().filter_map(|name| owner(name, declarations, context)).collect();
    let here = context.files.index_at(one.origin.start);
    // Two calls of one `fn` of a module have the same places in it, and need a step around the calls.
    let is_one_body =
        one.origin.inlined_call == other.origin.inlined_call && here == context.files.index_at(other.origin.start);
    let is_within = is_one_body && owners.iter().all(|owner| *owner == here);
    let can_be_held = |name: &Text| {
        declarations.constraints.contains_key(name.as_str()) || declarations.tables.contains_key(name.as_str())
    };
    let constraints = names.iter().all(|name| can_be_held(name));
    let shown = |name: &Text| match is_within || !constraints {
        true => name.rsplit('.').next().unwrap_or(name).to_owned(),
        false => outside(name),
    };
    let shown: Vec<String> = names.iter().map(|name| shown(name)).collect();
    let step = format!("`atomic {} {{ … }}`", shown.join(", "));
    match owners.iter().copied().collect::<Vec<_>>()[..] {
        _ if is_within || owners.iter().all(|owner| *owner == 0) => {
            format!("make it one step: {step} around both{moved}")
        }
        _ if constraints => {
            let private = names.iter().filter(|name| !is_public(name, declarations));
            let private: Vec<String> =
                private.map(|name| format!("`pub {} {}`", kind(name, declarations), last(name))).collect();
            let public =
                if private.is_empty() { String::new() } else { format!(", and declare {}", private.join(", ")) };
            format!("make it one step: {step} around both{public}{moved}")
        }
        [module] => {
            let module = &context.files.names()[module];
            format!("make it one step: move both into one `fn` of `{module}`, inside {step}{moved}")
        }
        _ => format!("no step can hold values of two modules: declare {} in one module", both(&names)),
    }
}

/// Adds the other tables that a transaction around two uses writes, because it names all of them. Returns the advice on writes that are
/// not allowed in it: those in the function of a statement such as `update`, and those of another database.
fn add_tables<'b>(names: &mut Vec<&'b Text>, pair: UsePair, body: &'b BodyUses, declarations: &Declarations) -> String {
    let is_table = |name: &Text| declarations.tables.contains_key(name.as_str());
    let is_stored = |name: &Text| declarations.tables.get(name.as_str()).is_some_and(|table| table.soft.is_none());
    let stored = names.iter().copied().find(|name| is_stored(name));
    let is_elsewhere = |name: &Text| {
        let database = |name: &Text| declarations.existing_database(name);
        is_stored(name) && stored.is_some_and(|stored| database(stored) != database(name))
    };
    let (mut moved, mut elsewhere) = (Vec::new(), Vec::new());
    if !names.iter().any(|name| is_table(name)) {
        return String::new();
    }
    for change in body.changes_around(pair.first, pair.second).filter(|change| is_table(&change.shared)) {
        if is_elsewhere(&change.shared) {
            if !elsewhere.contains(&&change.shared) {
                elsewhere.push(&change.shared);
            }
            continue;
        }
        if !names.contains(&&change.shared) {
            names.push(&change.shared);
        }
        if body.is_in_function(change) && !moved.contains(&&change.shared) {
            moved.push(&change.shared);
        }
    }
    let function = match moved[..] {
        [] => String::new(),
        _ => format!(", and move the write of {} out of the function", both(&moved)),
    };
    match elsewhere[..] {
        [] => function,
        _ => format!("{function}, and write {}, which is in another database, behind it", both(&elsewhere)),
    }
}

fn is_public(name: &Text, declarations: &Declarations) -> bool {
    declarations.constraints.get(name.as_str()).is_some_and(|declared| declared.public)
        || declarations.tables.get(name.as_str()).is_some_and(|declared| declared.public)
}

fn kind(name: &Text, declarations: &Declarations) -> &'static str {
    if declarations.tables.contains_key(name.as_str()) { "table" } else { "constraint" }
}

/// Returns the file that declares a shared value or a constraint.
fn owner(name: &Text, declarations: &Declarations, context: &CheckContext<'_>) -> Option<usize> {
    let shared = declarations.shared.get(name.as_str()).map(|declared| declared.item);
    let item = shared.or_else(|| declarations.constraints.get(name.as_str()).map(|declared| declared.item))?;
    Some(context.tree().items.get(item)?.file.into())
}

/// Returns the name of a constraint in the files that use its module.
fn outside(name: &str) -> String {
    let mut parts = name.rsplitn(3, '.');
    let (own, module) = (parts.next().unwrap_or(name), parts.next());
    module.map_or_else(|| own.to_owned(), |module| format!("{module}.{own}"))
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn both(names: &[&Text]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ")
}
