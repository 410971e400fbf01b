//! Row-by-row reading of CSV, from a text or from a file as a stream.
//!
//! A row whose number of fields does not match the columns, or that is not UTF-8, is a *row error*: further rows can still be
//! read. A row that is too long ends the input, as an I/O error does: most likely a quotation mark is not closed, and then nobody
//! knows which of the lines behind it are rows, and which are part of a field.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

use csv::{ReaderBuilder, StringRecord};
use parking_lot::Mutex;
use weir::{Entries, Failure, FailureKind, HostType, Text, Type, Value};

use super::row_lines::{RowLines, RowPlace};
use super::separator_of;
use crate::bad_elements::{BadElements, StreamElement};
use crate::files::root_of;
use crate::stream_source::{Emitter, SourceArguments, Stream};

/// Number of rows that are read in one batch on a blocking thread.
const BATCH_ROWS: usize = 256;
/// Maximum number of fields in a row.
const FIELDS_MAX: usize = 4096;
/// Maximum length of a row: 16 MiB. A longer row has most likely an unclosed quotation mark.
const ROW_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Reason why no row was read.
pub(super) enum RowError {
    /// This row is malformed; later rows can still be read.
    Row(Failure),
    /// The input cannot be read any further.
    End(Failure),
}

impl RowError {
    pub(super) fn into_failure(self) -> Failure {
        let (RowError::Row(failure) | RowError::End(failure)) = self;
        failure
    }
}

/// A reader that fails if a row is too long, and that follows the rows of its input.
struct BoundedReader<R> {
    inner: R,
    /// Number of bytes that may still be read before the row has to end.
    left: u64,
    lines: RowLines,
    /// True at the end of the input.
    is_at_end: bool,
}

impl<R> BoundedReader<R> {
    /// Returns true if the input has ended inside quotation marks.
    fn ends_quoted(&self) -> bool {
        self.is_at_end && self.lines.is_quoted()
    }
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let length = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.inner.read(&mut buffer[..length])?;
        self.left -= read as u64;
        self.lines.pass(&buffer[..read]);
        self.is_at_end = read == 0;
        Ok(read)
    }
}

/// A row: its fields by the names of the columns.
pub struct CsvRow(Entries);

impl HostType for CsvRow {
    fn ty() -> Type {
        Type::map(Text::ty(), Text::ty())
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        Entries::from_value(value).map(CsvRow)
    }

    fn into_value(self) -> Result<Value, Failure> {
        Ok(Value::Map(self.0))
    }
}

impl Deref for CsvRow {
    type Target = Entries;

    fn deref(&self) -> &Entries {
        &self.0
    }
}

/// Iterator over the rows of a reader, after the header row that names the columns.
pub(super) struct Rows<R> {
    reader: csv::Reader<BoundedReader<R>>,
    separator: u8,
    columns: Vec<Text>,
    /// The most recent row, kept to reuse its allocation.
    record: StringRecord,
    /// The place of the most recent row.
    place: RowPlace,
}

impl<R: Read> Rows<R> {
    pub(super) fn new(reader: R, separator: u8) -> Result<Self, Failure> {
        let lines = RowLines::new(separator);
        let bounded = BoundedReader { inner: reader, left: ROW_BYTES_MAX, lines, is_at_end: false };
        let mut reader = ReaderBuilder::new().delimiter(separator).from_reader(bounded);
        let columns = reader.headers().map(|columns| columns.iter().map(Text::from).collect());
        let input = reader.get_mut();
        let place = input.lines.row_from(0);
        let columns: Vec<Text> = match columns {
            Ok(_) if input.ends_quoted() => return Err(unclosed(place)),
            Ok(columns) => columns,
            Err(error) => return Err(row_error(&error, place, separator).into_failure()),
        };
        if columns.len() > FIELDS_MAX {
            return Err(Failure::new(FailureKind::Limit, format!("there are more than {FIELDS_MAX} columns")));
        }
        if let Some(twice) = columns.iter().enumerate().find(|(at, name)| columns[..*at].contains(name)) {
            return Err(Failure::function(format!("two columns are named {:?}", twice.1)));
        }
        Ok(Rows { reader, separator, columns, record: StringRecord::new(), place })
    }

    /// Returns the line in which the most recent row begins.
    pub(super) fn line(&self) -> u64 {
        self.place.first_line
    }

    pub(super) fn next_row(&mut self) -> Result<Option<CsvRow>, RowError> {
        let begin = self.reader.position().byte();
        self.reader.get_mut().left = ROW_BYTES_MAX;
        let read = self.reader.read_record(&mut self.record);
        let input = self.reader.get_mut();
        self.place = input.lines.row_from(begin);
        match read {
            // The row takes in the rest of the input.
            Ok(true) if input.ends_quoted() => Err(RowError::Row(unclosed(self.place))),
            Ok(true) => {
                let fields = self.record.iter().map(|field| Value::Text(field.into()));
                let columns = self.columns.iter().cloned().map(Value::Text);
                Ok(Some(CsvRow(columns.zip(fields).collect())))
            }
            Ok(false) => Ok(None),
            Err(error) => Err(row_error(&error, self.place, self.separator)),
        }
    }
}

/// Failure of a row that takes in the rest of the input.
fn unclosed(place: RowPlace) -> Failure {
    Failure::function(format!("line {}: a quotation mark is not closed", place.first_line))
}

/// Converts an error of the CSV reader in a row.
fn row_error(error: &csv::Error, place: RowPlace, separator: u8) -> RowError {
    let first = place.first_line;
    let (lines, are) = match place.has_several_lines() {
        true => (format!("lines {first} to {}", place.last_line), "are"),
        false => (format!("line {first}"), "is"),
    };
    let quotation = match place.may_be_unclosed() {
        true => format!("; a quotation mark in line {first} may be unclosed"),
        false => String::new(),
    };
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            let fields = if *len == 1 { "1 field".to_owned() } else { format!("{len} fields") };
            let columns =
                if *expected_len == 1 { "is 1 column".to_owned() } else { format!("are {expected_len} columns") };
            let hint = match len > expected_len && quotation.is_empty() {
                true => format!(
                    "; enclose a field that contains {:?} in quotation marks",
                    char::from(separator).to_string()
                ),
                false => quotation,
            };
            RowError::Row(Failure::function(format!("{lines}: {fields}, but there {columns}{hint}")))
        }
        csv::ErrorKind::Utf8 { .. } => RowError::Row(Failure::function(format!("{lines} {are} not UTF-8"))),
        csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            let message = format!("line {first}: the row is longer than {ROW_BYTES_MAX} bytes{quotation}");
            RowError::End(Failure::new(FailureKind::Limit, message))
        }
        _ => RowError::End(Failure::function(error.to_string())),
    }
}

/// The source `csv.rows("users.csv")`.
pub(super) struct CsvRows {
    path: String,
    bad: BadElements,
    /// The reader; taken when the stream runs.
    rows: Mutex<Option<Rows<File>>>,
    /// Length of the file in bytes when it was opened.
    length: u64,
    /// Bytes of the rows that have been emitted.
    emitted_bytes: AtomicU64,
}

impl CsvRows {
    pub(super) fn open(arguments: &SourceArguments<'_>, bad: BadElements) -> Result<Self, Failure> {
        let (path, separator) = (arguments.text(0)?.to_owned(), separator_of(arguments.text(1)?)?);
        let file = root_of(arguments)?.open_to_read(&path)?;
        let length = file.metadata()?.len();
        let rows = Rows::new(file, separator).map_err(|failure| of(&path, failure))?;
        Ok(CsvRows { path, bad, rows: Mutex::new(Some(rows)), length, emitted_bytes: AtomicU64::new(0) })
    }
}

fn of(path: &str, failure: Failure) -> Failure {
    Failure::new(failure.kind, format!("{path}: {failure}"))
}

/// A batch of elements, and the reader for further rows, the end of the input, or a failure.
type RowBatch = (Vec<StreamElement>, Result<Option<Rows<File>>, Failure>);

/// Reads one batch of rows. Blocks the calling thread.
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

/// Converts a row into an element of the stream; `None` at the end of the input.
fn element(
    row: Result<Option<CsvRow>, RowError>,
    path: &str,
    bad: BadElements,
) -> Result<Option<StreamElement>, Failure> {
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
        Some((self.emitted_bytes.load(Ordering::Relaxed), self.length))
    }

    async fn run(&self, emitter: Emitter) -> Result<(), Failure> {
        let mut left = self.rows.lock().take();
        while let Some(rows) = left {
            let (path, bad) = (self.path.clone(), self.bad);
            let (elements, next) = tokio::task::spawn_blocking(move || batch(rows, &path, bad)).await?;
            for element in elements {
                emitter.emit_or_report(element).await;
            }
            left = next?;
            let emitted_bytes = left.as_ref().map_or(self.length, |rows| rows.reader.position().byte());
            self.emitted_bytes.store(emitted_bytes, Ordering::Relaxed);
        }
        Ok(())
    }
}
