//! Language services for editors, as plain data.
//!
//! ```text
//! text ─▶ Document ─▶ hover · definition · references · completions · rename · formatting · actions · outline · calls ·
//!                    inlay hints · code lenses
//! ```
//!
//! A [`Document`] is one state of one file, checked as a whole; an edit makes a new one. Requests and results use byte
//! offsets and [`weir_syntax::Span`]s; [`Document::position`] and [`Document::offset`] convert these to the lines and
//! UTF-16 columns of editors.
//!
//! Architecture invariant: no protocol and no I/O. The language server turns these values into messages.

mod actions;
mod calls;
mod code_lenses;
mod completion;
mod document;
mod edits;
mod formatting;
mod hover;
mod inlay_hints;
mod navigation;
mod outline;
mod rename;

pub use actions::CodeAction;
pub use calls::CallHelp;
pub use code_lenses::TestLens;
pub use completion::{COMPLETIONS_MAX, Completion, CompletionKind};
pub use document::{Document, Position};
pub use edits::apply;
pub use hover::Hover;
pub use inlay_hints::InlayHint;
pub use navigation::{Definition, FileLocation};
pub use outline::{DocumentSymbol, SymbolKind};
pub use rename::RenameRefusal;
pub use weir_compile::{CheckCache, ModuleFile, ModuleFiles, ModulePlace};
