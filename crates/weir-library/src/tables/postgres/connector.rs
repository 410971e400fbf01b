//! Makes connections to a database.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use weir::Failure;

use super::address::PostgresAddress;
use super::connection::PostgresConnection;
use super::errors::{StatementError, failure, has_been_idle};
use super::io::{IoThread, wait};
use super::sockets::{Driver, connect};
use super::spare_connections::{ConnectionPermit, SpareConnections};
use super::tls::PostgresTls;
use super::unused_connections::{self, ConnectionPurpose};
use crate::tables::table_log::TableLog;

/// Time for which a program tries to connect to a database that does not answer, such as one that starts again.
pub(super) const RECONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which the next attempt to connect follows.
pub(super) const RECONNECT_PAUSE: Duration = Duration::from_millis(50);
/// The same for a database that has as many connections as it allows, which costs it a process for each attempt.
pub(super) const CROWDED_PAUSE: Duration = Duration::from_millis(500);
/// Number of attempts to connect behind the end of connections that were given back: the server notices it a moment later.
const GIVEN_BACK_ATTEMPTS: u32 = 10;
/// Time that the network and the database have beyond the limit of a statement, which the database keeps.
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes connections to a database, and waits for their answers.
#[derive(Clone)]
pub(super) struct PostgresConnector {
    pub(super) address: PostgresAddress,
    /// The settings of encrypted connections; `None` if they are not encrypted.
    pub(super) tls: Option<PostgresTls>,
    pub(super) io: Arc<IoThread>,
    pub(super) spare: SpareConnections,
    /// The log of the program, if it has one.
    pub(super) log: Option<TableLog>,
    /// True if the log says that the server has refused a connection.
    is_refusal_logged: Arc<AtomicBool>,
}

impl PostgresConnector {
    /// Returns the connector of an address. Warnings are written to the log.
    pub(super) fn new(address: PostgresAddress, log: Option<TableLog>) -> Result<PostgresConnector, Failure> {
        let tls = address.trust.as_ref().map(PostgresTls::trusting).transpose()?;
        let spare = SpareConnections::of(address.connections_max);
        let io = Arc::new(IoThread::begin()?);
        Ok(PostgresConnector { tls, io, address, spare, log, is_refusal_logged: Arc::default() })
    }

    /// Makes a connection that the thread of connections drives, and for which no other one can stand in.
    pub(super) fn connect(&self) -> Result<PostgresConnection, StatementError> {
        let mut attempts = 0;
        loop {
            let connected = self.connect_on(&self.io.handle, self.spare.indispensable());
            let refused = connected.as_ref().err().filter(|error| error.has_no_connection_left());
            if refused.is_some()
                && unused_connections::give_back(&self.address.server(), ConnectionPurpose::Indispensable)
            {
                attempts = GIVEN_BACK_ATTEMPTS;
            }
            if refused.is_none() || attempts == 0 {
                refused.inspect(|error| self.say_refused(error));
                return connected;
            }
            attempts -= 1;
            std::thread::sleep(RECONNECT_PAUSE);
        }
    }

    /// Makes a connection that this event loop drives, on another thread than that of the loop. It keeps the permit to its end.
    pub(super) fn connect_on(
        &self,
        event_loop: &Handle,
        permit: ConnectionPermit,
    ) -> Result<PostgresConnection, StatementError> {
        let purpose = permit.purpose;
        let connected = self.connected_on(event_loop, permit);
        match &connected {
            Ok(_) => self.spare.made(purpose),
            Err(error) if error.has_no_connection_left() => {
                self.spare.refused(purpose);
                if purpose != ConnectionPurpose::Indispensable {
                    unused_connections::give_back(&self.address.server(), purpose);
                    self.say_refused(error);
                }
            }
            Err(_) => {}
        }
        connected
    }

    fn connected_on(
        &self,
        event_loop: &Handle,
        permit: ConnectionPermit,
    ) -> Result<PostgresConnection, StatementError> {
        let (config, tls) = (self.address.config.clone(), self.tls.clone());
        let connecting = event_loop.spawn(async move {
            let (open, end) = oneshot::channel();
            let was_idle = Arc::new(AtomicBool::new(false));
            let (client, connection) = connect(&config, tls).await?;
            let driver = tokio::spawn(driven(connection, (open, permit), Arc::clone(&was_idle)));
            Ok(PostgresConnection::new(client, (driver.abort_handle(), end, was_idle)))
        });
        let abort = connecting.abort_handle();
        match wait(self.limit(), connecting) {
            // The event loop may end at any time, that of the thread of connections only after its database.
            Some(connected) => connected.unwrap_or(Err(StatementError::NoAnswer)),
            None => {
                abort.abort();
                Err(StatementError::NoAnswer)
            }
        }
    }

    /// Says in the log, once for a database, that the server has no further connection.
    fn say_refused(&self, error: &StatementError) {
        let Some(log) = &self.log else { return };
        let (why, open) = (failure(&self.address, error).message, self.spare.open());
        // A start that has none fails by itself.
        if open == 0 || self.is_refusal_logged.swap(true, Ordering::Relaxed) {
            return;
        }
        let connections = if open == 1 { "one connection".to_owned() } else { format!("{open} connections") };
        log.warn(format!(
            "{why}; this program goes on with the {connections} that it has there, for all of its statements"
        ));
    }

    /// Blocks the thread until the answer of a statement is there.
    pub(super) fn answered<T>(
        &self,
        answer: impl Future<Output = Result<T, StatementError>>,
    ) -> Result<T, StatementError> {
        wait(self.limit(), answer).unwrap_or(Err(StatementError::NoAnswer))
    }

    /// Time after which an answer is not waited for any more.
    pub(super) fn limit(&self) -> Duration {
        self.address.time_limit + PATIENCE
    }
}

/// Drives a connection. What is `open` is dropped at its end, also if the driver is aborted. Notes whether it has ended because its
/// transaction was idle, which no answer tells.
async fn driven(connection: Driver, open: (oneshot::Sender<Infallible>, ConnectionPermit), was_idle: Arc<AtomicBool>) {
    // Whoever waits for an answer learns how it ends.
    if connection.await.is_err_and(|error| has_been_idle(&error)) {
        was_idle.store(true, Ordering::Relaxed);
    }
    drop(open);
}
