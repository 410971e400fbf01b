//! Event loop of the view: handles keys, and reconnects after the program has ended.

use std::io;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event};

use super::choose::successor;
use super::connection::{TraceConnection, TraceReceived};
use super::model::Model;
use super::screen::{KeyOutcome, Screen};
use super::view;
use crate::run::signals;
use crate::trace_socket::directory::SocketFile;

/// Poll interval for lines; keys are handled at once.
const INTERVAL: Duration = Duration::from_millis(100);
/// Poll interval for a restarted program.
const RETRY: Duration = Duration::from_millis(500);
/// Maximum number of lines processed before the screen is redrawn.
const LINES_MAX: usize = 10_000;

/// Draws until the user quits.
///
/// # Errors
/// Fails if the terminal cannot be drawn on.
pub(super) fn watch(socket: SocketFile, named: Option<&str>, connection: TraceConnection) -> io::Result<()> {
    let (heard, signals) = mpsc::channel();
    signals::for_each(move || heard.send(()).is_ok())?;
    let mut terminal = ratatui::try_init()?;
    let mut screen = Screen::new(&socket.name);
    let mut following = FollowedProgram { socket, named, connection: Some(connection), tried: Instant::now() };
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

/// Waits for a key, and handles it and all further keys that are already pressed.
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

/// The watched program.
struct FollowedProgram<'a> {
    socket: SocketFile,
    /// The argument that named it.
    named: Option<&'a str>,
    connection: Option<TraceConnection>,
    tried: Instant,
}

impl FollowedProgram<'_> {
    fn receive(&mut self, screen: &mut Screen) {
        let Some(connection) = &self.connection else { return self.retry(screen) };
        for _ in 0..LINES_MAX {
            match connection.receive(Duration::ZERO) {
                TraceReceived::TraceLine(line) => screen.model.take(line),
                TraceReceived::Nothing => return,
                TraceReceived::Closed(why) => {
                    screen.disconnected = Some(why);
                    self.connection = None;
                    return;
                }
            }
        }
    }

    /// Connects to a restarted program of the same name.
    fn retry(&mut self, screen: &mut Screen) {
        if self.tried.elapsed() < RETRY {
            return;
        }
        self.tried = Instant::now();
        let Some(socket) = successor(&self.socket, self.named) else { return };
        if let Ok(connection) = TraceConnection::open(&socket.path) {
            (self.socket, self.connection) = (socket, Some(connection));
            (screen.model, screen.paused, screen.disconnected) = (Model::default(), None, None);
        }
    }
}
