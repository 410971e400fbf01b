//! Inlay hints: the types of the names that a `let` binds without writing their types.

use std::collections::BTreeMap;

use weir_syntax::ast::{
    ExprKind, Let, Name, Pattern, PatternKind, Statement, StatementKind, Visitor, walk_item, walk_pattern,
    walk_statement,
};
use weir_syntax::{Edit, Span};

use crate::document::Document;

/// Maximum length of the type in a hint, in characters. The rest is left out.
const TYPE_CHARS_MAX: usize = 40;

/// A type that an editor shows behind a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InlayHint {
    /// The end of the name.
    pub offset: u32,
    /// The type behind a colon: `: Int`.
    pub label: String,
    /// The edit that writes the type into the text, if it can stand there.
    pub edit: Option<Edit>,
}

impl Document {
    /// Returns the hints for the names that end in `span`, in source order.
    #[must_use]
    pub fn inlay_hints(&self, span: Span) -> Vec<InlayHint> {
        let types = self.checked.locals().map(|local| (local.span.start, local.ty)).collect();
        let mut search = HintSearch { types, wanted: span, found: Vec::new() };
        let touched = self.items().filter(|item| item.span.start <= span.end && span.start <= item.span.end);
        touched.for_each(|item| walk_item(&mut search, item));
        search.found.sort_by_key(|hint| hint.offset);
        search.found
    }
}

struct HintSearch {
    /// The types of the locals, by the starts of their names.
    types: BTreeMap<u32, String>,
    wanted: Span,
    found: Vec<InlayHint>,
}

impl HintSearch {
    fn binding(&mut self, binding: &Let) {
        if binding.ty.is_some() || says_its_type(&binding.value.kind) {
            return;
        }
        let mut names = HintedNames(Vec::new());
        names.pattern(&binding.pattern);
        let is_whole = matches!(binding.pattern.kind, PatternKind::Bind(_));
        for name in names.0 {
            self.name(name, is_whole);
        }
    }

    fn name(&mut self, name: &Name, is_whole: bool) {
        let offset = name.span.end;
        let Some(ty) = self.types.get(&name.span.start).filter(|_| self.wanted.touches(offset)) else { return };
        let is_short = ty.chars().count() <= TYPE_CHARS_MAX;
        let label = match is_short {
            true => format!(": {ty}"),
            false => format!(": {}…", ty.chars().take(TYPE_CHARS_MAX).collect::<String>()),
        };
        // The module of a type may not be imported here, and `_` is an unknown type.
        let can_stand = is_whole && is_short && !ty.contains(['.', '_']);
        let edit = can_stand.then(|| Edit { span: name.span.at_end(), replacement: label.clone() });
        self.found.push(InlayHint { offset, label, edit });
    }
}

impl<'a> Visitor<'a> for HintSearch {
    fn statement(&mut self, statement: &'a Statement) {
        if let StatementKind::Let(binding) = &statement.kind {
            self.binding(binding);
        }
        walk_statement(self, statement);
    }
}

/// Returns true if the reader sees the type of a value.
fn says_its_type(value: &ExprKind) -> bool {
    matches!(value, ExprKind::Literal(_) | ExprKind::Text(_) | ExprKind::Html(_) | ExprKind::Record { .. })
}

/// The names that a pattern binds, without those that are short for a field: behind them, a colon has a meaning.
struct HintedNames<'a>(Vec<&'a Name>);

impl<'a> Visitor<'a> for HintedNames<'a> {
    fn pattern(&mut self, pattern: &'a Pattern) {
        match &pattern.kind {
            PatternKind::Bind(name) if !name.as_str().starts_with('_') => self.0.push(name),
            PatternKind::Record { fields, .. } => {
                fields.iter().filter(|field| !field.shorthand).for_each(|field| self.pattern(&field.pattern));
            }
            _ => walk_pattern(self, pattern),
        }
    }
}
