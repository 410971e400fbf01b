//! A proxy between a program and a PostgreSQL server for tests, which cuts connections, and holds answers back.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::postgres::PostgresServer;

/// The message by which the server says that it waits for a statement, outside of transactions.
const READY: &[u8] = b"Z\0\0\0\x05I";
/// The beginning of the messages by which a client executes a statement.
const BIND: &[u8] = b"B\0\0";
/// The message by which a client begins a transaction, behind its length: what follows is sent without waiting for its answer.
const BEGIN: &[u8] = b"BEGIN ";
/// The message by which a client commits.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";
/// The message by which a client has a prepared statement be executed.
const EXECUTE: &[u8] = b"E\0\0\0\x09\0\0\0\0\0";

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
    /// The number of commits that are still to be lost.
    lost_commits: AtomicUsize,
    /// The number of commits whose answers are still to be lost.
    lost_commit_answers: AtomicUsize,
    /// Part of the text of statements that are to be lost, and their number.
    lost_statements: Mutex<(String, usize)>,
    open: Mutex<Vec<UnixStream>>,
    /// True while answers are held back.
    is_held: Mutex<bool>,
    released: Condvar,
    /// The number of messages [`EXECUTE`] since answers are held back.
    executed: AtomicUsize,
    /// True if clients have sent something else since then.
    has_other: AtomicBool,
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

    /// Cuts the connections on which the next commits are sent, before the server gets them.
    pub fn lose_commits(&self, count: usize) {
        self.state.lost_commits.store(count, Ordering::SeqCst);
    }

    /// Cuts the connections on which the next commits are sent, behind these: the server executes them, and the client gets no answer.
    pub fn lose_commit_answers(&self, count: usize) {
        self.state.lost_commit_answers.store(count, Ordering::SeqCst);
    }

    /// Cuts the connections on which the next statements with this text are prepared or executed as a text, before the server gets them.
    pub fn lose_statements(&self, text: &str, count: usize) {
        *locked(&self.state.lost_statements) = (text.to_owned(), count);
    }

    /// Returns the number of statements that are still to be lost.
    #[must_use]
    pub fn statements_left(&self) -> usize {
        locked(&self.state.lost_statements).1
    }

    /// Returns the number of commits that are still to be lost, or to get no answer.
    #[must_use]
    pub fn commits_left(&self) -> usize {
        self.state.lost_commits.load(Ordering::SeqCst) + self.state.lost_commit_answers.load(Ordering::SeqCst)
    }

    /// Holds back the answers of the server, until they are released.
    pub fn hold(&self) {
        *locked(&self.state.is_held) = true;
        self.state.executed.store(0, Ordering::SeqCst);
        self.state.has_other.store(false, Ordering::SeqCst);
    }

    /// Returns the number of statements that clients have sent since answers are held back, without waiting for one another; `None`
    /// if they have done something else first for which they wait, such as to prepare a statement, or to connect.
    #[must_use]
    pub fn sent(&self) -> Option<usize> {
        let executed = self.state.executed.load(Ordering::SeqCst);
        (!self.state.has_other.load(Ordering::SeqCst)).then_some(executed)
    }

    /// Passes on the answers that were held back, and those that follow.
    pub fn release(&self) {
        *locked(&self.state.is_held) = false;
        self.state.released.notify_all();
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
    fn serve(self: &Arc<Self>, client: UnixStream, server: UnixStream) {
        let cut = locked(&self.cuts).pop_front();
        let copy = |stream: &UnixStream| stream.try_clone().expect("a second handle");
        locked(&self.open).extend([copy(&client), copy(&server)]);
        let (from, to) = (copy(&client), copy(&server));
        let (of_client, of_server) = (Arc::clone(self), Arc::clone(self));
        let is_unanswered = Arc::new(AtomicBool::new(false));
        let answer_is_lost = Arc::clone(&is_unanswered);
        std::thread::spawn(move || {
            forward(from, to, None, |sent, _| {
                of_client.count(sent);
                let forwarding = of_client.forwarding(sent);
                // No answer is passed on any more, also if the server is fast.
                is_unanswered.fetch_or(forwarding == Forwarding::LeaveBehind, Ordering::SeqCst);
                forwarding
            });
        });
        std::thread::spawn(move || {
            forward(server, client, cut, |answer, is_ready| {
                of_server.wait_until_released(is_ready);
                match answer_is_lost.load(Ordering::SeqCst) {
                    // A server takes back a transaction if it cannot send the answers before that to the commit.
                    true if !answer.ends_with(READY) => Forwarding::Drop,
                    true => Forwarding::EndBefore,
                    false => Forwarding::GoOn,
                }
            });
        });
    }

    fn count(&self, sent: &[u8]) {
        let executed = sent.windows(EXECUTE.len()).filter(|message| *message == EXECUTE).count();
        self.executed.fetch_add(executed, Ordering::SeqCst);
        let begins = sent.starts_with(b"Q") && sent.get(5..).is_some_and(|sent| sent.starts_with(BEGIN));
        self.has_other.fetch_or(!begins && !sent.starts_with(BIND), Ordering::SeqCst);
    }

    /// Returns whether what a client sends has the text of a statement that is to be lost.
    fn is_lost_statement(&self, sent: &[u8]) -> bool {
        let mut lost = locked(&self.lost_statements);
        let (text, left) = &mut *lost;
        let is_lost = *left > 0 && sent.windows(text.len()).any(|part| part == text.as_bytes());
        *left -= usize::from(is_lost);
        is_lost
    }

    /// Returns what becomes of what a client sends, which may be a commit.
    fn forwarding(&self, sent: &[u8]) -> Forwarding {
        let is_next = |left: &AtomicUsize| {
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left: usize| left.checked_sub(1)).is_ok()
        };
        if self.is_lost_statement(sent) {
            Forwarding::EndBefore
        } else if !sent.windows(COMMIT.len()).any(|message| message == COMMIT) {
            Forwarding::GoOn
        } else if is_next(&self.lost_commits) {
            Forwarding::EndBefore
        } else if is_next(&self.lost_commit_answers) {
            Forwarding::LeaveBehind
        } else {
            Forwarding::GoOn
        }
    }

    /// Waits until answers are no longer held back. Those to a client that connects are not.
    fn wait_until_released(&self, is_ready: bool) {
        let held = self.released.wait_while(locked(&self.is_held), |is_held| is_ready && *is_held);
        drop(held.unwrap_or_else(PoisonError::into_inner));
    }
}

/// The fate of a message, and of its connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Forwarding {
    GoOn,
    /// It is not forwarded.
    Drop,
    /// The connection ends before it.
    EndBefore,
    /// It is the last one of its side, whose connection ends. That of the other side goes on.
    LeaveBehind,
}

/// Forwards what one side sends, up to the place of the cut or as far as `before` says, and then ends both.
fn forward(mut from: UnixStream, mut to: UnixStream, cut: Option<Cut>, before: impl Fn(&[u8], bool) -> Forwarding) {
    let (mut bytes, mut is_ready) = (vec![0; 1 << 16], false);
    while let Ok(count) = from.read(&mut bytes) {
        let is_cut = match cut {
            Some(Cut::InHandshake) => true,
            Some(Cut::BehindFirstStatement) => is_ready,
            None => false,
        };
        let forwarding = before(&bytes[..count], is_ready);
        if forwarding == Forwarding::Drop && count > 0 {
            continue;
        }
        if count == 0 || is_cut || forwarding == Forwarding::EndBefore || to.write_all(&bytes[..count]).is_err() {
            break;
        }
        if forwarding == Forwarding::LeaveBehind {
            _ = from.shutdown(Shutdown::Both);
            return;
        }
        is_ready |= bytes[..count].ends_with(READY);
    }
    _ = from.shutdown(Shutdown::Both);
    _ = to.shutdown(Shutdown::Both);
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
