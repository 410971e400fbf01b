//! Transactions that are sent as a whole: their beginning, their statements and their commit are one round trip.

use tokio_postgres::Statement;

use super::beginning::{Beginning, TransactionBegun, Turns};
use super::commit_numbers::CommitNumber;
use super::connection::{Executed, PostgresConnection, SqlStatement};
use super::errors::{StatementError, unknown_if_lost, unknown_unless_answered};
use super::sent_statement::SentStatement;
use super::writer::UnsyncedTransaction;

/// The answers to the statements of a transaction of their own, and the transaction, if it has not waited for the disk.
pub(super) type ExecutedAlone = (Vec<Executed>, Option<UnsyncedTransaction>);

/// Executes statements as one transaction, all or none.
pub(super) async fn execute_alone(
    (connection, turns): (&PostgresConnection, Turns),
    statements: &[SqlStatement<'_>],
) -> Result<ExecutedAlone, StatementError> {
    let prepared = connection.prepare(statements).await?;
    let beginning = Beginning::prepare(connection, turns).await?;
    let (executed, number) = prepared_alone((connection, &beginning), (statements, &prepared)).await?;
    Ok((executed, number.map(|number| (number, SentStatement::keep(statements, &prepared)))))
}

/// Executes prepared statements as one transaction, all or none. All is sent when this is first polled. Also returns the number of
/// the commit, if it has not waited for the disk.
pub(super) async fn prepared_alone(
    (connection, beginning): (&PostgresConnection, &Beginning),
    (statements, prepared): (&[SqlStatement<'_>], &[Statement]),
) -> Result<(Vec<Executed>, Option<CommitNumber>), StatementError> {
    let (began, executed, committed) = tokio::join!(
        biased;
        beginning.begin(connection),
        connection.execute(statements, prepared),
        connection.command("COMMIT")
    );
    // All three are sent together, and are answered in this order.
    let answers = move || {
        let TransactionBegun { unsynced, .. } = began.map_err(|error| unknown_unless_answered(error, 0))?;
        let executed = executed.map_err(|(at, error)| unknown_unless_answered(error, at))?;
        committed.map_err(unknown_if_lost)?;
        Ok((executed, unsynced))
    };
    answers().inspect_err(|error: &StatementError| {
        if error.is_lost() && !error.is_outdated() {
            // The next attempt needs another one, also if the end of this one is not noticed yet.
            connection.abort();
        }
    })
}
