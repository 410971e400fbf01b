//! A version of a watched program: its process, and the watcher's end of the connection that `run::watcher_link` describes.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;

/// A version of the program.
pub(super) struct ProgramVersion {
    pub(super) number: u64,
    process: Child,
    link: UnixStream,
}

/// An event of a version's process.
pub(super) enum VersionEvent {
    /// The version is to be checked again when this file has changed.
    DependsOn(PathBuf),
    /// All checks have passed, and it waits for [`ProgramVersion::start`].
    Accepted,
    /// The process ends, by itself or because it was told to stop.
    Ended,
}

impl ProgramVersion {
    /// Starts the process, which checks the files as they are now. `happens` is told its events, on a thread of its own.
    pub(super) fn check(number: u64, happens: impl Fn(VersionEvent) + Send + 'static) -> io::Result<ProgramVersion> {
        let (link, of_process) = UnixStream::pair()?;
        let reading = link.try_clone()?;
        let process = Command::new(std::env::current_exe()?)
            .args(watched_arguments())
            .stdin(OwnedFd::from(of_process))
            .spawn()?;
        thread::Builder::new().name("weir version".into()).spawn(move || read(reading, happens))?;
        Ok(ProgramVersion { number, process, link })
    }

    /// Lets a version start that was accepted.
    pub(super) fn start(&mut self) {
        // If the process is gone, `Ended` follows.
        let _ = self.link.write_all(b"\0");
    }

    /// Lets the program finish its flows and end.
    pub(super) fn stop(&self) {
        // If the process is gone, `Ended` follows.
        let _ = self.link.shutdown(Shutdown::Write);
    }

    /// Waits for the end of the process.
    pub(super) fn wait(mut self) -> io::Result<ExitStatus> {
        self.process.wait()
    }

    /// Kills the process.
    pub(super) fn kill(mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process.wait().map(drop)
    }
}

/// Reads what the process says, until it ends.
fn read(stream: UnixStream, happens: impl Fn(VersionEvent)) {
    let mut stream = BufReader::new(stream);
    let mut message = Vec::new();
    while stream.read_until(0, &mut message).is_ok() && message.pop() == Some(0) {
        happens(match &message[..] {
            [] => VersionEvent::Accepted,
            path => VersionEvent::DependsOn(Path::new(OsStr::from_bytes(path)).to_owned()),
        });
        message.clear();
    }
    happens(VersionEvent::Ended);
}

/// Returns the arguments of this process for the process of a version.
fn watched_arguments() -> impl Iterator<Item = OsString> {
    let watched = |argument: OsString| if argument == "--watch" { "--watched".into() } else { argument };
    std::env::args_os().skip(1).map(watched)
}
