//! Lines appended to a file, for as long as the program runs.
//!
//! Like `tail -F`, the stream follows the name and not only the file that had it at first. At the end of the file it
//! polls at an interval:
//! 1. if the name refers to another file, it reads the old one to its end, emits the last line even if it is
//!    unterminated, and reads the new file from its start;
//! 2. if the file is shorter than what was read of it, the file was truncated, and is read from its start;
//! 3. if no file has the name, the stream waits: log rotation is about to create a new one.
//!
//! A file that is truncated and grows beyond its old length within one interval cannot be told from one that has only
//! grown.

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
use crate::bad_elements::BadElements;
use crate::lines::{LineSplitter, line_element};
use crate::stream_source::{Emitter, SourceArguments, Stream, StreamDefinition, optional, parameter, strict};

/// Default polling interval.
const INTERVAL_NS: i64 = 100_000_000;

/// Adds the source `follow` to the module.
pub(super) fn within(module: Module) -> Module {
    let follow = StreamDefinition {
        name: "follow",
        doc: "Begins a flow for each line that is appended to the file, in order, for as long as the program runs; with \
              `whole: true` also for the lines that the file already has. A new file of the same name, as after log \
              rotation, is read from its start, and so is a truncated file. The file is polled every `interval`. A line that is not UTF-8 or longer than 1 MiB is \
              reported and skipped; with `strict: true` it ends the program.",
        parameters: vec![
            parameter("path", Type::Text),
            optional("whole", Type::Bool, Value::Bool(false)),
            optional("interval", Type::Duration, Value::Duration(INTERVAL_NS)),
            strict(),
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
    /// Offset at which reading begins.
    from: u64,
    interval: Duration,
    bad: BadElements,
}

impl Follow {
    fn open(arguments: &SourceArguments<'_>) -> Result<Self, Failure> {
        let (root, path) = (root_of(arguments)?, arguments.text(0)?.to_owned());
        let file = root.open_to_read(&path)?;
        let from = if arguments.bool(1)? { 0 } else { file.metadata()?.len() };
        let (interval, bad) = (arguments.duration(2, "interval")?, arguments.bad_elements(3)?);
        Ok(Follow { root, path, file, from, interval, bad })
    }

    /// Opens the file that has the name at present; `None` if there is none.
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
            current.emit_complete(self, &emitter).await?;
            match self.named().await? {
                Some((file, status)) if !current.is(&status) => {
                    current.emit_remainder(self, &emitter).await?;
                    current = FollowedFile::begin(file, 0).await?;
                }
                Some((_, status)) if current.is_longer_than(&status).await? => current.begin_again().await?,
                Some((_, status)) if current.is_shorter_than(&status).await? => {}
                _ => sleep(self.interval).await,
            }
        }
    }
}

/// The file that is being read.
struct FollowedFile {
    file: tokio::fs::File,
    lines: LineSplitter,
    /// Device and inode number of the file.
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
        Ok(FollowedFile { file, lines: LineSplitter::new(), identity })
    }

    async fn begin_again(&mut self) -> io::Result<()> {
        self.lines.clear();
        self.file.seek(io::SeekFrom::Start(0)).await.map(drop)
    }

    fn is(&self, status: &Metadata) -> bool {
        self.identity == identity(status)
    }

    /// Returns `true` if more bytes have been read than the file has.
    async fn is_longer_than(&mut self, status: &Metadata) -> io::Result<bool> {
        Ok(self.file.stream_position().await? > status.len())
    }

    /// Returns `true` if the file has more bytes than have been read.
    async fn is_shorter_than(&mut self, status: &Metadata) -> io::Result<bool> {
        Ok(self.file.stream_position().await? < status.len())
    }

    async fn emit_complete(&mut self, follow: &Follow, emitter: &Emitter) -> Result<(), Failure> {
        while let Some(line) = self.lines.next_ended(&mut self.file).await.transpose() {
            emitter.emit_or_report(line_element(line, &follow.path, follow.bad)?).await;
        }
        Ok(())
    }

    async fn emit_remainder(&mut self, follow: &Follow, emitter: &Emitter) -> Result<(), Failure> {
        self.emit_complete(follow, emitter).await?;
        if let Some(line) = self.lines.rest().transpose() {
            emitter.emit_or_report(line_element(line, &follow.path, follow.bad)?).await;
        }
        Ok(())
    }
}
