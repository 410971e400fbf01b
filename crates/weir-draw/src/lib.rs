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
mod drawing;
mod layout;
mod looks;
mod names;
mod outline;
mod svg;

pub use dot::dot;
pub use drawing::{DetailLevel, Drawing};
pub use outline::outline;
pub use svg::{TooLarge, svg};
