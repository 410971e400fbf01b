//! Checks each form of expression.

use weir_syntax::ast::{Expr, ExprKind, Literal, LiteralValue, MapEntry};
use weir_syntax::{Code, Diagnostic, Span};

use super::{Expected, OpenType, TypeChecker};
use crate::typed_tree::Resolution;
use crate::types::{TYPE_PARTS_MAX, Ty};

impl<'a> TypeChecker<'a, '_> {
    /// Checks an expression against the expected type, and returns its type.
    pub(super) fn expr(&mut self, expr: &'a Expr, expected: Option<&Expected>) -> Ty {
        let found = self.infer(expr, expected);
        let found = self.limited(expr.span, found);
        let ty = match expected {
            Some(expected) => self.agree_expr(expr, found, expected),
            None => found,
        };
        self.typed.of_mut(expr.id).set_expr(expr.id, ty.clone(), expr.span);
        self.reached = expr.span.end;
        ty
    }

    /// Reports a type that is too large: later phases visit each of its parts, and it can double with every `let`.
    fn limited(&mut self, span: Span, ty: Ty) -> Ty {
        if !self.inference.is_too_large(&ty) {
            return ty;
        }
        let message = format!("the type of this value has more than {TYPE_PARTS_MAX} parts");
        let diagnostic = Diagnostic::new(Code::TypeTooLarge, message).at(span, "a type that is too large");
        self.report(diagnostic.hint("use a record, whose name is one part, or a list"));
        Ty::Error
    }

    fn infer(&mut self, expr: &'a Expr, expected: Option<&Expected>) -> Ty {
        let wanted = expected.map(|expected| &expected.ty);
        match &expr.kind {
            ExprKind::Literal(literal) => literal_type(literal),
            ExprKind::Text(text) => self.text(text),
            ExprKind::Html(text) => self.html(expr, text),
            ExprKind::Formatted { value, format, format_span } => self.formatted(value, *format, *format_span),
            ExprKind::Name(name) => self.name(expr, name, wanted),
            ExprKind::Field { object, name } => self.field(expr, object, name, wanted),
            ExprKind::TupleIndex { object, index, index_span } => self.tuple_index(expr, object, *index, *index_span),
            ExprKind::Index { object, index } => self.index(object, index),
            ExprKind::Call { function, arguments } => self.call(expr, function, None, arguments, wanted),
            ExprKind::Pipe { value, function, arguments } => self.call(expr, function, Some(value), arguments, wanted),
            ExprKind::Unary { operator, operand } => self.unary(*operator, operand),
            ExprKind::Binary { operator, operator_span, left, right } => {
                self.binary(*operator, *operator_span, left, right)
            }
            ExprKind::Try(value) => self.try_(expr, value),
            ExprKind::Else { value, failure, otherwise } => self.else_(value, failure.as_ref(), otherwise, expected),
            ExprKind::If { condition, then, otherwise } => self.if_(condition, then, otherwise.as_deref(), expected),
            ExprKind::Match { value, arms } => self.match_(value, arms, expected),
            ExprKind::For { pattern, items, query, body } => self.for_(pattern, items, query, body),
            ExprKind::Fold { accumulator, initial, pattern, items, body } => {
                self.fold((accumulator, initial), (pattern, items), body, expected)
            }
            ExprKind::Loop { state, initial, body, until, at_most } => {
                self.loop_(expr, (state, initial), body, until, at_most, expected)
            }
            ExprKind::Return(value) => self.return_(expr.span, value.as_deref()),
            ExprKind::Block(block) => self.block(block, expected),
            ExprKind::Atomic { resources, body } => self.atomic(resources, body, expected),
            ExprKind::Closure { parameters, body } => self.closure(parameters, body, wanted),
            ExprKind::Record { path, base, fields } => self.record(expr, path, base.as_deref(), fields),
            ExprKind::Tuple(elements) if elements.is_empty() => Ty::UNIT,
            ExprKind::Tuple(elements) => self.tuple(elements, wanted),
            ExprKind::List(elements) => self.list(expr.span, elements, wanted),
            ExprKind::Map(entries) => self.map(expr.span, entries, wanted),
            ExprKind::Within { value, limit } => self.within(value, limit),
            ExprKind::Race(bodies) => self.race(expr, bodies, expected),
            ExprKind::Retry { arguments, body } => self.retry(expr, arguments, body),
            ExprKind::With { replacements, body } => self.with(expr, replacements, body, expected),
            ExprKind::Error => Ty::Error,
        }
    }

    /// Reports a value whose type must be known here.
    pub(super) fn unknown_here(&mut self, span: Span, ty: &Ty) -> Ty {
        self.inference.unify(ty, &Ty::Error);
        let diagnostic = Diagnostic::new(Code::UnknownElementType, "the type of this must be known here")
            .at(span, "not determined by the code before it")
            .hint("declare its type: `let name: Type = …`");
        self.report(diagnostic);
        Ty::Error
    }

    fn tuple_index(&mut self, expr: &Expr, object: &'a Expr, index: u32, index_span: Span) -> Ty {
        let ty = self.expr(object, None);
        match self.inference.shallow(&ty) {
            Ty::Tuple(elements) if (index as usize) < elements.len() => {
                self.typed.resolve(expr.id, Resolution::Field(index));
                elements[index as usize].clone()
            }
            Ty::Error => Ty::Error,
            Ty::Unknown(_) => self.unknown_here(object.span, &ty),
            other => {
                let ty = self.inference.resolve(&other);
                let diagnostic = Diagnostic::new(Code::UnknownField, format!("`{ty}` has no element {index}"))
                    .at(index_span, "no such element")
                    .because(object.span, format!("this is `{ty}`"))
                    .hint("elements of a tuple are counted from 0");
                self.report(diagnostic);
                Ty::Error
            }
        }
    }

    fn index(&mut self, object: &'a Expr, index: &'a Expr) -> Ty {
        if let Some(table) = self.table_named(object) {
            return self.row_at(table, object, index);
        }
        let ty = self.expr(object, None);
        match self.inference.shallow(&ty) {
            Ty::List(element) => {
                self.expr(index, Some(&Expected::new(Ty::INT, object.span, "a list is indexed by a number")));
                self.index_from_the_end(index);
                (*element).clone()
            }
            Ty::Map(pair) => {
                let why = format!("a map with keys of the type `{}`", self.inference.resolve(&pair.0));
                self.expr(index, Some(&Expected::new(pair.0.clone(), object.span, why)));
                Ty::option(pair.1.clone())
            }
            other => {
                self.expr(index, None);
                self.not_a_collection(object.span, &other, "indexed")
            }
        }
    }

    /// Reports `list[-1]`, which other languages take for the last element, and which always fails.
    fn index_from_the_end(&mut self, index: &Expr) {
        if matches!(&index.kind, ExprKind::Literal(Literal { value: LiteralValue::Int(number), .. }) if *number < 0) {
            let diagnostic = Diagnostic::new(Code::DialectSyntax, "a list has no element before the first")
                .at(index.span, "an index counts from 0")
                .hint("the last element is `list.last()`, an `Option`; `list.take_last(2)` are the last two");
            self.report(diagnostic);
        }
    }

    pub(super) fn not_a_collection(&mut self, span: Span, ty: &Ty, what: &str) -> Ty {
        let ty = self.inference.resolve(ty);
        if ty == Ty::Error {
            return Ty::Error;
        }
        if let Ty::Unknown(_) = ty {
            return self.unknown_here(span, &ty);
        }
        let mut diagnostic =
            Diagnostic::new(Code::NotACollection, format!("a value of the type `{ty}` cannot be {what}"))
                .at(span, format!("this is `{ty}`"));
        if let Ty::Result(_) = ty {
            diagnostic = diagnostic.suggest("unwrap the value first, with `?` or `else { … }`", span.at_end(), "?");
        } else if ty == Ty::TEXT && what == "indexed" {
            diagnostic = diagnostic.hint("take a character: `text.at(position)`, or a part: `text.slice(from, to)`");
        } else if let Ty::Option(_) = ty {
            diagnostic = diagnostic
                .hint("handle `None` first: `value else { [] }` of a list, `value.map(|x| …)` of another value, or `match` it");
        } else {
            diagnostic = diagnostic.hint(format!("only lists and maps can be {what}"));
        }
        self.report(diagnostic);
        Ty::Error
    }

    fn tuple(&mut self, elements: &'a [Expr], expected: Option<&Ty>) -> Ty {
        let wanted = match expected.map(|ty| self.inference.shallow(ty)) {
            Some(Ty::Tuple(wanted)) if wanted.len() == elements.len() => Some(wanted),
            _ => None,
        };
        let types = elements.iter().enumerate().map(|(at, element)| {
            let expected = wanted.as_ref().map(|wanted| Expected::plain(wanted[at].clone()));
            self.expr(element, expected.as_ref())
        });
        Ty::tuple(types.collect())
    }

    fn list(&mut self, span: Span, elements: &'a [Expr], expected: Option<&Ty>) -> Ty {
        let wanted = match expected.map(|ty| self.inference.shallow(ty)) {
            Some(Ty::List(element)) => (*element).clone(),
            _ => self.inference.fresh(),
        };
        self.alike(elements.iter(), &wanted, "the elements of a list have one type: this is the first");
        if elements.is_empty() {
            self.open.push(OpenType { span, ty: wanted.clone(), function: None });
        }
        Ty::list(wanted)
    }

    fn map(&mut self, span: Span, entries: &'a [MapEntry], expected: Option<&Ty>) -> Ty {
        let (key, value) = match expected.map(|ty| self.inference.shallow(ty)) {
            Some(Ty::Map(pair)) => (*pair).clone(),
            _ => (self.inference.fresh(), self.inference.fresh()),
        };
        self.alike(entries.iter().map(|entry| &entry.key), &key, "the keys of a map have one type: this is the first");
        self.alike(
            entries.iter().map(|entry| &entry.value),
            &value,
            "the values of a map have one type, and this is the first; a `record` has fields of several types",
        );
        if entries.is_empty() {
            self.open.push(OpenType { span, ty: value.clone(), function: None });
        }
        Ty::map(key, value)
    }

    /// Checks expressions of one common type, which is the expected one or that of the first expression.
    fn alike(&mut self, elements: impl Iterator<Item = &'a Expr>, ty: &Ty, why: &str) {
        let mut expected = Expected::plain(ty.clone());
        for element in elements {
            self.expr(element, Some(&expected));
            if expected.why.is_none() {
                expected.why = Some((element.span, why.to_owned()));
            }
        }
    }
}

pub(super) fn literal_type(literal: &Literal) -> Ty {
    match literal.value {
        LiteralValue::Int(_) => Ty::INT,
        LiteralValue::Float(_) => Ty::FLOAT,
        LiteralValue::Bool(_) => Ty::BOOL,
        LiteralValue::Size(_) => Ty::SIZE,
        LiteralValue::Duration(_) => Ty::DURATION,
    }
}
