//! The view on a terminal: what keys do, and how a program is followed beyond its end.

use std::io;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};

use super::choose::successor;
use super::connection::{Connection, Heard};
use super::model::Model;
use super::rows::Order;
use super::view;
use crate::commands::run::signals;
use crate::trace_socket::place::Place;

/// How often it is looked whether something has come; a key is seen at once.
const INTERVAL: Duration = Duration::from_millis(100);
/// How often it is looked whether a program that has ended runs again.
const RETRY: Duration = Duration::from_millis(500);
/// How many lines of the program are taken in before it is drawn again.
const LINES_MAX: usize = 10_000;

/// What is shown.
pub(super) struct Watch {
    /// The program's name.
    pub(super) name: String,
    pub(super) model: Model,
    /// What is shown in its place while it pauses.
    pub(super) paused: Option<Model>,
    pub(super) order: Order,
    pub(super) helps: bool,
    /// Which table the arrows move.
    pub(super) focus: Focus,
    /// The first row of each table.
    pub(super) scroll: [usize; 2],
    /// Why nothing more comes, where the program has gone.
    pub(super) gone: Option<String>,
}

/// A table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Focus {
    #[default]
    Routes,
    Sections,
}

/// Whether the view goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goes {
    On,
    Away,
}

/// Draws until a key ends it.
///
/// # Errors
/// Fails where the terminal cannot be drawn on.
pub(super) fn watch(place: Place, connection: Connection) -> io::Result<()> {
    let signals = signals::receive()?;
    let mut terminal = ratatui::try_init()?;
    let mut watch = Watch::new(&place.name);
    let mut following = Following { place, connection: Some(connection), tried: Instant::now() };
    let ended = loop {
        following.hear(&mut watch);
        if let Err(error) = terminal.draw(|frame| view::draw(&mut watch, frame)) {
            break Err(error);
        }
        match keys(&mut watch) {
            Ok(Goes::On) if signals.try_recv().is_err() => {}
            Ok(_) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    ratatui::try_restore()?;
    ended
}

/// Waits for a key, and does what it says; and what those say that come at once.
fn keys(watch: &mut Watch) -> io::Result<Goes> {
    let mut wait = INTERVAL;
    while event::poll(wait)? {
        if let Event::Key(key) = event::read()?
            && key.is_press()
            && watch.key(key) == Goes::Away
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
    fn hear(&mut self, watch: &mut Watch) {
        let Some(connection) = &self.connection else { return self.retry(watch) };
        for _ in 0..LINES_MAX {
            match connection.hear(Duration::ZERO) {
                Heard::Line(line) => watch.model.take(line),
                Heard::Nothing => return,
                Heard::Gone(why) => {
                    watch.gone = Some(why);
                    self.connection = None;
                    return;
                }
            }
        }
    }

    /// Looks for a program of the same name.
    fn retry(&mut self, watch: &mut Watch) {
        if self.tried.elapsed() < RETRY {
            return;
        }
        self.tried = Instant::now();
        let Some(place) = successor(&self.place) else { return };
        if let Ok(connection) = Connection::open(&place.path) {
            (self.place, self.connection) = (place, Some(connection));
            (watch.model, watch.paused, watch.gone) = (Model::default(), None, None);
        }
    }
}

impl Watch {
    pub(super) fn new(name: &str) -> Watch {
        Watch {
            name: name.to_owned(),
            model: Model::default(),
            paused: None,
            order: Order::default(),
            helps: false,
            focus: Focus::default(),
            scroll: [0; 2],
            gone: None,
        }
    }

    /// What is shown: the program as it is, or as it was when it was paused.
    pub(super) fn shown(&self) -> &Model {
        self.paused.as_ref().unwrap_or(&self.model)
    }

    fn key(&mut self, key: KeyEvent) -> Goes {
        let first = &mut self.scroll[self.focus as usize];
        match key.code {
            KeyCode::Esc if self.helps => self.helps = false,
            KeyCode::Char('q') | KeyCode::Esc => return Goes::Away,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Goes::Away,
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('p' | ' ') => {
                self.paused = if self.paused.is_some() { None } else { Some(self.model.clone()) };
            }
            KeyCode::Char('h' | '?') => self.helps = !self.helps,
            KeyCode::Tab => self.focus = self.focus.other(),
            // The view knows how many rows there are, and takes back what is too much.
            KeyCode::Down | KeyCode::Char('j') => *first += 1,
            KeyCode::Up | KeyCode::Char('k') => *first = first.saturating_sub(1),
            KeyCode::PageDown => *first += 10,
            KeyCode::PageUp => *first = first.saturating_sub(10),
            KeyCode::Home => *first = 0,
            _ => {}
        }
        Goes::On
    }
}

impl Focus {
    fn other(self) -> Focus {
        match self {
            Focus::Routes => Focus::Sections,
            Focus::Sections => Focus::Routes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(watch: &mut Watch, code: KeyCode) -> Goes {
        watch.key(KeyEvent::from(code))
    }

    #[test]
    fn keys_sort_pause_help_and_leave() {
        let mut watch = Watch::new("test");
        assert_eq!(press(&mut watch, KeyCode::Char('s')), Goes::On);
        assert_eq!(watch.order, Order::Rate);
        press(&mut watch, KeyCode::Char('p'));
        watch.model.lost = 3;
        assert_eq!(watch.shown().lost, 0, "a paused view stays as it is");
        press(&mut watch, KeyCode::Char(' '));
        assert_eq!(watch.shown().lost, 3);
        press(&mut watch, KeyCode::Char('?'));
        assert!(watch.helps);
        assert_eq!(press(&mut watch, KeyCode::Esc), Goes::On, "it closes the help first");
        assert_eq!(press(&mut watch, KeyCode::Esc), Goes::Away);
        assert_eq!(press(&mut watch, KeyCode::Char('q')), Goes::Away);
        assert_eq!(watch.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Goes::Away);
    }

    #[test]
    fn arrows_move_the_table_that_has_the_focus() {
        let mut watch = Watch::new("test");
        press(&mut watch, KeyCode::Down);
        press(&mut watch, KeyCode::Tab);
        press(&mut watch, KeyCode::PageDown);
        press(&mut watch, KeyCode::Up);
        assert_eq!(watch.scroll, [1, 9]);
    }
}
