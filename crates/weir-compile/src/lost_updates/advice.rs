//! The advice on a lost update: the step that both uses need, in the names of the file where it can stand.

use std::collections::BTreeSet;

use weir_host::Text;
use weir_ir::expr::Origin;

use super::uses::{BodyUses, SharedUse, UseKind};
use super::{UsePair, table_advice};
use crate::call_places::CalledPlace;
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
    let (mut names, unnamed) = match names_of(one, other, declarations) {
        Ok(names) => names,
        Err(why) => return why,
    };
    let moved = add_tables(&mut names, pair, body, declarations);
    let owners: BTreeSet<usize> = names.iter().filter_map(|name| owner(name, declarations, context)).collect();
    let places = context.in_common_body(one.origin, other.origin);
    // Two calls of one `fn` of a module need a step around the calls, which may be in another file.
    let is_within = places.iter().all(|place| {
        let here = context.files.index_at(place.span.start);
        owners.iter().all(|owner| *owner == here)
    });
    let around = around([(&places[0], one), (&places[1], other)]);
    let inner = inner_steps(pair, [&places[0], &places[1]], (body, declarations, context));
    let can_be_held = |name: &Text| {
        declarations.constraints.contains_key(name.as_str()) || declarations.tables.contains_key(name.as_str())
    };
    let constraints = names.iter().all(|name| can_be_held(name));
    let here = places[0].span;
    let shown = names.iter().map(|name| if constraints { context.name_at(name, here) } else { last(name) });
    let shown: Vec<&str> = shown.collect();
    let step = format!("`atomic {} {{ … }}`", shown.join(", "));
    let table = match names[..] {
        [only] if one.shared == other.shared && declarations.tables.contains_key(only.as_str()) => Some(shown[0]),
        _ => None,
    };
    let holds_table = names.iter().any(|name| declarations.tables.contains_key(name.as_str()));
    if holds_table && let Some(advice) = table_advice::around_call(pair, body, &step, table) {
        return advice;
    }
    let is_alone = inner.is_empty() && moved.is_empty() && places.iter().all(|place| place.function.is_none());
    let single = table.filter(|_| is_alone).and_then(|table| table_advice::single_statement(pair, body, table));
    let single = single.unwrap_or_default();
    match owners.iter().copied().collect::<Vec<_>>()[..] {
        _ if is_within || owners.iter().all(|owner| *owner == 0) => {
            format!("make it one step: {step} {around}{inner}{moved}{unnamed}{single}")
        }
        _ if constraints => {
            let private = names.iter().filter(|name| !is_public(name, declarations));
            let private: Vec<String> =
                private.map(|name| format!("`pub {} {}`", kind(name, declarations), last(name))).collect();
            let public =
                if private.is_empty() { String::new() } else { format!(", and declare {}", private.join(", ")) };
            format!("make it one step: {step} {around}{inner}{public}{moved}{single}")
        }
        [module] => {
            let module = &context.files.names()[module];
            format!("make it one step: move both into one `fn` of `{module}`, inside {step}{moved}")
        }
        _ => format!("no step can hold values of two modules: declare {} in one module", both(&names)),
    }
}

/// Returns the shared values that a step around two uses names, and the advice on one that needs no name; fails with the advice if there is
/// no such step.
fn names_of<'b>(
    one: &'b SharedUse,
    other: &'b SharedUse,
    declarations: &Declarations,
) -> Result<(Vec<&'b Text>, String), String> {
    let mut names = vec![&one.shared, &other.shared];
    names.dedup();
    if !are_in_two_databases(&names, declarations) {
        return Ok((names, String::new()));
    }
    if one.kind == UseKind::Change && other.kind == UseKind::Change {
        let tables = both(&names);
        return Err(format!(
            "no transaction writes two databases: keep {tables} in one, or let no flow depend on both"
        ));
    }
    // A transaction holds what it reads in another database.
    let (named, read) = match other.kind {
        UseKind::Change => (&other.shared, &one.shared),
        UseKind::Read => (&one.shared, &other.shared),
    };
    Ok((vec![named], format!("; {}, which is in another database, needs no name in it", both(&[read]))))
}

/// Returns whether two stored tables are in different databases.
fn are_in_two_databases(names: &[&Text], declarations: &Declarations) -> bool {
    let [one, other] = names else { return false };
    let is_stored = |name: &Text| declarations.tables.get(name.as_str()).is_some_and(|table| table.soft.is_none());
    is_stored(one) && is_stored(other) && declarations.existing_database(one) != declarations.existing_database(other)
}

/// Returns what the step is around.
fn around([(first, one), (second, other)]: [(&CalledPlace<'_>, &SharedUse); 2]) -> String {
    match (first.function, second.function) {
        (None, None) => "around both".to_owned(),
        (Some(first), Some(second)) if first == second => format!("around both calls of `{first}`"),
        (Some(first), Some(second)) => format!("around the calls of `{first}` and `{second}`"),
        (Some(first), None) => format!("around the call of `{first}` and the {}", noun(other)),
        (None, Some(second)) => format!("around the {} and the call of `{second}`", noun(one)),
    }
}

fn noun(of: &SharedUse) -> &'static str {
    match of.kind {
        UseKind::Read => "read",
        UseKind::Change => "write",
    }
}

/// Returns the advice to leave out the transactions around one of two uses, which the step around both may not contain.
fn inner_steps(
    pair: UsePair,
    places: [&CalledPlace<'_>; 2],
    (body, declarations, context): (&BodyUses, &Declarations, &CheckContext<'_>),
) -> String {
    let is_transaction = |(step, held): &(Origin, &[Text])| {
        // A statement that is a step by itself has no such word.
        let has_word = context.text.get(context.span(*step).range()).is_some_and(|text| text.starts_with("atomic"));
        has_word && held.iter().any(|name| declarations.tables.contains_key(name.as_str()))
    };
    let mut left_out = Vec::new();
    let uses = [(pair.first, pair.second), (pair.second, pair.first)];
    for ((of, other), place) in uses.into_iter().zip(places) {
        let Some((step, _)) = body.steps_around_one(of, other).find(is_transaction) else { continue };
        let [step, _] = context.in_common_body(step, body.uses[other].origin);
        let part = match (step.function, place.function) {
            (Some(function), _) => format!("in `{function}`"),
            (None, Some(function)) => format!("around the call of `{function}`"),
            (None, None) => format!("around the {}", noun(&body.uses[of])),
        };
        left_out.extend((!left_out.contains(&part)).then_some(part));
    }
    match left_out[..] {
        [] => String::new(),
        _ => format!(", and leave out the `atomic` {}: a transaction contains no other one", left_out.join(" and ")),
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

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn both(names: &[&Text]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ")
}
