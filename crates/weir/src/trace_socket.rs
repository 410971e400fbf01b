//! Trace socket: the trace of a running program over a local socket.
//!
//! `weir run` opens a socket in a private folder of the user ([`directory`]) and writes the trace to every reader
//! ([`serve`]), one JSON object per line ([`message`]). `weir top` is such a reader.
//!
//! Protocol:
//! 1. The program sends [`Message::Hello`], or only [`Message::Full`] if there are too many readers.
//! 2. Then it sends events. Without readers nothing is recorded, at no cost.
//! 3. A slow reader loses events and is told how many; the program never waits for it.
//! 4. [`Message::End`] is the last line of a program that ended regularly. A connection that closes without it belongs
//!    to a killed program.

pub(crate) mod directory;
pub(crate) mod message;
pub(crate) mod serve;

#[cfg(feature = "tools")]
pub(crate) use message::{Message, TraceLine};
