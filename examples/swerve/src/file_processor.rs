//! The file processor: reads files in chunks and passes them to the network processor, until it is aborted.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_events::{Channel, Closed, Event, Mailbox, choose_biased};

use crate::server::Style;

/// A request for a file.
#[derive(Clone)]
pub(crate) struct FileRequest {
    /// Path relative to the root, without `..`.
    pub(crate) path: PathBuf,
    /// Mailbox for the chunks.
    pub(crate) transfers: Mailbox<Transfer>,
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

/// Serves requests until their channel is closed.
pub(crate) fn run(requests: &Channel<FileRequest>, root: &Path, style: Style) {
    let next = requests.receive();
    while let Ok(request) = next.sync() {
        // An error means that the receiver is gone, so nobody can be notified.
        let _ = serve(&request, root, style);
    }
}

fn serve(request: &FileRequest, root: &Path, style: Style) -> Result<(), Closed> {
    let path = root.join(&request.path);
    let opened = File::open(&path).and_then(|file| file.metadata().map(|about| (file, about)));
    let (mut file, length) = match opened {
        Ok((file, about)) if about.is_file() => (file, about.len()),
        _ => return deliver(request, Transfer::NotFound, style),
    };
    deliver(request, Transfer::Found(length), style)?;
    loop {
        let mut chunk = vec![0; CHUNK_BYTES];
        match file.read(&mut chunk) {
            Ok(0) => return deliver(request, Transfer::Done, style),
            Ok(length) => {
                chunk.truncate(length);
                deliver(request, Transfer::Chunk(Arc::new(chunk)), style)?;
            }
            Err(_) => return deliver(request, Transfer::Timeout, style),
        }
    }
}

/// Sends a transfer, unless the request is aborted: an abort takes precedence over a transfer that has not been
/// received.
fn deliver(request: &FileRequest, transfer: Transfer, style: Style) -> Result<(), Closed> {
    let sent = request.transfers.send(transfer);
    let abort = request.abort.wrap(|()| Err(Closed));
    match style {
        Style::Synchronous => {
            // In lock-step, the next chunk is read only after this one is on the network.
            let delivered = request.delivered.receive();
            choose_biased([abort.clone(), sent]).sync().and_then(|()| choose_biased([abort, delivered]).sync())
        }
        Style::Asynchronous => choose_biased([abort, sent]).sync(),
    }
    .inspect_err(|_| _ = request.transfers.post(Transfer::Timeout))
}
