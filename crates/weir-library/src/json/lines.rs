//! Files whose lines are JSON values (JSON Lines).
//!
//! `lines` reports and skips a malformed line; `checked_lines` passes such a line to the program as a failure.

use weir::{Failure, HostType, Module, Type};

use super::parse_line;
use crate::bad_elements::{BadElements, StreamElement};
use crate::files::FileLines;
use crate::lines::{LineError, LineSplitter};
use crate::stream_source::{Emitter, SourceArguments, Stream, StreamDefinition, parameter, strict};

/// Adds the sources to the module.
pub(super) fn within(module: Module) -> Module {
    let lines = StreamDefinition {
        name: "lines",
        doc: "Begins a flow for each line of the file, in order, and ends at the end of the file. Each line is a JSON \
              value; empty lines are skipped. A malformed line is reported and skipped; with `strict: true` it ends the \
              program.",
        parameters: vec![parameter("path", Type::Text), strict()],
        element: Type::named("json.Value"),
        ordered: true,
        open: |arguments| JsonLines::open(arguments, arguments.bad_elements(1)?),
    };
    let checked = StreamDefinition {
        name: "checked_lines",
        doc: "Like `lines`, but a malformed line is an element as well: a failure with its line and column. `line?` ends \
              the flow of that line with the failure, `line else { … }` handles it.",
        parameters: vec![parameter("path", Type::Text)],
        element: Type::result(Type::named("json.Value"), Type::Failure),
        ordered: true,
        open: |arguments| JsonLines::open(arguments, BadElements::Emit),
    };
    checked.within(lines.within(module))
}

/// The source `json.lines("events.jsonl")`.
struct JsonLines {
    file: FileLines,
    bad: BadElements,
}

impl JsonLines {
    fn open(arguments: &SourceArguments<'_>, bad: BadElements) -> Result<Self, Failure> {
        Ok(JsonLines { file: FileLines::open(arguments)?, bad })
    }

    /// Converts a line into an element; `None` for an empty line.
    fn element(&self, line: Result<&str, LineError>, number: u64) -> Result<Option<StreamElement>, Failure> {
        let path = self.file.name();
        // A byte order mark begins the file and is no part of the value.
        let line = line.map(|line| if number == 1 { line.strip_prefix('\u{feff}').unwrap_or(line) } else { line });
        let line = match line {
            Ok(line) if line.trim_ascii().is_empty() => return Ok(None),
            Ok(line) => line,
            Err(error) => return error.into_element(path, self.bad).map(Some),
        };
        let read = match parse_line(line) {
            Ok(value) => Ok(value.into_value()?),
            Err(why) => Err(Failure::function(format!("{path}: line {number}, {why}"))),
        };
        self.bad.element(read).map(Some)
    }
}

impl Stream for JsonLines {
    fn describe(&self) -> String {
        self.file.describe()
    }

    fn extent(&self, _elements: u64) -> Option<(u64, u64)> {
        self.file.extent()
    }

    async fn run(&self, emitter: Emitter) -> Result<(), Failure> {
        let mut file = self.file.reader()?;
        let mut lines = LineSplitter::new();
        loop {
            let number = lines.number() + 1;
            let Some(line) = lines.next(&mut file).await.transpose() else { return Ok(()) };
            if let Some(element) = self.element(line, number)? {
                emitter.emit_or_report(element).await;
            }
            self.file.note(&lines);
        }
    }
}
