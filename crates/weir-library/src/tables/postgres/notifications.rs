//! Write sets of programs that share tables: `NOTIFY` in the transaction that writes, and a connection that listens.
//!
//! The channel has the hash of the schema in its name, because channels belong to the whole database. A payload is the number of
//! the program, the table, the key and the columns, separated by tabs; PostgreSQL delivers those of a transaction when it
//! commits, and in the order of the commits.
//!
//! Who listens holds a shared advisory lock. A transaction publishes unless it gets that lock exclusively: then nobody listens, and
//! who begins to listen waits for its end, so that its writes are those of before.

use std::future::poll_fn;
use std::time::Duration;

use tokio_postgres::{AsyncMessage, Connection, NoTls};
use weir::Failure;

use super::PostgresDatabase;
use super::connection::SqlStatement;
use crate::tables::schema::Schema;
use crate::tables::write_sets::{TableWrite, WriteSet};

/// Publishes a payload to the programs that listen, if there are any. The number of the lock is one more than that of the writers.
const NOTIFY: &str = "SELECT pg_notify('weir_' || md5(current_schema()), $1) \
    WHERE NOT pg_try_advisory_xact_lock((1466263923::bigint << 32) | '\"weir_database\"'::regclass::oid::bigint)";
/// Publishes a row that the table has just numbered, if a program listens: the payload before and behind its number.
const NOTIFY_NUMBERED: &str = "SELECT pg_notify('weir_' || md5(current_schema()), $1 || \
    (SELECT \"last\"::text FROM \"weir_numbers\" WHERE \"table\" = $2) || $3) \
    WHERE NOT pg_try_advisory_xact_lock((1466263923::bigint << 32) | '\"weir_database\"'::regclass::oid::bigint)";
/// Returns the command that listens to the other programs of the schema.
const LISTEN: &str = "SELECT 'LISTEN weir_' || md5(current_schema())";
/// Tells the writers that a program listens, and waits for the transaction that does not know it yet.
const IS_LISTENING: &str =
    "SELECT pg_advisory_lock_shared((1466263923::bigint << 32) | '\"weir_database\"'::regclass::oid::bigint)";
/// Time after which the next attempt to listen again follows.
const LISTEN_PAUSE: Duration = Duration::from_millis(500);
/// Maximum length of a payload in PostgreSQL, in bytes. A longer one names the table only.
const PAYLOAD_BYTES_MAX: usize = 7_900;

/// The parameters of the statements that publish what a statement writes.
pub(super) struct Notifications {
    sql: &'static str,
    payloads: Vec<Vec<String>>,
}

impl Notifications {
    /// Publishes writes of a program with this number.
    pub(super) fn of(program: u64, writes: &[TableWrite]) -> Notifications {
        let payloads = writes.iter().map(|write| vec![payload(program, write)]).collect();
        Notifications { sql: NOTIFY, payloads }
    }

    /// Publishes the insertion of a row that the table numbers.
    pub(super) fn of_numbered(program: u64, schema: &Schema) -> Notifications {
        let written = TableWrite { key: Some(NUMBER.to_owned()), ..TableWrite::of_any(schema) };
        let whole = payload(program, &written);
        let (before, behind) = whole.split_once(NUMBER).unwrap_or((&whole, ""));
        let payloads = vec![vec![before.to_owned(), schema.name.clone(), behind.to_owned()]];
        Notifications { sql: NOTIFY_NUMBERED, payloads }
    }

    /// Publishes nothing.
    pub(super) fn none() -> Notifications {
        Notifications { sql: NOTIFY, payloads: Vec::new() }
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

/// Returns what a payload says; `None` if this program has sent it, or another one than Weir.
fn write_of(program: u64, payload: &str) -> Option<TableWrite> {
    let parts: Vec<&str> = payload.split('\t').collect();
    let [sender, table, key, columns] = parts[..] else { return None };
    if sender.parse::<u64>().ok()? == program {
        return None;
    }
    let columns = columns.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    Some(TableWrite { table: table.to_owned(), key: Some(key.to_owned()).filter(|key| !key.is_empty()), columns })
}

impl PostgresDatabase {
    /// Publishes the write sets of other programs, until the database is closed or `publish` returns false. Returns when the
    /// program listens.
    pub(in crate::tables) fn listen(
        &self,
        publish: impl Fn(WriteSet) -> bool + Send + Sync + 'static,
    ) -> Result<(), Failure> {
        let (config, tls) = (self.connector.address.config.clone(), self.connector.tls.clone());
        let program = self.program;
        let (begun, wait_for) = tokio::sync::oneshot::channel();
        self.connector.io.handle.spawn(async move {
            let mut begun = Some(begun);
            loop {
                let heard =
                    async |begun: &mut Option<tokio::sync::oneshot::Sender<Result<(), tokio_postgres::Error>>>| {
                        match tls.clone() {
                            Some(tls) => {
                                let (client, connection) = config.connect(tls).await?;
                                hear((client, connection), program, begun, &publish).await
                            }
                            None => {
                                let (client, connection) = config.connect(NoTls).await?;
                                hear((client, connection), program, begun, &publish).await
                            }
                        }
                    };
                let heard: Result<(), tokio_postgres::Error> = heard(&mut begun).await;
                match (heard, begun.take()) {
                    (Err(error), Some(begun)) => {
                        _ = begun.send(Err(error));
                        return;
                    }
                    // The program did not listen in between.
                    (Err(_), None) => {}
                    (Ok(()), _) if publish(WriteSet::Unknown) => {}
                    (Ok(()), _) => return,
                }
                tokio::time::sleep(LISTEN_PAUSE).await;
            }
        });
        match self.waited(wait_for)? {
            Ok(listening) => listening.map_err(|error| super::errors::explain(&self.connector.address, &error)),
            Err(_) => Err(Failure::function("the thread of connections has ended")),
        }
    }
}

/// Listens on a connection until it is lost.
async fn hear<S, T>(
    (client, mut connection): (tokio_postgres::Client, Connection<S, T>),
    program: u64,
    begun: &mut Option<tokio::sync::oneshot::Sender<Result<(), tokio_postgres::Error>>>,
    publish: &(impl Fn(WriteSet) -> bool + Send + Sync),
) -> Result<(), tokio_postgres::Error>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (heard, mut messages) = tokio::sync::mpsc::unbounded_channel();
    let driver = tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if heard.send(message).is_err() {
                return;
            }
        }
    });
    let command = client.query_one(LISTEN, &[]).await?.try_get::<_, String>(0)?;
    client.batch_execute(&command).await?;
    client.batch_execute(IS_LISTENING).await?;
    match begun.take() {
        Some(begun) => _ = begun.send(Ok(())),
        // What the others have written meanwhile was not told.
        None => _ = publish(WriteSet::Unknown),
    }
    while let Some(message) = messages.recv().await {
        let AsyncMessage::Notification(notification) = message else { continue };
        let Some(write) = write_of(program, notification.payload()) else { continue };
        if !publish(WriteSet::Rows(vec![write])) {
            break;
        }
    }
    driver.abort();
    Ok(())
}
