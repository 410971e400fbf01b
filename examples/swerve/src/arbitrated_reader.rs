//! The asynchronous file reader with its arbitrator (§6, Figure 10): reads ahead of a slow client, and a timeout still
//! overtakes the chunks that were read.
//!
//! ```text
//!          input (buffered by asynchronous sends)           transfers
//! reader ─────────────────────────────────────▶ arbitrator ───────────▶ network processor
//!    ▲                                             │    ▲                     │
//!    └──────────── stopped: reads no more ─────────┘    └── action: consumed ─┘
//! ```
//!
//! 1. The reader sends [`READ_AHEAD_CHUNKS`] chunks asynchronously to the arbitrator and is done: no thread waits for the
//!    client, however slow it is.
//! 2. The arbitrator chooses between the next chunk and the abort, which it prefers. It passes either on with an
//!    asynchronous send.
//! 3. The post-consumption action of that send runs when the network processor has received the chunk: it reads one more
//!    chunk, which bounds the read-ahead, and is the arbitrator of the next one.
//!
//! Differences from the figure: the action belongs to the send to the consumer and not to the send to the arbitrator, so
//! that arbitrators never run beside each other and the chunks keep their order; the first arbitrator is started by hand,
//! because nothing consumes the first chunk in the figure; and the read-ahead is bounded.

use std::fs::File;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use weir_events::{Channel, Closed, Event, Signal, a_send, choose_biased};

use crate::file_processor::{FileRequest, READ_AHEAD_CHUNKS, Transfer, next_transfer};

/// A file that is being read for one request.
struct ArbitratedReader<F> {
    /// `None` once it was read to its end, so that it is closed while the client still receives.
    file: Mutex<Option<F>>,
    /// From the reader to the arbitrator.
    input: Channel<Transfer>,
    /// From the arbitrator to the reader: the request was aborted.
    stopped: Signal,
    /// To the network processor.
    transfers: Channel<Transfer>,
    abort: Event<()>,
}

/// Starts to serve a request; the actions of its sends do the rest.
pub(crate) fn start(request: &FileRequest, file: Option<(File, u64)>) -> Result<(), Closed> {
    match file {
        None => request.transfers.post(Transfer::NotFound).map_err(|_| Closed),
        Some((file, length)) => {
            request.transfers.post(Transfer::Found(length)).map_err(|_| Closed)?;
            read(file, request.transfers.clone(), request.abort.clone());
            Ok(())
        }
    }
}

fn read<F: Read + Send + 'static>(file: F, transfers: Channel<Transfer>, abort: Event<()>) {
    let reader = Arc::new(ArbitratedReader {
        file: Mutex::new(Some(file)),
        input: Channel::rendezvous(),
        stopped: Signal::new(),
        transfers,
        abort,
    });
    reader.read_chunk();
    reader.clone().arbitrate();
    (1..READ_AHEAD_CHUNKS).all(|_| reader.read_chunk());
}

impl<F: Read + Send + 'static> ArbitratedReader<F> {
    /// Reads one more chunk and sends it to the arbitrator; returns false if there is nothing more to read.
    fn read_chunk(&self) -> bool {
        // The lock covers the send, so that chunks are sent in the order in which they were read.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if self.stopped.is_fired() {
            *file = None;
        }
        let Some(open) = &mut *file else { return false };
        let transfer = next_transfer(open);
        if !matches!(transfer, Transfer::Chunk(_)) {
            *file = None;
        }
        a_send(&self.input, transfer).a_sync();
        file.is_some()
    }

    /// Passes the next chunk on, or the abort.
    fn arbitrate(self: Arc<Self>) {
        let abort = self.abort.wrap(|()| Ok(Transfer::Timeout));
        let Ok(transfer) = choose_biased([abort, self.input.recv()]).sync() else { return };
        match transfer {
            Transfer::Chunk(_) => {
                let next = self.clone();
                let go_on = move |sent: Result<(), Closed>| match sent {
                    Ok(()) => {
                        next.read_chunk();
                        next.clone().arbitrate();
                    }
                    Err(Closed) => next.stop(),
                };
                a_send(&self.transfers, transfer).a_wrap(go_on).a_sync();
            }
            end => {
                self.stop();
                a_send(&self.transfers, end).a_sync();
            }
        }
    }

    /// Tells the reader that no chunk is wanted any more.
    fn stop(&self) {
        self.stopped.fire();
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::Duration;

    /// A file whose nth chunk is full of n, and which counts the chunks that were read.
    struct Numbered {
        chunks: usize,
        read: Arc<AtomicUsize>,
    }

    impl Read for Numbered {
        fn read(&mut self, chunk: &mut [u8]) -> std::io::Result<usize> {
            let number = self.read.fetch_add(1, SeqCst);
            chunk.fill(number as u8);
            Ok(if number < self.chunks { chunk.len() } else { 0 })
        }
    }

    const TOO_LONG: Duration = Duration::from_secs(20);

    /// Starts to read; returns the channel of the network processor and the number of chunks read so far.
    fn reading(chunks: usize, abort: &Signal) -> (Channel<Transfer>, Arc<AtomicUsize>) {
        let (transfers, count) = (Channel::rendezvous(), Arc::new(AtomicUsize::new(0)));
        read(Numbered { chunks, read: count.clone() }, transfers.clone(), abort.fired());
        (transfers, count)
    }

    fn next(transfers: &Channel<Transfer>) -> Transfer {
        transfers.recv().sync_timeout(TOO_LONG).expect("a transfer comes").unwrap()
    }

    #[test]
    fn chunks_come_in_order_and_the_end_after_them() {
        let (transfers, _) = reading(200, &Signal::new());
        for number in 0..200 {
            assert!(matches!(next(&transfers), Transfer::Chunk(chunk) if chunk[0] == number as u8));
        }
        assert!(matches!(next(&transfers), Transfer::Done));
    }

    #[test]
    fn the_read_ahead_is_bounded_and_follows_the_consumer() {
        let (transfers, read) = reading(500, &Signal::new());
        assert_eq!(read.load(SeqCst), READ_AHEAD_CHUNKS, "nobody has received anything");
        for received in 1..=100 {
            next(&transfers);
            while read.load(SeqCst) < READ_AHEAD_CHUNKS + received {
                std::thread::yield_now();
            }
        }
        assert_eq!(read.load(SeqCst), READ_AHEAD_CHUNKS + 100);
    }

    #[test]
    fn a_timeout_overtakes_the_chunks_that_were_read_ahead() {
        let abort = Signal::new();
        let (transfers, read) = reading(500, &abort);
        (0..3).for_each(|_| _ = next(&transfers));
        abort.fire();
        let chunks = std::iter::from_fn(|| matches!(next(&transfers), Transfer::Chunk(_)).then_some(())).count();
        assert!(chunks <= 1, "only the chunk that was on its way: {chunks}");
        assert!(read.load(SeqCst) <= READ_AHEAD_CHUNKS + 4, "and reading has stopped");
    }

    #[test]
    fn reading_stops_when_the_network_processor_has_gone() {
        let (transfers, read) = reading(500, &Signal::new());
        next(&transfers);
        transfers.close();
        let soon = read.load(SeqCst);
        assert!(soon <= READ_AHEAD_CHUNKS + 1);
    }
}
