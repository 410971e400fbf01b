//! Screen state: what the view shows, and how keys change it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::model::Model;
use super::rows::SortOrder;

/// State of the view.
pub(super) struct Screen {
    /// Name of the program.
    pub(super) name: String,
    pub(super) model: Model,
    /// Model shown while the view is paused.
    pub(super) paused: Option<Model>,
    pub(super) order: SortOrder,
    pub(super) shows_help: bool,
    /// Table that the arrow keys scroll.
    pub(super) focus: Focus,
    /// First visible row of each table.
    pub(super) scroll: [usize; 3],
    /// Reason why the connection is closed.
    pub(super) disconnected: Option<String>,
}

/// The tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Focus {
    #[default]
    Routes,
    Sections,
    Batches,
}

/// Result of a key press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyOutcome {
    Continue,
    Quit,
}

impl Screen {
    pub(super) fn new(name: &str) -> Screen {
        Screen {
            name: name.to_owned(),
            model: Model::default(),
            paused: None,
            order: SortOrder::default(),
            shows_help: false,
            focus: Focus::default(),
            scroll: [0; 3],
            disconnected: None,
        }
    }

    /// Returns the model to show: the current one, or the one at the time of the pause.
    pub(super) fn shown(&self) -> &Model {
        self.paused.as_ref().unwrap_or(&self.model)
    }

    /// Handles a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> KeyOutcome {
        let first = &mut self.scroll[self.focus as usize];
        match key.code {
            KeyCode::Esc if self.shows_help => self.shows_help = false,
            KeyCode::Char('q') | KeyCode::Esc => return KeyOutcome::Quit,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return KeyOutcome::Quit,
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('p' | ' ') => {
                self.paused = if self.paused.is_some() { None } else { Some(self.model.clone()) };
            }
            KeyCode::Char('h' | '?') => self.shows_help = !self.shows_help,
            KeyCode::Tab => self.focus = self.focus.next(!self.shown().batches.is_empty()),
            // The view knows the number of rows, and limits the value.
            KeyCode::Down | KeyCode::Char('j') => *first += 1,
            KeyCode::Up | KeyCode::Char('k') => *first = first.saturating_sub(1),
            KeyCode::PageDown => *first += 10,
            KeyCode::PageUp => *first = first.saturating_sub(10),
            KeyCode::Home => *first = 0,
            _ => {}
        }
        KeyOutcome::Continue
    }
}

impl Focus {
    /// Returns the next table.
    fn next(self, has_batches: bool) -> Focus {
        match self {
            Focus::Routes => Focus::Sections,
            Focus::Sections if has_batches => Focus::Batches,
            Focus::Sections | Focus::Batches => Focus::Routes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(screen: &mut Screen, code: KeyCode) -> KeyOutcome {
        screen.key(KeyEvent::from(code))
    }

    #[test]
    fn keys_sort_pause_help_and_leave() {
        let mut screen = Screen::new("test");
        assert_eq!(press(&mut screen, KeyCode::Char('s')), KeyOutcome::Continue);
        assert_eq!(screen.order, SortOrder::Rate);
        press(&mut screen, KeyCode::Char('p'));
        screen.model.lost = 3;
        assert_eq!(screen.shown().lost, 0, "a paused view stays as it is");
        press(&mut screen, KeyCode::Char(' '));
        assert_eq!(screen.shown().lost, 3);
        press(&mut screen, KeyCode::Char('?'));
        assert!(screen.shows_help);
        assert_eq!(press(&mut screen, KeyCode::Esc), KeyOutcome::Continue, "it closes the help first");
        assert_eq!(press(&mut screen, KeyCode::Esc), KeyOutcome::Quit);
        assert_eq!(press(&mut screen, KeyCode::Char('q')), KeyOutcome::Quit);
        assert_eq!(screen.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), KeyOutcome::Quit);
    }

    #[test]
    fn arrows_move_the_table_that_has_the_focus() {
        let mut screen = Screen::new("test");
        press(&mut screen, KeyCode::Down);
        press(&mut screen, KeyCode::Tab);
        press(&mut screen, KeyCode::PageDown);
        press(&mut screen, KeyCode::Up);
        assert_eq!(screen.scroll, [1, 9, 0]);
    }
}
