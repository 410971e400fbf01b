//! Write sets that programs which share tables publish: statements of the transaction that writes.
//!
//! The channel has the hash of the schema in its name, because channels belong to the whole database. A payload is the number of
//! the program, the table, the key and the columns, separated by tabs; PostgreSQL delivers those of a transaction when it
//! commits, and in the order of the commits.
//!
//! Who listens holds a shared advisory lock. A transaction publishes unless it gets that lock exclusively: then nobody listens, and
//! who begins to listen waits for its end, so that its writes are those of before.

use tokio_postgres::types::ToSql;

use super::connection::SqlStatement;
use crate::tables::schema::Schema;
use crate::tables::write_sets::TableWrite;

/// Publishes a payload to the programs that listen, if there are any. The number of the lock is one more than that of the writers.
pub(super) const NOTIFY: &str = "SELECT pg_notify('weir_' || md5(current_schema()), $1) \
    WHERE NOT pg_try_advisory_xact_lock((1466263923::bigint << 32) | '\"weir_database\"'::regclass::oid::bigint)";
/// Publishes a row that the table has just numbered, if a program listens: the payload before and behind its number.
const NOTIFY_NUMBERED: &str = "SELECT pg_notify('weir_' || md5(current_schema()), $1 || \
    (SELECT \"last\"::text FROM \"weir_numbers\" WHERE \"table\" = $2) || $3) \
    WHERE NOT pg_try_advisory_xact_lock((1466263923::bigint << 32) | '\"weir_database\"'::regclass::oid::bigint)";
/// Publishes payloads like [`NOTIFY`].
const NOTIFY_ALL: &str = "SELECT pg_notify('weir_' || md5(current_schema()), payload) FROM unnest($1::text[]) AS payload \
    WHERE NOT pg_try_advisory_xact_lock((1466263923::bigint << 32) | '\"weir_database\"'::regclass::oid::bigint)";
/// Publishes the last rows that the table has numbered, like [`NOTIFY_NUMBERED`].
const NOTIFY_ALL_NUMBERED: &str = "SELECT pg_notify('weir_' || md5(current_schema()), $1 || (\"last\" - $4 + at)::text || $3) \
    FROM \"weir_numbers\", generate_series(1, $4::bigint) AS at WHERE \"table\" = $2 \
    AND NOT pg_try_advisory_xact_lock((1466263923::bigint << 32) | '\"weir_database\"'::regclass::oid::bigint)";
/// Maximum length of a payload in PostgreSQL, in bytes. A longer one names the table only.
const PAYLOAD_BYTES_MAX: usize = 7_900;

/// The parameters of the statements that publish what a statement writes.
pub(super) struct Publications {
    sql: &'static str,
    payloads: Vec<Vec<String>>,
}

impl Publications {
    /// Publishes writes of a program with this number.
    pub(super) fn of(program: u64, writes: &[TableWrite]) -> Publications {
        let payloads = writes.iter().map(|write| vec![payload(program, write)]).collect();
        Publications { sql: NOTIFY, payloads }
    }

    /// Publishes the insertion of a row that the table numbers.
    pub(super) fn of_numbered(program: u64, schema: &Schema) -> Publications {
        let (before, behind) = around_number(program, schema);
        Publications { sql: NOTIFY_NUMBERED, payloads: vec![vec![before, schema.name.clone(), behind]] }
    }

    /// Publishes nothing.
    pub(super) fn none() -> Publications {
        Publications { sql: NOTIFY, payloads: Vec::new() }
    }

    /// Returns the statements, which belong to the transaction of the write.
    pub(super) fn statements(&self) -> impl Iterator<Item = SqlStatement<'_>> {
        self.payloads.iter().map(|payload| SqlStatement::new(self.sql, payload))
    }
}

/// The parameters of the statement that publishes what a statement for several rows writes.
pub(super) struct GroupPublications {
    pub(super) sql: &'static str,
    pub(super) parameters: Vec<Box<dyn ToSql + Send + Sync>>,
}

impl GroupPublications {
    /// Publishes writes of a program with this number.
    pub(super) fn of(program: u64, writes: &[TableWrite]) -> GroupPublications {
        let payloads: Vec<String> = writes.iter().map(|write| payload(program, write)).collect();
        GroupPublications { sql: NOTIFY_ALL, parameters: vec![Box::new(payloads)] }
    }

    /// Publishes the insertion of so many rows that the table numbers.
    pub(super) fn of_numbered(program: u64, schema: &Schema, count: usize) -> GroupPublications {
        let (before, behind) = around_number(program, schema);
        let (table, count) = (schema.name.clone(), count as i64);
        let parameters: Vec<Box<dyn ToSql + Send + Sync>> =
            vec![Box::new(before), Box::new(table), Box::new(behind), Box::new(count)];
        GroupPublications { sql: NOTIFY_ALL_NUMBERED, parameters }
    }
}

/// Returns whether a statement publishes a write. It returns no row if no program listens, and none can begin to before the end
/// of the transaction.
pub(super) fn is_publication(statement: &SqlStatement<'_>) -> bool {
    [NOTIFY, NOTIFY_NUMBERED].contains(&statement.sql)
}

/// Returns statements without those behind them that publish their writes.
pub(super) fn without_publications<'s, 'p>(statements: &'s [SqlStatement<'p>]) -> &'s [SqlStatement<'p>] {
    let end = statements.iter().position(is_publication).unwrap_or(statements.len());
    &statements[..end]
}

/// Stands for the number of a row; no other key has the character.
const NUMBER: &str = "\u{1}";

/// Returns the payload of a row that the table numbers: what stands before its number, and what stands behind.
fn around_number(program: u64, schema: &Schema) -> (String, String) {
    let written = TableWrite { key: Some(NUMBER.to_owned()), ..TableWrite::of_any(schema) };
    let whole = payload(program, &written);
    let (before, behind) = whole.split_once(NUMBER).unwrap_or((&whole, ""));
    (before.to_owned(), behind.to_owned())
}

fn payload(program: u64, write: &TableWrite) -> String {
    let key = write.key.as_deref().unwrap_or_default();
    let payload = format!("{program}\t{}\t{key}\t{}", write.table, write.columns.join(","));
    if payload.len() > PAYLOAD_BYTES_MAX { format!("{program}\t{}\t\t", write.table) } else { payload }
}
