//! The peers: servers of notes that are written by hand on hyper.

use std::path::Path;
use std::sync::Arc;

use bench_harness::{BenchResult, by_hand};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use tokio::task::JoinSet;

use crate::notes_in_memory::NotesInMemory;
use crate::notes_in_postgres::NotesInPostgres;
use crate::notes_in_sqlite::NotesInSqlite;

/// The result of a peer's work, on any thread.
pub(crate) type PeerResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A store of notes.
enum Notes {
    Sqlite(NotesInSqlite),
    Soft(NotesInMemory),
    Postgres(NotesInPostgres),
}

impl Notes {
    async fn note(&self, id: i64) -> PeerResult<Option<String>> {
        match self {
            Notes::Sqlite(notes) => notes.note(id),
            Notes::Soft(notes) => Ok(notes.note(id)),
            Notes::Postgres(notes) => notes.note(id).await,
        }
    }

    async fn board(&self, board: &str) -> PeerResult<Vec<String>> {
        match self {
            Notes::Sqlite(notes) => notes.board(board),
            Notes::Soft(notes) => Ok(notes.board(board)),
            Notes::Postgres(notes) => notes.board(board).await,
        }
    }

    async fn insert(&self, board: String) -> PeerResult<i64> {
        match self {
            Notes::Sqlite(notes) => notes.insert(board).await,
            Notes::Soft(notes) => Ok(notes.insert(board)),
            Notes::Postgres(notes) => notes.insert(board).await,
        }
    }
}

/// Serves the notes of a store until the process is killed.
pub(crate) fn serve(store: &str, port: u16, folder: &Path, address: Option<String>) -> BenchResult<()> {
    let notes = match (store, address) {
        ("sqlite", _) => Notes::Sqlite(NotesInSqlite::open(&folder.join("notes.db"))?),
        ("soft", _) => Notes::Soft(NotesInMemory::default()),
        ("postgres", Some(address)) => Notes::Postgres(NotesInPostgres::at(address)),
        _ => return Err(format!("there is no server by hand for {store}").into()),
    };
    let notes = Arc::new(notes);
    by_hand::serve(port, move |request| {
        let notes = Arc::clone(&notes);
        async move { answered(answer(&notes, &request).await) }
    })
}

async fn answer(notes: &Arc<Notes>, request: &Request<Incoming>) -> PeerResult<Option<String>> {
    let path = request.uri().path();
    if let (&Method::GET, Some(id)) = (request.method(), path.strip_prefix("/notes/")) {
        return notes.note(id.parse()?).await;
    }
    if let (&Method::POST, Some(count)) = (request.method(), path.strip_prefix("/fill/")) {
        let count: i64 = count.parse()?;
        // Together, so that they are few groups.
        let mut insertions = JoinSet::new();
        for number in 0..count {
            let notes = Arc::clone(notes);
            insertions.spawn(async move { notes.insert(format!("board {}", number % 100)).await });
        }
        for inserted in insertions.join_all().await {
            inserted?;
        }
        return Ok(Some(count.to_string()));
    }
    let Some(board) = path.strip_prefix("/boards/") else { return Ok(None) };
    let board = board.replace("%20", " ");
    match *request.method() {
        Method::GET => Ok(Some(notes.board(&board).await?.join("\n"))),
        Method::POST => Ok(Some(notes.insert(board).await?.to_string())),
        _ => Ok(None),
    }
}

/// Returns the response of an answer: `None` is not found.
pub(crate) fn answered(answer: PeerResult<Option<String>>) -> Response<Full<Bytes>> {
    let (status, text) = match answer {
        Ok(Some(text)) => (StatusCode::OK, text),
        Ok(None) => (StatusCode::NOT_FOUND, String::new()),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
