//! The lines of a file, in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir::{Failure, Module, Type};

use super::Root;
use crate::bad_elements::BadElements;
use crate::lines::{LineSplitter, line_element};
use crate::stream_source::{Emitter, SourceArguments, Stream, StreamDefinition, parameter, strict};

/// Adds the source `lines` to the module.
pub(super) fn within(module: Module) -> Module {
    let lines = StreamDefinition {
        name: "lines",
        doc: "Begins a flow for each line of the file, in order, and ends at the end of the file. A line that is not \
              UTF-8 or longer than 1 MiB is reported and skipped; with `strict: true` it ends the program.",
        parameters: vec![parameter("path", Type::Text), strict()],
        element: Type::Text,
        ordered: true,
        open: |arguments| Ok(TextLines { file: FileLines::open(arguments)?, bad: arguments.bad_elements(1)? }),
    };
    lines.within(module)
}

/// Returns the root directory that the embedder provides.
pub(crate) fn root_of(arguments: &SourceArguments<'_>) -> Result<Arc<Root>, Failure> {
    arguments.environment.get::<Root>().ok_or_else(|| Failure::function("this program has no directory for its files"))
}

/// A file that is read from start to end.
pub(crate) struct FileLines {
    path: String,
    file: std::fs::File,
    /// Length of the file in bytes when it was opened.
    length: u64,
    /// Bytes of the lines that have been emitted.
    emitted_bytes: AtomicU64,
}

impl FileLines {
    /// Opens the file that the first argument names.
    pub(crate) fn open(arguments: &SourceArguments<'_>) -> Result<Self, Failure> {
        let path = arguments.text(0)?.to_owned();
        let file = root_of(arguments)?.open_to_read(&path)?;
        let length = file.metadata()?.len();
        Ok(FileLines { path, file, length, emitted_bytes: AtomicU64::new(0) })
    }

    /// Returns the name of the file for messages.
    pub(crate) fn name(&self) -> &str {
        &self.path
    }

    /// Describes the input, for the start-up message.
    pub(crate) fn describe(&self) -> String {
        format!("the lines of {}", self.path)
    }

    /// Returns the number of bytes of the lines that have been emitted, and of the file.
    pub(crate) fn extent(&self) -> Option<(u64, u64)> {
        Some((self.emitted_bytes.load(Ordering::Relaxed), self.length))
    }

    /// Records that every line read so far has been emitted.
    pub(crate) fn note(&self, lines: &LineSplitter) {
        self.emitted_bytes.store(lines.bytes(), Ordering::Relaxed);
    }

    /// Returns a reader of the file for use on an event loop.
    pub(crate) fn reader(&self) -> Result<tokio::fs::File, Failure> {
        /// Number of bytes that a blocking thread reads for the event loop at a time.
        const READ_BYTES: usize = 256 * 1024;
        let mut file = tokio::fs::File::from_std(self.file.try_clone()?);
        file.set_max_buf_size(READ_BYTES);
        Ok(file)
    }
}

/// The source `files.lines("log")`.
struct TextLines {
    file: FileLines,
    bad: BadElements,
}

impl Stream for TextLines {
    fn describe(&self) -> String {
        self.file.describe()
    }

    fn extent(&self, _elements: u64) -> Option<(u64, u64)> {
        self.file.extent()
    }

    async fn run(&self, emitter: Emitter) -> Result<(), Failure> {
        let mut file = self.file.reader()?;
        let mut lines = LineSplitter::new();
        while let Some(line) = lines.next(&mut file).await.transpose() {
            emitter.emit_or_report(line_element(line, self.file.name(), self.bad)?).await;
            self.file.note(&lines);
        }
        Ok(())
    }
}
