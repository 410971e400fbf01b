//! A socket of a connection that reads the lengths of messages, and waits with large ones until there is room for them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use tokio_postgres::tls::{ChannelBinding, TlsStream};

use super::arriving_messages::{LARGE_BYTES, LargeAnswer, MessageRoom, PAUSE, RoomAttempts};

/// The bytes before the content of a message: its kind, and its length without the kind.
const HEADER: usize = 5;
/// The kind of the message at the end of an answer.
const END_OF_ANSWER: u8 = b'Z';

/// A socket that waits with large messages.
pub(super) struct PacedSocket<S> {
    socket: S,
    header: [u8; HEADER],
    /// The number of bytes of the header that were read.
    headed: usize,
    /// The bytes of the message that were not read yet.
    left: usize,
    /// The room of a large message.
    room: Option<MessageRoom>,
    /// The answer that is being read, if a large message of it was.
    answer: Option<LargeAnswer>,
    /// The attempts of a large message that has begun and has no room yet.
    waits: Option<RoomAttempts>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl<S> PacedSocket<S> {
    /// Returns the socket of a connection on which no message was read.
    pub(super) fn new(socket: S) -> PacedSocket<S> {
        PacedSocket {
            socket,
            header: [0; HEADER],
            headed: 0,
            left: 0,
            room: None,
            answer: None,
            waits: None,
            pause: None,
        }
    }

    /// Waits until the message that has begun may be read on.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while let Some(attempts) = &mut self.waits {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            match MessageRoom::of(self.left, &mut self.answer, attempts) {
                Some(room) => (self.room, self.waits) = (Some(room), None),
                None => self.pause = Some(Box::pin(sleep(PAUSE))),
            }
        }
        Poll::Ready(())
    }

    /// Notes bytes that were read.
    fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left > 0 {
                let read = self.left.min(bytes.len());
                bytes = &bytes[read..];
                self.left -= read;
                self.room.iter_mut().for_each(|room| room.received(read));
            } else {
                self.header[self.headed] = bytes[0];
                bytes = &bytes[1..];
                self.headed += 1;
                if self.headed < HEADER {
                    continue;
                }
                let [_, length @ ..] = self.header;
                // The length counts itself.
                (self.headed, self.left) = (0, (u32::from_be_bytes(length) as usize).saturating_sub(HEADER - 1));
            }
            if self.left == 0 {
                self.room = None;
                if self.header[0] == END_OF_ANSWER {
                    self.answer = None;
                }
            }
        }
        let waits = self.room.is_none() && self.left >= LARGE_BYTES;
        self.waits = waits.then(RoomAttempts::default);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PacedSocket<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_room(context));
        let before = out.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(context, out))?;
        self.read(&out.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PacedSocket<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for PacedSocket<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}
