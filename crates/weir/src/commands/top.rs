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
use connection::{Connection, Heard};
use model::Model;

/// How long a table waits for what the program is doing, which it says twice a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// Watches a program.
pub(crate) fn top(arguments: &TopArguments, terminal: &mut Terminal) -> Exit {
    let place = match choose::choose(arguments.program.as_deref(), terminal) {
        Ok(place) => place,
        Err(exit) => return exit,
    };
    let connection = match Connection::open(&place.path) {
        Ok(connection) => connection,
        Err(error) => return failed(&format!("cannot watch `{}`: {error}", place.name), terminal),
    };
    if arguments.once || arguments.format == TableFormat::Json || !std::io::stdout().is_terminal() {
        return once(&connection, arguments.format, terminal);
    }
    match watch::watch(place, connection) {
        Ok(()) => Exit::Success,
        Err(error) => failed(&format!("cannot draw: {error}"), terminal),
    }
}

fn failed(message: &str, terminal: &mut Terminal) -> Exit {
    terminal.fail(Exit::Surroundings, message, &[])
}

/// Writes one table, as soon as there are rates.
fn once(connection: &Connection, format: TableFormat, terminal: &mut Terminal) -> Exit {
    let mut model = Model::default();
    let until = Instant::now() + PATIENCE;
    while !model.has_rates() {
        match connection.hear(until.saturating_duration_since(Instant::now())) {
            Heard::Line(line) => model.take(line),
            Heard::Gone(_) if !model.is_empty() => break,
            Heard::Gone(why) => return failed(&why, terminal),
            Heard::Nothing => return failed("the program says nothing; it may be stopped", terminal),
        }
    }
    match format {
        TableFormat::Text => terminal.print(&table::text(&model)),
        TableFormat::Json => terminal.print(&table::json(&model)),
    }
}
