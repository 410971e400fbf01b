//! Terminal output: results to standard output, messages to standard error.
//!
//! Colours are used if the stream is a terminal and `NO_COLOR` is not set.

use std::io::{self, IsTerminal, Write};

use weir_syntax::Style;

use crate::Exit;

/// The two output streams of a command.
pub(crate) struct Terminal {
    #[cfg(feature = "tools")]
    output: Paint,
    messages: Paint,
}

/// Colour support of one stream.
#[derive(Clone, Copy)]
pub(crate) struct Paint(Style);

impl Terminal {
    pub(crate) fn new() -> Self {
        let style = |is_terminal: bool| {
            let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            Paint(if is_terminal && !refused { Style::Colour } else { Style::Plain })
        };
        Terminal {
            #[cfg(feature = "tools")]
            output: style(io::stdout().is_terminal()),
            messages: style(io::stderr().is_terminal()),
        }
    }

    /// Returns the colours of standard error.
    pub(crate) fn messages(&self) -> Paint {
        self.messages
    }

    /// Returns the colours of standard output.
    #[cfg(feature = "tools")]
    pub(crate) fn output(&self) -> Paint {
        self.output
    }

    /// Prints a result.
    #[cfg(feature = "tools")]
    pub(crate) fn print(&mut self, text: &str) -> Exit {
        let mut output = io::stdout().lock();
        match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
            Ok(()) => Exit::Success,
            // The reader has closed the pipe, as in `weir graph … | head`.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
            Err(error) => self.fail(Exit::Environment, &format!("cannot write the output: {error}"), &[]),
        }
    }

    /// Writes a result to a file, or to standard output.
    #[cfg(feature = "tools")]
    pub(crate) fn write(&mut self, path: Option<&std::path::Path>, text: &str) -> Exit {
        let Some(path) = path else { return self.print(text) };
        match std::fs::write(path, text) {
            Ok(()) => Exit::Success,
            Err(error) => self.fail(Exit::Environment, &format!("cannot write `{}`: {error}", path.display()), &[]),
        }
    }

    /// Prints a message.
    pub(crate) fn eprint(&mut self, text: &str) {
        // If standard error is closed, the message is lost.
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// Prints an error with hints, and returns the exit status.
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
    /// Returns the style for rendering diagnostics.
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

    pub(crate) fn yellow(self, text: &str) -> String {
        self.wrap("1;33", text)
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
