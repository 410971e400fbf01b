//! Statements that ask for rows before a transaction reads them (`expected_rows`).

use std::sync::Arc;

use tokio_postgres::Statement;
use weir::Value;

use super::connection::{Executed, PostgresConnection, SqlStatement};
use super::expected_rows::{ExpectedRows, RowOf, RowsAnswer, StatementAnswer};
use super::rows_by_keys::key_of_row;
use super::sent_statement::SentStatement;
use super::table::PostgresTable;
use crate::tables::query_site::SqlForm;
use crate::tables::rows::TableRead;
use crate::tables::sql_value::{Bound, key_parameters};

impl PostgresTable {
    /// Asks for the rows with these keys, which a transaction is about to read: by one statement, if that is prepared. Returns whether
    /// they are asked for.
    pub(super) fn expect_rows(&self, transaction: i64, keys: &mut dyn Iterator<Item = Value>) -> bool {
        let keys: Vec<Value> = keys.collect();
        let together = self.statements.get_many.as_deref().filter(|_| keys.len() > 1);
        let together = together.filter(|sql| self.database.is_prepared(sql));
        let sql = together.unwrap_or(&self.statements.get);
        self.database.expect(transaction, sql, |connection, prepared, expected| {
            let rows: Vec<RowOf> = keys.into_iter().map(|key| self.row_of_key(key)).collect();
            let lacking: Vec<RowOf> = rows.iter().filter(|row| expected.lacks(row)).cloned().collect();
            match together {
                Some(_) => self.ask_together(connection, prepared, (lacking, expected)),
                None => lacking.into_iter().for_each(|row| {
                    let answer = self.row_answer(connection, &prepared, &row.1);
                    expected.ask(row, answer);
                }),
            }
            expected.has_all(&rows)
        })
    }

    /// Asks for the answer of a search or count, which a transaction is about to execute. Returns whether it is asked for.
    pub(super) fn expect_found(&self, transaction: i64, read: &TableRead) -> bool {
        let (sql, parameters) = match read {
            TableRead::Search(search) => self.statements.search(&self.schema, search, SqlForm::Rows),
            TableRead::Count(search) => self.statements.search(&self.schema, search, SqlForm::Count),
            TableRead::Row(_) | TableRead::Rows(_) => return false,
        };
        self.database.expect(transaction, &sql, |connection, prepared, expected| {
            let sent = kept(&[SqlStatement::new(&sql, &parameters)], &prepared);
            let query = sent.first().cloned();
            let answer = Box::pin(executed(connection, &prepared, sent));
            query.is_some_and(|query| expected.ask_query(query, answer))
        })
    }

    fn row_answer(&self, connection: &Arc<PostgresConnection>, prepared: &Statement, key: &Value) -> StatementAnswer {
        let key = key_parameters(&self.schema, key);
        let sent = kept(&[SqlStatement::new(&self.statements.get, &key)], prepared);
        let executed = executed(connection, prepared, sent);
        Box::pin(executed)
    }

    fn ask_together(
        &self,
        connection: &Arc<PostgresConnection>,
        prepared: Statement,
        (rows, expected): (Vec<RowOf>, &mut ExpectedRows),
    ) {
        if rows.is_empty() {
            return;
        }
        let column = &self.schema.columns[self.schema.key[0]];
        let keys = [rows.iter().map(|row| Bound::new(&row.1, column)).collect::<Vec<_>>()];
        let sql = self.statements.get_many.as_deref().unwrap_or_default();
        let sent = kept(&[SqlStatement::new(sql, &keys)], &prepared);
        let executed = executed(connection, &prepared, sent);
        let table = self.clone();
        let answer: RowsAnswer = Box::pin(async move {
            // Rows that the flow may not hold are read again by whoever needs them, which fails.
            let Ok(found) = executed.await?.into_rows() else { return Ok(None) };
            let keyed = found.into_iter().filter_map(|row| {
                let key = key_of_row(&table.schema, &row)?;
                Some((table.row_of_key(key), Executed::of_row(row)))
            });
            Ok(Some(keyed.collect()))
        });
        expected.ask_together(rows, answer);
    }
}

fn kept(statement: &[SqlStatement<'_>], prepared: &Statement) -> Vec<SentStatement> {
    SentStatement::keep(statement, std::slice::from_ref(prepared))
}

fn executed(
    connection: &Arc<PostgresConnection>,
    prepared: &Statement,
    sent: Vec<SentStatement>,
) -> impl Future<Output = Result<Executed, tokio_postgres::Error>> + Send + use<> {
    let (connection, prepared) = (Arc::clone(connection), prepared.clone());
    async move {
        let statements: Vec<SqlStatement<'_>> = sent.iter().map(SentStatement::again).collect();
        let executed = connection.execute(&statements, std::slice::from_ref(&prepared)).await;
        Ok(executed.map_err(|(_, error)| error)?.into_iter().next().unwrap_or_default())
    }
}
