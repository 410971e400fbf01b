//! Messages on standard input and output, of bounded length.
//!
//! A message begins with its length. `lsp_server` allocates what a length announces, so that a wrong one ends the process;
//! here the memory grows with what arrives, and a length beyond [`MESSAGE_BYTES_MAX`] is an error.

use std::io::{self, BufRead, Error, ErrorKind, Read};
use std::thread::{Builder, JoinHandle};

use crossbeam_channel::bounded;
use lsp_server::{Connection, Message};

/// Maximum length of a message: some times the longest text that the checker takes.
pub(super) const MESSAGE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum length of all header lines of a message.
const HEADER_BYTES_MAX: u64 = 8 * 1024;

/// The threads that read and write messages.
pub(super) struct Transport {
    reader: JoinHandle<io::Result<()>>,
    writer: JoinHandle<io::Result<()>>,
}

impl Transport {
    /// Starts the threads, each of which holds one message at a time.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(super) fn start() -> io::Result<(Connection, Transport)> {
        let (sender, to_write) = bounded::<Message>(0);
        let (read, receiver) = bounded(0);
        let write = move || to_write.into_iter().try_for_each(|message| message.write(&mut io::stdout().lock()));
        let writer = Builder::new().name("lsp-writer".to_owned()).spawn(write)?;
        let read = move || {
            let mut input = io::stdin().lock();
            while let Some(message) = read_message(&mut input)? {
                let is_exit = matches!(&message, Message::Notification(notification) if notification.method == "exit");
                // The server has ended if it takes no messages.
                if read.send(message).is_err() || is_exit {
                    break;
                }
            }
            Ok(())
        };
        let reader = Builder::new().name("lsp-reader".to_owned()).spawn(read)?;
        Ok((Connection { sender, receiver }, Transport { reader, writer }))
    }

    /// Waits for both threads, after the connection was dropped.
    ///
    /// # Errors
    /// If a message could not be read or written.
    pub(super) fn join(self) -> io::Result<()> {
        let ended = |thread: JoinHandle<io::Result<()>>| thread.join().unwrap_or_else(|_| Err(Error::other("a panic")));
        let read = ended(self.reader);
        ended(self.writer).and(read)
    }
}

/// Reads the next message; `None` at the end of the input.
fn read_message(input: &mut impl BufRead) -> io::Result<Option<Message>> {
    let Some(length) = read_header(&mut input.take(HEADER_BYTES_MAX))? else { return Ok(None) };
    if length > MESSAGE_BYTES_MAX {
        let limit = MESSAGE_BYTES_MAX;
        return Err(invalid(format!("a message of {length} bytes was announced; the limit is {limit} bytes")));
    }
    let mut text = Vec::new();
    input.take(length).read_to_end(&mut text)?;
    if (text.len() as u64) < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|error| invalid(format!("a message is not of the protocol: {error}")))
}

/// Reads the header of a message and returns the length of its text; `None` at the end of the input.
fn read_header(input: &mut impl BufRead) -> io::Result<Option<u64>> {
    let mut length = None;
    for number in 0.. {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 && number == 0 {
            return Ok(None);
        }
        let Some(line) = line.strip_suffix("\r\n") else { return Err(invalid(format!("malformed header: {line:?}"))) };
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ").ok_or_else(|| invalid(format!("malformed header: {line:?}")))?;
        if name.eq_ignore_ascii_case("Content-Length") {
            length = Some(value.parse().map_err(|_| invalid(format!("malformed header: {line:?}")))?);
        }
    }
    length.map(Some).ok_or_else(|| invalid("a message has no Content-Length".to_owned()))
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Message>, String> {
        read_message(&mut text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_message_is_read_and_the_end_is_the_end() {
        let text = r#"{"jsonrpc":"2.0","method":"exit"}"#;
        let message = read(&format!("content-length: {}\r\nContent-Type: x\r\n\r\n{text}rest", text.len()));
        assert!(matches!(message, Ok(Some(Message::Notification(exit))) if exit.method == "exit"));
        assert!(matches!(read(""), Ok(None)));
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_before_anything_is_allocated() {
        for length in ["67108865", "99999999999", "18446744073709551615"] {
            let said = read(&format!("Content-Length: {length}\r\n\r\n")).expect_err("it is refused");
            assert!(said.contains(length) && said.contains("the limit is 67108864 bytes"), "{said}");
        }
    }

    #[test]
    fn malformed_messages_are_refused() {
        for (text, part) in [
            ("Content-Length: 18446744073709551616\r\n\r\n", "malformed header"),
            ("Content-Length: -1\r\n\r\n", "malformed header"),
            ("Content-Length\r\n\r\n", "malformed header"),
            ("Content-Length: 2\n\n{}", "malformed header"),
            ("\r\n{}", "no Content-Length"),
            ("Content-Length: 2\r\n", "malformed header"),
            ("Content-Length: 2\r\n\r\n{", "unexpected end of file"),
            ("Content-Length: 2\r\n\r\n{}", "not of the protocol"),
            (&"x".repeat(10_000), "malformed header"),
        ] {
            let said = read(text).expect_err("it is refused");
            assert!(said.contains(part), "{text:.40}: {said}");
        }
    }
}
