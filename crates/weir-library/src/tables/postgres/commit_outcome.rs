//! The outcome of a transaction whose commit was sent.
//!
//! The commit is a message of its own behind those of the statements, and the database executes messages in their order. If it has
//! answered a statement before by an error, it has not executed the commit: it has ended the connection, or it takes the
//! transaction back instead. If the connection was lost without such an answer, the database may have executed the commit. That
//! does not matter if the transaction has only read. If the commit has a mark, the database tells it later (`unanswered_commits`).

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_postgres::Error;

use super::commit_marks::CommitMark;
use super::errors::{StatementError, has_been_idle, is_answer, is_lost, why_idle, why_lost};
use super::placed_statements::PlacedStatements;

/// A transaction whose commit is sent.
pub(super) struct CommittedTransaction {
    pub(super) number: i64,
    /// True if a statement of it was sent that may write.
    pub(super) has_written: bool,
    /// The mark of its commit, if that has one.
    pub(super) mark: Option<CommitMark>,
    /// Its placed statements, and the rows that it has asked for.
    pub(super) placed: Arc<Mutex<PlacedStatements>>,
}

/// Fails unless a transaction has taken effect. It has all answers: that to its commit, and those to all before.
pub(super) fn commit_outcome(of: &CommittedTransaction, committed: Result<(), Error>) -> Result<(), StatementError> {
    let placed = of.placed.lock();
    let (change, read) = (placed.refused(), placed.expected.lock().refused());
    let Err(error) = committed else {
        return match (change, read) {
            (Some((refused, _)), _) => Err(StatementError::TakenBack(refused)),
            (None, Some(refused)) => Err(refused.into()),
            (None, None) => Ok(()),
        };
    };
    Err(match (change, read) {
        _ if has_been_idle(&error) => StatementError::TakenBack(why_idle()),
        (Some((refused, true)), _) => StatementError::TakenBack(refused),
        (_, Some(refused)) if is_answer(&refused) => refused.into(),
        _ if !is_lost(&error) => error.into(),
        _ if !of.has_written => StatementError::TakenBack(why_lost(of.number)),
        _ => of.mark.map_or(StatementError::Unknown, StatementError::Unanswered),
    })
}
