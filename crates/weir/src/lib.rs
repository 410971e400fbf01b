//! The `weir` command, and the face that authors of host functions build on.
//!
//! A crate with functions of its own depends on this one alone, and *is* the command with them linked in:
//!
//! ```no_run
//! /// How often a word stands in a text.
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
//! Architecture invariant: this crate alone knows the command line, colours and the terminal.

mod arguments;
mod commands;
mod exit;
mod humanize;
mod plan_file;
mod programs;
mod project;
mod terminal;
mod trace_socket;

pub use exit::Exit;
pub use weir_host::*;
pub use weir_macros::{Type, batched, function, library};

/// The guide to functions of the host, whose snippets are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/host-functions.md")]
struct HostFunctions;

use std::ffi::OsString;

use arguments::{Arguments, Command};
use terminal::Terminal;

/// The command, with the standard library.
#[must_use]
pub fn cli() -> Cli {
    Cli { library: weir_library::library(), refused: None }
}

/// The command in the making: the library that its programs may use.
pub struct Cli {
    library: Library,
    refused: Option<LibraryError>,
}

impl Cli {
    /// Adds a module of functions, as [`library!`] writes it.
    #[must_use]
    pub fn with(mut self, module: impl FnOnce() -> Module) -> Self {
        if let Err(error) = self.library.add(module()) {
            self.refused.get_or_insert(error);
        }
        self
    }

    /// Gives a value to the functions that ask for one of its type with `#[environment]`.
    #[must_use]
    pub fn environment<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.library.environment.insert(value);
        self
    }

    /// Reads the command line and does what it says.
    #[must_use]
    pub fn run(self) -> Exit {
        self.run_from(std::env::args_os())
    }

    /// Does what these arguments say; the first is the name of the command.
    #[must_use]
    pub fn run_from<I: IntoIterator<Item: Into<OsString> + Clone>>(self, arguments: I) -> Exit {
        let arguments = match Arguments::read(arguments) {
            Ok(arguments) => arguments,
            Err(exit) => return exit,
        };
        let mut terminal = Terminal::new();
        if let Some(error) = self.refused {
            return terminal.fail(Exit::Failure, &format!("this command cannot be built: {error}"), &[]);
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
            Command::Test(arguments) => commands::test(arguments, library, terminal),
            Command::Doc(arguments) => commands::doc(arguments, &library, terminal),
            Command::Plan(arguments) => commands::plan(arguments, &library, terminal),
            Command::Top(arguments) => commands::top(arguments, terminal),
            Command::Lsp => commands::lsp(library, terminal),
            Command::New(arguments) => commands::new(arguments, terminal),
        }
    }
}
