//! The lines that are added to a file, for as long as the program runs.
//!
//! Like `tail -F`, it looks at the name and not only at the file that once had it. At the end of what is written, it
//! looks again after an interval:
//! 1. the name stands for another file: the old one is read to its end, its last line given even without an end, and the
//!    new one is read from its start;
//! 2. the file is shorter than what was read of it: it was truncated and is read from its start;
//! 3. nobody has the name: whoever moved the file away is about to make a new one.
//!
//! A file that is truncated and has grown beyond its old length within one interval looks as if it had only grown.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncSeekExt;
use tokio::time::sleep;
use weir::{Failure, Module, Type, Value};

use super::lines::root_of;
use super::{FileError, Root};
use crate::lines::LineReader;
use crate::stream_source::{Emitter, SourceArguments, Stream, StreamDefinition, optional, parameter};

/// How often it looks, unless the program says otherwise.
const INTERVAL_NS: i64 = 100_000_000;

/// The source `follow`, in the module.
pub(super) fn within(module: Module) -> Module {
    let follow = StreamDefinition {
        name: "follow",
        doc: "Begins a flow for each line that is added to the file, in their order, for as long as the program runs; \
              with `whole: true` for the lines that it has already, too. A file that takes its name, as when a log is \
              rotated, is read from its start, and so is one that is truncated. It looks every `interval`.",
        parameters: vec![
            parameter("path", Type::Text),
            optional("whole", Type::Bool, Value::Bool(false)),
            optional("interval", Type::Duration, Value::Duration(INTERVAL_NS)),
        ],
        element: Type::Text,
        ordered: true,
        open: Follow::open,
    };
    follow.within(module)
}

struct Follow {
    root: Arc<Root>,
    path: String,
    file: std::fs::File,
    /// Where it begins to read.
    from: u64,
    interval: Duration,
}

impl Follow {
    fn open(given: &SourceArguments<'_>) -> Result<Self, Failure> {
        let (root, path) = (root_of(given)?, given.text(0)?.to_owned());
        let file = root.open_to_read(&path)?;
        let from = if given.bool(1)? { 0 } else { file.metadata()?.len() };
        Ok(Follow { root, path, file, from, interval: given.duration(2, "interval")? })
    }

    /// What the name stands for now, where somebody has it.
    async fn named(&self) -> Result<Option<(std::fs::File, Metadata)>, Failure> {
        let (root, path) = (Arc::clone(&self.root), self.path.clone());
        let opened = tokio::task::spawn_blocking(move || root.open_to_read(&path)).await?;
        match opened {
            Ok(file) => {
                let status = file.metadata()?;
                Ok(Some((file, status)))
            }
            Err(FileError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Stream for Follow {
    fn describe(&self) -> String {
        format!("the lines added to {}", self.path)
    }

    async fn run(&self, emitter: Emitter) -> Result<(), Failure> {
        let mut current = FollowedFile::begin(self.file.try_clone()?, self.from).await?;
        loop {
            current.emit_complete(&emitter, &self.path).await?;
            match self.named().await? {
                Some((file, status)) if !current.is(&status) => {
                    current.emit_remainder(&emitter, &self.path).await?;
                    current = FollowedFile::begin(file, 0).await?;
                }
                Some((_, status)) if current.is_longer_than(&status).await? => current.begin_again().await?,
                Some((_, status)) if current.is_shorter_than(&status).await? => {}
                _ => sleep(self.interval).await,
            }
        }
    }
}

/// The file that is read now.
struct FollowedFile {
    file: tokio::fs::File,
    lines: LineReader,
    /// Its device and its number there.
    identity: (u64, u64),
}

fn identity(status: &Metadata) -> (u64, u64) {
    (status.dev(), status.ino())
}

impl FollowedFile {
    async fn begin(file: std::fs::File, from: u64) -> io::Result<Self> {
        let identity = identity(&file.metadata()?);
        let mut file = tokio::fs::File::from_std(file);
        file.seek(io::SeekFrom::Start(from)).await?;
        Ok(FollowedFile { file, lines: LineReader::new(), identity })
    }

    async fn begin_again(&mut self) -> io::Result<()> {
        self.lines.clear();
        self.file.seek(io::SeekFrom::Start(0)).await.map(drop)
    }

    fn is(&self, status: &Metadata) -> bool {
        self.identity == identity(status)
    }

    /// Whether more was read of it than it has.
    async fn is_longer_than(&mut self, status: &Metadata) -> io::Result<bool> {
        Ok(self.file.stream_position().await? > status.len())
    }

    /// Whether it has more than was read of it.
    async fn is_shorter_than(&mut self, status: &Metadata) -> io::Result<bool> {
        Ok(self.file.stream_position().await? < status.len())
    }

    async fn emit_complete(&mut self, emitter: &Emitter, path: &str) -> Result<(), Failure> {
        while let Some(line) = self.lines.next_ended(&mut self.file).await.map_err(|error| error.of(path))? {
            emitter.emit(Value::text(line)).await;
        }
        Ok(())
    }

    async fn emit_remainder(&mut self, emitter: &Emitter, path: &str) -> Result<(), Failure> {
        self.emit_complete(emitter, path).await?;
        if let Some(line) = self.lines.rest().map_err(|error| error.of(path))? {
            emitter.emit(Value::text(line)).await;
        }
        Ok(())
    }
}
