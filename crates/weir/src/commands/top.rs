//! `weir top`: a terminal view of a running program, or a table of it.
//!
//! 1. The programs of this user that run are looked up ([`choose`]), and one of them is taken.
//! 2. Its trace is read from its socket ([`connection`]), and kept as far as the view needs it ([`model`]).
//! 3. On a terminal it is drawn until a key ends it ([`watch`], [`screen`], [`view`]); elsewhere one table is written ([`table`]).

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
use crate::arguments::{TableFormat, TopArguments};
use crate::terminal::Terminal;
use connection::{Received, TraceConnection};
use model::Model;

/// How long a table waits for what the program is doing, which it says twice a second.
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
    match watch::watch(socket, connection) {
        Ok(()) => Exit::Success,
        Err(error) => failed(&format!("cannot draw: {error}"), terminal),
    }
}

fn failed(message: &str, terminal: &mut Terminal) -> Exit {
    terminal.fail(Exit::Environment, message, &[])
}

/// Writes one table, as soon as there are rates.
fn once(connection: &TraceConnection, format: TableFormat, terminal: &mut Terminal) -> Exit {
    let mut model = Model::default();
    let until = Instant::now() + TABLE_TIMEOUT;
    while !model.has_rates() {
        match connection.receive(until.saturating_duration_since(Instant::now())) {
            Received::TraceLine(line) => model.take(line),
            Received::Closed(_) if !model.is_empty() => break,
            Received::Closed(why) => return failed(&why, terminal),
            Received::Nothing => return failed("the program says nothing; it may be stopped", terminal),
        }
    }
    match format {
        TableFormat::Text => terminal.print(&table::text(&model)),
        TableFormat::Json => terminal.print(&table::json(&model)),
    }
}
