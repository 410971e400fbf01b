//! Trace connection: a thread reads lines from the socket, and the view takes them from a channel.

use std::io::{self, BufRead, BufReader, Read as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::trace_socket::message::VERSION;
use crate::trace_socket::{Message, TraceLine};

/// Maximum number of lines in the channel. Further ones wait in the program, which drops events if necessary.
const LINES_MAX: usize = 4_096;
/// Maximum length of a line.
const LINE_MAX: u64 = 1 << 20;

/// A connection to a program.
pub(super) struct TraceConnection(Receiver<TraceReceived>);

/// Result of a receive.
#[derive(Debug)]
pub(super) enum TraceReceived {
    /// A line.
    TraceLine(TraceLine),
    /// The connection is closed: the reason, in a sentence.
    Closed(String),
    /// No line within the time limit.
    Nothing,
}

impl TraceConnection {
    /// Connects to a program.
    ///
    /// # Errors
    /// Fails if the program does not run or belongs to another user.
    pub(super) fn open(path: &Path) -> io::Result<TraceConnection> {
        let stream = UnixStream::connect(path)?;
        let (sender, receiver) = sync_channel(LINES_MAX);
        // The thread ends with the connection, or when the receiver is dropped.
        std::thread::Builder::new().name("weir top".into()).spawn(move || read(stream, &sender))?;
        Ok(TraceConnection(receiver))
    }

    /// Returns the next line, if it arrives within this time.
    pub(super) fn receive(&self, at_most: Duration) -> TraceReceived {
        match self.0.recv_timeout(at_most) {
            Ok(heard) => heard,
            Err(RecvTimeoutError::Timeout) => TraceReceived::Nothing,
            Err(RecvTimeoutError::Disconnected) => TraceReceived::Closed("the connection has ended".to_owned()),
        }
    }
}

fn read(stream: UnixStream, sender: &SyncSender<TraceReceived>) {
    let mut stream = BufReader::new(stream);
    loop {
        let heard = next(&mut stream);
        let disconnected = matches!(heard, TraceReceived::Closed(_));
        if sender.send(heard).is_err() || disconnected {
            return;
        }
    }
}

fn next(stream: &mut impl BufRead) -> TraceReceived {
    let mut text = String::new();
    let disconnected = |why: &str| TraceReceived::Closed(why.to_owned());
    match stream.take(LINE_MAX).read_line(&mut text) {
        Ok(0) => return disconnected("the program was killed"),
        Err(error) => return TraceReceived::Closed(format!("the connection has ended: {error}")),
        Ok(_) => {}
    }
    match TraceLine::read(&text) {
        Err(error) => TraceReceived::Closed(format!("unreadable message from the program: {error}")),
        Ok(TraceLine { message: Message::End, .. }) => disconnected("the program has ended"),
        Ok(TraceLine { message: Message::Full { readers_max }, .. }) => {
            TraceReceived::Closed(format!("{readers_max} other readers watch it already"))
        }
        Ok(TraceLine { message: Message::Hello(hello), .. }) if hello.version != VERSION => TraceReceived::Closed(
            format!("the program sends version {} of the trace, this command reads version {VERSION}", hello.version),
        ),
        Ok(line) => TraceReceived::TraceLine(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        match next(&mut text.as_bytes()) {
            TraceReceived::Closed(why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn why_a_program_is_gone_is_said() {
        assert_eq!(said(""), "the program was killed");
        assert_eq!(said("{\"event\":\"end\"}\n"), "the program has ended");
        assert_eq!(said("{\"event\":\"full\",\"readers_max\":8}\n"), "8 other readers watch it already");
        assert!(said("nonsense\n").starts_with("unreadable message from the program: "));
    }

    #[test]
    fn a_line_without_end_is_not_read_for_ever() {
        assert!(said(&"x".repeat(3 << 20)).starts_with("unreadable message from the program: "));
    }
}
