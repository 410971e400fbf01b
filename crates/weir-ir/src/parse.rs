//! Reads back what [`crate::print`] writes: programs of both IRs, for tests, snapshots and tools.
//!
//! Blank lines and lines that begin with `//` are left out. The parser reads any text without a panic: nesting is
//! bounded by [`NESTING_MAX`], and the first syntax error ends it with a [`ParseError`]. The result is not verified;
//! see [`crate::verify`].

use crate::expr::Block;
use crate::graph::Graph;
use crate::program::Program;

mod cursor;
mod error;
mod expr;
mod graph;
mod lines;
mod program;
mod value;

pub use crate::program::NESTING_MAX;
pub use error::{ParseError, ParseResult};

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
