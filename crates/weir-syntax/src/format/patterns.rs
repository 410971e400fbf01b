//! Patterns and types.

use super::doc::Doc;
use super::items::in_brackets;
use super::{SourcePrinter, joined};
use crate::ast::{FieldPattern, Literal, Path, Pattern, PatternArgument, PatternKind, RestPattern, Type, TypeKind};

impl SourcePrinter<'_> {
    pub(super) fn pattern(&mut self, pattern: &Pattern) -> Doc {
        match &pattern.kind {
            PatternKind::Or(patterns) => {
                let patterns: Vec<Doc> = patterns.iter().map(|each| self.simple_pattern(each)).collect();
                joined(patterns, &Doc::line(" ").then_text("| ")).nest().group()
            }
            _ => self.simple_pattern(pattern),
        }
    }

    /// Prints a pattern where `|` needs parentheses.
    pub(super) fn simple_pattern(&mut self, pattern: &Pattern) -> Doc {
        match &pattern.kind {
            PatternKind::Wildcard => Doc::text("_"),
            PatternKind::Bind(name) => Doc::text(&*name.text),
            PatternKind::Literal(literal) => Doc::text(&*literal.raw),
            PatternKind::Text { raw, .. } => Doc::text(&**raw),
            PatternKind::Range { low, high, inclusive } => range_pattern(low.as_ref(), high.as_ref(), *inclusive),
            PatternKind::Variant { path, arguments } if arguments.is_empty() => Doc::text(path.to_string()),
            PatternKind::Variant { path, arguments } => {
                let arguments = arguments.iter().map(|each| self.pattern_argument(each));
                Doc::text(path.to_string()).then(in_list("(", arguments.collect(), ")"))
            }
            PatternKind::Record { path, fields, rest } => self.record_pattern(path, fields, rest.is_some()),
            PatternKind::Tuple(patterns) => {
                let patterns = patterns.iter().map(|each| self.pattern(each));
                in_list("(", patterns.collect(), ")")
            }
            PatternKind::List { before, rest, after } => self.list_pattern(before, rest.as_ref(), after),
            PatternKind::Or(_) => {
                let inner = self.pattern(pattern);
                in_brackets("(", inner, ")")
            }
            PatternKind::Error => Doc::text("_"),
        }
    }

    fn pattern_argument(&mut self, argument: &PatternArgument) -> Doc {
        let label = argument.name.as_ref().map_or(Doc::nothing(), |name| Doc::text(format!("{name}: ")));
        label.then(self.pattern(&argument.pattern))
    }

    fn record_pattern(&mut self, path: &Path, fields: &[FieldPattern], rest: bool) -> Doc {
        let fields = fields.iter().map(|field| match field.shorthand {
            true => Doc::text(&*field.name.text),
            false => Doc::text(format!("{}: ", field.name)).then(self.pattern(&field.pattern)),
        });
        let mut rows: Vec<Doc> = fields.collect();
        rows.extend(rest.then(|| Doc::text("..")));
        if rows.is_empty() {
            return Doc::text(format!("{path} {{ }}"));
        }
        let inner = Doc::line(" ").then(joined(rows, &Doc::line(", "))).nest();
        Doc::concat([Doc::text(format!("{path} {{")), inner, Doc::line(" "), Doc::text("}")]).group()
    }

    fn list_pattern(&mut self, before: &[Pattern], rest: Option<&RestPattern>, after: &[Pattern]) -> Doc {
        let mut rows: Vec<Doc> = before.iter().map(|each| self.pattern(each)).collect();
        if let Some(rest) = rest {
            let binding = rest.binding.as_ref().map_or(Doc::nothing(), |binding| self.simple_pattern(binding));
            rows.push(Doc::text("..").then(binding));
        }
        rows.extend(after.iter().map(|each| self.pattern(each)));
        in_list("[", rows, "]")
    }

    pub(super) fn ty(&mut self, ty: &Type) -> Doc {
        match &ty.kind {
            TypeKind::Named { path, arguments } if arguments.is_empty() => Doc::text(path.to_string()),
            TypeKind::Named { path, arguments } => {
                let arguments = arguments.iter().map(|each| self.ty(each));
                Doc::text(path.to_string()).then(in_list("(", arguments.collect(), ")"))
            }
            TypeKind::Tuple(types) => {
                let types = types.iter().map(|each| self.ty(each));
                in_list("(", types.collect(), ")")
            }
            TypeKind::Function { parameters, returns } => {
                let parameters = parameters.iter().map(|each| self.ty(each));
                let head = Doc::text("fn").then(in_list("(", parameters.collect(), ")"));
                match returns {
                    Some(returns) => head.then_text(" -> ").then(self.ty(returns)),
                    None => head,
                }
            }
            TypeKind::Error => Doc::text("_"),
        }
    }
}

fn range_pattern(low: Option<&Literal>, high: Option<&Literal>, inclusive: bool) -> Doc {
    let raw = |literal: Option<&Literal>| literal.map_or("", |literal| &*literal.raw).to_owned();
    Doc::text(format!("{}{}{}", raw(low), if inclusive { "..=" } else { ".." }, raw(high)))
}

/// Prints rows in brackets, separated by commas; on one line if they fit.
fn in_list(open: &'static str, rows: Vec<Doc>, close: &'static str) -> Doc {
    if rows.is_empty() {
        return Doc::text(format!("{open}{close}"));
    }
    let rows = joined(rows, &Doc::text(",").then(Doc::line(" "))).then(Doc::if_broken(","));
    in_brackets(open, rows, close)
}
