//! The replacement of several rows by new ones with the same keys.
//!
//! Each row is updated in its place, so that others may write it meanwhile, and no rule for deletions applies, such as a foreign key of
//! another program. Only if a unique value moves from one of the rows to another, all of them are deleted before the first new one is
//! inserted. The columns that the program does not declare, such as those of an earlier program, are then written again as they were.

use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use weir::Value;

use super::PostgresDatabase;
use super::connection::{Executed, SqlStatement};
use super::errors::StatementError;
use super::publications::Publications;
use super::value::KeptValue;
use crate::tables::constraint;
use crate::tables::dialect::Dialect;
use crate::tables::row::fields;
use crate::tables::schema::Schema;
use crate::tables::sql::{list, name, quoted};
use crate::tables::sql_value::{Bound, key_parameters};
use crate::tables::statements::{TableStatements, parameters};

/// The text in the error of an update that has found no row.
const NO_ROW: &str = "no row was updated";

/// Returns an update that fails if there is no row with its key, or the database keeps it as it is.
pub(super) fn fails_without_row(update: &str) -> String {
    // A query has no other way to fail.
    let number = format!("CAST(CASE count(*) WHEN 0 THEN '{NO_ROW}' ELSE '1' END AS integer)");
    format!("WITH u AS ({update} RETURNING 1) SELECT {number} FROM u")
}

/// Returns whether an update has failed because it has found no row.
pub(super) fn says_no_row(error: &StatementError) -> bool {
    let StatementError::Database(error, _) = error else { return false };
    error.code() == Some(&SqlState::INVALID_TEXT_REPRESENTATION)
        && error.as_db_error().is_some_and(|error| error.message().contains(NO_ROW))
}

/// The replacement of rows between which a unique value moves.
pub(super) struct PostgresReplacement<'t> {
    pub(super) database: &'t PostgresDatabase,
    pub(super) schema: &'t Schema,
    pub(super) statements: &'t TableStatements,
    /// Tells other programs of it.
    pub(super) published: &'t Publications,
}

impl PostgresReplacement<'_> {
    /// Replaces the rows with these keys, in a transaction.
    pub(super) fn run(&self, transaction: i64, rows: &[(Value, Value)]) -> Result<u64, StatementError> {
        let undeclared = self.undeclared_columns(transaction)?;
        let deletion = match &undeclared[..] {
            [] => self.statements.delete.clone(),
            columns => format!("{} RETURNING {}", self.statements.delete, columns.join(", ")),
        };
        let keys: Vec<Vec<Bound<'_>>> = rows.iter().map(|(key, _)| key_parameters(self.schema, key)).collect();
        let deletions: Vec<SqlStatement<'_>> = keys.iter().map(|key| SqlStatement::new(&deletion, key)).collect();
        let deleted = self.database.write(transaction, &deletions)?;
        if let Some((_, (_, row))) = deleted.iter().zip(rows).find(|(deleted, _)| deleted.count == 0) {
            return Err(StatementError::TakenBack(constraint::not_replaced(self.schema, fields(row))));
        }
        let kept =
            deleted.iter().map(|deleted| kept_values(deleted, undeclared.len())).collect::<Result<Vec<_>, _>>()?;
        self.insert(transaction, rows, &kept, &undeclared)?;
        Ok(rows.len() as u64)
    }

    fn insert(
        &self,
        transaction: i64,
        rows: &[(Value, Value)],
        kept: &[Vec<KeptValue>],
        undeclared: &[String],
    ) -> Result<(), StatementError> {
        let all = 0..self.schema.columns.len();
        let names = list(all.clone().map(|at| name(self.schema, at)).chain(undeclared.iter().cloned()), ", ");
        let values = Dialect::Postgres.parameters(all.len() + undeclared.len());
        let insertion =
            format!("INSERT INTO {} ({names}) OVERRIDING SYSTEM VALUE VALUES ({values})", quoted(&self.schema.name));
        let declared: Vec<Vec<Bound<'_>>> =
            rows.iter().map(|(_, row)| parameters(self.schema, all.clone(), fields(row))).collect();
        let insertions = declared.iter().zip(kept).map(|(declared, kept)| {
            let declared = declared.iter().map(|value| value as &(dyn ToSql + Sync));
            let kept = kept.iter().map(|value| value as &(dyn ToSql + Sync));
            SqlStatement { sql: &insertion, parameters: declared.chain(kept).collect() }
        });
        let statements: Vec<SqlStatement<'_>> = insertions.chain(self.published.statements()).collect();
        let inserted = self.database.write(transaction, &statements)?;
        match inserted.iter().zip(rows).find(|(inserted, _)| inserted.count == 0) {
            Some((_, (_, row))) => Err(StatementError::TakenBack(constraint::not_inserted(self.schema, fields(row)))),
            None => Ok(()),
        }
    }

    /// Returns the names, in SQL, of the columns that the table has and the program does not declare, without those that the
    /// database computes. It reads them anew, because another program can add columns at any time.
    fn undeclared_columns(&self, transaction: i64) -> Result<Vec<String>, StatementError> {
        let sql = "SELECT attname::text FROM pg_attribute
                   WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum";
        let table = quoted(&self.schema.name);
        let found = self.database.read(transaction, &[SqlStatement::new(sql, std::slice::from_ref(&table))])?;
        let found = found.first().map_or(Ok(&[][..]), Executed::rows).map_err(StatementError::TakenBack)?;
        let names = found.iter().filter_map(|row| row.try_get::<_, String>(0).ok());
        let is_declared = |name: &String| self.schema.columns.iter().any(|column| column.name == *name);
        Ok(names.filter(|name| !is_declared(name)).map(|name| quoted(&name)).collect())
    }
}

fn kept_values(deleted: &Executed, columns: usize) -> Result<Vec<KeptValue>, StatementError> {
    let Some(row) = deleted.rows().map_err(StatementError::TakenBack)?.first() else { return Ok(Vec::new()) };
    (0..columns).map(|at| row.try_get(at).map_err(StatementError::from)).collect()
}
