//! Notes in SQLite, by hand: a connection for each thread that reads, and a thread that writes with group commit.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use bench_harness::BenchResult;
use rusqlite::{Connection, OptionalExtension};
use tokio::sync::oneshot;

use crate::hand::PeerResult;
use crate::servers::TEXT;

/// The settings of every connection: the sizes of the cache and of the log are those of Weir.
pub(crate) const PRAGMAS: &str =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=OFF; PRAGMA cache_size=-16000;
    PRAGMA wal_autocheckpoint=4000; PRAGMA journal_size_limit=32960000; PRAGMA temp_store=MEMORY;";
const SCHEMA: &str =
    "CREATE TABLE notes (id INTEGER PRIMARY KEY AUTOINCREMENT, board TEXT NOT NULL, text TEXT NOT NULL) STRICT;
    CREATE INDEX notes_board ON notes (board, id);";
/// Maximum number of insertions in one transaction.
const GROUP_MAX: usize = 1_024;

thread_local! {
    static READER: RefCell<Option<Connection>> = const { RefCell::new(None) };
}

/// The notes.
pub(crate) struct NotesInSqlite {
    path: PathBuf,
    insertions: mpsc::Sender<Insertion>,
}

struct Insertion {
    board: String,
    done: oneshot::Sender<i64>,
}

impl NotesInSqlite {
    pub(crate) fn open(path: &Path) -> BenchResult<NotesInSqlite> {
        let writer = Connection::open(path)?;
        writer.execute_batch(PRAGMAS)?;
        writer.execute_batch(SCHEMA)?;
        let (insertions, waiting) = mpsc::channel();
        std::thread::spawn(move || write(&writer, &waiting).expect("the disk is not full"));
        Ok(NotesInSqlite { path: path.to_owned(), insertions })
    }

    pub(crate) fn note(&self, id: i64) -> PeerResult<Option<String>> {
        self.read(|reader| {
            let mut statement = reader.prepare_cached("SELECT id, board, text FROM notes WHERE id = ?1")?;
            statement.query_row([id], |row| row.get(2)).optional()
        })
    }

    pub(crate) fn board(&self, board: &str) -> PeerResult<Vec<String>> {
        self.read(|reader| {
            let sql = "SELECT id, board, text FROM notes WHERE board = ?1 ORDER BY id DESC LIMIT 10";
            reader.prepare_cached(sql)?.query_map([board], |row| row.get(2))?.collect()
        })
    }

    pub(crate) async fn insert(&self, board: String) -> PeerResult<i64> {
        let (done, inserted) = oneshot::channel();
        self.insertions.send(Insertion { board, done })?;
        Ok(inserted.await?)
    }

    fn read<T>(&self, statement: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> PeerResult<T> {
        read_from(&self.path, statement)
    }
}

/// Reads with the connection of this thread to the database.
pub(crate) fn read_from<T>(path: &Path, statement: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> PeerResult<T> {
    READER.with_borrow_mut(|reader| {
        let reader = match reader.take() {
            Some(open) => reader.insert(open),
            None => {
                let opened = Connection::open(path)?;
                opened.execute_batch(PRAGMAS)?;
                reader.insert(opened)
            }
        };
        Ok(statement(reader)?)
    })
}

/// Group commit: the insertions that wait are one transaction, and all are answered when it is durable.
fn write(writer: &Connection, waiting: &mpsc::Receiver<Insertion>) -> rusqlite::Result<()> {
    while let Ok(first) = waiting.recv() {
        let group: Vec<Insertion> = std::iter::once(first).chain(waiting.try_iter().take(GROUP_MAX)).collect();
        let transaction = writer.unchecked_transaction()?;
        let mut numbers = Vec::with_capacity(group.len());
        {
            let mut statement = writer.prepare_cached("INSERT INTO notes (board, text) VALUES (?1, ?2)")?;
            for insertion in &group {
                statement.execute((&insertion.board, TEXT))?;
                numbers.push(writer.last_insert_rowid());
            }
        }
        transaction.commit()?;
        for (insertion, number) in group.into_iter().zip(numbers) {
            // Who has asked may have gone.
            _ = insertion.done.send(number);
        }
    }
    Ok(())
}
