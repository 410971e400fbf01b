//! Writes of programs that take no turns, such as `psql`, between a crash of the database and the first connection of this program: what
//! was lost must not be executed over them.
//!
//! A server that has recovered from a crash makes a checkpoint before it accepts connections, which notes the next transaction. A row of
//! that or a later transaction was written since. A deletion leaves no row, but is counted: the counts begin anew with a crash. Nor does
//! `TRUNCATE`, which writes the row of the table in the catalog, as what else rewrites a table does.
//! Writes before a later checkpoint are not noticed, but the program connects again at once, and checkpoints are minutes apart.
//!
//! A standby that is promoted makes no checkpoint before it accepts connections: the last one may be older than what the program has
//! written. There, what was written behind the last commit that the program has counted counts as written by others. That may also be
//! what the program itself has written in groups, which it does not count.

use tokio_postgres::Error;

use super::connection::PostgresConnection;
use super::errors::is_lost;
use super::sent_statement::SentStatement;
use crate::tables::dialect::Dialect;
use crate::tables::sql::{list, quoted};

/// The first transaction behind the last checkpoint.
const FIRST: &str = "SELECT split_part(next_xid, ':', 2) FROM pg_control_checkpoint()";
/// The timeline on which the server writes: each promotion begins another one.
const TIMELINE: &str = "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)";
/// The number of the first transaction of a database.
const FIRST_NORMAL: u32 = 3;
/// The tables of the schema, but for those of Weir, and whether rows of them were deleted, or all replaced.
const TABLES: &str = "SELECT c.relname, pg_stat_get_tuples_deleted(c.oid) > 0 OR age(c.xmin) <= age('FIRST'::xid) FROM pg_class c \
    WHERE c.relnamespace = to_regnamespace(quote_ident(current_schema())) AND c.relkind IN ('r', 'p') \
    AND c.relname NOT LIKE 'weir\\_%'";

/// Writes since a crash of the database.
pub(super) struct WritesSinceCrash {
    /// The first transaction behind the crash; `None` if the user has no right to know it.
    first: Option<String>,
    /// True if it is that of a standby which was promoted instead, and therefore may be one before.
    is_promoted: bool,
}

impl WritesSinceCrash {
    /// Finds those behind the last checkpoint, outside of transactions.
    pub(super) async fn behind_checkpoint(connection: &PostgresConnection) -> Result<WritesSinceCrash, Error> {
        Ok(WritesSinceCrash { first: known(FIRST, connection).await?, is_promoted: false })
    }

    /// Returns those on a standby that was promoted. `counted` is the transaction of the last commit of the program that it has.
    pub(super) fn behind_commit(counted: &str) -> Option<WritesSinceCrash> {
        let first = counted.parse::<u32>().ok()?.wrapping_add(1).max(FIRST_NORMAL);
        Some(WritesSinceCrash { first: Some(first.to_string()), is_promoted: true })
    }

    /// Returns why statements cannot be executed once more, if a table that they name was written.
    pub(super) async fn found(
        &self,
        statements: &[&SentStatement],
        connection: &PostgresConnection,
    ) -> Result<Option<String>, Error> {
        let written = self.first_table(statements, connection).await?;
        Ok(written.map(|table| match self.is_promoted {
            true => format!(
                "a standby was promoted, and `{table}` may have been written since by another program, such as `psql`: it has rows \
                 that are newer than the last commit which this program has counted"
            ),
            false => format!("another program, such as `psql`, has written `{table}` since"),
        }))
    }

    /// Returns a table that was written, of those which the statements name.
    async fn first_table(
        &self,
        statements: &[&SentStatement],
        connection: &PostgresConnection,
    ) -> Result<Option<String>, Error> {
        let Some(first) = &self.first else { return Ok(None) };
        let tables = connection.texts(&TABLES.replace("FIRST", first)).await?.into_iter().filter_map(|table| {
            let [name, deleted] = <[Option<String>; 2]>::try_from(table).ok()?;
            Some((name?, deleted.as_deref() == Some("t")))
        });
        let is_named = |name: &str| statements.iter().any(|statement| statement.sql().contains(name));
        let written = tables.filter(|(name, _)| is_named(name)).map(|(name, deleted)| {
            let since = format!("age(xmin) <= age('{first}'::xid)");
            let rows = format!("EXISTS (SELECT 1 FROM {} WHERE {since})", quoted(&name));
            format!("SELECT {} WHERE {deleted} OR {rows}", Dialect::Postgres.text(&name))
        });
        let written = list(written, " UNION ALL ");
        if written.is_empty() {
            return Ok(None);
        }
        Ok(connection.texts(&format!("{written} LIMIT 1")).await?.into_iter().flatten().flatten().next())
    }
}

/// Returns the timeline on which the server writes, outside of transactions; `None` if the server does not tell it.
pub(super) async fn timeline(connection: &PostgresConnection) -> Result<Option<String>, Error> {
    known(TIMELINE, connection).await
}

/// Returns the answer to a query; `None` if the user has no right to it.
async fn known(sql: &str, connection: &PostgresConnection) -> Result<Option<String>, Error> {
    match connection.texts(sql).await {
        Ok(rows) => Ok(rows.into_iter().flatten().flatten().next()),
        Err(error) if is_lost(&error) => Err(error),
        Err(_) => Ok(None),
    }
}
