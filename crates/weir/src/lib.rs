//! The `weir` command, and the API for authors of host functions.
//!
//! A crate with host functions depends only on this one, and builds a command with its functions linked in:
//!
//! ```no_run
//! /// Returns how often a word occurs in a text.
//! #[weir::function(pure)]
//! pub fn count(text: &str, word: &str) -> i64 {
//!     text.split_whitespace().filter(|other| *other == word).count() as i64
//! }
//!
//! weir::library!(words: count);
//!
//! fn main() -> weir::Exit {
//!     weir::cli().with(words).run()
//! }
//! ```
//!
//! Architecture invariant: only this crate knows the command line, colours and the terminal.

mod allocator;
mod arguments;
mod commands;
mod configuration;
mod exit;
mod humanize;
mod memory_size;
mod plan_file;
mod programs;
mod project;
mod terminal;
mod trace_socket;

pub use exit::Exit;
pub use weir_host::*;
pub use weir_macros::{Type, batched, function, library};

/// The guide to host functions; its snippets are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/host-functions.md")]
struct HostFunctions;

use std::ffi::OsString;

use arguments::{Arguments, Command};
use terminal::Terminal;

/// Returns the command with the standard library.
#[must_use]
pub fn cli() -> Cli {
    Cli { library: weir_library::library(), refused: None }
}

/// Builder of a command: the library that its programs can use.
pub struct Cli {
    library: Library,
    refused: Option<LibraryError>,
}

impl Cli {
    /// Adds a module of functions, as created by [`library!`].
    #[must_use]
    pub fn with(mut self, module: impl FnOnce() -> Module) -> Self {
        if let Err(error) = self.library.add(module()) {
            self.refused.get_or_insert(error);
        }
        self
    }

    /// Provides a value to functions that request one of its type with `#[environment]`.
    #[must_use]
    pub fn environment<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.library.environment.insert(value);
        self
    }

    /// Parses the command line of this process and runs it.
    #[must_use]
    pub fn run(self) -> Exit {
        self.run_from(std::env::args_os())
    }

    /// Runs a command line; the first argument is the name of the command.
    #[must_use]
    pub fn run_from<I: IntoIterator<Item: Into<OsString> + Clone>>(self, arguments: I) -> Exit {
        let arguments = match Arguments::read(arguments) {
            Ok(arguments) => arguments,
            Err(exit) => return exit,
        };
        let mut terminal = Terminal::new();
        if let Some(error) = self.refused {
            return terminal.fail(Exit::Failure, &format!("invalid library: {error}"), &[]);
        }
        self.dispatch(&arguments.command, &mut terminal)
    }

    fn dispatch(self, command: &Command, terminal: &mut Terminal) -> Exit {
        let library = self.library;
        match command {
            Command::Run(arguments) if arguments.watch => commands::watch(arguments, &library, terminal),
            Command::Run(arguments) => commands::run(arguments, library, terminal),
            Command::Check(arguments) => commands::check(arguments, &library, terminal),
            Command::Graph(arguments) => commands::graph(arguments, &library, terminal),
            Command::Explain(arguments) => commands::explain(arguments, terminal),
            Command::Fmt(arguments) => commands::fmt(arguments, terminal),
            Command::Fix(arguments) => commands::fix(arguments, &library, terminal),
            Command::Test(arguments) => commands::test(arguments, library, terminal),
            Command::Doc(arguments) => commands::doc(arguments, &library, terminal),
            Command::Plan(arguments) => commands::plan(arguments, &library, terminal),
            Command::Top(arguments) => commands::top(arguments, terminal),
            Command::Lsp => commands::lsp(library, terminal),
            Command::New(arguments) => commands::new(arguments, terminal),
        }
    }
}
