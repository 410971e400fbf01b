//! Lints on the checked tree: warnings about code that runs, but probably not as intended.
//!
//! They run only on files without errors, because code with an error may be what uses a name. A name that begins with
//! `_` is never reported.

mod constant_conditions;
mod dollar_braces;
mod dropped_values;
mod error_responses;
mod kept_writes;
mod number_braces;
mod repeated_keys;
mod shadowing_patterns;
mod total_expressions;
mod unreachable_code;
mod unused_declarations;
mod unused_modules;
mod unused_names;

use std::collections::BTreeSet;
use std::sync::Arc;

use weir_syntax::ast::{
    Block, Expr, FailureHandler, Item, Pattern, Statement, Type, Visitor, walk_block, walk_expr, walk_failure_handler,
    walk_item, walk_statement,
};

use crate::check_cache::CheckCache;
use crate::context::CheckContext;
use crate::effects::EffectSummary;
use crate::file_keys::{FileKeys, hashed};
use crate::file_lints::FileLints;
use crate::symbol::Symbol;
use crate::typed_tree::{FileTypes, TypedTree};
use constant_conditions::ConstantConditions;
use dollar_braces::DollarBraces;
use dropped_values::DroppedValues;
use kept_writes::KeptWrites;
use number_braces::NumberBraces;
use repeated_keys::RepeatedKeySearch;
use shadowing_patterns::ShadowingPatterns;
use unused_names::UnusedNames;

/// Runs all lints on the program, unless it has errors.
pub(crate) fn check(context: &mut CheckContext<'_>, typed: &TypedTree, (cache, keys): (&mut CheckCache, &FileKeys)) {
    if context.has_errors() {
        return;
    }
    let names = context.files.names();
    let errors = error_responses::written_in(context.tree());
    let keys = (0..names.len()).map(|file| Some(hashed((keys.key(file)?, effects_of_callees(typed, file), &errors))));
    let keys: Vec<Option<u64>> = keys.collect();
    let kept = cache.kept_lints(names, &keys);
    let files: Vec<Arc<FileLints>> = kept
        .into_iter()
        .enumerate()
        .map(|(file, kept)| kept.unwrap_or_else(|| Arc::new(lints_of(context, typed, file))))
        .collect();
    cache.keep_lints(names, &keys, &files);
    unused_modules::check(context, typed);
    let parameters = unused_names::unused_parameters(&files, context);
    context.report_all(parameters);
    unused_declarations::check(context, typed, &files);
    context.report_all(files.iter().flat_map(|file| file.found.iter().cloned()));
    unreachable_code::check(context, typed);
}

/// Returns, for each `fn` that a file names, whether it has no effects, and whether it writes tables: other files decide that.
fn effects_of_callees(typed: &TypedTree, file: usize) -> Vec<Option<(bool, bool)>> {
    let summary = &typed.files[file].summary;
    let callees = summary.fn_effects.values().flat_map(|body| &body.callees).chain(&summary.flow_callees);
    let effects = |effects: &EffectSummary| (effects.is_empty(), typed.writes_tables(effects));
    callees.map(|name| typed.effects_of(name).map(effects)).collect()
}

/// Runs the lints that look at the bodies of one file.
fn lints_of(context: &CheckContext<'_>, typed: &TypedTree, file: usize) -> FileLints {
    let mut walk = LintWalk {
        names: UnusedNames::new(context.text, &typed.files[file]),
        dropped: DroppedValues::new(context, typed),
        conditions: ConstantConditions::new(context, typed),
        shadowing: ShadowingPatterns::new(context.text, typed),
        keys: RepeatedKeySearch::new(context, typed),
        numbers: NumberBraces::new(context.text),
        dollars: DollarBraces::new(context.text, typed),
        writes: KeptWrites::new(context, typed, file),
    };
    context.tree().items[context.file_items(file)].iter().for_each(|item| walk.item(item));
    let LintWalk { names, dropped, conditions, shadowing, keys, numbers, dollars, writes } = walk;
    let mut found = names.found;
    found.extend(dropped.found.into_iter().chain(conditions.found).chain(shadowing.found).chain(keys.found));
    found.extend(numbers.found.into_iter().chain(dollars.found).chain(writes.found));
    FileLints {
        found,
        unused_parameters: names.parameters,
        argument_names: names.argument_names.into_iter().map(Arc::from).collect(),
        symbols: unused_declarations::symbols_of_file(context, typed, file),
    }
}

/// The lints that look at every node, in one traversal of the tree.
struct LintWalk<'t> {
    names: UnusedNames<'t>,
    dropped: DroppedValues<'t>,
    conditions: ConstantConditions<'t>,
    shadowing: ShadowingPatterns<'t>,
    keys: RepeatedKeySearch<'t>,
    numbers: NumberBraces<'t>,
    dollars: DollarBraces<'t>,
    writes: KeptWrites<'t>,
}

impl<'t> Visitor<'t> for LintWalk<'t> {
    fn item(&mut self, item: &'t Item) {
        self.names.parameters_of(item);
        walk_item(self, item);
    }

    fn block(&mut self, block: &'t Block) {
        self.dropped.block(block);
        self.conditions.block(block);
        walk_block(self, block);
    }

    fn statement(&mut self, statement: &'t Statement) {
        self.names.failure_of_statement(statement);
        walk_statement(self, statement);
    }

    fn expr(&mut self, expr: &'t Expr) {
        self.names.names_of_expr(expr);
        self.conditions.expr(expr);
        self.shadowing.expr(expr);
        self.keys.expr(expr);
        self.numbers.expr(expr);
        self.dollars.expr(expr);
        self.writes.expr(expr);
        walk_expr(self, expr);
    }

    fn failure_handler(&mut self, handler: &'t FailureHandler) {
        self.names.failure_of_handler(handler);
        walk_failure_handler(self, handler);
    }

    fn pattern(&mut self, pattern: &'t Pattern) {
        self.names.pattern(pattern);
    }

    fn ty(&mut self, _: &'t Type) {}
}

/// The spans, by their starts, of the locals of a file that some expression names.
fn used_locals(types: &FileTypes) -> BTreeSet<u32> {
    let uses = types.references.iter().filter(|found| !found.defines);
    let locals = uses.filter_map(|found| match found.symbol {
        Symbol::Local(id) => types.locals.get(id.index as usize),
        _ => None,
    });
    locals.map(|local| local.span.start).collect()
}

/// Returns true if the name says that it is deliberately not used.
fn is_ignored(name: &str) -> bool {
    name.is_empty() || name.starts_with('_')
}
