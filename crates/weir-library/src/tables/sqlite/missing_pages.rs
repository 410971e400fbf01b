//! Pages of a database that are neither in its file nor in its log, because somebody has cut the file.
//!
//! SQLite does not look for them when it opens a database with a log: it takes the number of pages from there, and takes a page that is
//! missing for zeros when it reads it. But every page that a commit adds is in the log until a checkpoint has moved it into the file.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use rusqlite::Connection;

use super::database_files::{LOG, beside};
use super::log_index::read_at;

/// Length of the header of a log, and of that of a frame, which is behind it with its page.
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The place of the salts in the header of a log, which its frames have, too, behind two numbers.
const SALTS_AT: usize = 16;
const SALTS: usize = 8;
/// The page in which SQLite locks the database has these bytes, and is never written.
const LOCK_AT: u64 = 1 << 30;

/// Returns whether pages of a database are missing. Takes a connection that reads.
pub(super) fn lacks_pages(path: &Path, connection: &Connection) -> rusqlite::Result<bool> {
    // While it reads, nobody forgets a part of the log that it needs, nor cuts the file.
    let reading = connection.unchecked_transaction()?;
    let number = |pragma: &str| reading.query_row(pragma, [], |row| row.get::<_, i64>(0).map(i64::unsigned_abs));
    let (pages, size) = (number("PRAGMA page_count")?, number("PRAGMA page_size")?.max(1));
    let in_file = std::fs::metadata(path).map_or(u64::MAX, |file| file.len()) / size;
    if in_file >= pages {
        return Ok(false);
    }
    let in_log = pages_in_log(&beside(path, LOG), size);
    Ok(in_log
        .is_some_and(|in_log| (in_file + 1..=pages).any(|page| page - 1 != LOCK_AT / size && !in_log.contains(&page))))
}

/// Returns the pages of a log, also of transactions that were not committed; `None` if it cannot be read.
fn pages_in_log(log: &Path, page_size: u64) -> Option<BTreeSet<u64>> {
    let log = File::open(log).ok()?;
    let mut header = [0; LOG_HEADER];
    read_at(&log, &mut header, 0).ok()?;
    let salts = &header[SALTS_AT..SALTS_AT + SALTS];
    let (mut pages, mut frame) = (BTreeSet::new(), [0; FRAME_HEADER]);
    for at in (LOG_HEADER as u64..).step_by(FRAME_HEADER + usize::try_from(page_size).ok()?) {
        // Behind the frames of this log are those of one before, or nothing.
        if read_at(&log, &mut frame, at).is_err() || frame[8..8 + SALTS] != *salts {
            break;
        }
        pages.insert(u64::from(u32::from_be_bytes(*frame.first_chunk()?)));
    }
    Some(pages)
}
