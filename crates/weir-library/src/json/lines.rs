//! The lines of a file that are JSON values, each by itself.
//!
//! `lines` ends where a line is none, and says how to go on; `checked_lines` hands such a line to the program as a failure.

use weir::{Failure, HostType, Module, Type, Value};

use super::parse_line;
use crate::bad_elements::BadElements;
use crate::files::FileLines;
use crate::lines::{LineError, LineReader};
use crate::stream_source::{Emitter, SourceArguments, Stream, StreamDefinition, parameter};

/// The sources, in the module.
pub(super) fn within(module: Module) -> Module {
    let lines = StreamDefinition {
        name: "lines",
        doc: "Begins a flow for each line of the file, in their order, and ends with it. Each line is a JSON value of \
              its own; empty lines are passed over. A line that is none ends the program.",
        parameters: vec![parameter("path", Type::Text)],
        element: Type::named("json.Value"),
        ordered: true,
        open: |given| JsonLines::open(given, BadElements::EndStream("json.checked_lines")),
    };
    let checked = StreamDefinition {
        name: "checked_lines",
        doc: "As `lines`, but a line that is no JSON value is an element too: a failure that says its line and column. \
              `line?` ends the flow of that line with it, `line else { … }` handles it.",
        parameters: vec![parameter("path", Type::Text)],
        element: Type::result(Type::named("json.Value"), Type::Failure),
        ordered: true,
        open: |given| JsonLines::open(given, BadElements::Emit),
    };
    checked.within(lines.within(module))
}

/// `json.lines("events.jsonl")`.
struct JsonLines {
    file: FileLines,
    bad: BadElements,
}

impl JsonLines {
    fn open(given: &SourceArguments<'_>, bad: BadElements) -> Result<Self, Failure> {
        Ok(JsonLines { file: FileLines::open(given)?, bad })
    }

    /// The element of a line, where it is one.
    fn element(&self, line: Result<&str, LineError>, number: u64) -> Result<Option<Value>, Failure> {
        let path = self.file.name();
        let line = match line {
            Ok(line) if line.trim_ascii().is_empty() => return Ok(None),
            Ok(line) => line,
            Err(error @ LineError::NotText(_)) => return self.bad.element(Err(error.of(path))).map(Some),
            Err(error) => return Err(error.of(path)),
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

    fn extent(&self, elements: u64) -> Option<(u64, u64)> {
        self.file.extent(elements)
    }

    async fn run(&self, emitter: Emitter) -> Result<(), Failure> {
        let mut file = self.file.reader()?;
        let mut lines = LineReader::new();
        loop {
            let number = lines.number() + 1;
            let Some(line) = lines.next(&mut file).await.transpose() else { return Ok(()) };
            if let Some(element) = self.element(line, number)? {
                emitter.emit(element).await;
            }
            self.file.note(&lines);
        }
    }
}
