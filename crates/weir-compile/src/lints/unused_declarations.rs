//! Unused declarations: warns of `fn`s, types, variants, shared and configured values and constraints that no flow and no
//! test reaches.
//!
//! A declaration is used if a service, an entry point, a failure handler or a test names it, or a used declaration does.
//! A file without services and entry points is not a program yet, so that nothing is reported there. Nor are the
//! variants of an enum that requests may contain: nobody has to name a variant that a client sends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_host::{Text, Type, TypeDefinition, TypeShape};
use weir_syntax::ast::{Enum, Item, ItemKind, Name, Variant};
use weir_syntax::{Code, Diagnostic, Span};

use super::is_ignored;
use crate::context::CheckContext;
use crate::file_lints::{FileLints, FileSymbols, ItemSymbols};
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
    let program = ProgramSymbols { context, files };
    let used = used_items(items, &program);
    // The programs that share a library decide together.
    let is_own = |file: usize| !context.files.is_of_library(file);
    let unused = items.iter().zip(&used).filter(|(item, used)| !**used && is_own(item.file.into()));
    let unused: Vec<_> = unused.filter_map(|(item, _)| unused_item(item, context.text)).collect();
    let variants = unused_variants(&program, &used, typed, is_own);
    context.report_all(unused);
    context.report_all(variants);
}

/// Returns the symbols of the items of a file.
pub(super) fn symbols_of_file(context: &CheckContext<'_>, typed: &TypedTree, file: usize) -> FileSymbols {
    let items = &context.tree().items[context.file_items(file)];
    let mut symbols = FileSymbols::default();
    // Sorting once is faster than a tree for each item.
    let (mut defined, mut named) = (Vec::new(), vec![Vec::new(); items.len()]);
    let declared = typed.declarations.files[file].references.iter();
    for reference in declared.chain(&typed.files[file].references).filter(|found| is_declared(&found.symbol)) {
        let next = items.partition_point(|item| item.span.start <= reference.span.start);
        let at = next.checked_sub(1).filter(|at| reference.span.end <= items[*at].span.end);
        match at {
            Some(at) if reference.defines => defined.push((reference.symbol.clone(), at)),
            Some(at) => named[at].push(&reference.symbol),
            None => {}
        }
    }
    symbols.defined = defined.into_iter().collect();
    for named in &mut named {
        named.sort_unstable();
        named.dedup();
    }
    let variants = named.iter().flatten().filter(|symbol| matches!(symbol, Symbol::Variant(..)));
    let named_variants: BTreeSet<&Symbol> = variants.copied().collect();
    for (at, item) in items.iter().enumerate() {
        let ItemKind::Enum(declaration) = &item.kind else { continue };
        let of: Text = typed.declarations.files[file].whole(declaration.name.as_str()).into();
        let variants = declaration.variants.iter().enumerate();
        let unnamed = variants.filter(|(_, variant)| !named_variants.contains(&variant_symbol(&of, variant)));
        symbols.unnamed_variants.extend(unnamed.map(|(number, _)| (at, number)));
    }
    symbols.items = named.iter().map(|named| symbols_of_item(named, &symbols.defined)).collect();
    symbols
}

fn symbols_of_item(named: &[&Symbol], defined: &BTreeMap<Symbol, usize>) -> ItemSymbols {
    let mut symbols = ItemSymbols::default();
    for symbol in named {
        match defined.get(symbol) {
            Some(at) => symbols.in_file.push(*at),
            None => symbols.elsewhere.push((*symbol).clone()),
        }
    }
    symbols.in_file.sort_unstable();
    symbols.in_file.dedup();
    symbols
}

fn variant_symbol(of: &Text, variant: &Variant) -> Symbol {
    Symbol::Variant(of.clone(), variant.name.as_str().into())
}

/// The symbols of all files. Those of a file are kept after edits of others, and name items by their number in the file.
struct ProgramSymbols<'p, 'c> {
    context: &'p CheckContext<'c>,
    files: &'p [Arc<FileLints>],
}

impl ProgramSymbols<'_, '_> {
    /// Returns the index of the item that defines a symbol.
    fn item_of(&self, symbol: &Symbol) -> Option<usize> {
        let file = self.context.files.file(symbol.module()?)?;
        let at = self.files[file].symbols.defined.get(symbol)?;
        Some(self.context.file_items(file).start + at)
    }

    /// Returns the indices of the items that an item names.
    fn named_by(&self, at: usize) -> impl Iterator<Item = usize> {
        let file = usize::from(self.context.tree().items[at].file);
        let first = self.context.file_items(file).start;
        let named = &self.files[file].symbols.items[at - first];
        let elsewhere = named.elsewhere.iter().filter_map(|symbol| self.item_of(symbol));
        named.in_file.iter().map(move |at| first + at).chain(elsewhere)
    }
}

/// Returns whether an item of the program may declare a symbol.
fn is_declared(symbol: &Symbol) -> bool {
    !matches!(
        symbol,
        Symbol::Local(_) | Symbol::TypeParameter(..) | Symbol::HostFunction(_) | Symbol::Source(_) | Symbol::Module(_)
    )
}

/// Returns, for each item, whether it runs by itself, or is named by such an item, directly or through others.
fn used_items(items: &[Arc<Item>], symbols: &ProgramSymbols<'_, '_>) -> Vec<bool> {
    let mut used = vec![false; items.len()];
    // Declarations that are deliberately not used keep those that they name.
    let is_kept = |item: &Item| is_bound(item) || declared_name(item).is_none_or(|(_, name)| is_ignored(name.as_str()));
    let mut open: Vec<usize> = (0..items.len()).filter(|at| is_kept(&items[*at])).collect();
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut used[at], true) {
            open.extend(symbols.named_by(at));
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

/// Returns a warning for each variant of the used enums that is neither constructed nor matched.
fn unused_variants(
    symbols: &ProgramSymbols<'_, '_>,
    used: &[bool],
    typed: &TypedTree,
    is_own: impl Fn(usize) -> bool,
) -> Vec<Diagnostic> {
    let received = received_types(typed);
    let named = symbols.files.iter().flat_map(|file| &file.symbols.items).flat_map(|item| &item.elsewhere);
    let named: BTreeSet<&Symbol> = named.filter(|symbol| matches!(symbol, Symbol::Variant(..))).collect();
    let mut unused = Vec::new();
    for (file, lints) in symbols.files.iter().enumerate().filter(|(file, _)| is_own(*file)) {
        let first = symbols.context.file_items(file).start;
        for (at, number) in &lints.symbols.unnamed_variants {
            let item = &symbols.context.tree().items[first + at];
            let ItemKind::Enum(declaration) = &item.kind else { continue };
            let of: Text = typed.declarations.files[file].whole(declaration.name.as_str()).into();
            let variant = &declaration.variants[*number];
            let is_reported = used[first + at] && !is_ignored(variant.name.as_str()) && !received.contains(&of);
            if is_reported && !named.contains(&variant_symbol(&of, variant)) {
                unused.push(unused_variant(declaration, *number, &of));
            }
        }
    }
    unused
}

fn unused_variant(declaration: &Enum, number: usize, of: &Text) -> Diagnostic {
    let name = &declaration.variants[number].name;
    let diagnostic = Diagnostic::new(Code::UnusedDeclaration, format!("the variant `{name}` of `{of}` is never used"))
        .at(name.span, "never constructed and never matched");
    match removed_variant(&declaration.variants, number) {
        Some(removed) => diagnostic.suggest("remove it", removed, ""),
        None => diagnostic.hint("remove it"),
    }
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
