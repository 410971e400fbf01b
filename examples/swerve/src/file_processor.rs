//! The file processor: reads files in chunks and passes them to the network processor, until it is aborted.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_events::{Channel, Closed, Event, choose_biased};

use crate::arbitrated_reader;
use crate::server::Style;

/// A request for a file.
#[derive(Clone)]
pub(crate) struct FileRequest {
    /// Path relative to the root, without `..`.
    pub(crate) path: PathBuf,
    /// The channel for the chunks.
    pub(crate) transfers: Channel<Transfer>,
    /// In lock-step: receives a message when a chunk has been written to the network.
    pub(crate) delivered: Channel<()>,
    /// Takes effect when the file is no longer wanted.
    pub(crate) abort: Event<()>,
}

/// Message to the network processor.
#[derive(Clone, Debug)]
pub(crate) enum Transfer {
    /// The file exists and has this length.
    Found(u64),
    /// The file does not exist.
    NotFound,
    /// The next bytes of the file.
    Chunk(Arc<Vec<u8>>),
    /// The file has been read completely.
    Done,
    /// The request took too long.
    Timeout,
}

/// Number of bytes read at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// Number of chunks that may be read before the first is on the network. In lock-step there is never more than one.
pub(crate) const READ_AHEAD_CHUNKS: usize = 64;

/// Creates the channel for the chunks of a request: a buffer is all that [`Style::ReadAhead`] adds to the lock-step.
pub(crate) fn transfers(style: Style) -> Channel<Transfer> {
    match style {
        Style::Synchronous | Style::Asynchronous => Channel::rendezvous(),
        Style::ReadAhead => Channel::bounded(READ_AHEAD_CHUNKS),
    }
}

/// Serves requests until their channel is closed.
pub(crate) fn run(requests: &Channel<FileRequest>, root: &Path, style: Style) {
    let next = requests.recv();
    while let Ok(request) = next.sync() {
        let file = open(&root.join(&request.path));
        // An error means that the receiver is gone, so nobody can be notified.
        let _ = match style {
            Style::Synchronous | Style::ReadAhead => serve(&request, file, style),
            Style::Asynchronous => arbitrated_reader::start(&request, file),
        };
    }
}

fn open(path: &Path) -> Option<(File, u64)> {
    let file = File::open(path).ok()?;
    let about = file.metadata().ok()?;
    about.is_file().then_some((file, about.len()))
}

fn serve(request: &FileRequest, file: Option<(File, u64)>, style: Style) -> Result<(), Closed> {
    let Some((mut file, length)) = file else { return deliver(request, Transfer::NotFound, style) };
    deliver(request, Transfer::Found(length), style)?;
    loop {
        let transfer = next_transfer(&mut file);
        let is_last = !matches!(transfer, Transfer::Chunk(_));
        deliver(request, transfer, style)?;
        if is_last {
            return Ok(());
        }
    }
}

/// Reads the next chunk, or the end.
pub(crate) fn next_transfer(file: &mut impl Read) -> Transfer {
    let mut chunk = vec![0; CHUNK_BYTES];
    match file.read(&mut chunk) {
        Ok(0) => Transfer::Done,
        Ok(length) => {
            chunk.truncate(length);
            Transfer::Chunk(Arc::new(chunk))
        }
        Err(_) => Transfer::Timeout,
    }
}

/// Sends a transfer, unless the request is aborted. The notification of an abort stands behind the chunks that the
/// channel buffers already: none in lock-step, and up to [`READ_AHEAD_CHUNKS`] otherwise.
fn deliver(request: &FileRequest, transfer: Transfer, style: Style) -> Result<(), Closed> {
    let sent = request.transfers.send(transfer);
    let abort = request.abort.wrap(|()| Err(Closed));
    let sent = choose_biased([abort.clone(), sent]).sync();
    let delivered = match style {
        // The next chunk is read only after this one is on the network.
        Style::Synchronous => sent.and_then(|()| choose_biased([abort, request.delivered.recv()]).sync()),
        Style::ReadAhead | Style::Asynchronous => sent,
    };
    delivered.inspect_err(|_| _ = request.transfers.post(Transfer::Timeout))
}
