//! The view on a terminal: keys are heard, and a program is followed beyond its end.

use std::io;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event};

use super::choose::successor;
use super::connection::{Received, TraceConnection};
use super::model::Model;
use super::screen::{KeyOutcome, Screen};
use super::view;
use crate::commands::run::signals;
use crate::trace_socket::directory::SocketFile;

/// How often it is looked whether something has come; a key is seen at once.
const INTERVAL: Duration = Duration::from_millis(100);
/// How often it is looked whether a program that has ended runs again.
const RETRY: Duration = Duration::from_millis(500);
/// How many lines of the program are taken in before it is drawn again.
const LINES_MAX: usize = 10_000;

/// Draws until a key ends it.
///
/// # Errors
/// Fails where the terminal cannot be drawn on.
pub(super) fn watch(socket: SocketFile, connection: TraceConnection) -> io::Result<()> {
    let signals = signals::receive()?;
    let mut terminal = ratatui::try_init()?;
    let mut screen = Screen::new(&socket.name);
    let mut following = FollowedProgram { socket, connection: Some(connection), tried: Instant::now() };
    let ended = loop {
        following.receive(&mut screen);
        if let Err(error) = terminal.draw(|frame| view::draw(&mut screen, frame)) {
            break Err(error);
        }
        match keys(&mut screen) {
            Ok(KeyOutcome::Continue) if signals.try_recv().is_err() => {}
            Ok(_) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    ratatui::try_restore()?;
    ended
}

/// Waits for a key, and does what it says; and what those say that come at once.
fn keys(screen: &mut Screen) -> io::Result<KeyOutcome> {
    let mut wait = INTERVAL;
    while event::poll(wait)? {
        if let Event::Key(key) = event::read()?
            && key.is_press()
            && screen.key(key) == KeyOutcome::Quit
        {
            return Ok(KeyOutcome::Quit);
        }
        wait = Duration::ZERO;
    }
    Ok(KeyOutcome::Continue)
}

/// The program that is followed.
struct FollowedProgram {
    socket: SocketFile,
    connection: Option<TraceConnection>,
    tried: Instant,
}

impl FollowedProgram {
    fn receive(&mut self, screen: &mut Screen) {
        let Some(connection) = &self.connection else { return self.retry(screen) };
        for _ in 0..LINES_MAX {
            match connection.receive(Duration::ZERO) {
                Received::TraceLine(line) => screen.model.take(line),
                Received::Nothing => return,
                Received::Closed(why) => {
                    screen.disconnected = Some(why);
                    self.connection = None;
                    return;
                }
            }
        }
    }

    /// Looks for a program of the same name.
    fn retry(&mut self, screen: &mut Screen) {
        if self.tried.elapsed() < RETRY {
            return;
        }
        self.tried = Instant::now();
        let Some(socket) = successor(&self.socket) else { return };
        if let Ok(connection) = TraceConnection::open(&socket.path) {
            (self.socket, self.connection) = (socket, Some(connection));
            (screen.model, screen.paused, screen.disconnected) = (Model::default(), None, None);
        }
    }
}
