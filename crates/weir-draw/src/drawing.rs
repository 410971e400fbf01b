//! The input of every picture: a program, and the level of detail.

use weir_host::{Batch, Library};
use weir_ir::graph::Program;
use weir_ir::plan::Plan;

/// The program to draw, and the level of detail.
#[derive(Clone, Copy)]
pub struct Drawing<'a> {
    /// The program.
    pub program: &'a Program,
    /// The library of its functions. Its signatures show which calls wait, which determines the borders of sections.
    pub library: Option<&'a Library>,
    /// The plan, which assigns calls to sections; without one, a section ends where a flow may leave its thread.
    pub plan: Option<&'a Plan>,
    /// The level of detail.
    pub detail: DetailLevel,
}

/// The level of detail of a drawing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DetailLevel {
    /// Draws each `fn` of the program as one node, and hides plumbing.
    FoldedFns,
    /// Hides plumbing.
    #[default]
    Folded,
    /// Shows every node.
    Everything,
}

impl Drawing<'_> {
    /// Returns the limits of batches if calls of this function are gathered.
    pub(crate) fn batch(&self, function: &str) -> Option<Batch> {
        self.library?.function(function)?.signature.batch
    }

    /// Returns whether a call of this function may leave its thread, which ends a section.
    pub(crate) fn leaves_thread(&self, function: &str) -> bool {
        let known = self.library.and_then(|library| library.function(function));
        known.is_some_and(|function| function.signature.effects.waits || function.signature.effects.blocking)
    }
}
