//! The two intermediate representations of a program, and the evaluator that defines their semantics.
//!
//! The *expression IR* ([`expr`]) is a λ-calculus in A-normal form (Ohua thesis, chapter 4, where it is called EDD);
//! the compiler's rewrites of expressions work on it. [`lower()`] turns it into the *graph* ([`graph`]): nodes with
//! typed ports, control flow turned into data, resources as explicit edges. Engines run the graph. [`evaluate`] runs
//! the expression IR from top to bottom and is the specification: every pass and every engine is tested against it, on
//! the random programs of the feature `generate`.
//!
//! Both representations [`print`](mod@print) as text, [`parse`] back and [`verify`].
//!
//! Architecture invariant: neither syntax nor scheduling is known here, and nothing here does I/O.

mod body_types;
pub mod evaluate;
pub mod expr;
#[cfg(feature = "generate")]
pub mod generate;
pub mod graph;
pub mod io_rounds;
pub mod lower;
mod move_only;
pub mod needed_parts;
pub mod parse;
pub mod passes;
pub mod plan;
pub mod prim;
pub mod print;
pub mod program;
pub mod verify;

pub use body_types::caught_failure_type;
pub use lower::lower;
pub use passes::optimize;
