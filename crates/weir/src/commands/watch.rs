//! `weir run --watch`: restarts the program whenever one of its files changes and all have no errors.
//!
//! 1. The program runs as a child process: the same command without `--watch`.
//! 2. A changed file is checked here. If it has errors, they are printed, and the old process keeps running.
//! 3. The same happens if its plan has errors, or the database does not allow what it declares about its tables.
//! 4. Otherwise the old process is stopped, finishes its flows in progress, and a new one starts. It cannot start before, because
//!    both use the same ports and the same database. So a migration converts rows that nobody writes.
//! 5. A process that ends by itself, for example because a source cannot be opened, is reported, and the watch goes on.
//! 6. A signal is passed on to the process, and ends the watch together with it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use weir_compile::CheckCache;
use weir_host::{HostType, Text};
use weir_ir::graph::{Graph, Node, NodeKind, Operand};
use weir_library::tables::{Schema, check_start};
use weir_runtime::{StartError, StartFailure};

use crate::arguments::{ErrorFormat, RunArguments};
use crate::effective_plan::EffectivePlan;
use crate::programs::{cannot_read, is_standard_input};
use crate::project::Project;
use crate::run::failure_location::FailureLocator;
use crate::run::{refused, signals};
use crate::table_location::table_location;
use crate::terminal::Terminal;
use crate::{Exit, Library};

/// Poll interval for the file.
const INTERVAL: Duration = Duration::from_millis(200);

/// Runs and restarts a program.
pub(crate) fn watch(arguments: &RunArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    if is_standard_input(&arguments.file) {
        return terminal.fail(Exit::Usage, "standard input cannot be watched", &["pass the program as a file"]);
    }
    if let Err(error) = std::fs::metadata(&arguments.file) {
        return cannot_read(&arguments.file, &error, terminal);
    }
    let signals = match signals::receive() {
        Ok(signals) => signals,
        Err(error) => return terminal.fail(Exit::Environment, &format!("cannot listen for signals: {error}"), &[]),
    };
    let mut watch = ProgramWatcher {
        arguments,
        library,
        modules: Vec::new(),
        seen: Vec::new(),
        process: None,
        cache: CheckCache::default(),
    };
    match watch.go_on(&signals, terminal) {
        Ok(exit) => exit,
        Err(error) => terminal.fail(Exit::Environment, &format!("cannot run the program: {error}"), &[]),
    }
}

/// Modification time and length of a file; `None` if it does not exist.
type FileStamp = Option<(SystemTime, u64)>;

struct ProgramWatcher<'a> {
    arguments: &'a RunArguments,
    library: &'a Library,
    /// The module files that the program named at the last check.
    modules: Vec<PathBuf>,
    /// State of the main file and the modules at the last check.
    seen: Vec<FileStamp>,
    process: Option<Child>,
    /// Results of the last check.
    cache: CheckCache,
}

impl ProgramWatcher<'_> {
    fn go_on(&mut self, signals: &Receiver<()>, terminal: &mut Terminal) -> io::Result<Exit> {
        loop {
            let now = self.stamps();
            if now[0].is_some() && now != self.seen {
                self.renew(terminal)?;
            }
            match signals.recv_timeout(INTERVAL) {
                Err(RecvTimeoutError::Timeout) => self.notice_end(terminal)?,
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return self.end(signals),
            }
        }
    }

    fn stamps(&self) -> Vec<FileStamp> {
        std::iter::once(&self.arguments.file).chain(&self.modules).map(|file| stamp(file)).collect()
    }

    /// Restarts the program if its files have no errors.
    fn renew(&mut self, terminal: &mut Terminal) -> io::Result<()> {
        let mut project = Project::default();
        self.seen = self.stamps();
        let Ok(id) = project.read(&self.arguments.file, terminal) else { return Ok(()) };
        let compiled = project.compile_again(id, self.library, &mut self.cache);
        // A module that is named for the first time counts as it was read.
        self.modules = std::mem::take(&mut project.named_modules);
        self.seen.truncate(1);
        self.seen.extend(self.modules.iter().map(|file| stamp(file)));
        let Some(program) = compiled else {
            project.report(ErrorFormat::Human, terminal);
            self.go_on_waiting(terminal);
            return Ok(());
        };
        let locator = FailureLocator { program, file: project.sources.file(id).clone() };
        if self.process.is_some() && self.check_start(&locator, terminal).is_err() {
            self.go_on_waiting(terminal);
            return Ok(());
        }
        if let Some(process) = self.process.take() {
            stop(process)?;
        }
        self.process = Some(Command::new(std::env::current_exe()?).args(without_watch()).spawn()?);
        Ok(())
    }

    fn go_on_waiting(&self, terminal: &mut Terminal) {
        let runs_on =
            if self.process.is_some() { "the previous program keeps running" } else { "no program is running" };
        terminal.eprint(&format!("{runs_on}; waiting for a change\n"));
    }

    /// Checks the plan and the tables of the new program, and reports why it could not start.
    fn check_start(&self, locator: &FailureLocator, terminal: &mut Terminal) -> Result<(), Exit> {
        let RunArguments { file, data, tables, execution, .. } = self.arguments;
        let program = &locator.program;
        let plan = EffectivePlan::of(file, execution, program, terminal)?.plan;
        let planned = plan.tables.as_ref().map(|address| address.value.as_str());
        let place = table_location(file, data.as_deref(), tables.as_deref(), planned);
        let place = place.map_err(|failure| terminal.fail(Exit::Environment, &failure.message, &[]))?;
        let opened = program.shared.iter().filter_map(|shared| opening(&shared.name, &shared.init));
        let (openings, schemas): (Vec<TableOpening<'_>>, Vec<Schema>) = opened.unzip();
        for (opening, schema) in openings.into_iter().zip(&schemas) {
            check_start((schema, &schemas), &place).map_err(|failure| {
                let TableOpening { name, path } = opening;
                let error = StartError::Table(StartFailure { name: name.clone(), path: path.to_owned(), failure });
                refused(&error, locator, self.arguments, terminal)
            })?;
        }
        Ok(())
    }

    /// Reports a process that has ended by itself.
    fn notice_end(&mut self, terminal: &mut Terminal) -> io::Result<()> {
        let Some(process) = &mut self.process else { return Ok(()) };
        if let Some(status) = process.try_wait()? {
            self.process = None;
            terminal
                .eprint(&format!("the program has ended ({status}); no program is running; waiting for a change\n"));
        }
        Ok(())
    }

    /// Stops the program; a second signal kills it.
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

/// The call that opens a table when the program starts.
struct TableOpening<'p> {
    name: &'p Text,
    /// The path of its node.
    path: &'p str,
}

/// Returns the call that opens the table with this initial value, and the table.
fn opening<'p>(name: &'p Text, init: &'p Graph) -> Option<(TableOpening<'p>, Schema)> {
    let is_open =
        |node: &&Node| matches!(&node.kind, NodeKind::Call { function, .. } if function.as_str() == "tables.open");
    let node = init.nodes.iter().find(is_open)?;
    let Operand::Constant(at) = node.inputs.first()? else { return None };
    let schema = Schema::from_value(init.constants.get(*at as usize)?.clone()).ok()?;
    Some((TableOpening { name, path: &node.name }, schema))
}

/// Returns the arguments of this process without `--watch`.
fn without_watch() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(1).filter(|argument| argument != "--watch")
}

fn stamp(path: &Path) -> FileStamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Stops a process and waits for its end.
fn stop(mut process: Child) -> io::Result<()> {
    terminate(&process);
    process.wait().map(|_| ())
}

fn terminate(process: &Child) {
    if let Some(pid) = i32::try_from(process.id()).ok().and_then(Pid::from_raw) {
        // A process that has already ended needs no signal.
        let _ = kill_process(pid, Signal::TERM);
    }
}
