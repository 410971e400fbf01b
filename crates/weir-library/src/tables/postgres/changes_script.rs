//! Changes that are sent together, as few statements.
//!
//! The changes of one table that stand at one place of the program, such as in a loop, are one statement for all of their rows. The
//! database executes it row by row, so it refuses the row that it would have refused otherwise. A change that joins such a statement
//! moves before the changes of other tables in between, unless its row may reference theirs. It writes the same there, because a statement
//! of one table reads no other one. The first change that is refused has to be the same, too: so a change that may be refused moves only before those that
//! cannot be.

use std::sync::Arc;

use super::connection::PostgresConnection;
use super::placed_change::{PlacedChange, SitedChange};
use super::script::Script;
use super::sent_statement::SentStatement;

/// Changes as one message.
pub(super) struct ChangesScript {
    pub(super) connection: Arc<PostgresConnection>,
    pub(super) script: Script,
    /// The number of statements up to the end of each part.
    pub(super) ends: Vec<usize>,
    /// The changes of each part.
    pub(super) parts: Vec<Vec<SitedChange>>,
}

impl ChangesScript {
    /// Returns changes as one message. If one of them has to be sent by itself, they are given back.
    pub(super) fn of(changes: Vec<PlacedChange>) -> Result<ChangesScript, Vec<PlacedChange>> {
        let [first, _, ..] = &changes[..] else { return Err(changes) };
        let connection = Arc::clone(&first.connection);
        let of_each: Vec<_> = changes.iter().map(|change| (&change.of, change.sent.len())).collect();
        let parts = parts_of(&of_each);
        // Each is prepared now if it was not.
        let names: Vec<_> = parts.iter().map(|part| names_of(&connection, &changes, part)).collect();
        let (mut script, mut ends) = (Script::default(), Vec::with_capacity(parts.len()));
        for (part, names) in parts.iter().zip(names) {
            if names.and_then(|names| append(&mut script, &names, &changes, part)).is_none() {
                return Err(changes);
            }
            ends.push(script.len());
        }
        let mut changes: Vec<Option<SitedChange>> = changes.into_iter().map(|change| Some(change.of)).collect();
        let of_part = |part: &Vec<usize>| part.iter().filter_map(|at| changes[*at].take()).collect();
        let parts = parts.iter().map(of_part).collect();
        Ok(ChangesScript { connection, script, ends, parts })
    }
}

/// Returns the changes, by their numbers, that are statements together, in the order of these. With each change comes the number of
/// its own statements.
fn parts_of(changes: &[(&SitedChange, usize)]) -> Vec<Vec<usize>> {
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for (at, (change, statements)) in changes.iter().enumerate() {
        let is_of_table = |part: &Vec<usize>| Arc::ptr_eq(&changes[part[0]].0.table, &change.table);
        // A change that tells other programs what it writes has a further statement.
        let joins = |member: &usize| *statements == 1 && changes[*member].1 == 1 && change.joins(changes[*member].0);
        let is_refused = |part: &Vec<usize>| part.iter().any(|member| changes[*member].0.may_be_refused());
        let is_referenced = |part: &Vec<usize>| part.iter().any(|member| change.may_reference(changes[*member].0));
        let passes = |part: &Vec<usize>| !(is_referenced(part) || change.may_be_refused() && is_refused(part));
        match parts.iter().rposition(is_of_table) {
            Some(found) if parts[found].iter().all(joins) && parts[found + 1..].iter().all(passes) => {
                parts[found].push(at);
            }
            _ => parts.push(vec![at]),
        }
    }
    parts
}

/// Returns the names of the statements of changes that are statements together; `None` if one is not prepared yet.
fn names_of(connection: &Arc<PostgresConnection>, changes: &[PlacedChange], part: &[usize]) -> Option<Vec<Arc<str>>> {
    match part {
        [only] => changes[*only].sent.iter().map(|sent| connection.name_of(sent.sql())).collect(),
        several => Some(vec![connection.name_of(changes[*several.first()?].of.statement_of_many()?)?]),
    }
}

/// Appends changes that are statements together; `None` if that is not possible.
fn append(script: &mut Script, names: &[Arc<str>], changes: &[PlacedChange], part: &[usize]) -> Option<()> {
    if let [only] = part {
        let PlacedChange { sent, prepared, .. } = &changes[*only];
        let mut each = sent.iter().zip(prepared).zip(names);
        return each.try_for_each(|((sent, prepared), name)| sent.append_to(script, name, prepared));
    }
    let rows = part.iter().filter_map(|at| changes[*at].sent.first().zip(changes[*at].prepared.first()));
    SentStatement::append_together(&rows.collect::<Vec<_>>(), script, names.first()?)
}

#[cfg(test)]
mod tests {
    use weir::Value;

    use super::*;
    use crate::tables::failure_site::FailureSite;
    use crate::tables::postgres::address::PostgresAddress;
    use crate::tables::postgres::table_layout::TableLayout;
    use crate::tables::program_owned::ProgramOwned;
    use crate::tables::row_change::RowChange;
    use crate::tables::schema::{IndexSchema, Schema};
    use crate::tables::tests::{column, declared, reference};

    fn table(name: &str, unique: bool) -> Arc<TableLayout> {
        let columns = vec![column("id", "Int", false), column("count", "Int", false)];
        let indexes = if unique { vec![IndexSchema { columns: vec![1], unique }] } else { Vec::new() };
        layout(Schema { key: vec![0], indexes, ..declared(name, columns) })
    }

    fn layout(schema: Schema) -> Arc<TableLayout> {
        let address = PostgresAddress::parse("postgres://weir@localhost/weir", None).unwrap();
        Arc::new(TableLayout::new(schema, 1, &address))
    }

    fn row(id: i64) -> Value {
        Value::Record([Value::Int(id), Value::Int(0)].into())
    }

    fn kept(change: RowChange) -> ProgramOwned<RowChange> {
        ProgramOwned::new(|| change)
    }

    fn insert(table: &Arc<TableLayout>, id: i64) -> SitedChange {
        SitedChange { transaction: 1, table: Arc::clone(table), change: kept(RowChange::Insert(row(id))), site: None }
    }

    fn replace(table: &Arc<TableLayout>, id: i64) -> SitedChange {
        SitedChange {
            transaction: 1,
            table: Arc::clone(table),
            change: kept(RowChange::Replace(Value::Int(id), row(id))),
            site: None,
        }
    }

    fn parts(changes: &[SitedChange]) -> Vec<Vec<usize>> {
        parts_of(&changes.iter().map(|change| (change, 1)).collect::<Vec<_>>())
    }

    #[test]
    fn the_rows_of_a_loop_over_two_tables_are_two_statements() {
        let (stocks, lines) = (table("stocks", false), table("lines", false));
        let order = [replace(&stocks, 1), insert(&lines, 1), replace(&stocks, 2), insert(&lines, 2)];
        assert_eq!(parts(&order), [[0, 2], [1, 3]]);
        let published: Vec<_> = order.iter().map(|change| (change, 2)).collect();
        assert_eq!(parts_of(&published).len(), 4);
    }

    #[test]
    fn a_row_that_is_replaced_twice_is_two_statements_and_one_behind_another_change_of_its_table_as_well() {
        let stocks = table("stocks", false);
        assert_eq!(parts(&[replace(&stocks, 1), replace(&stocks, 2), replace(&stocks, 1)]), [vec![0, 1], vec![2]]);
        let between = [insert(&stocks, 1), replace(&stocks, 2), insert(&stocks, 3)];
        assert_eq!(parts(&between).len(), 3);
    }

    #[test]
    fn no_change_that_may_be_refused_moves_before_another_one() {
        let (lines, orders, named) = (table("lines", false), table("orders", false), table("named", true));
        let upsert = SitedChange { change: kept(RowChange::Upsert(row(1))), ..insert(&orders, 1) };
        assert_eq!(
            parts(&[insert(&lines, 1), upsert, insert(&lines, 2)]).len(),
            2,
            "it replaces the row that others have"
        );
        assert_eq!(parts(&[insert(&lines, 1), insert(&orders, 1), insert(&lines, 2)]).len(), 3);
        assert_eq!(parts(&[insert(&lines, 1), replace(&named, 1), insert(&lines, 2)]).len(), 3);
        // The order of its rows counts as well.
        assert_eq!(parts(&[replace(&named, 1), replace(&named, 2)]).len(), 2);
    }

    #[test]
    fn no_row_moves_before_one_that_it_may_reference() {
        let stocks = table("stocks", false);
        let reference = reference("sales", &[(1, "count", false)], ("stocks", "id"), false);
        let columns = vec![column("id", "Int", false), column("count", "Int", false)];
        let sales = layout(Schema { key: vec![0], references: vec![reference], ..declared("sales", columns) });
        assert_eq!(parts(&[insert(&sales, 1), replace(&stocks, 2), insert(&sales, 2)]).len(), 3);
    }

    #[test]
    fn no_change_moves_before_one_with_a_text_that_may_be_too_long_for_an_index() {
        let lines = table("lines", false);
        let texts = layout(Schema { key: vec![0], ..declared("texts", vec![column("name", "Text", false)]) });
        let upsert = |text: &str| {
            let row = Value::Record([Value::text(text)].into());
            SitedChange { change: kept(RowChange::Upsert(row)), ..insert(&texts, 1) }
        };
        assert_eq!(parts(&[insert(&lines, 1), upsert("a"), insert(&lines, 2)]).len(), 2);
        assert_eq!(parts(&[insert(&lines, 1), upsert(&"a".repeat(3_000)), insert(&lines, 2)]).len(), 3);
    }

    #[test]
    fn changes_whose_failures_belong_to_different_places_are_different_statements() {
        let lines = table("lines", false);
        let at = |position| Some(FailureSite { passed: Vec::new(), position });
        let of = |position| SitedChange { site: at(position), ..insert(&lines, position) };
        assert_eq!(parts(&[of(1), of(2)]).len(), 2);
    }
}
