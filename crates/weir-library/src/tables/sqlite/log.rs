//! The log of an SQLite database: its syncs, and the checkpoints that follow them.

use std::sync::Arc;

use weir::Failure;

use super::checkpoint::LogThread;
use super::log_error::LogError;
use super::log_note::LogNote;
use super::shared_writer::SharedWriter;
use crate::tables::group_commit::{LogSync, SyncFailure};
use crate::tables::program_end::ProgramEnd;
use crate::tables::table_log::TableLog;

/// The log of an SQLite database. If a sync fails, the log may hold anything.
pub(super) struct SqliteLog {
    writer: Arc<SharedWriter>,
    thread: LogThread,
    note: Arc<LogNote>,
    /// The log of the program; `None` in tests.
    program_log: Option<TableLog>,
    end: ProgramEnd,
}

impl SqliteLog {
    pub(super) fn new(
        writer: Arc<SharedWriter>,
        (thread, note): (LogThread, Arc<LogNote>),
        (program_log, end): (Option<TableLog>, ProgramEnd),
    ) -> SqliteLog {
        SqliteLog { writer, thread, note, program_log, end }
    }

    /// Syncs the log, and notes its number if it has a new one.
    fn sync_file(&self) -> std::io::Result<()> {
        let (number, files) = (self.note.written(), self.note.files());
        // What is written to a file without a name ends with the program, and so does what is written behind the end of one that was cut.
        let length = files.check()?;
        files.sync(std::fs::File::sync_data)?;
        self.note.confirm(number, length)
    }

    /// Ends the program, whose next start reads what is durable. If a file was removed, replaced or cut, the program goes on without
    /// writing: a start would fail, or go on with whatever database has the name now, and a removed one is lost when nobody has it open.
    fn failed(&self, error: &std::io::Error) -> SyncFailure {
        let message = format!("cannot make the tables durable: {error}");
        let files = self.note.files();
        let failure = match files.has_changed() {
            true => Failure::function(format!("{message}; restart the program")),
            false => {
                Failure::function(format!("{message}; the program ends, and the next start reads what is durable"))
            }
        };
        if !files.has_changed() {
            files.fail(error);
            self.end.fail(&failure);
        } else if let Some(log) = &self.program_log {
            let fails = "until then, it fails all writes, and what may depend on rows that are not durable";
            log.error(format!("{}: {fails}", failure.message));
        }
        SyncFailure { failure, is_final: true }
    }
}

impl LogSync for SqliteLog {
    fn sync(&mut self) -> Result<(), SyncFailure> {
        // If the group is lost, its flows know.
        let (mut writer, _) = self.writer.lock_behind_group();
        if writer.has_new_schema && writer.group.is_none() && writer.transaction == 0 {
            let renewed = writer.end_held_read().map_err(LogError::from);
            // If it fails, the next sync tries it again.
            writer.has_new_schema = renewed.and_then(|()| self.note.renew(&writer.connection)).is_err();
        }
        drop(writer);
        self.sync_file().map_err(|error| self.failed(&error))
    }

    fn synced(&mut self) {
        self.thread.bound_log();
    }
}
