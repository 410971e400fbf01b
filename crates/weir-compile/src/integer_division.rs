//! The integer-division lint: warns of comments that were meant as a division, as in `let half = n // 2`.
//!
//! It warns of a comment behind code if
//! 1. the expression that ends before it is a number, a duration or a size, and contains a variable, and
//! 2. the comment's whole text, except for a trailing comma, is an expression of literals and visible names whose first
//!    operand is a number, a duration or a size.
//!
//! `// 3 tries`, `// seconds` and `// see above` are ordinary comments everywhere. So is the one in `7 / 2 // 3`,
//! because programs hardly ever divide literals.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_syntax::ast::{self, Expr, ExprKind, ItemKind, LiteralValue, StatementKind, Visitor, walk_expr};
use weir_syntax::{Code, Diagnostic, Parsed, SourceId, Span};

use crate::context::CheckContext;
use crate::typed_tree::{Resolution, TypedTree};
use crate::types::Ty;

/// The longest comment that is parsed as a divisor.
const TEXT_BYTES_MAX: usize = 80;

/// The maximum number of comments of a file whose names are resolved.
const COMMENTS_MAX: usize = 100;

/// Returns a warning for each comment of a file that hides a division.
pub(crate) fn check(context: &CheckContext<'_>, typed: &TypedTree, file: usize) -> Vec<Diagnostic> {
    let (source, text, parsed) = (context.source, context.text, context.parsed);
    let of_file = |place: u32| context.files.index_at(place);
    let first = parsed.comments.partition_point(|comment| of_file(comment.span.start) < file);
    let comments = parsed.comments[first..].iter().take_while(|comment| of_file(comment.span.start) == file);
    let behind_code = comments.filter_map(|comment| {
        let divisor = CommentedDivisor::of(source, &comment.text)?;
        let line = text[..comment.span.start as usize].rsplit('\n').next()?;
        let code = line.trim_end();
        (!code.is_empty()).then(|| (comment.span.start - (line.len() - code.len()) as u32, (comment.span, divisor)))
    });
    let mut before = DividendSearch { typed, wanted: behind_code.collect(), found: BTreeMap::new() };
    if before.wanted.is_empty() {
        return Vec::new();
    }
    parsed.tree.items[context.file_items(file)].iter().for_each(|item| before.item(item));
    let behind_numbers = before.wanted.iter().filter(|(end, _)| before.found.get(end) == Some(&true));
    let known =
        behind_numbers.take(COMMENTS_MAX).filter(|(end, (_, divisor))| divisor.is_known(*end - 1, parsed, typed));
    known.map(|(_, (span, divisor))| hidden(*span, &divisor.text)).collect()
}

fn hidden(span: Span, divisor: &str) -> Diagnostic {
    let mark = Span { end: span.start + 2, ..span };
    Diagnostic::new(Code::HiddenDivision, format!("`// {divisor}` is a comment, not a division"))
        .at(span, "this is not evaluated")
        .suggest("write `/`: dividing an `Int` by an `Int` gives an `Int`", mark, "/")
        .hint("if it is a comment, move it to its own line")
}

/// The text of a comment, parsed as an expression.
struct CommentedDivisor {
    text: String,
    expr: Expr,
}

impl CommentedDivisor {
    fn of(source: SourceId, comment: &str) -> Option<CommentedDivisor> {
        let text = comment.strip_prefix("//")?.trim().trim_end_matches(',').trim_end();
        let begins = text.starts_with(|first: char| first.is_alphanumeric() || "_(-".contains(first));
        if !begins || text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let mut parsed = weir_syntax::parse(source, &format!("fn divisor() {{\n{text}\n}}"));
        let ItemKind::Function(function) = Arc::into_inner(parsed.tree.items.pop()?)?.kind else { return None };
        let [statement] = <[ast::Statement; 1]>::try_from(function.body.statements).ok()?;
        let StatementKind::Expr(expr) = statement.kind else { return None };
        (parsed.diagnostics.is_empty() && parsed.tree.items.is_empty())
            .then(|| CommentedDivisor { text: text.to_owned(), expr })
    }

    /// Returns whether every name in it is visible at an offset and its first operand is a number.
    fn is_known(&self, place: u32, parsed: &Parsed, typed: &TypedTree) -> bool {
        let locals = typed.locals_at(&parsed.tree, place).into_iter();
        let locals = locals.map(|local| (local.name.to_string(), local.ty.to_string()));
        let shared = typed.declarations.shared.iter().map(|(name, shared)| (name.to_string(), shared.ty.to_string()));
        // Locals come last, so that they shadow shared values of the same name.
        let known = VisibleNames {
            names: shared.chain(locals).collect(),
            functions: typed.declarations.functions.keys().collect(),
        };
        known.is_expression(&self.expr) && known.begins_with_number(&self.expr)
    }
}

/// The names that are visible at a comment.
struct VisibleNames<'t> {
    /// The type of each value, as the source writes it.
    names: BTreeMap<String, String>,
    functions: Vec<&'t Arc<str>>,
}

impl VisibleNames<'_> {
    fn is_expression(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Text(_) | ExprKind::Html(_) => true,
            ExprKind::Name(name) => self.names.contains_key(name.as_str()),
            ExprKind::Unary { operand, .. } => self.is_expression(operand),
            ExprKind::Binary { left, right, .. } => self.is_expression(left) && self.is_expression(right),
            ExprKind::Field { object, .. } | ExprKind::TupleIndex { object, .. } => self.is_expression(object),
            ExprKind::Index { object, index, .. } => self.is_expression(object) && self.is_expression(index),
            ExprKind::Call { function, arguments } => {
                self.is_callable(function) && arguments.iter().all(|argument| self.is_expression(&argument.value))
            }
            _ => false,
        }
    }

    fn is_callable(&self, function: &Expr) -> bool {
        match &function.kind {
            ExprKind::Name(name) => self.functions.iter().any(|known| ***known == *name.as_str()),
            ExprKind::Field { object, .. } => self.is_expression(object),
            _ => false,
        }
    }

    fn begins_with_number(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Literal(literal) => !matches!(literal.value, LiteralValue::Bool(_)),
            ExprKind::Name(name) => self.names.get(name.as_str()).is_some_and(|ty| NUMBERS.contains(&ty.as_str())),
            ExprKind::Unary { operand, .. } => self.begins_with_number(operand),
            ExprKind::Binary { left, .. } => self.begins_with_number(left),
            ExprKind::Field { .. } | ExprKind::TupleIndex { .. } | ExprKind::Index { .. } | ExprKind::Call { .. } => {
                true
            }
            _ => false,
        }
    }
}

/// The types that division takes.
const NUMBERS: [&str; 4] = ["Int", "Float", "Duration", "Size"];

/// Finds the expressions that end right before comments.
struct DividendSearch<'t> {
    typed: &'t TypedTree,
    /// The comments, by the end of the code before each.
    wanted: BTreeMap<u32, (Span, CommentedDivisor)>,
    /// For each such end, whether the innermost expression that ends there is a number and contains a variable.
    found: BTreeMap<u32, bool>,
}

impl<'t> Visitor<'t> for DividendSearch<'t> {
    fn expr(&mut self, expr: &'t Expr) {
        if self.wanted.contains_key(&expr.span.end) {
            let is_number = [Ty::INT, Ty::FLOAT, Ty::DURATION, Ty::SIZE].contains(self.typed.expr_type(expr.id));
            // Inner expressions are visited later and overwrite outer ones.
            self.found.insert(expr.span.end, is_number && varies(expr, self.typed));
        }
        walk_expr(self, expr);
    }
}

/// Returns whether the expression contains a variable.
fn varies(expr: &Expr, typed: &TypedTree) -> bool {
    struct VariableSearch<'t>(&'t TypedTree, bool);
    impl<'t> Visitor<'t> for VariableSearch<'t> {
        fn expr(&mut self, expr: &'t Expr) {
            let resolution = self.0.resolution(expr.id);
            self.1 |=
                matches!(resolution, Some(Resolution::Local(_) | Resolution::Shared(_) | Resolution::SharedNow(_)));
            walk_expr(self, expr);
        }
    }
    let mut search = VariableSearch(typed, false);
    search.expr(expr);
    search.1
}
