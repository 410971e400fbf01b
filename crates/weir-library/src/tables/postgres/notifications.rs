//! A connection that listens to the write sets of other programs, which they publish (`publications`).

use std::future::poll_fn;
use std::time::Duration;

use tokio_postgres::{AsyncMessage, Connection, NoTls};
use weir::Failure;

use super::PostgresDatabase;
use crate::tables::write_sets::{TableWrite, WriteSet};

/// Returns the command that listens to the other programs of the schema.
const LISTEN: &str = "SELECT 'LISTEN weir_' || md5(current_schema())";
/// Tells the writers that a program listens, and waits for the transaction that does not know it yet.
const IS_LISTENING: &str =
    "SELECT pg_advisory_lock_shared((1466263923::bigint << 32) | '\"weir_database\"'::regclass::oid::bigint)";
/// Time after which the next attempt to listen again follows.
const LISTEN_PAUSE: Duration = Duration::from_millis(500);

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
        let Some(permit) = self.connector.spare.take() else {
            let few =
                "`table_connections` of the plan leaves no connection for what other programs write: allow one more";
            return Err(Failure::function(few));
        };
        let (config, tls) = (self.connector.address.config.clone(), self.connector.tls.clone());
        let program = self.program;
        let (begun, wait_for) = tokio::sync::oneshot::channel();
        self.connector.io.handle.spawn(async move {
            let (mut begun, _permit) = (Some(begun), permit);
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
