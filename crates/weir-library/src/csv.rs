//! Comma-separated values (RFC 4180): reading the rows of a file as a stream or of a text as a list, and writing rows.

mod decode;
mod quotes;
mod row_lines;
mod rows;

use std::io::Cursor;

use csv::{Terminator, WriterBuilder};
use weir::{Failure, FailureKind, Module, Parameter, Type, Value};

use crate::bad_elements::BadElements;
use crate::stream_source::{StreamDefinition, optional, parameter, strict};
use crate::texts::Texts;
use crate::units;
pub use decode::{decode, decode_row, encode};
pub use rows::CsvRow;
use rows::{CsvRows, RowError, Rows};

/// Maximum number of rows that [`parse`] returns.
const ROWS_MAX: usize = 1_000_000;

/// The number of rows after which memory is checked.
const CHECKED_ROWS: usize = 64;

/// Builds the module `csv`.
pub(crate) fn csv() -> Module {
    let rows = StreamDefinition {
        name: "rows",
        doc: "Begins a flow for each row of a file of comma-separated values, in order, and ends at the end of the file. \
              The first row names the columns; an element maps these names to the row's fields. A row with more or \
              fewer fields, or one that is not UTF-8, is reported and skipped; with `strict: true` it ends the program. \
              So does a row of more than 16 MiB, in any case, because nobody knows where the next one begins.",
        parameters: [parameters(), vec![strict()]].concat(),
        element: Type::map(Type::Text, Type::Text),
        ordered: true,
        open: |arguments| CsvRows::open(arguments, arguments.bad_elements(2)?),
    };
    let checked = StreamDefinition {
        name: "checked_rows",
        doc: "Like `rows`, but a row with more or fewer fields than there are columns, or one that is not UTF-8, is an \
              element as well: a failure with its line. `row?` ends the flow of that row with the failure, \
              `row else { … }` handles it.",
        parameters: parameters(),
        element: Type::result(Type::map(Type::Text, Type::Text), Type::Failure),
        ordered: true,
        open: |arguments| CsvRows::open(arguments, BadElements::Emit),
    };
    checked.within(rows.within(functions::csv()))
}

fn parameters() -> Vec<Parameter> {
    vec![parameter("path", Type::Text), optional("separator", Type::Text, Value::text(","))]
}

mod functions {
    //! The module's functions, in a submodule because `library!` generates a function named like the module.

    weir::library! {
        /// Comma-separated values: reading and writing rows.
        pub(crate) csv: super::parse, super::decode::decode, super::decode::decode_row, super::row,
            super::decode::encode
    }
}

/// Parses a text whose first row names the columns, and returns each further row as a map from column name to field.
///
/// # Errors
/// Fails if a row has more or fewer fields than the first or an unclosed quotation mark, or if there are more than 1,000,000
/// rows.
#[weir::function(pure, units = units::to_divide(text))]
pub fn parse(text: &str, #[default(",")] separator: &str) -> Result<Vec<CsvRow>, Failure> {
    each_row(text, separator, |row, _| Ok(row))
}

/// Returns what `convert` makes of each row of a text and the line where it begins.
fn each_row<T>(
    text: &str,
    separator: &str,
    convert: impl Fn(CsvRow, u64) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut rows = Rows::new(Cursor::new(text.as_bytes()), separator_of(separator)?)?;
    let mut parsed = Vec::new();
    while let Some(row) = rows.next_row().map_err(RowError::into_failure)? {
        if parsed.len() == ROWS_MAX {
            return Err(Failure::new(FailureKind::Limit, format!("there are more than {ROWS_MAX} rows")));
        }
        if parsed.len().is_multiple_of(CHECKED_ROWS) {
            weir::memory::check().map_err(|failure| *failure)?;
        }
        parsed.push(convert(row, rows.line())?);
    }
    Ok(parsed)
}

/// Formats one row, quoting fields where necessary, without a line terminator.
///
/// # Errors
/// Fails if the separator is not a single ASCII character.
#[weir::function(pure, units = units::to_join(fields, separator))]
pub fn row(fields: &Texts, #[default(",")] separator: &str) -> Result<String, Failure> {
    let mut row = written(std::iter::once(fields.iter()), separator)?;
    row.truncate(row.trim_end_matches('\n').len());
    Ok(row)
}

/// Formats rows, each with a line end.
fn written<T: AsRef<[u8]>>(
    rows: impl Iterator<Item = impl Iterator<Item = T>>,
    separator: &str,
) -> Result<String, Failure> {
    let mut writer = WriterBuilder::new()
        .delimiter(separator_of(separator)?)
        .terminator(Terminator::Any(b'\n'))
        .from_writer(Vec::new());
    for row in rows {
        weir::memory::check().map_err(|failure| *failure)?;
        writer.write_record(row)?;
    }
    Ok(String::from_utf8(writer.into_inner().map_err(|error| Failure::function(error.to_string()))?)?)
}

fn separator_of(separator: &str) -> Result<u8, Failure> {
    match separator.as_bytes() {
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err(Failure::argument(format!("`separator` must be one ASCII character, not {separator:?}"))),
    }
}
