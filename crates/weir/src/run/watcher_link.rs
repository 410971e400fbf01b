//! The connection of a program to the `weir run --watch` that has started it: the standard input of its process.
//!
//! 1. The program names the files that it is made of, and says that it has passed all checks that come before its start.
//! 2. The watcher ends the program that it replaces, and sends one byte: the program starts.
//! 3. When the watcher closes the connection, or is killed, the program stops as after a first signal.
//!
//! A message of the program ends with a zero byte. It is the path of a file, or empty after the checks.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The program's end of the connection.
pub(super) struct WatcherLink(UnixStream);

impl WatcherLink {
    /// Takes the connection over.
    ///
    /// # Errors
    /// Fails if the standard input is none.
    pub(super) fn open() -> io::Result<WatcherLink> {
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        stream.peer_addr()?;
        Ok(WatcherLink(stream))
    }

    /// Says that the program has to be read again when this file has changed.
    pub(super) fn depends_on(&mut self, file: &Path) {
        self.send(file.as_os_str().as_bytes());
    }

    /// Says that all checks have passed, and waits for the start. Returns false if the program is not to start.
    pub(super) fn is_told_to_start(&mut self) -> bool {
        self.send(b"");
        matches!(self.0.read(&mut [0]), Ok(1))
    }

    /// Waits until the watcher closes its end, or is killed.
    pub(super) fn wait_for_end(mut self) {
        while matches!(self.0.read(&mut [0]), Ok(1)) {}
    }

    fn send(&mut self, message: &[u8]) {
        // A watcher that is gone is noticed by the next read.
        let _ = self.0.write_all(&[message, b"\0"].concat());
    }
}
