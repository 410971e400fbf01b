//! Where output goes and how it looks: results to standard output, messages to standard error, colours only for people.
//!
//! Colour is used where the stream is a terminal and `NO_COLOR` is not set.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use weir_syntax::Style;

use crate::Exit;

/// The two streams of a command.
pub(crate) struct Terminal {
    output: Paint,
    messages: Paint,
}

/// How one stream is painted.
#[derive(Clone, Copy)]
pub(crate) struct Paint(Style);

impl Terminal {
    pub(crate) fn new() -> Self {
        let style = |is_terminal: bool| {
            let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            Paint(if is_terminal && !refused { Style::Colour } else { Style::Plain })
        };
        Terminal { output: style(io::stdout().is_terminal()), messages: style(io::stderr().is_terminal()) }
    }

    /// How messages are painted.
    pub(crate) fn messages(&self) -> Paint {
        self.messages
    }

    /// How results are painted.
    pub(crate) fn output(&self) -> Paint {
        self.output
    }

    /// Writes a result.
    pub(crate) fn print(&mut self, text: &str) -> Exit {
        let mut output = io::stdout().lock();
        match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
            Ok(()) => Exit::Success,
            // Whoever read us has seen enough, as in `weir graph … | head`.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
            Err(error) => self.fail(Exit::Environment, &format!("cannot write the output: {error}"), &[]),
        }
    }

    /// Writes a result to a file, or to where results go.
    pub(crate) fn write(&mut self, path: Option<&Path>, text: &str) -> Exit {
        let Some(path) = path else { return self.print(text) };
        match std::fs::write(path, text) {
            Ok(()) => Exit::Success,
            Err(error) => self.fail(Exit::Environment, &format!("cannot write `{}`: {error}", path.display()), &[]),
        }
    }

    /// Writes a message as it is.
    pub(crate) fn eprint(&mut self, text: &str) {
        // Where messages cannot be written there is nobody to tell.
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// Says why a command failed and what can be done, and gives the exit code.
    pub(crate) fn fail(&mut self, exit: Exit, message: &str, hints: &[&str]) -> Exit {
        let paint = self.messages;
        let mut text = format!("{}: {}\n", paint.red("error"), paint.bold(message));
        for hint in hints {
            text.push_str(&format!("  {} {hint}\n", paint.blue("hint:")));
        }
        self.eprint(&text);
        exit
    }
}

impl Paint {
    /// The style for the rendering of diagnostics.
    pub(crate) fn style(self) -> Style {
        self.0
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub(crate) fn faint(self, text: &str) -> String {
        self.wrap("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }

    pub(crate) fn blue(self, text: &str) -> String {
        self.wrap("34", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        match self.0 {
            Style::Colour => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            Style::Plain => text.to_owned(),
        }
    }
}
