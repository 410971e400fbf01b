//! Lints on the checked tree: warnings about code that runs, but probably not as intended.
//!
//! They run only on files without errors, because code with an error may be what uses a name. A name that begins with
//! `_` is never reported.

mod constant_conditions;
mod dropped_values;
mod repeated_keys;
mod shadowing_patterns;
mod total_expressions;
mod unreachable_code;
mod unused_declarations;
mod unused_modules;
mod unused_names;

use std::collections::BTreeSet;

use weir_syntax::ast::{
    Block, Expr, FailureHandler, Item, Pattern, Statement, Type, Visitor, walk_block, walk_expr, walk_failure_handler,
    walk_item, walk_statement, walk_tree,
};

use crate::context::CheckContext;
use crate::symbol::Symbol;
use crate::typed_tree::TypedTree;
use constant_conditions::ConstantConditions;
use dropped_values::DroppedValues;
use repeated_keys::RepeatedKeySearch;
use shadowing_patterns::ShadowingPatterns;
use unused_names::UnusedNames;

/// Runs all lints on the tree, unless the file has errors.
pub(crate) fn check(context: &mut CheckContext<'_>, typed: &TypedTree) {
    if context.has_errors() {
        return;
    }
    let mut walk = LintWalk {
        names: UnusedNames::new(context.text, typed),
        dropped: DroppedValues::new(context, typed),
        conditions: ConstantConditions::new(context, typed),
        shadowing: ShadowingPatterns::new(typed),
        keys: RepeatedKeySearch::new(context, typed),
    };
    walk_tree(&mut walk, context.tree());
    unused_modules::check(context, typed);
    context.report_all(walk.names.into_warnings());
    unused_declarations::check(context, typed);
    context.report_all(walk.dropped.found);
    unreachable_code::check(context, typed);
    context.report_all(walk.conditions.found);
    context.report_all(walk.shadowing.found);
    context.report_all(walk.keys.found);
}

/// The lints that look at every node, in one traversal of the tree.
struct LintWalk<'t> {
    names: UnusedNames<'t>,
    dropped: DroppedValues<'t>,
    conditions: ConstantConditions<'t>,
    shadowing: ShadowingPatterns<'t>,
    keys: RepeatedKeySearch<'t>,
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

/// The spans, by their starts, of the locals that some expression names.
fn used_locals(typed: &TypedTree) -> BTreeSet<u32> {
    let uses = typed.references().filter(|found| !found.defines);
    let locals = uses.filter_map(|found| match found.symbol {
        Symbol::Local(id) => Some(typed.local(id)),
        _ => None,
    });
    locals.map(|local| local.span.start).collect()
}

/// Returns true if the name says that it is deliberately not used.
fn is_ignored(name: &str) -> bool {
    name.is_empty() || name.starts_with('_')
}
