//! The standard streams of the program: reading lines and printing lines.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use weir::{Failure, Module, Type};

use crate::bad_elements::BadElements;
use crate::lines::{LineSplitter, line_element};
use crate::output::{Outputs, STANDARD_ERROR, STANDARD_OUTPUT};
use crate::stream_source::{Emitter, Stream, StreamDefinition, strict};

/// Builds the module `stdio`.
pub(crate) fn stdio() -> Module {
    let lines = StreamDefinition {
        name: "lines",
        doc: "Begins a flow for each line of the standard input, in order, and ends at the end of the input. A line that \
              is not UTF-8 or longer than 1 MiB is reported and skipped; with `strict: true` it ends the program.",
        parameters: vec![strict()],
        element: Type::Text,
        ordered: true,
        open: |arguments| Ok(StandardInput { bad: arguments.bad_elements(0)? }),
    };
    lines.within(functions::stdio())
}

mod functions {
    //! The module's functions, in a submodule because `library!` generates a function named like the module.

    weir::library! {
        /// The standard streams of the program: reading lines and printing lines.
        pub(crate) stdio: super::LinePrinter::print, super::LinePrinter::print_error
    }
}

/// Prints lines. The state is private to its call site, so that lines keep the order of their source; the streams are
/// shared by all call sites.
#[derive(Default)]
pub struct LinePrinter;

#[weir::function]
impl LinePrinter {
    /// Prints a line to the standard output. On a terminal it appears at once, otherwise within 50 ms and before the
    /// program ends.
    ///
    /// # Errors
    /// Fails if the standard output cannot be written. If nobody reads it any more, `weir run` instead finishes the
    /// flows that have begun, and ends the program.
    pub fn print(&mut self, #[environment] outputs: &Outputs, line: &str) -> Result<(), Failure> {
        print_to(outputs, STANDARD_OUTPUT, io::stdout().as_fd(), line)
    }

    /// Prints a line to the standard error.
    ///
    /// # Errors
    /// Fails if the standard error cannot be written.
    pub fn print_error(&mut self, #[environment] outputs: &Outputs, line: &str) -> Result<(), Failure> {
        print_to(outputs, STANDARD_ERROR, io::stderr().as_fd(), line)
    }
}

fn print_to(outputs: &Outputs, name: &str, stream: BorrowedFd<'_>, line: &str) -> Result<(), Failure> {
    if outputs.capture(line) {
        return Ok(());
    }
    let output = outputs.open(name, || stream.try_clone_to_owned().map(File::from))?;
    outputs.write(&output, &[line.as_bytes(), b"\n"])
}

/// The source `stdio.lines()`.
struct StandardInput {
    bad: BadElements,
}

impl Stream for StandardInput {
    const READS_STANDARD_INPUT: bool = true;

    fn describe(&self) -> String {
        "the lines of the standard input".to_owned()
    }

    async fn run(&self, emitter: Emitter) -> Result<(), Failure> {
        let mut input = tokio::io::stdin();
        let mut lines = LineSplitter::new();
        while let Some(line) = lines.next(&mut input).await.transpose() {
            emitter.emit_or_report(line_element(line, "the standard input", self.bad)?).await;
        }
        Ok(())
    }
}
