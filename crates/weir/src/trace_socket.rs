//! The trace of a running program over a local socket: its messages, where the sockets are, and the program's end.
//!
//! `weir run` opens a socket in a folder of the user's own ([`place`]), and writes the trace to whoever connects
//! ([`serve`]), one JSON object on a line ([`message`]). `weir top` is a reader of it.
//!
//! Protocol:
//! 1. The program says [`Message::Hello`], or [`Message::Full`] where as many watch as may, and nothing more.
//! 2. From then on it writes what happens; where nobody is connected nothing is recorded, and costs nothing.
//! 3. A reader that is slow loses events, and is told how many; the program never waits for it.
//! 4. [`Message::End`] is the last line of a program that came to its end. A connection that ends without it belongs to
//!    one that was killed.

pub(crate) mod directory;
pub(crate) mod message;
pub(crate) mod serve;

pub(crate) use message::{Message, TraceLine};
