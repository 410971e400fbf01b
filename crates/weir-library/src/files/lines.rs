//! The lines of a file, in their order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir::{Failure, Module, Type, Value};

use super::Root;
use crate::lines::LineReader;
use crate::stream_source::{Emitter, SourceArguments, Stream, StreamDefinition, parameter};

/// The source `lines`, in the module.
pub(super) fn within(module: Module) -> Module {
    let lines = StreamDefinition {
        name: "lines",
        doc: "Begins a flow for each line of the file, in their order, and ends with it. A line is UTF-8, is at most \
              1 MiB long, and comes without its end.",
        parameters: vec![parameter("path", Type::Text)],
        element: Type::Text,
        ordered: true,
        open: FileLines::open,
    };
    lines.within(module)
}

/// The root that the embedder gave.
pub(crate) fn root_of(given: &SourceArguments<'_>) -> Result<Arc<Root>, Failure> {
    given.environment.get::<Root>().ok_or_else(|| Failure::function("this program has no directory for its files"))
}

/// A file that is read from its start to its end.
pub(crate) struct FileLines {
    path: String,
    file: std::fs::File,
    /// Its bytes when it was opened.
    length: u64,
    /// The bytes of the lines that were given.
    given: AtomicU64,
}

impl FileLines {
    /// The file that the first argument names.
    pub(crate) fn open(given: &SourceArguments<'_>) -> Result<Self, Failure> {
        let path = given.text(0)?.to_owned();
        let file = root_of(given)?.open_to_read(&path)?;
        let length = file.metadata()?.len();
        Ok(FileLines { path, file, length, given: AtomicU64::new(0) })
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> &str {
        &self.path
    }

    /// Notes that the lines up to the last one were given.
    pub(crate) fn note(&self, lines: &LineReader) {
        self.given.store(lines.bytes(), Ordering::Relaxed);
    }

    /// Its file, to be read on an event loop.
    pub(crate) fn reader(&self) -> Result<tokio::fs::File, Failure> {
        /// Bytes that a thread of the blocking pool reads for the event loop at a time.
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
        Some((self.given.load(Ordering::Relaxed), self.length))
    }

    async fn run(&self, emitter: Emitter) -> Result<(), Failure> {
        let mut file = self.reader()?;
        let mut lines = LineReader::new();
        while let Some(line) = lines.next(&mut file).await.map_err(|error| error.of(&self.path))? {
            emitter.emit(Value::text(line)).await;
            self.note(&lines);
        }
        Ok(())
    }
}
