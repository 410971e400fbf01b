//! The connections of this process that it can do without for a while, if a server has no further one for it.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPurpose {
    /// Nothing can be executed without it, such as the connection that writes.
    Indispensable,
    /// It reads. Another one can stand in for it.
    Needed,
    /// It saves time.
    Spare,
}

/// Connections that a program can do without for a while.
pub(super) trait UnusedConnections: Send + Sync {
    /// Closes those that are not in use, because the server has refused one for this purpose. Returns whether there were some.
    fn give_back(&self, refused: ConnectionPurpose) -> bool;
}

/// The connections of this process, by their servers.
static OF_SERVERS: Mutex<Vec<(String, Weak<dyn UnusedConnections>)>> = Mutex::new(Vec::new());

/// Notes connections to a server.
pub(super) fn note(server: &str, connections: Weak<dyn UnusedConnections>) {
    let mut noted = OF_SERVERS.lock();
    noted.retain(|(_, connections)| connections.strong_count() > 0);
    noted.push((server.to_owned(), connections));
}

/// Closes connections to a server that are not in use, whatever the database is, because the server has refused one for this purpose.
/// Returns whether there were some.
pub(super) fn give_back(server: &str, refused: ConnectionPurpose) -> bool {
    let noted = OF_SERVERS.lock();
    let of_server = noted.iter().filter(|(of, _)| of == server);
    let connections: Vec<Arc<dyn UnusedConnections>> =
        of_server.filter_map(|(_, connections)| connections.upgrade()).collect();
    drop(noted);
    let given_back = connections.iter().filter(|connections| connections.give_back(refused));
    given_back.count() > 0
}
