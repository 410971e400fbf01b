//! `weir run --watch`: restarts the program whenever one of its files changes and nothing keeps the new version from starting.
//!
//! 1. Each version runs in a process of its own: the same command with `--watched` in place of `--watch`. It first checks
//!    everything that can be checked while another version uses the ports and tables.
//! 2. If something is wrong, it says so and ends, and the old version keeps running.
//! 3. Otherwise the old version is told to stop, finishes its flows in progress, and the new one starts. It cannot start before,
//!    because both use the same ports and the same database. So a migration converts rows that nobody writes.
//! 4. If the files change meanwhile, the version that has been accepted is given up only for one that is accepted, too.
//! 5. A version that ends by itself, for example because a port is in use, is reported, and the watch goes on.
//! 6. A signal stops the version that runs, and ends the watch together with it; a second one kills it.

mod files;
mod version;

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::Exit;
use crate::arguments::RunArguments;
use crate::programs::{cannot_read, is_standard_input};
use crate::run::signals;
use crate::terminal::Terminal;
use files::WatchedFiles;
use version::{ProgramVersion, VersionEvent};

/// Poll interval for the files.
const INTERVAL: Duration = Duration::from_millis(200);

/// Runs and restarts a program.
pub(crate) fn watch(arguments: &RunArguments, terminal: &mut Terminal) -> Exit {
    terminal.set_formats(arguments.error_format(), arguments.log_settings().format);
    if is_standard_input(&arguments.file) {
        return terminal.fail(Exit::Usage, "standard input cannot be watched", &["pass the program as a file"]);
    }
    if let Err(error) = std::fs::metadata(&arguments.file) {
        return cannot_read(&arguments.file, &error, terminal);
    }
    let (sender, events) = channel();
    let signals = sender.clone();
    if let Err(error) = signals::for_each(move || signals.send(WatchEvent::Signal).is_ok()) {
        return terminal.fail(Exit::Environment, &format!("cannot listen for signals: {error}"), &[]);
    }
    let files = WatchedFiles::of(arguments);
    let mut watch = ProgramWatcher { files, events: sender, versions: 0, running: None, accepted: None, checked: None };
    match watch.go_on(&events, terminal) {
        Ok(exit) => exit,
        Err(error) => terminal.fail(Exit::Environment, &format!("cannot run the program: {error}"), &[]),
    }
}

/// An event that the watch waits for.
enum WatchEvent {
    Signal,
    /// The number of a version, and what has happened to it.
    Of(u64, VersionEvent),
}

struct ProgramWatcher {
    files: WatchedFiles,
    events: Sender<WatchEvent>,
    /// The number of versions so far.
    versions: u64,
    /// The version that runs, or finishes its flows.
    running: Option<ProgramVersion>,
    /// The version that has passed its checks, and starts when `running` has ended.
    accepted: Option<ProgramVersion>,
    /// The version that checks itself.
    checked: Option<ProgramVersion>,
}

impl ProgramWatcher {
    fn go_on(&mut self, events: &Receiver<WatchEvent>, terminal: &mut Terminal) -> io::Result<Exit> {
        loop {
            if self.files.have_changed() {
                self.check_again()?;
            }
            match events.recv_timeout(INTERVAL) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(WatchEvent::Of(number, event)) => self.handle(number, event, terminal)?,
                Ok(WatchEvent::Signal) | Err(RecvTimeoutError::Disconnected) => return self.end(events),
            }
        }
    }

    /// Begins to check the files as they are now.
    fn check_again(&mut self) -> io::Result<()> {
        if let Some(outdated) = self.checked.take() {
            outdated.kill()?;
        }
        self.files.begin_check();
        self.versions += 1;
        let (number, events) = (self.versions, self.events.clone());
        self.checked = Some(ProgramVersion::check(number, move |event| {
            // Nobody listens any more if the watch has ended.
            let _ = events.send(WatchEvent::Of(number, event));
        })?);
        Ok(())
    }

    fn handle(&mut self, number: u64, event: VersionEvent, terminal: &mut Terminal) -> io::Result<()> {
        let is = |version: &Option<ProgramVersion>| version.as_ref().is_some_and(|version| version.number == number);
        match event {
            VersionEvent::DependsOn(file) if is(&self.checked) => self.files.depend_on(file),
            VersionEvent::Accepted if is(&self.checked) => {
                self.files.end_check();
                if let Some(outdated) = self.accepted.take() {
                    outdated.kill()?;
                }
                self.accepted = self.checked.take();
                match &self.running {
                    Some(running) => running.stop(),
                    None => self.start_accepted(),
                }
            }
            VersionEvent::Ended if is(&self.checked) => {
                self.checked.take().map(ProgramVersion::wait).transpose()?;
                self.go_on_waiting("", terminal);
            }
            VersionEvent::Ended if is(&self.running) => {
                let status = self.running.take().map(ProgramVersion::wait).transpose()?;
                if self.accepted.is_some() {
                    self.start_accepted();
                } else if let Some(status) = status {
                    self.go_on_waiting(&format!("the program has ended ({status}); "), terminal);
                }
            }
            // Someone else has ended it.
            VersionEvent::Ended if is(&self.accepted) => {
                _ = self.accepted.take().map(ProgramVersion::wait).transpose()?
            }
            // A version that was given up.
            _ => {}
        }
        Ok(())
    }

    fn start_accepted(&mut self) {
        self.running = self.accepted.take();
        if let Some(running) = &mut self.running {
            running.start();
        }
    }

    fn go_on_waiting(&self, happened: &str, terminal: &mut Terminal) {
        let runs_on = match (&self.accepted, &self.running) {
            (Some(_), _) => "the version before this one starts when the running one has ended",
            (None, Some(_)) => "the previous program keeps running",
            (None, None) => "no program is running",
        };
        terminal.notice(&format!("{happened}{runs_on}; waiting for a change"));
    }

    /// Stops the program; a second signal kills it.
    fn end(&mut self, events: &Receiver<WatchEvent>) -> io::Result<Exit> {
        for unused in [self.checked.take(), self.accepted.take()].into_iter().flatten() {
            unused.kill()?;
        }
        let Some(running) = self.running.take() else { return Ok(Exit::Success) };
        running.stop();
        loop {
            match events.recv() {
                Ok(WatchEvent::Of(number, VersionEvent::Ended)) if number == running.number => {
                    return Ok(Exit::of_process(running.wait()?));
                }
                Ok(WatchEvent::Of(..)) => {}
                Ok(WatchEvent::Signal) | Err(_) => {
                    running.kill()?;
                    return Ok(Exit::Interrupted);
                }
            }
        }
    }
}
