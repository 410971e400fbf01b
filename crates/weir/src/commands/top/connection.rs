//! The reader's end of the socket: a thread reads lines, and the view takes them when it has time.

use std::io::{self, BufRead, BufReader, Read as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use crate::trace_socket::message::VERSION;
use crate::trace_socket::{Line, Message};

/// How many lines wait here; more wait at the program, which loses what is too much.
const LINES_MAX: usize = 4_096;
/// The longest line; no name is so long.
const LINE_MAX: u64 = 1 << 20;

/// A connection to a program.
pub(super) struct Connection(Receiver<Heard>);

/// What is heard of a program.
#[derive(Debug)]
pub(super) enum Heard {
    /// A line.
    Line(Line),
    /// Nothing more will come: why, in a sentence.
    Gone(String),
    /// Nothing for now.
    Nothing,
}

impl Connection {
    /// Connects to a program.
    ///
    /// # Errors
    /// Fails where nobody is there, or not for this user.
    pub(super) fn open(path: &Path) -> io::Result<Connection> {
        let stream = UnixStream::connect(path)?;
        let (sender, receiver) = sync_channel(LINES_MAX);
        // It ends with the connection, or with whoever hears it.
        std::thread::Builder::new().name("weir top".into()).spawn(move || read(stream, &sender))?;
        Ok(Connection(receiver))
    }

    /// What comes next, within this time.
    pub(super) fn hear(&self, at_most: Duration) -> Heard {
        match self.0.recv_timeout(at_most) {
            Ok(heard) => heard,
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Err(RecvTimeoutError::Disconnected) => Heard::Gone("the connection has ended".to_owned()),
        }
    }
}

fn read(stream: UnixStream, sender: &SyncSender<Heard>) {
    let mut stream = BufReader::new(stream);
    loop {
        let heard = next(&mut stream);
        let gone = matches!(heard, Heard::Gone(_));
        if sender.send(heard).is_err() || gone {
            return;
        }
    }
}

fn next(stream: &mut impl BufRead) -> Heard {
    let mut text = String::new();
    let gone = |why: &str| Heard::Gone(why.to_owned());
    match stream.take(LINE_MAX).read_line(&mut text) {
        Ok(0) => return gone("the program was killed"),
        Err(error) => return Heard::Gone(format!("the connection has ended: {error}")),
        Ok(_) => {}
    }
    match Line::read(&text) {
        Err(error) => Heard::Gone(format!("the program says what nobody understands: {error}")),
        Ok(Line { message: Message::End, .. }) => gone("the program has ended"),
        Ok(Line { message: Message::Full { readers_max }, .. }) => {
            Heard::Gone(format!("{readers_max} others watch it, and no more may"))
        }
        Ok(Line { message: Message::Hello(hello), .. }) if hello.version != VERSION => {
            Heard::Gone(format!("the program speaks version {}, and this command {VERSION}", hello.version))
        }
        Ok(line) => Heard::Line(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        match next(&mut text.as_bytes()) {
            Heard::Gone(why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn why_a_program_is_gone_is_said() {
        assert_eq!(said(""), "the program was killed");
        assert_eq!(said("{\"event\":\"end\"}\n"), "the program has ended");
        assert_eq!(said("{\"event\":\"full\",\"readers_max\":8}\n"), "8 others watch it, and no more may");
        assert!(said("nonsense\n").starts_with("the program says what nobody understands: "));
    }

    #[test]
    fn a_line_without_end_is_not_read_for_ever() {
        assert!(said(&"x".repeat(3 << 20)).starts_with("the program says what nobody understands: "));
    }
}
