//! Completion context: the kind of proposal that fits at an offset.

use weir_syntax::Span;
use weir_syntax::ast::{
    Expr, ExprKind, ItemKind, ServiceMemberKind, TextLiteral, TextPart, Type, Visitor, walk_expr, walk_tree, walk_type,
};

use crate::document::Document;

/// The kind of proposal that fits at an offset.
pub(super) enum Context {
    /// None: the offset is in a comment or a text.
    Nothing,
    /// A code of a warning, in a comment that silences it.
    Warning,
    /// A member of the expression that ends before the dot at this offset.
    Member { dot: u32 },
    /// A module.
    Module,
    /// A type.
    Type,
    /// A name or a keyword.
    Name,
}

impl Document {
    /// Returns the context at `start`, the start of the partial word.
    pub(super) fn context(&self, start: u32) -> Context {
        let before = self.before(start);
        let line = before.rsplit('\n').next().unwrap_or_default();
        if self.in_comment(start) {
            let comment = line.rsplit_once("//").map_or("", |(_, comment)| comment.trim_start());
            let is_code = comment.strip_prefix("allow ").is_some_and(|codes| !codes.contains(':'));
            if is_code { Context::Warning } else { Context::Nothing }
        } else if self.in_text(start) {
            Context::Nothing
        } else if let Some(object) = before.trim_end().strip_suffix('.').filter(|object| !object.ends_with('.')) {
            Context::Member { dot: self.whole().start + object.len() as u32 }
        } else if line.trim_start().starts_with("use ") {
            Context::Module
        } else if self.in_type(start) || line.trim_end().ends_with("->") || self.lacks_type(start, line) {
            Context::Type
        } else {
            Context::Name
        }
    }

    fn in_comment(&self, offset: u32) -> bool {
        let tree = &self.checked.parsed.tree;
        let docs = tree.items.iter().flat_map(|item| &item.docs.lines).chain(&tree.docs.lines).map(|line| line.span);
        let comments = self.checked.parsed.comments.iter().map(|comment| comment.span);
        comments.chain(docs).any(|span| span.start < offset && offset <= span.end)
    }

    fn in_text(&self, offset: u32) -> bool {
        let tree = &self.checked.parsed.tree;
        let services = tree.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Service(service) => Some(service),
            _ => None,
        });
        let mut paths = services.flat_map(|service| &service.members).filter_map(|member| match &member.kind {
            ServiceMemberKind::Route(route) => Some(route.path.span),
            _ => None,
        });
        if paths.any(|span| is_inside(span, offset)) {
            return true;
        }
        let mut search = ContextSearch { offset, in_text: false, in_type: false };
        walk_tree(&mut search, tree);
        search.in_text
    }

    /// Returns whether a declaration lacks a type here: after a colon in a record, an enum, or the head of a `fn` or
    /// route.
    fn lacks_type(&self, offset: u32, line: &str) -> bool {
        let items = &self.checked.parsed.tree.items;
        let item = items.iter().find(|item| item.span.start < offset && offset <= item.span.end);
        let in_head = item.is_some_and(|item| match &item.kind {
            ItemKind::Record(_) | ItemKind::Enum(_) | ItemKind::Alias(_) => true,
            ItemKind::Function(function) => offset <= function.body.span.start,
            ItemKind::Service(service) => {
                let routes = service.routes().map(|route| Span { end: route.body.span.start, ..route.path.span });
                let befores = service.befores().map(|before| Span { end: before.body.span.start, ..before.span });
                routes.chain(befores).any(|head| head.start < offset && offset <= head.end)
            }
            _ => false,
        });
        in_head && line.trim_end().ends_with(':')
    }

    fn in_type(&self, offset: u32) -> bool {
        let mut search = ContextSearch { offset, in_text: false, in_type: false };
        walk_tree(&mut search, &self.checked.parsed.tree);
        search.in_type
    }
}

fn is_inside(span: Span, offset: u32) -> bool {
    span.start < offset && offset < span.end
}

struct ContextSearch {
    offset: u32,
    in_text: bool,
    in_type: bool,
}

impl ContextSearch {
    fn text(&mut self, text: &TextLiteral) {
        let in_expr = text.parts.iter().any(|part| match part {
            // The braces belong to the interpolation.
            TextPart::Expr(expr) => expr.span.touches(self.offset),
            TextPart::Literal { .. } => false,
        });
        self.in_text |= is_inside(text.span, self.offset) && !in_expr;
    }
}

impl<'a> Visitor<'a> for ContextSearch {
    fn expr(&mut self, expr: &'a Expr) {
        let had_text = self.in_text;
        if let ExprKind::Text(text) | ExprKind::Html(text) = &expr.kind {
            self.text(text);
        }
        walk_expr(self, expr);
        // An outer text stays found, whatever a text inside its interpolation decides.
        self.in_text |= had_text;
    }

    fn ty(&mut self, ty: &'a Type) {
        self.in_type |= ty.span.touches(self.offset);
        walk_type(self, ty);
    }
}
