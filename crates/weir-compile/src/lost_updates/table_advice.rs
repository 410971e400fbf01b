//! The advice on a lost update of a table: a statement that is one step by itself, and a transaction behind a call that waits.

use super::UsePair;
use super::uses::{BodyUses, SharedUse, UseKind};
use crate::lang_items::TABLES;

/// Returns the advice on two uses with a call between them that no transaction contains; `None` if there is no such call. `step` is
/// the transaction that would be around both, and `table` the table that both use, if it is one.
pub(super) fn around_call(pair: UsePair, body: &BodyUses, step: &str, table: Option<&str>) -> Option<String> {
    if !body.have_outside_call_between(pair.first, pair.second) {
        return None;
    }
    let again = format!("read again in an {step} behind the call between them, which no transaction may contain");
    let replaces = statement(&body.uses[pair.first]) == Some("get") && replaces_row(&body.uses[pair.second]);
    Some(match table.filter(|_| replaces) {
        Some(table) => format!("write by `{table}.update(key, |row| …)`, which reads the row again, or {again}"),
        None => again,
    })
}

/// Returns the advice on a read and a later write of one table that a single statement can do, as a further way.
pub(super) fn single_statement(pair: UsePair, body: &BodyUses, table: &str) -> Option<String> {
    let (read, change) = (&body.uses[pair.first], &body.uses[pair.second]);
    if read.kind != UseKind::Read || change.kind != UseKind::Change {
        return None;
    }
    let is_of_query = statement(read) == Some("select") && body.is_in_loop(pair.second);
    Some(match (statement(read)?, statement(change)?) {
        ("get", "insert") => format!("; without the read, `{table}.insert(…)` fails if there is such a row"),
        ("get", _) if replaces_row(change) => {
            format!("; `{table}.update(key, |row| …)`, which changes a row that is there, is one step, too")
        }
        (_, "delete") if is_of_query => format!("; `{table}.delete_all(|row| …)` is one step, too"),
        _ if is_of_query && replaces_row(change) => {
            format!("; `{table}.update_all(|row| …, |row| …)` is one step, too")
        }
        _ => return None,
    })
}

fn replaces_row(change: &SharedUse) -> bool {
    matches!(statement(change), Some("upsert" | "replace"))
}

/// Returns the name of a statement on a table.
fn statement(found: &SharedUse) -> Option<&str> {
    let name = found.function.strip_prefix(TABLES)?.strip_prefix('.')?;
    Some(name.strip_prefix("place_").unwrap_or(name))
}
