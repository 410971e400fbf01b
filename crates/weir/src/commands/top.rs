//! `weir top`: a live view of a running program, or a table of it.
//!
//! 1. Find the running programs of this user and choose one ([`choose`]).
//! 2. Read its trace from its socket ([`connection`]), and keep what the view needs ([`model`]).
//! 3. On a terminal, draw until the user quits ([`watch`], [`screen`], [`view`]); otherwise print one table
//!    ([`table`]).

mod choose;
mod connection;
mod model;
mod rows;
mod screen;
mod table;
mod view;
mod watch;

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use crate::Exit;
use crate::commands::arguments::{TableFormat, TopArguments};
use crate::terminal::Terminal;
use connection::{TraceConnection, TraceReceived};
use model::Model;

/// Time limit for the first samples, which the program sends twice a second.
const TABLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Watches a program.
pub(crate) fn top(arguments: &TopArguments, terminal: &mut Terminal) -> Exit {
    let socket = match choose::choose(arguments.program.as_deref(), terminal) {
        Ok(socket) => socket,
        Err(exit) => return exit,
    };
    let connection = match TraceConnection::open(&socket.path) {
        Ok(connection) => connection,
        Err(error) => return failed(&format!("cannot watch `{}`: {error}", socket.name), terminal),
    };
    if arguments.once || arguments.format == TableFormat::Json || !std::io::stdout().is_terminal() {
        return once(&connection, arguments.format, terminal);
    }
    match watch::watch(socket, arguments.program.as_deref(), connection) {
        Ok(()) => Exit::Success,
        Err(error) => failed(&format!("cannot draw: {error}"), terminal),
    }
}

fn failed(message: &str, terminal: &mut Terminal) -> Exit {
    terminal.fail(Exit::Environment, message, &[])
}

/// Prints one table, as soon as rates are known.
fn once(connection: &TraceConnection, format: TableFormat, terminal: &mut Terminal) -> Exit {
    let mut model = Model::default();
    let until = Instant::now() + TABLE_TIMEOUT;
    while !model.has_rates() {
        match connection.receive(until.saturating_duration_since(Instant::now())) {
            TraceReceived::TraceLine(line) => model.take(line),
            TraceReceived::Closed(_) if !model.is_empty() => break,
            TraceReceived::Closed(why) => return failed(&why, terminal),
            TraceReceived::Nothing => return failed("the program does not respond; it may be suspended", terminal),
        }
    }
    match format {
        TableFormat::Text => terminal.print(&table::text(&model)),
        TableFormat::Json => terminal.print(&table::json(&model)),
    }
}
