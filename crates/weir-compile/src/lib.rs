//! From the tree to a verified graph: names, types, effects, lowering and passes.
//!
//! ```text
//! SourceFile ─parse─▶ tree ─check─▶ Typed ─lower─▶ expression IR ─▶ graph
//!                                     └── diagnostics ──┴── moves, lost updates
//! ```
//!
//! [`check`] says all that is wrong with a text, [`compile`] also makes the program. Neither ever fails: what cannot be
//! made sense of is reported once and left out.
//!
//! Architecture invariant: no I/O, no threads, no runtime. The library comes as an argument; the text comes as a value.

mod cases;
mod check;
mod constant;
mod declare;
mod effects;
mod lower;
mod moves;
mod suggest;
mod typed;
mod types;
mod updates;

use weir_host::Library;
use weir_ir::{expr, graph};
use weir_syntax::{Diagnostic, Parsed, SourceFile, SourceId};

pub use effects::Effects;
pub use lower::OPERATIONS_MAX;
pub use typed::Typed;

/// What checking a text gives.
pub struct Checked {
    /// The tree and its comments.
    pub parsed: Parsed,
    /// The meanings and types of the tree.
    pub typed: Typed,
    /// The program, where nothing is wrong with it.
    pub expr: Option<expr::Program>,
    /// What is wrong, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// What compiling a text gives.
pub struct Compiled {
    /// The program as expressions, where nothing is wrong with it.
    pub expr: Option<expr::Program>,
    /// The program as graphs, where nothing is wrong with it.
    pub graph: Option<graph::Program>,
    /// What is wrong, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Says all that is wrong with a text. `source` is the file's number in the caller's [`weir_syntax::Sources`].
#[must_use]
pub fn check(source: SourceId, file: &SourceFile, library: &Library) -> Checked {
    let mut parsed = weir_syntax::parse(source, file.text());
    let mut diagnostics = std::mem::take(&mut parsed.diagnostics);
    let typed = check::check(&parsed.tree, library, &mut diagnostics);
    let mut expr = None;
    if !has_errors(&diagnostics) {
        let program = lower::lower(&parsed.tree, &typed, library, &mut diagnostics);
        check_bodies(source, &parsed, &typed, library, &program, &mut diagnostics);
        expr = Some(program).filter(|_| !has_errors(&diagnostics));
    }
    diagnostics.sort_by_key(|diagnostic| diagnostic.span().map_or((0, 0), |span| (span.start, span.end)));
    parsed.diagnostics.clone_from(&diagnostics);
    Checked { parsed, typed, expr, diagnostics }
}

/// Compiles a text.
#[must_use]
pub fn compile(source: SourceId, file: &SourceFile, library: &Library) -> Compiled {
    let checked = check(source, file, library);
    Compiled { expr: checked.expr, graph: None, diagnostics: checked.diagnostics }
}

fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(Diagnostic::is_error)
}

/// The checks that look at the IR: of every flow, and of every `fn` that no flow reaches.
fn check_bodies(
    source: SourceId,
    parsed: &Parsed,
    typed: &Typed,
    library: &Library,
    program: &expr::Program,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let types = &program.types;
    for flow in program.entries.iter().flat_map(|entry| &entry.flows) {
        moves::check(&flow.parameters, &flow.body, types, library, source, diagnostics);
        updates::check(&flow.body, library, source, diagnostics);
    }
    for at in typed.unreached_fns() {
        if let Some((parameters, body)) = lower::lower_fn(at, &parsed.tree, typed, library, diagnostics) {
            moves::check(&parameters, &body, types, library, source, diagnostics);
            updates::check(&body, library, source, diagnostics);
        }
    }
}
