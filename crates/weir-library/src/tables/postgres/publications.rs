//! Write sets that programs which share tables publish: statements of the transaction that writes.
//!
//! The channel has the hash of the schema in its name, because channels belong to the whole database. A payload is the number of
//! the program, the table, the key and the columns, separated by tabs; PostgreSQL delivers those of a transaction when it
//! commits, and in the order of the commits.
//!
//! Who listens holds a shared advisory lock. A transaction publishes unless it gets that lock exclusively: then nobody listens, and
//! who begins to listen waits for its end, so that its writes are those of before.

use super::connection::SqlStatement;
use crate::tables::schema::Schema;
use crate::tables::write_sets::TableWrite;

/// Publishes a payload to the programs that listen, if there are any. The number of the lock is one more than that of the writers.
const NOTIFY: &str = "SELECT pg_notify('weir_' || md5(current_schema()), $1) \
    WHERE NOT pg_try_advisory_xact_lock((1466263923::bigint << 32) | '\"weir_database\"'::regclass::oid::bigint)";
/// Publishes a row that the table has just numbered, if a program listens: the payload before and behind its number.
const NOTIFY_NUMBERED: &str = "SELECT pg_notify('weir_' || md5(current_schema()), $1 || \
    (SELECT \"last\"::text FROM \"weir_numbers\" WHERE \"table\" = $2) || $3) \
    WHERE NOT pg_try_advisory_xact_lock((1466263923::bigint << 32) | '\"weir_database\"'::regclass::oid::bigint)";
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
        let written = TableWrite { key: Some(NUMBER.to_owned()), ..TableWrite::of_any(schema) };
        let whole = payload(program, &written);
        let (before, behind) = whole.split_once(NUMBER).unwrap_or((&whole, ""));
        let payloads = vec![vec![before.to_owned(), schema.name.clone(), behind.to_owned()]];
        Publications { sql: NOTIFY_NUMBERED, payloads }
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

fn payload(program: u64, write: &TableWrite) -> String {
    let key = write.key.as_deref().unwrap_or_default();
    let payload = format!("{program}\t{}\t{key}\t{}", write.table, write.columns.join(","));
    if payload.len() > PAYLOAD_BYTES_MAX { format!("{program}\t{}\t\t", write.table) } else { payload }
}
