//! From the tree to a verified graph: names, types, effects, lowering and passes.
//!
//! ```text
//! SourceFile ─parse─▶ tree ─check─▶ TypedTree ─lower─▶ expression IR ─▶ graph
//!                                     └── diagnostics ──┴── moves, lost updates
//! ```
//!
//! [`check()`] says all that is wrong with a text, [`compile()`] also makes the program. Neither ever fails: what cannot be
//! made sense of is reported once and left out.
//!
//! Architecture invariant: no I/O, no threads, no runtime. The library comes as an argument; the text comes as a value.

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

/// The module with the functions that every shared value has.
pub const STATE: &str = "state";

/// The function that tells what a shared value is at this moment.
const SHARED_READ: &str = "state.read";

/// The type of JSON of any shape: it has no parts that a program could name, and yet is JSON.
const JSON_VALUE: &str = "json.Value";

/// What checking a text gives.
pub struct Checked {
    /// The tree and its comments.
    pub parsed: Parsed,
    /// The resolutions and types of the tree.
    pub typed: TypedTree,
    /// The program, where nothing is wrong with it.
    pub expr: Option<expr::Program>,
    /// The tests of the text: a program with one flow for each, in the order of the text.
    pub tests: Option<expr::Program>,
    /// What is wrong, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// What compiling a text gives.
pub struct Compiled {
    /// The program as expressions, where nothing is wrong with it.
    pub expr: Option<expr::Program>,
    /// The program as graphs, where nothing is wrong with it.
    pub graph: Option<graph::Program>,
    /// The tests of the text: a program with one entry point, whose source names nothing and which has one flow for each
    /// test, in the order of the text. A flow that ends with a failure is a test that fails.
    pub tests: Option<expr::Program>,
    /// What is wrong, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Says all that is wrong with a text. `source` is the file's number in the caller's [`weir_syntax::Sources`].
#[must_use]
pub fn check(source: SourceId, file: &SourceFile, library: &Library) -> Checked {
    check_again(source, file, library, &mut CheckCache::default())
}

/// As [`check()`], of a file that was checked before under the same library: what cannot have changed is not looked at
/// again. The result is the same.
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

/// Compiles a text.
#[must_use]
pub fn compile(source: SourceId, file: &SourceFile, library: &Library) -> Compiled {
    let checked = check(source, file, library);
    let graph = checked.expr.as_ref().map(|program| to_graph(program, library));
    debug_assert!(checked.tests.iter().all(|tests| tests_are_valid(tests, library)), "the lowering of tests is right");
    Compiled { expr: checked.expr, graph, tests: checked.tests, diagnostics: checked.diagnostics }
}

/// Whether the verifier finds nothing in the tests but their source, which names nothing.
fn tests_are_valid(tests: &expr::Program, library: &Library) -> bool {
    weir_ir::verify::expr(tests, library).iter().all(|found| found.rule == weir_ir::verify::Rule::Known)
}

/// The program as graphs, behind all passes. It is verified after each step if assertions are on: what the verifier finds is
/// a bug of the step.
fn to_graph(program: &expr::Program, library: &Library) -> graph::Program {
    debug_assert_eq!(weir_ir::verify::expr(program, library), [], "the lowering of the tree is right");
    weir_ir::optimize(program, library)
}

fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(Diagnostic::is_error)
}

/// The checks that look at the IR: of every flow, and of every `fn` that no flow reaches.
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
    // A test has its shared values for itself, so that only those of flows can lose an update.
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
