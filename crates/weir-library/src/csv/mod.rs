//! Comma-separated values, by RFC 4180: the rows of a file as a stream, of a text as a list, and rows written.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};

use csv::{ReaderBuilder, StringRecord, Terminator, WriterBuilder};
use indexmap::IndexMap;
use parking_lot::Mutex;
use weir::{Failure, FailureKind, Module, Text, Type, Value};

use crate::feed::{Feeder, Given, Stream, StreamRow, optional, parameter};
use crate::files::root_of;

/// Rows that [`parse`] gives at most.
const ROWS_MAX: usize = 1_000_000;
/// Rows that are read before others use what was read.
const BATCH_ROWS: usize = 256;
/// Fields of a row.
const FIELDS_MAX: usize = 4096;

/// The module `csv`.
pub(crate) fn csv() -> Module {
    let rows = StreamRow {
        name: "rows",
        doc: "Begins a flow for each row of a file of comma-separated values, in their order, and ends with it. Its \
              first row names the columns; the element maps these names to the row's fields.",
        parameters: vec![parameter("path", Type::Text), optional("separator", Type::Text, Value::text(","))],
        element: Type::map(Type::Text, Type::Text),
        ordered: true,
        open: CsvRows::open,
    };
    rows.within(functions::csv())
}

mod functions {
    //! The functions of the module, apart so that the module made of them can be named as it is.

    weir::library! {
        /// Comma-separated values: rows read and written.
        pub(crate) csv: super::parse, super::row
    }
}

/// The rows of a text whose first row names the columns, each as a map from these names to its fields.
///
/// # Errors
/// Fails where a row has more or fewer fields than the first, or where there are more than 1,000,000.
#[weir::function(pure)]
pub fn parse(text: &str, #[default(",")] separator: &str) -> Result<Vec<IndexMap<Text, Text>>, Failure> {
    let mut rows = Rows::new(text.as_bytes(), separator_of(separator)?)?;
    let mut parsed = Vec::new();
    while let Some(row) = rows.next_row()? {
        if parsed.len() == ROWS_MAX {
            return Err(Failure::new(FailureKind::Limit, format!("there are more than {ROWS_MAX} rows")));
        }
        parsed.push(row);
    }
    Ok(parsed)
}

/// One row, with quotes where a field needs them, and without an end of line.
///
/// # Errors
/// Fails where the separator is not one ASCII character.
#[weir::function(pure)]
pub fn row(fields: &[Text], #[default(",")] separator: &str) -> Result<String, Failure> {
    let mut writer = WriterBuilder::new()
        .delimiter(separator_of(separator)?)
        .terminator(Terminator::Any(b'\n'))
        .from_writer(Vec::new());
    writer.write_record(fields.iter().map(Text::as_str))?;
    let mut row = String::from_utf8(writer.into_inner().map_err(|error| Failure::function(error.to_string()))?)?;
    row.truncate(row.trim_end_matches('\n').len());
    Ok(row)
}

fn separator_of(separator: &str) -> Result<u8, Failure> {
    match separator.as_bytes() {
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err(Failure::argument(format!("`separator` is {separator:?}, it must be one ASCII character"))),
    }
}

/// The rows of a reader, after the one that names the columns.
struct Rows<R> {
    reader: csv::Reader<R>,
    columns: Vec<Text>,
    /// The last row; kept so that its memory is used again.
    record: StringRecord,
}

impl<R: std::io::Read> Rows<R> {
    fn new(reader: R, separator: u8) -> Result<Self, Failure> {
        let mut reader = ReaderBuilder::new().delimiter(separator).from_reader(reader);
        let columns: Vec<Text> = reader.headers().map_err(explain)?.iter().map(Text::from).collect();
        if columns.len() > FIELDS_MAX {
            return Err(Failure::new(FailureKind::Limit, format!("there are more than {FIELDS_MAX} columns")));
        }
        if let Some(twice) = columns.iter().enumerate().find(|(at, name)| columns[..*at].contains(name)) {
            return Err(Failure::function(format!("two columns are named {:?}", twice.1)));
        }
        Ok(Rows { reader, columns, record: StringRecord::new() })
    }

    fn next_row(&mut self) -> Result<Option<IndexMap<Text, Text>>, Failure> {
        if !self.reader.read_record(&mut self.record).map_err(explain)? {
            return Ok(None);
        }
        Ok(Some(self.columns.iter().cloned().zip(self.record.iter().map(Text::from)).collect()))
    }
}

/// What is wrong, with its line.
fn explain(error: csv::Error) -> Failure {
    let line = error.position().map(csv::Position::line).unwrap_or_default();
    Failure::function(match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("line {line}: {len} fields where there are {expected_len} columns")
        }
        csv::ErrorKind::Utf8 { .. } => format!("line {line} is not UTF-8"),
        _ => error.to_string(),
    })
}

/// `csv.rows("users.csv")`.
struct CsvRows {
    path: String,
    /// Taken when it runs.
    rows: Mutex<Option<Rows<File>>>,
    /// Its bytes when it was opened.
    length: u64,
    /// The bytes of the rows that were given.
    given: AtomicU64,
}

impl CsvRows {
    fn open(given: &Given<'_>) -> Result<Self, Failure> {
        let (path, separator) = (given.text(0)?.to_owned(), separator_of(given.text(1)?)?);
        let file = root_of(given)?.open_to_read(&path)?;
        let length = file.metadata()?.len();
        let rows = Rows::new(file, separator).map_err(|failure| of(&path, failure))?;
        Ok(CsvRows { path, rows: Mutex::new(Some(rows)), length, given: AtomicU64::new(0) })
    }
}

fn of(path: &str, failure: Failure) -> Failure {
    Failure::new(failure.kind, format!("{path}: {failure}"))
}

/// Some rows as elements, with what comes after them: further rows, the end, or a failure.
type Batch = (Vec<Value>, Result<Option<Rows<File>>, Failure>);

/// Reads some rows. Holds its thread.
fn batch(mut rows: Rows<File>) -> Batch {
    let mut elements = Vec::with_capacity(BATCH_ROWS);
    while elements.len() < BATCH_ROWS {
        match rows.next_row().and_then(|row| row.map(weir::HostType::into_value).transpose()) {
            Ok(Some(element)) => elements.push(element),
            Ok(None) => return (elements, Ok(None)),
            Err(failure) => return (elements, Err(failure)),
        }
    }
    (elements, Ok(Some(rows)))
}

impl Stream for CsvRows {
    fn describe(&self) -> String {
        format!("the rows of {}", self.path)
    }

    fn extent(&self, _elements: u64) -> Option<(u64, u64)> {
        Some((self.given.load(Ordering::Relaxed), self.length))
    }

    async fn run(&self, feeder: Feeder) -> Result<(), Failure> {
        let mut left = self.rows.lock().take();
        while let Some(rows) = left {
            let (elements, next) = tokio::task::spawn_blocking(move || batch(rows)).await?;
            for element in elements {
                feeder.give(element).await;
            }
            left = next.map_err(|failure| of(&self.path, failure))?;
            let given = left.as_ref().map_or(self.length, |rows| rows.reader.position().byte());
            self.given.store(given, Ordering::Relaxed);
        }
        Ok(())
    }
}
