//! The beginning of a transaction: its turn, its snapshot, and the number of its commit.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;

use futures_core::Stream;
use tokio_postgres::{SimpleQueryMessage, Statement};

use super::commit_numbers::{COUNT_COMMIT, CommitNumber};
use super::connection::{PostgresConnection, SqlStatement};

/// Begins a transaction when it is its turn. Transactions that take turns are serial. `SERIALIZABLE` would also take turns with those of
/// other schemas, and refuse this one as soon as the server has forgotten which of them was open beside which.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE \"weir_database\" IN EXCLUSIVE MODE";
/// Begins a transaction in an existing database, whose programs take no turns: the server compares what they read and write.
const BEGIN_AT_ONCE: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE";

/// The turns that programs take to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Turns {
    /// One program after the other.
    #[default]
    Taken,
    /// None: the database is an existing one, whose other programs know nothing of turns.
    None,
}

/// The beginning of a transaction.
pub(super) enum Beginning {
    /// It waits for its turn, and counts its commit by this statement, which may have a name in scripts.
    InTurn(Vec<Statement>, Option<Arc<str>>),
    /// It waits for its turn, and its commit for the disk.
    Durable,
    AtOnce,
}

/// The answer to the beginning of a transaction.
#[derive(Clone, Copy, Default)]
pub(super) struct TransactionBegun {
    /// The number of its commit, if that will not wait for the disk.
    pub(super) unsynced: Option<CommitNumber>,
    /// True if no program listens until it ends.
    pub(super) is_unheard: bool,
}

/// The beginning of a transaction, which is sent when it is first polled.
pub(super) type PendingBegin = Pin<Box<dyn Future<Output = Result<TransactionBegun, tokio_postgres::Error>> + Send>>;

impl Beginning {
    const COUNT: [SqlStatement<'static>; 1] = [SqlStatement { sql: COUNT_COMMIT, parameters: Vec::new() }];

    /// Prepares what the transaction executes first. Nothing is executed.
    pub(super) async fn prepare(
        connection: &PostgresConnection,
        turns: Turns,
    ) -> Result<Beginning, tokio_postgres::Error> {
        match turns {
            Turns::Taken => {
                Ok(Beginning::InTurn(connection.prepare(&Self::COUNT).await?, connection.known_name(COUNT_COMMIT)))
            }
            Turns::None => Ok(Beginning::AtOnce),
        }
    }

    /// Returns the beginning of a transaction, if what it executes first is prepared.
    pub(super) fn prepared(connection: &Arc<PostgresConnection>, turns: Turns) -> Option<Beginning> {
        match turns {
            Turns::Taken => {
                let counting = vec![connection.known(COUNT_COMMIT)?];
                Some(Beginning::InTurn(counting, connection.name_of(COUNT_COMMIT)))
            }
            Turns::None => Some(Beginning::AtOnce),
        }
    }

    /// Begins the transaction. All is sent when this is first polled.
    pub(super) async fn begin(
        &self,
        connection: &PostgresConnection,
    ) -> Result<TransactionBegun, tokio_postgres::Error> {
        let prepared = match self {
            Beginning::InTurn(_, Some(name)) => return begin_in_one_message(connection, name).await,
            Beginning::InTurn(prepared, None) => prepared,
            Beginning::Durable => return connection.command(BEGIN).await.map(|()| TransactionBegun::default()),
            Beginning::AtOnce => return connection.command(BEGIN_AT_ONCE).await.map(|()| TransactionBegun::default()),
        };
        let count = Self::COUNT;
        let (began, counted) = tokio::join!(biased; connection.command(BEGIN), connection.execute(&count, prepared));
        began?;
        let counted = counted.map_err(|(_, error)| error)?;
        let Some(row) = counted.first().and_then(|counted| counted.rows().ok()?.first()) else {
            return Ok(TransactionBegun::default());
        };
        Ok(TransactionBegun { unsynced: Some(CommitNumber(row.try_get(0)?)), is_unheard: row.try_get(1)? })
    }

    /// Returns the same as a future of its own.
    pub(super) fn pending(self, connection: &Arc<PostgresConnection>) -> PendingBegin {
        let connection = Arc::clone(connection);
        Box::pin(async move { self.begin(&connection).await })
    }
}

/// Begins a transaction, and counts its commit by the statement with this name in scripts. One message has one answer, and takes both
/// sides less work than two.
async fn begin_in_one_message(
    connection: &PostgresConnection,
    counting: &str,
) -> Result<TransactionBegun, tokio_postgres::Error> {
    let mut answers = pin!(connection.messages(&format!("{BEGIN}; EXECUTE {counting}")).await?);
    let mut begun = TransactionBegun::default();
    while let Some(answer) = poll_fn(|context| answers.as_mut().poll_next(context)).await {
        if let SimpleQueryMessage::Row(row) = answer? {
            let number = row.get(0).and_then(|number| number.parse().ok()).expect("the number of a commit");
            begun = TransactionBegun { unsynced: Some(CommitNumber(number)), is_unheard: row.get(1) == Some("t") };
        }
    }
    Ok(begun)
}
