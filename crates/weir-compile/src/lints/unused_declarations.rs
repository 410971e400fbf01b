//! Unused declarations: warns of `fn`s, types, variants, shared and configured values and constraints that no flow and no
//! test reaches.
//!
//! A declaration is used if a service, an entry point, a failure handler or a test names it, or a used declaration does.
//! A file without services and entry points is not a program yet, so that nothing is reported there. Nor are the
//! variants of an enum that requests may contain: nobody has to name a variant that a client sends.

use std::collections::BTreeSet;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use weir_host::{Text, Type, TypeDefinition, TypeShape};
use weir_syntax::ast::{Item, ItemKind, Name, Variant};
use weir_syntax::{Code, Diagnostic, Span};

use super::is_ignored;
use crate::context::CheckContext;
use crate::file_lints::{FileLints, ItemSymbols};
use crate::symbol::Symbol;
use crate::typed_tree::TypedTree;
use crate::types::Ty;
use crate::whole_lines::whole_lines;

/// Warns of every declaration that nothing uses.
pub(super) fn check(context: &mut CheckContext<'_>, typed: &TypedTree, files: &[Arc<FileLints>]) {
    let items = &context.tree().items;
    if !items.iter().any(|item| matches!(item.kind, ItemKind::Service(_) | ItemKind::Entry(_))) {
        return;
    }
    let symbols: Vec<&ItemSymbols> = files.iter().flat_map(|file| &file.items).collect();
    let used = used_items(items, &symbols);
    // The programs that share a library decide together.
    let is_own = |item: &Item| !context.files.is_of_library(item.file.into());
    let own = || items.iter().zip(&used).filter(|(item, _)| is_own(item));
    let unused = own().filter(|(_, used)| !**used);
    let unused: Vec<_> = unused.filter_map(|(item, _)| unused_item(item, context.text)).collect();
    let variants = unused_variants(own().filter(|(_, used)| **used).map(|(item, _)| &**item), &symbols, typed);
    context.report_all(unused);
    context.report_all(variants);
}

/// Returns the symbols of each item of a file.
pub(super) fn symbols_of_items(context: &CheckContext<'_>, typed: &TypedTree, file: usize) -> Vec<ItemSymbols> {
    let items = &context.tree().items[context.file_items(file)];
    let mut found: Vec<ItemSymbols> = Vec::new();
    found.resize_with(items.len(), ItemSymbols::default);
    let declared = typed.declarations.files[file].references.iter();
    for reference in declared.chain(&typed.files[file].references).filter(|found| is_declared(&found.symbol)) {
        let next = items.partition_point(|item| item.span.start <= reference.span.start);
        let at = next.checked_sub(1).filter(|at| reference.span.end <= items[*at].span.end);
        if let Some(symbols) = at.map(|at| &mut found[at]) {
            let list = if reference.defines { &mut symbols.defined } else { &mut symbols.named };
            list.push(reference.symbol.clone());
        }
    }
    for symbols in &mut found {
        symbols.named.sort_unstable();
        symbols.named.dedup();
    }
    found
}

/// Returns whether an item of the program may declare a symbol.
fn is_declared(symbol: &Symbol) -> bool {
    !matches!(
        symbol,
        Symbol::Local(_) | Symbol::TypeParameter(..) | Symbol::HostFunction(_) | Symbol::Source(_) | Symbol::Module(_)
    )
}

/// Returns, for each item, whether it runs by itself, or is named by such an item, directly or through others.
fn used_items(items: &[Arc<Item>], symbols: &[&ItemSymbols]) -> Vec<bool> {
    let defined = symbols.iter().enumerate().flat_map(|(at, item)| item.defined.iter().map(move |symbol| (symbol, at)));
    let declared: IndexMap<&Symbol, usize> = defined.collect();
    let mut used = vec![false; items.len()];
    // Declarations that are deliberately not used keep those that they name.
    let is_kept = |item: &Item| is_bound(item) || declared_name(item).is_none_or(|(_, name)| is_ignored(name.as_str()));
    let mut open: Vec<usize> = (0..items.len()).filter(|at| is_kept(&items[*at])).collect();
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut used[at], true) {
            open.extend(symbols[at].named.iter().filter_map(|symbol| declared.get(symbol)));
        }
    }
    used
}

/// Returns whether an item is a constraint that calls hold without naming it.
fn is_bound(item: &Item) -> bool {
    matches!(&item.kind, ItemKind::Constraint(constraint) if !constraint.bindings.is_empty())
}

/// Returns the kind and the name of what an item declares; `None` for items that run or only import.
fn declared_name(item: &Item) -> Option<(&'static str, &Name)> {
    match &item.kind {
        ItemKind::Shared(shared) => Some(("shared value", &shared.name)),
        ItemKind::Table(table) => Some(("table", &table.name)),
        ItemKind::Constraint(constraint) => Some(("constraint", &constraint.name)),
        ItemKind::Config(config) => Some((if config.secret { "secret" } else { "`config`" }, &config.name)),
        ItemKind::Constant(constant) => Some(("constant", &constant.name)),
        ItemKind::Alias(alias) => Some(("type", &alias.name)),
        ItemKind::Record(record) => Some(("record", &record.name)),
        ItemKind::Enum(declaration) => Some(("enum", &declaration.name)),
        ItemKind::Function(function) => Some(("`fn`", &function.name)),
        ItemKind::Use(_)
        | ItemKind::Library(_)
        | ItemKind::Service(_)
        | ItemKind::Entry(_)
        | ItemKind::FailureHandler(_)
        | ItemKind::Test(_) => None,
    }
}

fn unused_item(item: &Item, text: &str) -> Option<Diagnostic> {
    let (kind, name) = declared_name(item)?;
    if is_ignored(name.as_str()) {
        return None;
    }
    let start = item.docs.lines.first().map_or(item.span.start, |line| line.span.start);
    let lines = whole_lines(text, Span { start, ..item.span });
    let diagnostic = Diagnostic::new(Code::UnusedDeclaration, format!("the {kind} `{name}` is never used"))
        .at(name.span, "no flow and no test uses it")
        .suggest("remove it", lines, "");
    Some(diagnostic)
}

/// Returns a warning for each variant of the enums that is neither constructed nor matched.
fn unused_variants<'a>(
    enums: impl Iterator<Item = &'a Item>,
    symbols: &[&ItemSymbols],
    typed: &TypedTree,
) -> Vec<Diagnostic> {
    let received = received_types(typed);
    let named = symbols.iter().flat_map(|item| &item.named);
    let named: IndexSet<&Symbol> = named.filter(|symbol| matches!(symbol, Symbol::Variant(..))).collect();
    let mut unused = Vec::new();
    for item in enums {
        let ItemKind::Enum(declaration) = &item.kind else { continue };
        let file = &typed.declarations.files[usize::from(item.file)];
        let of: Text = file.whole(declaration.name.as_str()).into();
        if received.contains(&of) {
            continue;
        }
        for (at, variant) in declaration.variants.iter().enumerate() {
            let name = &variant.name;
            if !is_ignored(name.as_str()) && !named.contains(&Symbol::Variant(of.clone(), name.as_str().into())) {
                let message = format!("the variant `{name}` of `{of}` is never used");
                let diagnostic = Diagnostic::new(Code::UnusedDeclaration, message)
                    .at(name.span, "never constructed and never matched");
                unused.push(match removed_variant(&declaration.variants, at) {
                    Some(removed) => diagnostic.suggest("remove it", removed, ""),
                    None => diagnostic.hint("remove it"),
                });
            }
        }
    }
    unused
}

/// Returns the span of a variant with its documentation and one separator; `None` if it is the only one.
fn removed_variant(variants: &[Variant], at: usize) -> Option<Span> {
    let begin = |variant: &Variant| variant.docs.lines.first().map_or(variant.span.start, |line| line.span.start);
    let span = variants[at].span;
    match (at.checked_sub(1), variants.get(at + 1)) {
        (Some(before), _) => Some(Span { start: variants[before].span.end, ..span }),
        (None, Some(next)) => Some(Span { start: begin(&variants[at]), end: begin(next), ..span }),
        (None, None) => None,
    }
}

/// Returns the declared types that elements of sources, requests, rows of tables and decoded texts may contain.
fn received_types(typed: &TypedTree) -> BTreeSet<Text> {
    let mut found = BTreeSet::new();
    let routes = typed.entries().iter().flat_map(|entry| &entry.routes);
    let parameters = routes.flat_map(|route| &route.locals).map(|local| typed.local(*local).ty.to_type());
    let elements = typed.entries().iter().filter_map(|entry| entry.element.clone());
    let rows = typed.declarations.tables.values().filter_map(|table| table.row.as_ref());
    let created = || typed.files.iter().flat_map(|file| &file.created);
    // A generic `fn` may create values of the types that it is used with.
    let is_generic = created().any(Ty::mentions_parameter);
    let instances = typed.files.iter().flat_map(|file| file.instances.values());
    let generic = instances.filter(|_| is_generic).flat_map(|types| types.values().map(Ty::to_type));
    for ty in parameters
        .chain(elements)
        .chain(rows.map(|row| Type::named(row)))
        .chain(created().map(Ty::to_type))
        .chain(generic)
    {
        add_named(&ty, typed, &mut found);
    }
    found
}

/// Adds the declared types in a type, and those in their definitions.
fn add_named(ty: &Type, typed: &TypedTree, found: &mut BTreeSet<Text>) {
    match ty {
        Type::Named(name) => {
            let declared = typed.declarations.types.get(name);
            if let Some(declared) = declared.filter(|_| found.insert(name.clone())) {
                field_types(&declared.definition).for_each(|field| add_named(field, typed, found));
            }
        }
        Type::List(part) | Type::Option(part) => add_named(part, typed, found),
        Type::Map(pair) | Type::Result(pair) => {
            add_named(&pair.0, typed, found);
            add_named(&pair.1, typed, found);
        }
        Type::Tuple(parts) => parts.iter().for_each(|part| add_named(part, typed, found)),
        _ => {}
    }
}

fn field_types(definition: &TypeDefinition) -> impl Iterator<Item = &Type> {
    let (fields, variants) = match &definition.shape {
        TypeShape::Record(fields) => (fields.as_slice(), [].as_slice()),
        TypeShape::Enum(variants) => ([].as_slice(), variants.as_slice()),
        TypeShape::Opaque { .. } => ([].as_slice(), [].as_slice()),
    };
    fields.iter().chain(variants.iter().flat_map(|variant| &variant.fields)).map(|field| &field.ty)
}
