//! Renaming: computes all edits, or the reason for refusing.
//!
//! The new name may be taken or shadowed. The edits are therefore applied to a copy, which is checked; each name of the
//! copy must refer to the same declaration as before.

use weir_compile::Symbol;
use weir_syntax::ast::{Expr, ExprKind, ItemKind};
use weir_syntax::ast::{
    FieldPattern, FieldValue, Name, PathPart, Pattern, PatternKind, Route, ServiceMember, ServiceMemberKind, Visitor,
    walk_expr, walk_pattern, walk_tree,
};
use weir_syntax::{Edit, Span};

use crate::document::Document;

/// The reason for refusing to rename.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RenameRefusal {
    /// There is no name at the offset.
    NoName,
    /// The symbol is declared in the library.
    OfLibrary,
    /// The new name is not an identifier, or starts in the wrong case.
    NotAName,
    /// The new name would change the meaning of the program or cause an error.
    ChangesMeaning,
}

impl std::fmt::Display for RenameRefusal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::NoName => "there is no name here",
            Self::OfLibrary => "this name is declared in the library",
            Self::NotAName => "this is not a name of its kind",
            Self::ChangesMeaning => "with this name, the program would mean something else",
        })
    }
}

impl Document {
    /// Returns the span of the name at `offset`.
    ///
    /// # Errors
    /// Fails if the name cannot be renamed.
    pub fn prepare_rename(&self, offset: u32) -> Result<Span, RenameRefusal> {
        let found = self.checked.reference_at(offset).ok_or(RenameRefusal::NoName)?;
        match (&found.symbol, self.checked.definition_of(&found.symbol)) {
            (Symbol::Module(_), _) | (_, None) => Err(RenameRefusal::OfLibrary),
            _ => Ok(found.span),
        }
    }

    /// Returns the edits that rename the symbol at `offset` to `new`.
    ///
    /// # Errors
    /// Fails if the symbol cannot be renamed, or not to that name.
    pub fn rename(&self, offset: u32, new: &str) -> Result<Vec<Edit>, RenameRefusal> {
        let old = self.prepare_rename(offset)?;
        if !is_name_like(new, self.file().slice(old)) {
            return Err(RenameRefusal::NotAName);
        }
        let edits = self.rename_edits(offset, new);
        match self.keeps_meaning(&edits) {
            true => Ok(edits),
            false => Err(RenameRefusal::ChangesMeaning),
        }
    }

    fn rename_edits(&self, offset: u32, new: &str) -> Vec<Edit> {
        let Some(found) = self.checked.reference_at(offset) else { return Vec::new() };
        let is_field = matches!(found.symbol, Symbol::Field(..));
        let mut spans = self.references(offset);
        let tree = &self.checked.parsed.tree;
        spans.extend(path_names(tree, &spans));
        let mut shorthands = Shorthands { spans: Vec::new() };
        walk_tree(&mut shorthands, tree);
        let edit = |span: Span| {
            let old = self.file().slice(span);
            let replacement = match (shorthands.spans.contains(&span), is_field) {
                (true, true) => format!("{new}: {old}"),
                (true, false) => format!("{old}: {new}"),
                (false, _) => new.to_owned(),
            };
            Edit { span, replacement }
        };
        spans.into_iter().map(edit).collect()
    }

    /// Returns whether the edited text has no new errors and all its names refer to the same declarations.
    fn keeps_meaning(&self, edits: &[Edit]) -> bool {
        let after = self.edited(edits);
        after.errors <= self.errors && self.bonds() == after.bonds()
    }

    /// Returns, for each name in source order, the index of its declaration.
    fn bonds(&self) -> Vec<(Option<usize>, bool)> {
        let mut names: Vec<_> = self.checked.references().collect();
        // Two names may share a span, as in a short record field. Their kinds order them, because their words change.
        names.sort_by_key(|found| (found.span, kind(&found.symbol)));
        let places: Vec<Span> = names.iter().map(|found| found.span).collect();
        let declared = |symbol: &Symbol| {
            let span = self.checked.definition_of(symbol)?;
            places.iter().position(|place| *place == span)
        };
        names.iter().map(|found| (declared(&found.symbol), found.defines)).collect()
    }
}

fn kind(symbol: &Symbol) -> u8 {
    match symbol {
        Symbol::Field(..) => 0,
        _ => 1,
    }
}

/// Returns whether `new` is an identifier in the case of `old`.
fn is_name_like(new: &str, old: &str) -> bool {
    let is_upper = |name: &str| name.chars().next().is_some_and(char::is_uppercase);
    let probe = if is_upper(new) { format!("record {new} {{ }}") } else { format!("fn {new}() {{ }}") };
    let parsed = weir_syntax::parse(weir_syntax::SourceId(0), &probe);
    let is_whole = parsed.tree.items.first().is_some_and(|item| match &item.kind {
        ItemKind::Record(record) => record.name.as_str() == new,
        ItemKind::Function(function) => function.name.as_str() == new,
        _ => false,
    });
    is_whole && parsed.diagnostics.is_empty() && is_upper(new) == is_upper(old)
}

/// Returns the spans in route paths that name a parameter declared at one of `spans`.
fn path_names(tree: &weir_syntax::ast::Tree, spans: &[Span]) -> Vec<Span> {
    let services = tree.items.iter().filter_map(|item| match &item.kind {
        ItemKind::Service(service) => Some(service),
        _ => None,
    });
    let routes = services.flat_map(|service| &service.members).filter_map(route_of);
    let mut found = Vec::new();
    for route in routes {
        let declared = route.parameters.iter().find(|each| spans.contains(&each.parameter.name.span));
        let Some(name) = declared.map(|each| &each.parameter.name) else { continue };
        found.extend(route.path.parts.iter().filter_map(|part| path_name(part, name)));
    }
    found
}

fn route_of(member: &ServiceMember) -> Option<&Route> {
    match &member.kind {
        ServiceMemberKind::Route(route) => Some(route),
        _ => None,
    }
}

fn path_name(part: &PathPart, name: &Name) -> Option<Span> {
    match part {
        PathPart::Parameter(found) | PathPart::Rest(found) if found.text == name.text => Some(found.span),
        _ => None,
    }
}

/// The spans of names that denote both a field and a value or binding.
struct Shorthands {
    spans: Vec<Span>,
}

impl<'a> Visitor<'a> for Shorthands {
    fn expr(&mut self, expr: &'a Expr) {
        if let ExprKind::Record { fields, .. } = &expr.kind {
            let short = fields.iter().filter(|field: &&FieldValue| field.shorthand);
            self.spans.extend(short.map(|field| field.name.span));
        }
        walk_expr(self, expr);
    }

    fn pattern(&mut self, pattern: &'a Pattern) {
        if let PatternKind::Record { fields, .. } = &pattern.kind {
            let short = fields.iter().filter(|field: &&FieldPattern| field.shorthand);
            self.spans.extend(short.map(|field| field.name.span));
        }
        walk_pattern(self, pattern);
    }
}
