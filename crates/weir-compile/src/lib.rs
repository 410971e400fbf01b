//! The compiler front end: checks a tree and lowers it to a verified graph.
//!
//! ```text
//! SourceFile ─parse─▶ tree ─check─▶ TypedTree ─lower─▶ expression IR ─▶ graph
//!                             └── diagnostics ───┴── moves, lost updates, lock order
//! ```
//!
//! [`check()`] reports everything that is wrong with a file, [`compile()`] also builds the program. Neither fails: code
//! that makes no sense is reported once and left out.
//!
//! Architecture invariant: no I/O, no threads, no runtime. The library is an argument; the source text is a value.

mod cascade;
mod check;
mod check_cache;
mod constant;
mod declare;
mod dialects;
mod effects;
mod exhaustiveness;
mod integer_division;
mod lock_order;
mod lost_updates;
mod lower;
mod move_checker;
mod races;
mod session_values;
mod suggest;
mod symbol;
mod symbol_index;
mod typed_tree;
mod types;

use std::collections::BTreeSet;

use weir_host::Library;
use weir_ir::{expr, graph};
use weir_syntax::{Diagnostic, Parsed, SourceFile, SourceId};

pub use check_cache::CheckCache;
pub use effects::EffectSummary;
pub use lower::OPERATIONS_MAX;
pub use symbol::{Reference, Symbol};
pub use symbol_index::{LocalName, SymbolInfo};
pub use typed_tree::TypedTree;

/// The module whose functions every shared value has.
pub const STATE: &str = "state";

/// The function that returns the current value of a shared value.
const SHARED_READ: &str = "state.read";

/// The type of arbitrary JSON. It is opaque, and yet valid wherever JSON is.
const JSON_VALUE: &str = "json.Value";

/// The result of checking a file.
pub struct Checked {
    /// The tree and its comments.
    pub parsed: Parsed,
    /// The resolved names and types of the tree.
    pub typed: TypedTree,
    /// The program; `None` if there are errors.
    pub expr: Option<expr::Program>,
    /// The tests of the file: a program with one flow for each, in source order.
    pub tests: Option<expr::Program>,
    /// The diagnostics, in source order.
    pub diagnostics: Vec<Diagnostic>,
}

/// The result of compiling a file.
pub struct Compiled {
    /// The program in the expression IR; `None` if there are errors.
    pub expr: Option<expr::Program>,
    /// The program as graphs; `None` if there are errors.
    pub graph: Option<graph::Program>,
    /// The tests of the file: a program with one entry point, which has no source and one flow for each test, in source
    /// order. A test fails if its flow ends with a failure.
    pub tests: Option<expr::Program>,
    /// The diagnostics, in source order.
    pub diagnostics: Vec<Diagnostic>,
}

/// Checks a file. `source` is its number in the caller's [`weir_syntax::Sources`].
#[must_use]
pub fn check(source: SourceId, file: &SourceFile, library: &Library) -> Checked {
    check_again(source, file, library, &mut CheckCache::default())
}

/// Checks a file again after an edit, under the same library, and skips the `fn`s that the cache knows to be clean. The
/// result is that of [`check()`].
#[must_use]
pub fn check_again(source: SourceId, file: &SourceFile, library: &Library, cache: &mut CheckCache) -> Checked {
    let mut parsed = weir_syntax::parse(source, file.text());
    let mut diagnostics = std::mem::take(&mut parsed.diagnostics);
    let from_parser = diagnostics.len();
    let typed = check::check(&parsed.tree, library, &mut diagnostics);
    let mut from_checker = diagnostics.split_off(from_parser);
    cascade::suppress(&diagnostics, &mut from_checker, file.text());
    integer_division::check(source, file.text(), &parsed, &typed, &mut from_checker);
    diagnostics.append(&mut from_checker);
    let (mut expr, mut tests) = (None, None);
    if !has_errors(&diagnostics) {
        let mut program = lower::lower(&parsed.tree, &typed, library, &mut diagnostics);
        lock_order::order(&mut program, library, source, &mut diagnostics);
        session_values::check(&program, library, source, &mut diagnostics);
        check_bodies((source, file), &parsed, &typed, library, &program, cache, &mut diagnostics);
        let mut tested = lower::lower_tests(&parsed.tree, &typed, library, file.text(), &program, &mut diagnostics);
        lock_order::order(&mut tested, library, source, &mut diagnostics);
        check_values(source, library, &tested, &mut diagnostics);
        if !has_errors(&diagnostics) {
            (expr, tests) = (Some(program), Some(tested));
        }
    }
    diagnostics.sort_by_key(|diagnostic| diagnostic.span().map_or((0, 0), |span| (span.start, span.end)));
    parsed.diagnostics.clone_from(&diagnostics);
    Checked { parsed, typed, expr, tests, diagnostics }
}

/// Compiles a file.
#[must_use]
pub fn compile(source: SourceId, file: &SourceFile, library: &Library) -> Compiled {
    let checked = check(source, file, library);
    let graph = checked.expr.as_ref().map(|program| to_graph(program, library));
    debug_assert!(checked.tests.iter().all(|tests| tests_are_valid(tests, library)), "the lowering of tests is right");
    Compiled { expr: checked.expr, graph, tests: checked.tests, diagnostics: checked.diagnostics }
}

/// Returns whether the verifier accepts the tests. Their entry point has no source, which is the only violation
/// allowed.
fn tests_are_valid(tests: &expr::Program, library: &Library) -> bool {
    weir_ir::verify::expr(tests, library).iter().all(|found| found.rule == weir_ir::verify::Rule::Known)
}

/// Lowers the program to graphs and runs all passes. Debug builds verify it after each step, because a violation is a bug of the
/// compiler.
fn to_graph(program: &expr::Program, library: &Library) -> graph::Program {
    debug_assert_eq!(weir_ir::verify::expr(program, library), [], "the lowering of the tree is right");
    weir_ir::optimize(program, library)
}

fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(Diagnostic::is_error)
}

/// Runs the checks that need the IR, on every flow and every `fn` that no flow reaches.
fn check_bodies(
    (source, file): (SourceId, &SourceFile),
    parsed: &Parsed,
    typed: &TypedTree,
    library: &Library,
    program: &expr::Program,
    cache: &mut CheckCache,
    diagnostics: &mut Vec<Diagnostic>,
) {
    check_values(source, library, program, diagnostics);
    // Only flows can lose an update: each test has its own shared values.
    for flow in program.entries.iter().flat_map(|entry| &entry.flows) {
        lost_updates::check(&flow.body, library, source, diagnostics);
    }
    let fingerprints = check_cache::Fingerprints::new(&parsed.tree, typed, file.text());
    let mut clean = BTreeSet::new();
    for at in typed.unreached_fns() {
        let fingerprint = fingerprints.of(at);
        let before = diagnostics.len();
        if !cache.knows(fingerprint)
            && let Some((parameters, body)) = lower::lower_unreached_fn(at, &parsed.tree, typed, library, diagnostics)
        {
            move_checker::check(&parameters, &body, &program.types, library, source, diagnostics);
            lost_updates::check(&body, library, source, diagnostics);
            races::check(&body, library, source, diagnostics);
        }
        if diagnostics.len() == before {
            clean.insert(fingerprint);
        }
    }
    cache.keep(clean);
}

fn check_values(source: SourceId, library: &Library, program: &expr::Program, diagnostics: &mut Vec<Diagnostic>) {
    for flow in program.entries.iter().flat_map(|entry| &entry.flows) {
        move_checker::check(&flow.parameters, &flow.body, &program.types, library, source, diagnostics);
        races::check(&flow.body, library, source, diagnostics);
    }
}
