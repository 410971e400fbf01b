//! The view on a terminal: keys are heard, and a program is followed beyond its end.

use std::io;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event};

use super::choose::successor;
use super::connection::{Connection, Heard};
use super::model::Model;
use super::screen::{Goes, Screen};
use super::view;
use crate::commands::run::signals;
use crate::trace_socket::place::Place;

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
pub(super) fn watch(place: Place, connection: Connection) -> io::Result<()> {
    let signals = signals::receive()?;
    let mut terminal = ratatui::try_init()?;
    let mut screen = Screen::new(&place.name);
    let mut following = Following { place, connection: Some(connection), tried: Instant::now() };
    let ended = loop {
        following.hear(&mut screen);
        if let Err(error) = terminal.draw(|frame| view::draw(&mut screen, frame)) {
            break Err(error);
        }
        match keys(&mut screen) {
            Ok(Goes::On) if signals.try_recv().is_err() => {}
            Ok(_) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    ratatui::try_restore()?;
    ended
}

/// Waits for a key, and does what it says; and what those say that come at once.
fn keys(screen: &mut Screen) -> io::Result<Goes> {
    let mut wait = INTERVAL;
    while event::poll(wait)? {
        if let Event::Key(key) = event::read()?
            && key.is_press()
            && screen.key(key) == Goes::Away
        {
            return Ok(Goes::Away);
        }
        wait = Duration::ZERO;
    }
    Ok(Goes::On)
}

/// The program that is followed.
struct Following {
    place: Place,
    connection: Option<Connection>,
    tried: Instant,
}

impl Following {
    fn hear(&mut self, screen: &mut Screen) {
        let Some(connection) = &self.connection else { return self.retry(screen) };
        for _ in 0..LINES_MAX {
            match connection.hear(Duration::ZERO) {
                Heard::Line(line) => screen.model.take(line),
                Heard::Nothing => return,
                Heard::Gone(why) => {
                    screen.gone = Some(why);
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
        let Some(place) = successor(&self.place) else { return };
        if let Ok(connection) = Connection::open(&place.path) {
            (self.place, self.connection) = (place, Some(connection));
            (screen.model, screen.paused, screen.gone) = (Model::default(), None, None);
        }
    }
}
