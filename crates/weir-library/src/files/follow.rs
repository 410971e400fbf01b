//! Lines appended to a file, for as long as the program runs.
//!
//! Like `tail -F`, the stream follows the name and not only the file that had it at first. At the end of the file, and while its
//! flows have to wait for room, it polls at an interval:
//! 1. if the name refers to another file, it opens that one, reads the old one to its end, emits the last line even if it is
//!    unterminated, and reads the new file from its start. Several files can follow before the old one is read to its end;
//! 2. if the file is shorter than what was read of it, the file was truncated, and is read from its start;
//! 3. if no file has the name, the stream waits: log rotation is about to create a new one. It also waits, and says so, if
//!    something else has the name, or if the file cannot be opened at present.
//!
//! A file that is truncated and grows beyond its old length within one interval cannot be told from one that has only
//! grown.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncSeekExt;
use tokio::time::{Instant, sleep, sleep_until};
use weir::{Failure, Module, SourceProblem, Type, Value};

use super::lines::root_of;
use super::{FileError, Root};
use crate::bad_elements::{BadElements, StreamElement};
use crate::lines::{LINE_BYTES_MAX, LineSplitter, line_element};
use crate::stream_source::{Emitter, SourceArguments, Stream, StreamDefinition, optional, parameter, strict};

/// Default polling interval.
const INTERVAL_NS: i64 = 100_000_000;

/// Maximum number of files that are open because they follow the one that is being read. Chosen by judgement.
const NEXT_FILES_MAX: usize = 64;

/// Adds the source `follow` to the module.
pub(super) fn within(module: Module) -> Module {
    let follow = StreamDefinition {
        name: "follow",
        doc: "Begins a flow for each line that is appended to the file, in order, for as long as the program runs; with \
              `whole: true` also for the lines that the file already has. A new file of the same name, as after log \
              rotation, is read from its start, and so is a truncated file. A line that the file has begun counts as appended \
              when it ends. The file is polled every `interval`. A line that is not UTF-8 or longer than 1 MiB is \
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
        let from = if arguments.bool(1)? { 0 } else { end_of_lines(&file)? };
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

    /// Looks which file has the name, keeps it if it is new, and returns its status. Reports a file that cannot be opened at
    /// present, once until it can; `None` then, too.
    async fn look(&self, next: &NextFiles, emitter: &Emitter) -> Option<Metadata> {
        let named = self.named().await;
        next.looked.set(Instant::now());
        let was_reported = next.is_reported.replace(named.is_err());
        let (file, status) = named.unwrap_or_else(|failure| {
            if !was_reported {
                emitter.report(SourceProblem::Retries(failure));
            }
            None
        })?;
        next.add(file, &status);
        Some(status)
    }

    async fn look_at_intervals(&self, next: &NextFiles, emitter: &Emitter) -> Infallible {
        loop {
            sleep_until(next.looked.get() + self.interval).await;
            self.look(next, emitter).await;
        }
    }

    /// Emits an element. New files are looked for meanwhile: those of several rotations may come and go before there is room.
    async fn emit(&self, element: StreamElement, next: &NextFiles, emitter: &Emitter) {
        tokio::select! {
            biased;
            () = pin!(emitter.emit_or_report(element)) => {}
            never = self.look_at_intervals(next, emitter) => match never {},
        }
        if next.looked.get().elapsed() >= self.interval {
            self.look(next, emitter).await;
        }
    }
}

/// Returns the offset behind the last line that has ended. What follows the longest line that there may be is not looked at.
fn end_of_lines(file: &std::fs::File) -> io::Result<u64> {
    const PIECE_BYTES: u64 = 4096;
    let length = file.metadata()?.len();
    let first = length.saturating_sub(LINE_BYTES_MAX as u64);
    let (mut end, mut piece) = (length, [0; PIECE_BYTES as usize]);
    while end > first {
        let start = end.saturating_sub(PIECE_BYTES).max(first);
        let piece = &mut piece[..(end - start) as usize];
        file.read_exact_at(piece, start)?;
        if let Some(at) = memchr::memrchr(b'\n', piece) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(if first == 0 { 0 } else { length })
}

/// The files that got the name after the one that is being read.
struct NextFiles {
    files: RefCell<VecDeque<std::fs::File>>,
    /// Identity of the last of them, or of the one that is being read.
    last: Cell<(u64, u64)>,
    /// Time of the last look at the name.
    looked: Cell<Instant>,
    /// True if the last look has failed, and was reported.
    is_reported: Cell<bool>,
}

impl NextFiles {
    fn after(current: &FollowedFile) -> NextFiles {
        NextFiles {
            files: RefCell::default(),
            last: Cell::new(current.identity),
            looked: Cell::new(Instant::now()),
            is_reported: Cell::new(false),
        }
    }

    /// Adds a file, unless it is the last one.
    fn add(&self, file: std::fs::File, status: &Metadata) {
        let mut files = self.files.borrow_mut();
        if identity(status) != self.last.get() && files.len() < NEXT_FILES_MAX {
            files.push_back(file);
            self.last.set(identity(status));
        }
    }

    fn take_first(&self) -> Option<std::fs::File> {
        self.files.borrow_mut().pop_front()
    }
}

impl Stream for Follow {
    fn describe(&self) -> String {
        format!("the lines added to {}", self.path)
    }

    async fn run(&self, emitter: Emitter) -> Result<(), Failure> {
        let mut current = FollowedFile::begin(self.file.try_clone()?, self.from).await?;
        let next = NextFiles::after(&current);
        loop {
            current.emit_complete(self, &next, &emitter).await?;
            let status = self.look(&next, &emitter).await;
            if let Some(file) = next.take_first() {
                current.emit_remainder(self, &next, &emitter).await?;
                current = FollowedFile::begin(file, 0).await?;
                continue;
            }
            match status {
                Some(status) if current.is_longer_than(&status).await? => current.begin_again().await?,
                Some(status) if current.is_shorter_than(&status).await? => {}
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
        self.lines = LineSplitter::new();
        self.file.seek(io::SeekFrom::Start(0)).await.map(drop)
    }

    /// Returns `true` if more bytes have been read than the file has.
    async fn is_longer_than(&mut self, status: &Metadata) -> io::Result<bool> {
        Ok(self.file.stream_position().await? > status.len())
    }

    /// Returns `true` if the file has more bytes than have been read.
    async fn is_shorter_than(&mut self, status: &Metadata) -> io::Result<bool> {
        Ok(self.file.stream_position().await? < status.len())
    }

    async fn emit_complete(&mut self, follow: &Follow, next: &NextFiles, emitter: &Emitter) -> Result<(), Failure> {
        while let Some(line) = self.lines.next_ended(&mut self.file).await.transpose() {
            follow.emit(line_element(line, &follow.path, follow.bad)?, next, emitter).await;
        }
        Ok(())
    }

    async fn emit_remainder(&mut self, follow: &Follow, next: &NextFiles, emitter: &Emitter) -> Result<(), Failure> {
        self.emit_complete(follow, next, emitter).await?;
        if let Some(line) = self.lines.rest().transpose() {
            follow.emit(line_element(line, &follow.path, follow.bad)?, next, emitter).await;
        }
        Ok(())
    }
}
