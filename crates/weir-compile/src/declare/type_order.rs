//! Names of types and records that depend on one another: each `type` is resolved after those that it names, and the ones that
//! contain themselves or nest too deep are reported.

use indexmap::IndexMap;
use weir_host::{Field, Text, Type, TypeShape};
use weir_syntax::ast::{self, ItemKind, Visitor};
use weir_syntax::{Code, Diagnostic};

use super::Declarer;
use super::type_resolution::resolve_type;
use crate::declarations::Declarations;
use crate::declare::TypeParameters;
use crate::dependency_order::{circle_shown, dependencies_first};
use crate::types::names_in;

/// The deepest nesting of records and enums in one another. Later phases visit the parts of a type by recursion.
const NESTED_TYPES_MAX: usize = 256;

impl Declarer<'_, '_> {
    /// Resolves what each `type` of the program stands for.
    pub(super) fn resolve_aliases(&mut self) {
        let tree = self.context.tree();
        let names = self.declarations.aliases.iter().filter(|(_, it)| !self.is_kept_at(it.span.start));
        let names: Vec<Text> = names.map(|(name, _)| name.clone()).collect();
        let ordered = dependencies_first(names, |name| {
            let declared = &self.declarations.aliases[name];
            let ItemKind::Alias(alias) = &tree.items[declared.item].kind else { return Vec::new() };
            let file = self.context.files.index_at(alias.name.span.start);
            let mut named = NamedAliases { declarations: &self.declarations, file, found: Vec::new() };
            named.ty(&alias.ty);
            named.found.retain(|name| !self.is_kept_at(self.declarations.aliases[name].span.start));
            named.found
        });
        for name in ordered.order {
            let declared = &self.declarations.aliases[&name];
            let (item, span) = (&tree.items[declared.item], declared.span);
            let ItemKind::Alias(alias) = &item.kind else { continue };
            if let Some(circle) = ordered.circular.get(&name) {
                let message = format!("the type `{}` stands for itself{}", alias.name, through(circle));
                let diagnostic = Diagnostic::new(Code::EndlessType, message)
                    .at(span, "never becomes another type")
                    .hint("a type that contains itself is a `record` or an `enum`");
                self.context.report(diagnostic);
                continue;
            }
            self.begin(item);
            let parameters = &mut TypeParameters::none();
            let ty = resolve_type(&mut self.declarations, self.context, &alias.ty, parameters);
            self.declarations.aliases[&name].ty = ty;
        }
    }

    /// Reports records that contain themselves: such a value would be infinitely large.
    pub(super) fn endless_types(&mut self) {
        let held = |name: &Text| {
            let mut held = Vec::new();
            if let TypeShape::Record(fields) = &self.declarations.types[name].definition.shape {
                fields.iter().for_each(|field| held_types(&field.ty, &mut held));
            }
            held.retain(|name| self.is_new_type(name));
            held
        };
        // Most types contain none of the program, and are in no circle.
        let mut names = self.new_types();
        names.retain(|name| !held(name).is_empty());
        let ordered = dependencies_first(names, held);
        for (name, circle) in ordered.circular {
            let span = self.declarations.types[&name].span;
            let message = format!("the record `{name}` contains itself{}", through(&circle));
            let diagnostic = Diagnostic::new(Code::EndlessType, message)
                .at(span, "a value would be infinitely large")
                .hint(format!("wrap it: `Option({name})` or `List({name})`"));
            self.context.report(diagnostic);
            self.declarations.types[&name].definition.shape = TypeShape::Record(Vec::new());
        }
        self.deep_types();
    }

    /// Returns the names of the types that are not taken over from an earlier check.
    fn new_types(&self) -> Vec<Text> {
        let files = self.declarations.files.iter().enumerate().filter(|(file, _)| !self.is_kept(*file));
        let types = files.flat_map(|(_, file)| &self.declarations.types.as_slice()[file.own.types.clone()]);
        types.map(|(name, _)| name.clone()).collect()
    }

    /// Returns whether the program has a type of this name, and it is not taken over from an earlier check.
    fn is_new_type(&self, name: &Text) -> bool {
        self.declarations.types.get(name).is_some_and(|declared| !self.is_kept_at(declared.span.start))
    }

    /// Reports the first type that nests too deep, and takes the types of their fields from all of them.
    fn deep_types(&mut self) {
        let parts = |name: &Text| {
            let mut named = Vec::new();
            let fields = crate::types::fields_of(&self.declarations.types[name].definition.shape);
            fields.into_iter().for_each(|field| names_in(&field.ty, &mut named));
            named.retain(|name| self.declarations.types.contains_key(name));
            named
        };
        let new_parts = |name: &Text| {
            let mut named = parts(name);
            named.retain(|name| self.is_new_type(name));
            named
        };
        let mut deep = Vec::new();
        let (flat, nested): (Vec<Text>, Vec<Text>) =
            self.new_types().into_iter().partition(|name| parts(name).is_empty());
        let mut depths: IndexMap<Text, usize> = flat.into_iter().map(|name| (name, 1)).collect();
        let ordered = dependencies_first(nested, new_parts);
        for name in ordered.order {
            let depth_of = |part: &Text| depths.get(part).copied().unwrap_or(self.declarations.types[part].depth);
            let depth = 1 + parts(&name).iter().map(depth_of).max().unwrap_or_default();
            if depth > NESTED_TYPES_MAX {
                deep.push(name.clone());
            }
            depths.insert(name, if depth > NESTED_TYPES_MAX { 0 } else { depth });
        }
        for (name, depth) in depths {
            self.declarations.types[&name].depth = depth;
        }
        if let Some(first) = deep.first() {
            let message = format!("`{first}` nests more than {NESTED_TYPES_MAX} records and enums in one another");
            let diagnostic = Diagnostic::new(Code::TypeTooLarge, message)
                .at(self.declarations.types[first].span, "a type that is too deep")
                .hint("nest fewer types: a type may contain itself in a list or an `Option`");
            self.context.report(diagnostic);
        }
        for name in deep {
            let without_type = |field: &mut Field| field.ty = Type::Unit;
            match &mut self.declarations.types[&name].definition.shape {
                TypeShape::Record(fields) => fields.iter_mut().for_each(without_type),
                TypeShape::Enum(variants) => {
                    variants.iter_mut().flat_map(|variant| &mut variant.fields).for_each(without_type);
                }
                TypeShape::Opaque { .. } => {}
            }
        }
    }
}

/// Returns the end of a message that names the circle; empty if a type contains itself directly.
fn through(circle: &[Text]) -> String {
    let names: Vec<String> = circle.iter().map(ToString::to_string).collect();
    if names.len() < 2 { String::new() } else { format!(": {}", circle_shown(&names)) }
}

/// Adds the types of which a value of the type always contains one.
fn held_types(ty: &Type, held: &mut Vec<Text>) {
    match ty {
        Type::Named(name) => held.push(name.clone()),
        Type::Tuple(parts) => parts.iter().for_each(|part| held_types(part, held)),
        _ => {}
    }
}

/// Collects the names in a type that `type`s declare.
struct NamedAliases<'d> {
    declarations: &'d Declarations,
    /// The index of the file of the type.
    file: usize,
    found: Vec<Text>,
}

impl<'a> Visitor<'a> for NamedAliases<'_> {
    fn ty(&mut self, ty: &'a ast::Type) {
        if let ast::TypeKind::Named { path, .. } = &ty.kind
            && let Some(whole) = self.declarations.name_in_program(self.file, path)
            && self.declarations.aliases.contains_key(&whole)
        {
            self.found.push(whole);
        }
        ast::walk_type(self, ty);
    }
}
