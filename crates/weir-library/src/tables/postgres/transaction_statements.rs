//! Statements of a transaction, and their answer.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_postgres::Statement;
use weir::Failure;

use super::beginning::{PendingBegin, TransactionBegun};
use super::connection::{Executed, PostgresConnection, SqlStatement};
use super::errors::is_conflict;
use super::placed_statements::PlacedStatements;
use super::sent_statement::SentStatement;

/// Takes back a statement.
const TAKE_BACK: &str = "ROLLBACK TO SAVEPOINT statement; RELEASE SAVEPOINT statement";

/// Statements of a transaction that are about to be sent.
pub(super) struct BegunStatements {
    /// The number by which the writer knows that they wait.
    pub(super) flight: u64,
    pub(super) sent: Vec<SentStatement>,
    /// True if they begin it.
    pub(super) begins: bool,
    pub(super) answer: StatementsAnswer,
}

/// The parts of which the answer to statements is made.
pub(super) struct StatementsAnswer {
    pub(super) connection: Arc<PostgresConnection>,
    pub(super) prepared: Vec<Statement>,
    pub(super) begin: Option<PendingBegin>,
    pub(super) placed: Arc<Mutex<PlacedStatements>>,
}

/// The answer to statements.
pub(super) struct AnsweredStatements {
    pub(super) begun: Option<TransactionBegun>,
    pub(super) executed: Result<Vec<Executed>, TransactionError>,
    /// The failure of a statement that was placed before.
    pub(super) refused: Option<Failure>,
}

impl StatementsAnswer {
    /// Sends the statements when this is first polled, and waits for the answer.
    pub(super) async fn answer(self, sent: &[SentStatement], reads: bool) -> AnsweredStatements {
        let statements: Vec<SqlStatement<'_>> = sent.iter().map(SentStatement::again).collect();
        let executing = in_transaction(&self.connection, (&statements, &self.prepared), self.begin, reads);
        let ((begun, executed), placed) = tokio::join!(biased; executing, PlacedStatements::answered(&self.placed));
        AnsweredStatements { begun, executed, refused: placed.err() }
    }
}

/// An error of a statement in a transaction.
pub(super) enum TransactionError {
    /// The statements were taken back, because the one at this place was refused. The transaction goes on.
    Refused(tokio_postgres::Error, usize),
    /// The transaction cannot go on.
    Aborted(tokio_postgres::Error),
}

/// Executes statements in a transaction. A statement that reads cannot be refused for a row, and needs no savepoint. Also
/// returns the answer to its beginning.
pub(super) async fn in_transaction(
    connection: &PostgresConnection,
    (statements, prepared): (&[SqlStatement<'_>], &[Statement]),
    begin: Option<PendingBegin>,
    reads: bool,
) -> (Option<TransactionBegun>, Result<Vec<Executed>, TransactionError>) {
    let command = async |wanted: bool, sql: &str| if wanted { connection.command(sql).await } else { Ok(()) };
    let (began, saved, executed, released) = tokio::join!(
        biased;
        async {
            match begin {
                Some(begin) => begin.await.map(Some),
                None => Ok(None),
            }
        },
        command(!reads, "SAVEPOINT statement"),
        connection.execute(statements, prepared),
        command(!reads, "RELEASE SAVEPOINT statement")
    );
    let begun = match began {
        Ok(begun) => begun,
        Err(error) => return (None, Err(TransactionError::Aborted(error))),
    };
    let executed = match (saved, executed, released) {
        (Err(error), ..) | (_, Ok(_), Err(error)) => Err(TransactionError::Aborted(error)),
        (_, Ok(executed), _) => Ok(executed),
        (_, Err((_, error)), _) if reads || is_conflict(&error) => Err(TransactionError::Aborted(error)),
        (_, Err((at, error)), _) => match connection.command(TAKE_BACK).await {
            Ok(()) => Err(TransactionError::Refused(error, at)),
            Err(_) => Err(TransactionError::Aborted(error)),
        },
    };
    (begun, executed)
}
