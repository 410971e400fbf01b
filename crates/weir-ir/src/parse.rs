//! Reads back what [`crate::print`] writes: programs of both IRs, for tests, snapshots and tools.
//!
//! Blank lines and lines that begin with `//` are left out. The parser reads any text without a panic: nesting is
//! bounded by [`NESTING_MAX`], and the first syntax error ends it with a [`ParseError`]. The result is not verified;
//! see [`crate::verify`].

use std::fmt;

use crate::expr::Block;
use crate::graph::Graph;
use crate::program::Program;

mod cursor;
mod expr;
mod graph;
mod lines;
mod program;
mod value;

/// The depth to which blocks, types and constants may nest. It bounds the recursion of everything that walks an IR.
pub const NESTING_MAX: usize = 256;

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

/// Reads a program in the expression IR.
///
/// # Errors
/// Fails at the first syntax error.
pub fn expr(text: &str) -> ParseResult<Program<Block>> {
    program::program(&mut lines::LineReader::new(text)?, expr::block)
}

/// Reads a program in graphs.
///
/// # Errors
/// Fails at the first syntax error.
pub fn graph(text: &str) -> ParseResult<Program<Graph>> {
    program::program(&mut lines::LineReader::new(text)?, graph::graph)
}
