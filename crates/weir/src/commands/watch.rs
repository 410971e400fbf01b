//! `weir run --watch`: runs the program again whenever its file changes and is right.
//!
//! 1. The program runs as a process of its own, the same command without `--watch`.
//! 2. When the file has changed, it is checked here. Where it is wrong that is said, and the old program runs on.
//! 3. Where it is right the old process is told to stop, answers what it has begun, and the new one begins.
//! 4. A signal is passed on, and ends the watch with the process.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process};

use super::run::signals;
use crate::arguments::{ErrorFormat, RunArguments};
use crate::programs::{cannot_read, is_standard_input};
use crate::project::Project;
use crate::terminal::Terminal;
use crate::{Exit, Library};

/// How often the file is looked at.
const INTERVAL: Duration = Duration::from_millis(200);

/// Runs a program again and again.
pub(crate) fn watch(arguments: &RunArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    if is_standard_input(&arguments.file) {
        return terminal.fail(Exit::Usage, "standard input cannot be watched", &["give the program as a file"]);
    }
    if let Err(error) = std::fs::metadata(&arguments.file) {
        return cannot_read(&arguments.file, &error, terminal);
    }
    let signals = match signals::receive() {
        Ok(signals) => signals,
        Err(error) => return terminal.fail(Exit::Environment, &format!("cannot listen for signals: {error}"), &[]),
    };
    let mut watch = ProgramWatcher { arguments, library, seen: None, process: None };
    match watch.go_on(&signals, terminal) {
        Ok(exit) => exit,
        Err(error) => terminal.fail(Exit::Environment, &format!("cannot run the program: {error}"), &[]),
    }
}

/// What tells one state of the file from another.
type FileStamp = Option<(SystemTime, u64)>;

struct ProgramWatcher<'a> {
    arguments: &'a RunArguments,
    library: &'a Library,
    /// The state of the file that was looked at last.
    seen: FileStamp,
    process: Option<Child>,
}

impl ProgramWatcher<'_> {
    fn go_on(&mut self, signals: &Receiver<()>, terminal: &mut Terminal) -> io::Result<Exit> {
        loop {
            let now = stamp(&self.arguments.file);
            if now.is_some() && now != self.seen {
                self.seen = now;
                self.renew(terminal)?;
            }
            match signals.recv_timeout(INTERVAL) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return self.end(signals),
            }
        }
    }

    /// Runs what the file says now, where it is right.
    fn renew(&mut self, terminal: &mut Terminal) -> io::Result<()> {
        let mut project = Project::default();
        let Ok(id) = project.read(&self.arguments.file, terminal) else { return Ok(()) };
        if project.compile(id, self.library).is_none() {
            project.report(ErrorFormat::Human, terminal);
            let runs_on = if self.process.is_some() { "the program as it was runs on" } else { "nothing runs" };
            terminal.eprint(&format!("{runs_on}; waiting for a change\n"));
            return Ok(());
        }
        if let Some(process) = self.process.take() {
            stop(process)?;
        }
        self.process = Some(Command::new(std::env::current_exe()?).args(without_watch()).spawn()?);
        Ok(())
    }

    /// Ends the program, and at a second signal at once.
    fn end(&mut self, signals: &Receiver<()>) -> io::Result<Exit> {
        let Some(mut process) = self.process.take() else { return Ok(Exit::Success) };
        terminate(&process);
        loop {
            if let Some(status) = process.try_wait()? {
                return Ok(if status.success() { Exit::Success } else { Exit::Interrupted });
            }
            if signals.recv_timeout(INTERVAL).is_ok() {
                process.kill()?;
            }
        }
    }
}

/// The arguments of this process but for `--watch`.
fn without_watch() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(1).filter(|argument| argument != "--watch")
}

fn stamp(path: &Path) -> FileStamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Lets a process answer what it has begun, and waits for its end.
fn stop(mut process: Child) -> io::Result<()> {
    terminate(&process);
    process.wait().map(|_| ())
}

fn terminate(process: &Child) {
    if let Some(pid) = i32::try_from(process.id()).ok().and_then(Pid::from_raw) {
        // A process that has ended already needs no signal.
        let _ = kill_process(pid, Signal::TERM);
    }
}
