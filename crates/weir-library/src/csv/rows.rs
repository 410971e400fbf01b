//! Rows read one by one: of a text, and of a file as a stream.
//!
//! A row that does not fit the columns, or is not UTF-8, is a *fault* behind which the next row stands; what cannot be read at
//! all, and a row that is too long, is the end.

use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use csv::{ReaderBuilder, StringRecord};
use indexmap::IndexMap;
use parking_lot::Mutex;
use weir::{Failure, FailureKind, HostType, Text, Value};

use super::separator_of;
use crate::bad_elements::BadElements;
use crate::files::root_of;
use crate::stream_source::{Emitter, SourceArguments, Stream};

/// Rows that are read before others use what was read.
const BATCH_ROWS: usize = 256;
/// Fields of a row.
const FIELDS_MAX: usize = 4096;
/// Bytes of a row: 16 MiB. One that is longer has a quote that nothing closes.
const ROW_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Why there is no row.
pub(super) enum RowError {
    /// The next one may be right.
    Row(Failure),
    /// There is no next one.
    End(Failure),
}

impl RowError {
    pub(super) fn into_failure(self) -> Failure {
        let (RowError::Row(failure) | RowError::End(failure)) = self;
        failure
    }
}

/// A reader that fails where a row is too long.
struct BoundedReader<R> {
    inner: R,
    /// What may be read before the row ends.
    left: u64,
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let length = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.inner.read(&mut buffer[..length])?;
        self.left -= read as u64;
        Ok(read)
    }
}

/// The rows of a reader, after the one that names the columns.
pub(super) struct Rows<R> {
    reader: csv::Reader<BoundedReader<R>>,
    columns: Vec<Text>,
    /// The last row; kept so that its memory is used again.
    record: StringRecord,
}

impl<R: Read> Rows<R> {
    pub(super) fn new(reader: R, separator: u8) -> Result<Self, Failure> {
        let bounded = BoundedReader { inner: reader, left: ROW_BYTES_MAX };
        let mut reader = ReaderBuilder::new().delimiter(separator).from_reader(bounded);
        let columns: Vec<Text> = match reader.headers() {
            Ok(columns) => columns.iter().map(Text::from).collect(),
            Err(error) => return Err(row_error(&error, 1).into_failure()),
        };
        if columns.len() > FIELDS_MAX {
            return Err(Failure::new(FailureKind::Limit, format!("there are more than {FIELDS_MAX} columns")));
        }
        if let Some(twice) = columns.iter().enumerate().find(|(at, name)| columns[..*at].contains(name)) {
            return Err(Failure::function(format!("two columns are named {:?}", twice.1)));
        }
        Ok(Rows { reader, columns, record: StringRecord::new() })
    }

    pub(super) fn next_row(&mut self) -> Result<Option<IndexMap<Text, Text>>, RowError> {
        let line = self.reader.position().line();
        self.reader.get_mut().left = ROW_BYTES_MAX;
        match self.reader.read_record(&mut self.record) {
            Ok(true) => Ok(Some(self.columns.iter().cloned().zip(self.record.iter().map(Text::from)).collect())),
            Ok(false) => Ok(None),
            Err(error) => Err(row_error(&error, line)),
        }
    }
}

/// What is wrong, with its line; `line` is where the row begins.
fn row_error(error: &csv::Error, line: u64) -> RowError {
    let at = error.position().map_or(line, csv::Position::line);
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            let fields = if *len == 1 { "1 field".to_owned() } else { format!("{len} fields") };
            let columns =
                if *expected_len == 1 { "is 1 column".to_owned() } else { format!("are {expected_len} columns") };
            RowError::Row(Failure::function(format!("line {at}: {fields} where there {columns}")))
        }
        csv::ErrorKind::Utf8 { .. } => RowError::Row(Failure::function(format!("line {at} is not UTF-8"))),
        csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            let message = format!("line {line}: a row of more than {ROW_BYTES_MAX} bytes; is a quote not closed?");
            RowError::End(Failure::new(FailureKind::Limit, message))
        }
        _ => RowError::End(Failure::function(error.to_string())),
    }
}

/// `csv.rows("users.csv")`.
pub(super) struct CsvRows {
    path: String,
    bad: BadElements,
    /// Taken when it runs.
    rows: Mutex<Option<Rows<File>>>,
    /// Its bytes when it was opened.
    length: u64,
    /// The bytes of the rows that were given.
    given: AtomicU64,
}

impl CsvRows {
    pub(super) fn open(given: &SourceArguments<'_>, bad: BadElements) -> Result<Self, Failure> {
        let (path, separator) = (given.text(0)?.to_owned(), separator_of(given.text(1)?)?);
        let file = root_of(given)?.open_to_read(&path)?;
        let length = file.metadata()?.len();
        let rows = Rows::new(file, separator).map_err(|failure| of(&path, failure))?;
        Ok(CsvRows { path, bad, rows: Mutex::new(Some(rows)), length, given: AtomicU64::new(0) })
    }
}

fn of(path: &str, failure: Failure) -> Failure {
    Failure::new(failure.kind, format!("{path}: {failure}"))
}

/// Some rows as elements, with what comes after them: further rows, the end, or a failure.
type RowBatch = (Vec<Value>, Result<Option<Rows<File>>, Failure>);

/// Reads some rows. Holds its thread.
fn batch(mut rows: Rows<File>, path: &str, bad: BadElements) -> RowBatch {
    let mut elements = Vec::with_capacity(BATCH_ROWS);
    while elements.len() < BATCH_ROWS {
        match element(rows.next_row(), path, bad) {
            Ok(Some(element)) => elements.push(element),
            Ok(None) => return (elements, Ok(None)),
            Err(failure) => return (elements, Err(failure)),
        }
    }
    (elements, Ok(Some(rows)))
}

/// The element of a row.
fn element(
    row: Result<Option<IndexMap<Text, Text>>, RowError>,
    path: &str,
    bad: BadElements,
) -> Result<Option<Value>, Failure> {
    let read = match row {
        Ok(None) => return Ok(None),
        Ok(Some(row)) => Ok(row.into_value()?),
        Err(RowError::Row(failure)) => Err(of(path, failure)),
        Err(RowError::End(failure)) => return Err(of(path, failure)),
    };
    bad.element(read).map(Some)
}

impl Stream for CsvRows {
    fn describe(&self) -> String {
        format!("the rows of {}", self.path)
    }

    fn extent(&self, _elements: u64) -> Option<(u64, u64)> {
        Some((self.given.load(Ordering::Relaxed), self.length))
    }

    async fn run(&self, emitter: Emitter) -> Result<(), Failure> {
        let mut left = self.rows.lock().take();
        while let Some(rows) = left {
            let (path, bad) = (self.path.clone(), self.bad);
            let (elements, next) = tokio::task::spawn_blocking(move || batch(rows, &path, bad)).await?;
            for element in elements {
                emitter.emit(element).await;
            }
            left = next?;
            let given = left.as_ref().map_or(self.length, |rows| rows.reader.position().byte());
            self.given.store(given, Ordering::Relaxed);
        }
        Ok(())
    }
}
