//! Pictures of a program's graph: an outline for the terminal, Graphviz for other tools, and an SVG of our own.
//!
//! A *diagram* is what a reader should see of a graph: `diagram` folds plumbing away (copies, interpolations, selects,
//! and the fork behind every `?`), keeps calls, branches, ends, bodies and atomic steps, and drops the edges that
//! follow from others. `dot` and `svg` draw diagrams; `outline` prints the graph in the order of the program.
//!
//! The same program gives the same picture, byte for byte.
//!
//! Architecture invariant: graph in, text out; neither syntax nor the terminal is known here.

mod contraction;
mod diagram;
mod dot;
mod layout;
mod names;
mod outline;
mod svg;

use weir_host::Library;
use weir_ir::graph::Program;
use weir_ir::plan::Plan;

pub use dot::dot;
pub use outline::outline;
pub use svg::{TooLarge, svg};

/// What is drawn, and how much of it.
#[derive(Clone, Copy)]
pub struct Drawing<'a> {
    /// The program.
    pub program: &'a Program,
    /// Where its functions come from: label which of them wait, so that sections can be told apart.
    pub library: Option<&'a Library>,
    /// What label which calls are in which section; without one, a section ends where a flow may leave its thread.
    pub plan: Option<&'a Plan>,
    /// How much is shown.
    pub detail: DetailLevel,
}

/// How much of a graph is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DetailLevel {
    /// Without plumbing.
    #[default]
    Folded,
    /// Every node.
    Everything,
}

impl Drawing<'_> {
    /// Whether a call of this function may leave its thread, and so ends a section.
    fn leaves_thread(&self, function: &str) -> bool {
        let known = self.library.and_then(|library| library.function(function));
        known.is_some_and(|function| function.signature.effects.waits || function.signature.effects.blocking)
    }
}
