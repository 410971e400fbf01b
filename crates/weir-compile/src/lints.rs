//! Lints on the checked tree: warnings about code that runs, but probably not as intended.
//!
//! They run only on files without errors, because code with an error may be what uses a name. A name that begins with
//! `_` is never reported.

mod constant_conditions;
mod dropped_values;
mod repeated_keys;
mod shadowing_patterns;
mod unreachable_code;
mod unused_declarations;
mod unused_modules;
mod unused_names;
mod whole_lines;

use std::collections::BTreeSet;

use crate::context::CheckContext;
use crate::symbol::Symbol;
use crate::typed_tree::TypedTree;

/// Runs all lints on the tree, unless the file has errors.
pub(crate) fn check(context: &mut CheckContext<'_>, typed: &TypedTree) {
    if context.has_errors() {
        return;
    }
    unused_modules::check(context, typed);
    unused_names::check(context, typed);
    unused_declarations::check(context, typed);
    dropped_values::check(context, typed);
    unreachable_code::check(context, typed);
    constant_conditions::check(context, typed);
    shadowing_patterns::check(context, typed);
    repeated_keys::check(context, typed);
}

/// The spans, by their starts, of the locals that some expression names.
fn used_locals(typed: &TypedTree) -> BTreeSet<u32> {
    let uses = typed.declarations.references.iter().filter(|found| !found.defines);
    let locals = uses.filter_map(|found| match found.symbol {
        Symbol::Local(id) => typed.locals.get(id as usize),
        _ => None,
    });
    locals.map(|local| local.span.start).collect()
}

/// Returns true if the name says that it is deliberately not used.
fn is_ignored(name: &str) -> bool {
    name.is_empty() || name.starts_with('_')
}
