//! Syntax errors, with the place in the text.

use std::fmt;

/// A syntax error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The construct that was expected.
    pub expected: String,
    /// The text that was found, cut to a few characters.
    pub found: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParseError { line, column, expected, found } = self;
        write!(f, "line {line}, column {column}: expected {expected}, found {found}")
    }
}

impl std::error::Error for ParseError {}

/// The result of reading something.
pub type ParseResult<T> = Result<T, ParseError>;
