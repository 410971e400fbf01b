//! Terminal output: results to standard output, messages to standard error.
//!
//! Colours are used if the stream is a terminal and `NO_COLOR` is not set. Messages of `weir run` are objects of JSON if its options
//! say so: in the form of its log, or of diagnostics.

use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use serde_json::{Map, Value, json};
use weir_library::log::{LogFormat, LogLevel, LogLine, now};
use weir_syntax::Style;

use crate::Exit;

/// The two output streams of a command.
#[derive(Clone)]
pub(crate) struct Terminal {
    /// Format of diagnostics, and of the errors that end the command if the log is text.
    errors: ErrorFormat,
    /// Format of the log, and of the errors that end the command.
    log: LogFormat,
    #[cfg(feature = "tools")]
    output: Paint,
    messages: Paint,
}

/// The formats of diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ErrorFormat {
    /// Text with source excerpts
    Human,
    /// One JSON object per line
    Json,
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
            errors: ErrorFormat::Human,
            log: LogFormat::Text,
            #[cfg(feature = "tools")]
            output: style(io::stdout().is_terminal()),
            messages: style(io::stderr().is_terminal()),
        }
    }

    /// Chooses the formats of messages.
    pub(crate) fn set_formats(&mut self, errors: ErrorFormat, log: LogFormat) {
        (self.errors, self.log) = (errors, log);
    }

    /// Returns the format of diagnostics.
    pub(crate) fn errors(&self) -> ErrorFormat {
        self.errors
    }

    /// Returns true if errors are printed as text.
    pub(crate) fn prints_text(&self) -> bool {
        self.errors == ErrorFormat::Human && self.log == LogFormat::Text
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

    /// Prints a line about the state of the command.
    #[cfg(feature = "tools")]
    pub(crate) fn notice(&mut self, message: &str) {
        let line = match self.prints_text() {
            true => message.to_owned(),
            false => LogLine { message: message.to_owned(), ..LogLine::default() }.json(&now()),
        };
        self.eprint(&(line + "\n"));
    }

    /// Prints an error with hints, and returns the exit status.
    pub(crate) fn fail(&mut self, exit: Exit, message: &str, hints: &[&str]) -> Exit {
        let text = match (self.log, self.errors) {
            (LogFormat::Json, _) => log_line(message, hints),
            (LogFormat::Text, ErrorFormat::Json) => diagnostic(message, hints),
            (LogFormat::Text, ErrorFormat::Human) => self.text(message, hints),
        };
        self.eprint(&text);
        exit
    }

    fn text(&self, message: &str, hints: &[&str]) -> String {
        let paint = self.messages;
        let mut text = format!("{}: {}\n", paint.red("error"), paint.bold(message));
        for hint in hints {
            text.push_str(&format!("  {} {hint}\n", paint.blue("hint:")));
        }
        text
    }
}

/// Formats an error as a line of the log.
fn log_line(message: &str, hints: &[&str]) -> String {
    let hints = (!hints.is_empty()).then(|| ("hints".to_owned(), Value::from(hints)));
    let fields = Map::from_iter(hints);
    LogLine { level: LogLevel::Error, message: message.to_owned(), fields, trace_id: None }.json(&now()) + "\n"
}

/// Formats an error in the form of a diagnostic without a code.
fn diagnostic(message: &str, hints: &[&str]) -> String {
    let help: Vec<Value> = hints.iter().map(|hint| json!({ "text": hint, "edit": null })).collect();
    let object = json!({
        "code": null, "name": "Command", "severity": "error", "message": message, "labels": [], "notes": [], "help": help,
    });
    format!("{object}\n")
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
