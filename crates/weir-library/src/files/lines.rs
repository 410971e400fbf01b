//! The lines of a file, in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir::{Failure, Module, Type, Value};

use super::Root;
use crate::lines::LineSplitter;
use crate::stream_source::{Emitter, SourceArguments, Stream, StreamDefinition, parameter};

/// Adds the source `lines` to the module.
pub(super) fn within(module: Module) -> Module {
    let lines = StreamDefinition {
        name: "lines",
        doc: "Begins a flow for each line of the file, in order, and ends at the end of the file. A line must be UTF-8 \
              and at most 1 MiB long; its terminator is not part of it.",
        parameters: vec![parameter("path", Type::Text)],
        element: Type::Text,
        ordered: true,
        open: FileLines::open,
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

impl Stream for FileLines {
    fn describe(&self) -> String {
        format!("the lines of {}", self.path)
    }

    fn extent(&self, _elements: u64) -> Option<(u64, u64)> {
        Some((self.emitted_bytes.load(Ordering::Relaxed), self.length))
    }

    async fn run(&self, emitter: Emitter) -> Result<(), Failure> {
        let mut file = self.reader()?;
        let mut lines = LineSplitter::new();
        while let Some(line) = lines.next(&mut file).await.map_err(|error| error.of(&self.path))? {
            emitter.emit(Value::text(line)).await;
            self.note(&lines);
        }
        Ok(())
    }
}
