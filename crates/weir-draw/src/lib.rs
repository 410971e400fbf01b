//! Drawings of a program's graph: an outline for the terminal, Graphviz for other tools, and SVG.
//!
//! `contraction` hides plumbing (copies, interpolations, selects, and the switch behind every `?`) and keeps calls,
//! branches, ends, bodies and atomic steps. `diagram` turns the rest into marks and edges, and drops edges that others
//! imply. `dot` and `svg` draw diagrams; `outline` prints the graph in the order of the program.
//!
//! The same program gives the same drawing, byte for byte.
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

/// The program to draw, and the level of detail.
#[derive(Clone, Copy)]
pub struct Drawing<'a> {
    /// The program.
    pub program: &'a Program,
    /// The library of its functions. It says which of them wait, which separates sections.
    pub library: Option<&'a Library>,
    /// The plan, which assigns calls to sections; without one, a section ends where a flow may leave its thread.
    pub plan: Option<&'a Plan>,
    /// The level of detail.
    pub detail: DetailLevel,
}

/// The level of detail of a drawing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DetailLevel {
    /// Hides plumbing.
    #[default]
    Folded,
    /// Shows every node.
    Everything,
}

impl Drawing<'_> {
    /// Returns whether a call of this function may leave its thread, which ends a section.
    fn leaves_thread(&self, function: &str) -> bool {
        let known = self.library.and_then(|library| library.function(function));
        known.is_some_and(|function| function.signature.effects.waits || function.signature.effects.blocking)
    }
}
