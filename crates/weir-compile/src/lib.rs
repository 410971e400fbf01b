//! The compiler front end: checks a tree and lowers it to a verified graph.
//!
//! ```text
//! SourceFile ─parse─▶ tree ─check─▶ TypedTree ─lower─▶ expression IR ─▶ graph
//!                             └── diagnostics ───┴── moves, lost updates, lock order, lints
//! ```
//!
//! [`check()`] reports everything that is wrong with a file, [`compile()`] also builds the program. Neither fails: code
//! that makes no sense is reported once and left out.
//!
//! Architecture invariant: no I/O and no runtime. The library is an argument; the source text is a value. A check of a large
//! program uses several cores (`parallel`), and no thread outlives it.

mod allowed;
mod bound_constraints;
mod bypassed_handlers;
mod call_places;
mod cascade;
mod check;
mod check_cache;
mod checked;
mod constant;
mod constant_uses;
mod context;
mod cookie_uses;
mod declarations;
mod declare;
mod dependency_order;
mod dialects;
mod effects;
mod exhaustiveness;
mod file_keys;
mod file_lints;
mod fingerprints;
mod html_template;
mod integer_division;
mod kept_flows;
mod lang_items;
mod lints;
mod listen_addresses;
mod lock_order;
mod lost_updates;
mod lower;
mod move_checker;
mod parallel;
mod program_files;
mod races;
mod session_values;
mod source_arguments;
mod suggest;
mod symbol;
mod symbol_index;
mod table_statements;
mod table_writes;
mod typed_tree;
mod types;
mod unreached_fns;
mod weir_modules;
mod whole_lines;

use weir_host::Library;
use weir_ir::{expr, graph};
use weir_syntax::{Code, Diagnostic, SourceFile, SourceId};

pub use check_cache::CheckCache;
pub use checked::{Checked, QueryRest};
use context::CheckContext;
pub use effects::EffectSummary;
use file_keys::FileKeys;
use fingerprints::Fingerprints;
use kept_flows::FlowLowering;
pub use lang_items::STATE;
pub use lower::OPERATIONS_MAX;
pub use program_files::{
    FILES_MAX, KeptTrees, ModuleFile, ModuleFiles, ModulePlace, NoModules, ProgramFiles, library_items,
};
pub use symbol::{LocalId, Reference, Symbol};
pub use symbol_index::{LocalName, SymbolInfo};
pub use typed_tree::TypedTree;
pub use weir_modules::WeirModules;

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
    check_program(ProgramFiles::single(source, file), file, library, cache)
}

/// Checks a program of several files, which `file` has, like [`check_again()`].
#[must_use]
pub fn check_program(program: ProgramFiles, file: &SourceFile, library: &Library, cache: &mut CheckCache) -> Checked {
    let ProgramFiles { source, mut parsed, modules: files } = program;
    let modules = cache.modules.clone();
    let mut context = CheckContext::new((source, file.text(), &parsed), &files, library, &modules);
    let mut keys = FileKeys::default();
    let typed = check::check(&mut context, |context, declarations| {
        keys = FileKeys::of(context, declarations);
        (cache.kept_declarations(&keys), cache.kept(&files, &keys))
    });
    cache.keep_declarations(&keys, &typed.declarations);
    cache.keep_types(&files, &keys, &typed);
    cascade::suppress(&mut context);
    context.report_all(typed.files.iter().flat_map(|file| file.hidden_divisions.iter().cloned()));
    let (expr, tests) = lower_and_check(&mut context, &typed, (&mut *cache, &keys)).unzip();
    lints::check(&mut context, &typed, (cache, &keys));
    let query_rests = std::mem::take(&mut context.query_rests);
    let found = context.into_diagnostics();
    let mut diagnostics = std::mem::take(&mut parsed.diagnostics);
    diagnostics.extend(found);
    allowed::apply(&mut diagnostics, &parsed, file.text(), &files);
    diagnostics.sort_by_key(|diagnostic| diagnostic.span().map_or((0, 0), |span| (span.start, span.end)));
    Checked { parsed, typed, expr, tests, diagnostics, modules, query_rests, files }
}

/// Compiles a file.
#[must_use]
pub fn compile(source: SourceId, file: &SourceFile, library: &Library) -> Compiled {
    compile_program(ProgramFiles::single(source, file), file, library)
}

/// Compiles a program of several files, which `file` has.
#[must_use]
pub fn compile_program(program: ProgramFiles, file: &SourceFile, library: &Library) -> Compiled {
    compile_again(program, file, library, &mut CheckCache::default())
}

/// Compiles a program of several files again after an edit, like [`check_again()`].
#[must_use]
pub fn compile_again(program: ProgramFiles, file: &SourceFile, library: &Library, cache: &mut CheckCache) -> Compiled {
    let checked = check_program(program, file, library, cache);
    let graph = checked.expr.as_ref().map(|program| to_graph(program, library));
    if cfg!(debug_assertions) {
        // Tests run as expressions, and have no graphs.
        if let Some(tests) = &checked.tests {
            assert_eq!(weir_ir::verify::expr(tests, library), [], "the lowering of tests is right");
        }
    }
    Compiled { expr: checked.expr, graph, tests: checked.tests, diagnostics: checked.diagnostics }
}

/// Lowers the program to graphs and runs all passes. Debug builds verify it after each step, because a violation is a bug of
/// the compiler.
fn to_graph(program: &expr::Program, library: &Library) -> graph::Program {
    debug_assert_eq!(weir_ir::verify::expr(program, library), [], "the lowering of the tree is right");
    weir_ir::optimize(program, library)
}

/// Lowers a file without errors to its program and its tests, and runs the checks that need the IR.
fn lower_and_check<'a>(
    context: &mut CheckContext<'a>,
    typed: &'a TypedTree,
    (cache, keys): (&mut CheckCache, &'a FileKeys),
) -> Option<(expr::Program, expr::Program)> {
    if context.has_errors() {
        return None;
    }
    listen_addresses::check(context, typed);
    let fingerprints = Fingerprints::new(context.tree(), typed, context.text, keys);
    let mut kept_flows = std::mem::take(&mut cache.flows);
    let mut flows = FlowLowering::new(&mut kept_flows, &fingerprints);
    let mut program = lower::lower(context, typed, &mut flows);
    source_arguments::check(&program, context, typed);
    cookie_uses::check(&program, context, typed);
    for warning in context.handlers.unused() {
        context.report_once(warning);
    }
    lock_order::order(&mut program, &typed.declarations, context);
    session_values::check(&program, context);
    check_values(&program, context, &mut flows);
    cache.flows = kept_flows;
    // Only flows can lose an update: each test has its own shared values.
    lost_updates::check(&program, typed, context);
    unreached_fns::check(context, typed, &program, (cache, &fingerprints));
    let mut kept_tests = FlowLowering::new(&mut cache.tests, &fingerprints);
    let mut tests = lower::lower_tests(context, typed, &program, &mut kept_tests);
    for warning in context.handlers.unreached() {
        context.report_once(warning);
    }
    lock_order::order(&mut tests, &typed.declarations, context);
    check_values(&tests, context, &mut kept_tests);
    tables_without_module(context, typed);
    (!context.has_errors()).then_some((program, tests))
}

/// Reports the tables of a program whose library lacks the module `tables`, if nothing else is wrong.
fn tables_without_module(context: &mut CheckContext<'_>, typed: &TypedTree) {
    let tables = &typed.declarations.tables;
    let Some((name, _)) = tables.first() else { return };
    if context.has_errors() || context.library.modules.contains_key(lang_items::TABLES) {
        return;
    }
    let Some(declared) = typed.declarations.shared.get(name) else { return };
    let diagnostic = Diagnostic::new(Code::UnknownModule, "there is no module `tables`, which stores tables")
        .at(declared.span, "is a table")
        .hint("a program with tables needs a library that has this module");
    context.report(diagnostic);
}

/// Checks the values in every flow of a program, whose flows are those that were lowered last.
fn check_values<'a>(program: &expr::Program, context: &mut CheckContext<'a>, lowered: &mut FlowLowering<'_, 'a>) {
    let types = move_checker::MoveOnlyDefinitions::of(&program.types, context.library);
    let flows = program.entries.iter().flat_map(|entry| &entry.flows);
    lowered.check_flows(flows, context, |flow, context| {
        move_checker::check(&flow.parameters, &flow.body, &types, context);
        // The steps around a race may hold locks that follow from the order of the locks of all flows.
        races::check(&flow.body, context)
    });
}
