//! `weir run`: runs a program.
//!
//! 1. Read and compile the file; errors end the command here, and so does everything else that is wrong and can be checked while
//!    another program uses the ports and tables. A program that `weir run --watch` has started waits then (`watcher_link`).
//! 2. Begin to listen for signals, so that none is missed after the first line of output.
//! 3. Start the program: create shared values, bind ports. A banner shows addresses and routes.
//! 4. Open the trace socket for `weir top`.
//! 5. Run until the sources end or a signal arrives. The first signal lets flows in progress finish, the second ends
//!    the process at once.

mod banner;
pub(crate) mod failure_location;
mod log;
mod log_rate;
mod port;
mod progress;
pub(crate) mod signals;
mod watched;
mod watcher_link;

use std::path::Path;

use weir_host::{Failure, ReachableHosts, Text};
use weir_library::client::Client;
use weir_library::files::{FileCacheOptions, Root};
use weir_library::log::{LogLevel, escaped};
use weir_library::network::Network;
use weir_library::output::Outputs;
use weir_library::tables::{ExistingDatabases, TableLocation, TableLog, TableStorage};
use weir_runtime::{CheckedStart, Options, PrepareError, RunningProgram, StartError};
use weir_trace::{Detail, Recorder, TraceReader};

use crate::allocator;
use crate::arguments::RunArguments;
use crate::configuration::Configuration;
use crate::effective_plan::{EffectivePlan, start_hints};
use crate::memory_size;
use crate::programs::{folder, name_of};
use crate::project::Project;
use crate::table_location::{existing_databases, existing_files, table_location};
use crate::terminal::Terminal;
use crate::trace_socket::message::{Hello, VERSION};
use crate::trace_socket::serve::TraceServer;
use crate::{Exit, Library};
use failure_location::FailureLocator;
use log::{EventLog, LogStyle};
use progress::ProgressLine;
use watcher_link::WatcherLink;

/// Runs a program to its end.
pub(crate) fn run(arguments: &RunArguments, library: Library, terminal: &mut Terminal) -> Exit {
    terminal.set_formats(arguments.error_format(), arguments.log_settings().format);
    match checked(arguments, library, terminal) {
        Ok(exit) | Err(exit) => exit,
    }
}

/// Checks a program, and starts it if nothing is wrong: at once, or as soon as the watcher says so.
fn checked(arguments: &RunArguments, mut library: Library, terminal: &mut Terminal) -> Result<Exit, Exit> {
    let mut watcher =
        arguments.watched.then(WatcherLink::open).transpose().map_err(|_| {
            terminal.fail(Exit::Usage, "`--watched` is for processes that `weir run --watch` starts", &[])
        })?;
    let locator = prepare(arguments, &mut library, watcher.as_mut(), terminal)?;
    let program = &locator.program;
    let effective = EffectivePlan::of(&arguments.file, &arguments.execution, program, terminal)?;
    restrict_network(&mut library, &effective);
    let tables = place_tables(&mut library, arguments, &effective);
    let tables = tables.map_err(|failure| terminal.fail(Exit::Usage, &failure.message, &[]))?;
    let (recorder, reader) = Recorder::new(Detail::Log, Recorder::EVENTS_MAX);
    let memory_max = arguments.memory.or_else(memory_size::default_bytes);
    if let Some(bytes) = memory_max {
        allocator::limit_kept(bytes);
    }
    let options =
        Options { plan: effective.plan.clone(), memory_max, recorder: recorder.clone(), ..Options::default() };
    weir_library::descriptors::raise_limit();
    let checked = CheckedStart::check(program, &library, options)
        .map_err(|error| refused(&error, &locator, arguments, terminal))?;
    if let Some(watcher) = &mut watcher {
        watched::check((program, &library), &tables, terminal, |error, terminal| {
            refused(error, &locator, arguments, terminal)
        })?;
        if !watcher.is_told_to_start() {
            return Ok(Exit::Success);
        }
    }
    let signals = signals::listen(watcher, terminal)
        .map_err(|error| terminal.fail(Exit::Environment, &format!("cannot listen for signals: {error}"), &[]))?;
    let running = checked.start().map_err(|error| refused(&error, &locator, arguments, terminal))?;
    signals.stop(running.stopper());
    // As for any program in a pipe: `weir run … | head` ends when `head` does.
    if let Some(outputs) = library.environment.get::<Outputs>() {
        let stopper = running.stopper();
        outputs.on_broken_pipe(move || stopper.stop());
    }
    // Such as after a crash of its database that has taken back what it cannot execute once more.
    if let Some(storage) = library.environment.get::<TableStorage>() {
        let stopper = running.stopper();
        storage.on_end(move |failure| stopper.fail(failure));
    }
    Ok(report(running, (reader, recorder), locator, (arguments, &effective), terminal))
}

/// Shows the banner, serves the trace and writes the log, until the program has ended.
fn report(
    running: RunningProgram,
    (reader, recorder): (TraceReader, Recorder),
    locator: FailureLocator,
    (arguments, effective): (&RunArguments, &EffectivePlan),
    terminal: &mut Terminal,
) -> Exit {
    // The socket is open before the banner is printed, so a client that has read the banner can connect.
    let socket = TraceServer::start(hello(&arguments.file, effective, &running), recorder);
    let style = LogStyle { format: arguments.log_settings().format, paint: terminal.messages() };
    terminal.eprint(&banner::banner(&arguments.file, effective, &locator.program, &running, style));
    if let Err(error) = &socket {
        let message = format!("`weir top` cannot watch this program: {error}");
        terminal.eprint(&style.notice(LogLevel::Warn, &message));
    }
    let log = EventLog::begin(reader, locator, style);
    wait(running, log, socket.ok(), (style, terminal))
}

/// Lets the program reach only the hosts that its plan names, if it names any.
fn restrict_network(library: &mut Library, effective: &EffectivePlan) {
    let Some(hosts) = &effective.plan.hosts else { return };
    let hosts = hosts.value.iter().map(Text::as_str);
    let reachable = ReachableHosts::only(hosts).expect("the check of the plan accepts only hosts");
    let network = library.environment.get::<Network>().map_or_else(Network::default, |network| (*network).clone());
    let network = network.with_reachable(reachable);
    library.environment.insert(Client::new(network.clone()));
    library.environment.insert(network);
}

/// Chooses the place of stored tables, and returns it.
fn place_tables(
    library: &mut Library,
    arguments: &RunArguments,
    effective: &EffectivePlan,
) -> Result<TableLocation, Failure> {
    let planned = effective.plan.tables.as_ref().map(|address| address.value.as_str());
    let place = table_location(&arguments.file, arguments.data.as_deref(), arguments.tables.as_deref(), planned)?;
    let outputs = library.environment.get::<Outputs>().map_or_else(Outputs::default, |outputs| (*outputs).clone());
    let log = TableLog { outputs, settings: arguments.log_settings() };
    let connections_max = effective.plan.table_connections.as_ref().map(|number| number.value);
    let existing = ExistingDatabases { connections_max, ..existing_databases(&arguments.file) };
    let place = match place {
        TableLocation::Postgres(address) => TableLocation::Postgres(address.with_connections_max(connections_max)),
        other => other,
    };
    let storage = TableStorage::at(place.clone()).with_existing(existing).with_log(log);
    library.environment.insert_placing(storage);
    Ok(place)
}

/// Describes this program for readers of the trace.
fn hello(file: &Path, effective: &EffectivePlan, running: &RunningProgram) -> Hello {
    Hello {
        version: VERSION,
        program: name_of(file),
        file: file.display().to_string(),
        pid: std::process::id(),
        engine: effective.engine().to_owned(),
        plan: effective.path.as_ref().map(|path| path.display().to_string()),
        sources: running.descriptions().to_vec(),
    }
}

fn wait(
    running: RunningProgram,
    log: EventLog,
    socket: Option<TraceServer>,
    (style, terminal): (LogStyle, &mut Terminal),
) -> Exit {
    let progress = ProgressLine::begin(running.watcher(), style.format);
    let ended = running.wait();
    progress.end();
    let takes_messages = log.end();
    socket.into_iter().for_each(TraceServer::end);
    match ended {
        Ok(()) => Exit::Success,
        Err(_) if !takes_messages => Exit::Environment,
        Err(failure) => {
            let message = format!("source failed: {failure}");
            let shown = if terminal.prints_text() { escaped(&message) } else { message.into() };
            terminal.fail(Exit::Environment, &shown, &[])
        }
    }
}

/// Compiles the program with its configuration, and sets the root of `files`.
fn prepare(
    arguments: &RunArguments,
    library: &mut Library,
    watcher: Option<&mut WatcherLink>,
    terminal: &mut Terminal,
) -> Result<FailureLocator, Exit> {
    let mut project = Project::default();
    let id = project.read(&arguments.file, terminal)?;
    let configuration = Configuration::read(id, project.sources.file(id), &arguments.configuration);
    configuration.apply(library);
    let compiled = project.compile(id, library);
    if let Some(watcher) = watcher {
        project.named_modules.iter().chain(&configuration.files).for_each(|file| watcher.depends_on(file));
    }
    let exit = project.report(terminal.errors(), terminal);
    let Some(mut program) = compiled else { return Err(exit) };
    configuration.check(terminal)?;
    let root = match &arguments.root {
        Some(root) => open_root(root, terminal)?,
        None => {
            let root = open_root(&folder(&arguments.file), terminal)?.without_private_files();
            existing_files(&program, &arguments.file).iter().fold(root, |root, file| root.without_database(file))
        }
    };
    let root = match &arguments.configuration.config {
        Some(configuration) => root.without_file(configuration),
        None => root,
    };
    library.environment.insert(root.with_cache_options(keeping(arguments)));
    library.environment.insert(arguments.log_settings());
    if program.entries.is_empty() {
        let message = format!("`{}` has nothing to run", arguments.file.display());
        let hint = "add an entry point: `service … on http(…)` or `for … in …`";
        return Err(terminal.fail(Exit::Failure, &message, &[hint]));
    }
    if let Some(port) = arguments.port {
        port::replace(&mut program, library, port)
            .map_err(|error| terminal.fail(Exit::Usage, &error.message, &[error.hint]))?;
    }
    Ok(FailureLocator { program, file: project.sources.file(id).clone() })
}

fn open_root(path: &Path, terminal: &mut Terminal) -> Result<Root, Exit> {
    Root::open(path).map_err(|error| {
        let message = format!("cannot read the root `{}`: {error}", path.display());
        terminal.fail(Exit::Environment, &message, &["choose another folder with `--root DIR`"])
    })
}

/// Returns the limits of the file cache.
fn keeping(arguments: &RunArguments) -> FileCacheOptions {
    const MEGABYTE: u64 = 1024 * 1024;
    let default = FileCacheOptions::default();
    FileCacheOptions {
        bytes_max: arguments.files_kept.map_or(default.bytes_max, |size| u64::from(size) * MEGABYTE),
        ..default
    }
}

/// Reports why the program did not start.
fn refused(error: &StartError, locator: &FailureLocator, arguments: &RunArguments, terminal: &mut Terminal) -> Exit {
    let message = match error {
        StartError::Prepare(PrepareError { state_of: Some(call), message, .. }) => {
            format!("{}: {message}", weir_syntax::location(&locator.file, call.start))
        }
        StartError::Shared(of) | StartError::Table(of) | StartError::Source(of) => {
            let trace = locator.initial(&of.name, &of.path, &of.failure).unwrap_or_default();
            let place = if trace.place.is_empty() { String::new() } else { format!("{}: ", trace.place) };
            let passed = trace.passed.iter().map(|line| format!("\n    {line}"));
            format!("{place}{error}{}", passed.collect::<String>())
        }
        _ => error.to_string(),
    };
    let hints: &[&str] = match error {
        StartError::Prepare(PrepareError { state_of: Some(_), .. }) => &["change the arguments of the call"],
        StartError::Source(of) if of.failure.message.contains("listen") && arguments.port.is_none() => {
            &["`--port PORT` listens on another port, `--port 0` on any that is free"]
        }
        _ => start_hints(error),
    };
    let exit =
        if matches!(error, StartError::Prepare(_) | StartError::Plan(_)) { Exit::Failure } else { Exit::Environment };
    terminal.fail(exit, &message, hints)
}
