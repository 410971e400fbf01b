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
//! [`Cli::run`] is the `weir` command with all its tools. A server needs only [`Cli::run_server`], which takes the options of
//! `weir run`; without the feature `tools` the crate contains nothing else: no terminal interface, no language server, no
//! drawing. `weir-run` is that binary with the standard library.
//!
//! Architecture invariant: only this crate knows the command line, colours and the terminal.

mod allocator;
mod arguments;
#[cfg(feature = "tools")]
mod commands;
mod configuration;
mod effective_plan;
mod exit;
mod humanize;
mod memory_size;
mod module_files;
mod plan_file;
mod programs;
mod project;
mod read_type;
mod run;
mod table_location;
mod terminal;
mod trace_socket;

pub use exit::Exit;
pub use weir_host::*;
pub use weir_macros::{Type, batched, function, library};

/// The guide to host functions; its snippets are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/host-functions.md")]
struct HostFunctions;

#[cfg(feature = "tools")]
use std::ffi::OsString;

use arguments::ServerArguments;
#[cfg(feature = "tools")]
use commands::arguments::{Arguments, Command};
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
    #[cfg(feature = "tools")]
    #[must_use]
    pub fn run(self) -> Exit {
        self.run_from(std::env::args_os())
    }

    /// Runs a command line; the first argument is the name of the command.
    #[cfg(feature = "tools")]
    #[must_use]
    pub fn run_from<I: IntoIterator<Item: Into<OsString> + Clone>>(self, arguments: I) -> Exit {
        let arguments: Arguments = match arguments::read(arguments) {
            Ok(arguments) => arguments,
            Err(exit) => return exit,
        };
        let mut terminal = Terminal::new();
        match self.valid(&mut terminal) {
            Ok(library) => dispatch(library, &arguments.command, &mut terminal),
            Err(exit) => exit,
        }
    }

    /// Runs the program that the command line of this process names: the options are those of `weir run`.
    #[must_use]
    pub fn run_server(self) -> Exit {
        let arguments: ServerArguments = match arguments::read(std::env::args_os()) {
            Ok(arguments) => arguments,
            Err(exit) => return exit,
        };
        let mut terminal = Terminal::new();
        match self.valid(&mut terminal) {
            Ok(library) => run::run(&arguments.run, library, &mut terminal),
            Err(exit) => exit,
        }
    }

    /// Returns the library if all its modules are valid.
    fn valid(self, terminal: &mut Terminal) -> Result<Library, Exit> {
        match self.refused {
            None => Ok(self.library),
            Some(error) => Err(terminal.fail(Exit::Failure, &format!("invalid library: {error}"), &[])),
        }
    }
}

#[cfg(feature = "tools")]
fn dispatch(library: Library, command: &Command, terminal: &mut Terminal) -> Exit {
    match command {
        Command::Run(command) if command.watch => commands::watch(&command.run, terminal),
        Command::Run(command) => run::run(&command.run, library, terminal),
        Command::Check(arguments) => commands::check(arguments, &library, terminal),
        Command::Graph(arguments) => commands::graph(arguments, &library, terminal),
        Command::Explain(arguments) => commands::explain(arguments, terminal),
        Command::Fmt(arguments) => commands::fmt(arguments, terminal),
        Command::Fix(arguments) => commands::fix(arguments, &library, terminal),
        Command::Test(arguments) => commands::test(arguments, library, terminal),
        Command::Doc(arguments) => commands::doc(arguments, &library, terminal),
        Command::Plan(arguments) => commands::plan(arguments, &library, terminal),
        Command::Tables(arguments) => commands::tables(arguments, &library, terminal),
        Command::Top(arguments) => commands::top(arguments, terminal),
        Command::Lsp => commands::lsp(library, terminal),
        Command::New(arguments) => commands::new(arguments, terminal),
    }
}
