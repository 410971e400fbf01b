//! A proxy between a program and a PostgreSQL server for tests, which cuts connections.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::postgres::PostgresServer;

/// The message by which the server says that it waits for a statement, outside of transactions.
const READY: &[u8] = b"Z\0\0\0\x05I";

/// The place at which a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// In the middle of the first answer of the server.
    InHandshake,
    /// In place of the answer to the first statement, which the server has executed.
    BehindFirstStatement,
}

/// A proxy, which ends with the process.
pub struct PostgresProxy {
    folder: PathBuf,
    state: Arc<ProxyState>,
}

#[derive(Default)]
struct ProxyState {
    cuts: Mutex<VecDeque<Cut>>,
    open: Mutex<Vec<UnixStream>>,
}

impl PostgresProxy {
    /// Starts a proxy of a server.
    ///
    /// # Panics
    /// Panics if it has no socket.
    #[must_use]
    pub fn start(server: &PostgresServer) -> PostgresProxy {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("weir-proxy-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder of our own");
        let listener = UnixListener::bind(folder.join(".s.PGSQL.5432")).expect("the name is free");
        let (state, socket) = (Arc::new(ProxyState::default()), server.socket());
        let accepting = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // The server may be down.
                let Ok(server) = UnixStream::connect(&socket) else { continue };
                accepting.serve(client, server);
            }
        });
        PostgresProxy { folder, state }
    }

    /// Returns the address of a schema through the proxy.
    #[must_use]
    pub fn address(&self, schema: &str) -> String {
        let folder = self.folder.to_str().expect("a path of ASCII").replace('/', "%2F");
        format!("postgres://weir@{folder}/postgres?options=-csearch_path%3D{schema}")
    }

    /// Cuts all connections, and each of the next ones at its place.
    pub fn cut(&self, next: &[Cut]) {
        locked(&self.state.cuts).extend(next);
        for open in locked(&self.state.open).drain(..) {
            _ = open.shutdown(Shutdown::Both);
        }
    }

    /// Returns the number of connections that are still to be cut.
    #[must_use]
    pub fn left(&self) -> usize {
        locked(&self.state.cuts).len()
    }
}

impl Drop for PostgresProxy {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl ProxyState {
    fn serve(&self, client: UnixStream, server: UnixStream) {
        let cut = locked(&self.cuts).pop_front();
        let copy = |stream: &UnixStream| stream.try_clone().expect("a second handle");
        locked(&self.open).extend([copy(&client), copy(&server)]);
        let (from, to) = (copy(&client), copy(&server));
        std::thread::spawn(move || forward(from, to, None));
        std::thread::spawn(move || forward(server, client, cut));
    }
}

/// Forwards what one side sends, up to the place of the cut, and then ends both.
fn forward(mut from: UnixStream, mut to: UnixStream, cut: Option<Cut>) {
    let (mut bytes, mut is_ready) = (vec![0; 1 << 16], false);
    while let Ok(count) = from.read(&mut bytes) {
        let is_cut = match cut {
            Some(Cut::InHandshake) => true,
            Some(Cut::BehindFirstStatement) => is_ready,
            None => false,
        };
        if count == 0 || is_cut || to.write_all(&bytes[..count]).is_err() {
            break;
        }
        is_ready |= bytes[..count].ends_with(READY);
    }
    _ = from.shutdown(Shutdown::Both);
    _ = to.shutdown(Shutdown::Both);
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
