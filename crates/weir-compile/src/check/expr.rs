//! Checks each form of expression.

use weir_host::{Type, TypeShape};
use weir_syntax::ast::{Expr, ExprKind, Literal, LiteralValue, MapEntry, TextLiteral, TextPart};
use weir_syntax::{Code, Diagnostic, Span};

use super::control::ALL_BRANCHES;
use super::generics::stands_for_any;
use super::{Expected, OpenType, TypeChecker};
use crate::lang_items::{HTML, JSON_VALUE, SECRET};
use crate::typed_tree::{Demand, Resolution};
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

    /// Like [`Self::agree`], with hints that depend on the form of the expression.
    fn agree_expr(&mut self, expr: &Expr, found: Ty, expected: &Expected) -> Ty {
        if found.is_never() || self.inference.unify(&found, &expected.ty) {
            return found;
        }
        let diagnostic = match &expr.kind {
            ExprKind::If { otherwise: None, .. } => self.without_else(expr.span, expected),
            ExprKind::For { .. } => {
                let diagnostic = self.mismatch(expr.span, &found, expected);
                diagnostic.hint("`for` returns a list; use `fold` for a single value")
            }
            _ => self.mismatch(expr.span, &found, expected),
        };
        self.report(diagnostic);
        Ty::Error
    }

    fn without_else(&mut self, span: Span, expected: &Expected) -> Diagnostic {
        let wanted = self.inference.resolve(&expected.ty);
        let message = format!("expected `{wanted}`, but this `if` has no `else`");
        let mut diagnostic =
            Diagnostic::new(Code::TypeMismatch, message).at(span, "no value if the condition is false");
        if let Some((place, why)) = &expected.why {
            diagnostic = diagnostic.because(*place, why.clone());
        }
        diagnostic.hint("add the other value: `else { … }`")
    }

    /// Unifies the type of an expression with the expected one and returns it; reports a mismatch.
    pub(super) fn agree(&mut self, span: Span, found: Ty, expected: &Expected) -> Ty {
        if found.is_never() || self.inference.unify(&found, &expected.ty) {
            return found;
        }
        let diagnostic = self.mismatch(span, &found, expected);
        self.report(diagnostic);
        Ty::Error
    }

    fn mismatch(&mut self, span: Span, found: &Ty, expected: &Expected) -> Diagnostic {
        let (found, wanted) = (self.inference.resolve(found), self.inference.resolve(&expected.ty));
        let mut diagnostic = Diagnostic::new(Code::TypeMismatch, format!("expected `{wanted}`, found `{found}`"))
            .at(span, format!("this is `{found}`"));
        if let Some((place, why)) = &expected.why {
            diagnostic = diagnostic.because(*place, why.clone());
        }
        let is_of_branches = expected.why.as_ref().is_some_and(|(_, why)| why == ALL_BRANCHES);
        let diagnostic = match (&found, &wanted) {
            (Ty::Function(taken), Ty::Function(given)) if taken.0.len() > given.0.len() => {
                self.closure_hint(diagnostic, span, given.0.len())
            }
            _ => self.mismatch_hint(diagnostic, span, &found, &wanted),
        };
        match found == Ty::UNIT || wanted == Ty::UNIT {
            true if is_of_branches => diagnostic.hint("end each branch with `()` if nothing uses the value"),
            _ => diagnostic,
        }
    }

    /// Adds the fix of a function that takes more arguments than it is given, perhaps with defaults.
    fn closure_hint(&self, diagnostic: Diagnostic, span: Span, given: usize) -> Diagnostic {
        let arguments = ('a'..='z').take(given).map(String::from).collect::<Vec<_>>().join(", ");
        let function = self.context.text.get(span.range()).unwrap_or("f");
        diagnostic.hint(format!("pass a closure that calls it: `|{arguments}| {function}({arguments})`"))
    }

    /// Adds the fixes of a value that should be a `Result` of it.
    fn result_hint(&self, diagnostic: Diagnostic, span: Span) -> Diagnostic {
        let mark = Span { start: span.end.saturating_sub(1), ..span };
        let diagnostic = diagnostic.hint("wrap it: `Ok(…)`");
        match self.context.text.get(mark.range()) {
            Some("?") => diagnostic.offer("or leave out the `?`: without it, this is a `Result`", mark, ""),
            _ => diagnostic,
        }
    }

    /// Adds the usual fix for a mismatch of these two types.
    fn mismatch_hint(&mut self, diagnostic: Diagnostic, span: Span, found: &Ty, wanted: &Ty) -> Diagnostic {
        if let Some(name) = wanted.parameter_name().or(found.parameter_name()) {
            return diagnostic.note(stands_for_any(name));
        }
        if *wanted == Ty::named(RESPONSE)
            && let Some(function) = self.response_of(found)
        {
            return diagnostic.hint(format!("make it a response: `http.{function}(…)`"));
        }
        match (found, wanted) {
            (Ty::Result(pair), Ty::Result(_)) if pair.0 == *wanted => {
                diagnostic.hint("its value is a `Result` already: leave out `Ok(…)`, or add `?` inside of it")
            }
            (Ty::Result(pair), wanted) if pair.0 == *wanted => diagnostic.suggest(
                "add `?` to end the flow if it fails, or handle it with `else { … }`",
                span.at_end(),
                "?",
            ),
            (Ty::Option(some), wanted) if **some == *wanted => diagnostic.hint("handle `None`: `else { … }`"),
            (Ty::Option(_), wanted) if *wanted == Ty::BOOL => {
                diagnostic.hint("match it: `match value { Some(x) => …, None => … }`")
            }
            (Ty::List(_) | Ty::Map(_), wanted) if *wanted == Ty::BOOL => {
                diagnostic.suggest("ask for its length", span.at_end(), ".length() > 0")
            }
            (found, wanted) if *found == Ty::TEXT && *wanted == Ty::BOOL => {
                diagnostic.suggest("compare it", span.at_end(), " != \"\"")
            }
            (found, wanted) if *found == Ty::INT && *wanted == Ty::BOOL => {
                diagnostic.suggest("compare it", span.at_end(), " != 0")
            }
            (found, Ty::Option(some)) if *found == **some => diagnostic.hint("wrap it: `Some(…)`"),
            (found, Ty::Result(pair)) if *found == pair.0 => self.result_hint(diagnostic, span),
            (Ty::Result(found), Ty::Result(wanted)) if found.1 == Ty::TEXT && wanted.1 == Ty::FAILURE => {
                diagnostic.hint("create a failure from the text: `Err(Failure(…))`, or use `fail(…)`")
            }
            (found, wanted) if *found == Ty::TEXT && *wanted == Ty::named(HTML) => {
                diagnostic.hint("write a template, whose interpolations are escaped: `html\"…\"`")
            }
            (found, wanted) if *found == Ty::named(HTML) && *wanted == Ty::TEXT => {
                diagnostic.hint("answer with `http.html(page)`, or insert it into a template: `html\"{page}\"`; `to_text` returns its text")
            }
            (found, _) if *found == Ty::named(JSON_VALUE) => diagnostic
                .hint("read the JSON as that type: `response.decode_json()?` of a response, or `json.decode(text)?`"),
            (found, _) if *found == Ty::named(SECRET) => diagnostic
                .hint("pass it to a parameter that takes a secret, such as `bearer` of `client.get`: it is never a text"),
            (found, wanted) if *found == Ty::TEXT && *wanted == Ty::BYTES => {
                diagnostic.hint("take its bytes: `….to_bytes()`")
            }
            (found, wanted) if *found == Ty::BYTES && *wanted == Ty::TEXT => {
                diagnostic.hint("decode the bytes, which fails if they are not UTF-8: `….to_text()?`")
            }
            (Ty::Plain(_), wanted) if *wanted == Ty::TEXT => diagnostic.hint("convert it to a text: `\"{…}\"`"),
            (found, wanted) => match number_hint(found, wanted) {
                Some(hint) => diagnostic.hint(hint),
                None => diagnostic,
            },
        }
    }

    /// Returns the function of `http` that makes a response of a value.
    fn response_of(&self, found: &Ty) -> Option<&'static str> {
        match found {
            found if *found == Ty::TEXT => Some("text"),
            found if *found == Ty::named(HTML) => Some("html"),
            Ty::List(_) | Ty::Map(_) => Some("json"),
            Ty::Plain(Type::Named(name)) if !self.is_opaque(name.as_str()) => Some("json"),
            _ => None,
        }
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

    fn text(&mut self, text: &'a TextLiteral) -> Ty {
        for part in &text.parts {
            if let TextPart::Expr(expr) = part {
                let ty = self.expr(expr, None);
                self.shown(expr.span, &ty);
            }
        }
        Ty::TEXT
    }

    /// Reports a value that cannot be interpolated into a text.
    pub(super) fn shown(&mut self, span: Span, ty: &Ty) {
        let ty = self.inference.resolve(ty);
        if self.has_text(&ty, &mut Vec::new()) {
            return self.demand(&ty, Demand::Text, span);
        }
        let mut diagnostic =
            Diagnostic::new(Code::NoText, format!("values of the type `{ty}` cannot be shown as text"))
                .at(span, format!("this is `{ty}`"));
        diagnostic = match ty {
            Ty::Result(_) => diagnostic.hint("unwrap the value first, with `?` or `else { … }`"),
            ty if ty == Ty::named(HTML) => diagnostic.hint("interpolate it in a template: `html\"{…}\"`"),
            Ty::List(element) if self.has_text(&element, &mut Vec::new()) => {
                diagnostic.hint("show each element: `for x in list { \"{x}\" }`")
            }
            Ty::List(element) => match self.shown_field(&element) {
                Some(field) => {
                    diagnostic.hint(format!("show a part of each element: `for x in list {{ \"{{x.{field}}}\" }}`"))
                }
                None => diagnostic,
            },
            _ => diagnostic,
        };
        self.report(diagnostic);
    }

    /// Returns the first field of a record that can be shown as text.
    fn shown_field(&self, record: &Ty) -> Option<String> {
        let has_text = |field: &String| {
            let ty = self.field_of(record, field);
            ty.is_some_and(|(_, ty)| self.has_text(&ty, &mut Vec::new()))
        };
        self.fields_of(record).into_iter().find(has_text)
    }

    /// Returns whether a value can be shown as text. The elements of a list or map must be plain: only the compiler
    /// knows the names of variants and fields, and it cannot generate code for each element.
    pub(super) fn has_text(&self, ty: &Ty, seen: &mut Vec<weir_host::Text>) -> bool {
        match ty {
            Ty::Function(_) | Ty::Result(_) => false,
            Ty::Error | Ty::Unknown(_) => true,
            Ty::List(part) => self.is_plain(part),
            Ty::Map(pair) => self.is_plain(&pair.0) && self.is_plain(&pair.1),
            Ty::Option(part) => self.has_text(part, seen),
            Ty::Tuple(parts) => parts.iter().all(|part| self.has_text(part, seen)),
            Ty::Plain(_) => match ty.name() {
                Some(name) => self.named_has_text(name, seen),
                None => true,
            },
        }
    }

    fn named_has_text(&self, name: &weir_host::Text, seen: &mut Vec<weir_host::Text>) -> bool {
        if seen.contains(name) {
            return true;
        }
        seen.push(name.clone());
        let definition = self.typed.declarations.definition(self.context.library, name);
        match definition.map(|definition| &definition.shape) {
            Some(TypeShape::Record(fields)) => fields.iter().all(|field| self.has_text(&Ty::fixed(&field.ty), seen)),
            Some(TypeShape::Enum(variants)) => {
                variants.iter().flat_map(|variant| &variant.fields).all(|f| self.has_text(&Ty::fixed(&f.ty), seen))
            }
            Some(TypeShape::Opaque { .. }) => false,
            None => true,
        }
    }

    fn is_plain(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Function(_) | Ty::Result(_) | Ty::Option(_) => false,
            Ty::Error | Ty::Unknown(_) => true,
            Ty::List(part) => self.is_plain(part),
            Ty::Map(pair) => self.is_plain(&pair.0) && self.is_plain(&pair.1),
            Ty::Tuple(parts) => parts.iter().all(|part| self.is_plain(part)),
            Ty::Plain(_) => ty.name().is_none() && ty.parameter_name().is_none(),
        }
    }

    pub(super) fn is_opaque(&self, name: &str) -> bool {
        let definition = self.typed.declarations.definition(self.context.library, name);
        definition.is_some_and(|definition| matches!(definition.shape, TypeShape::Opaque { .. }))
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

/// The type of the answers of a service.
const RESPONSE: &str = "http.Response";

/// Returns the usual fix for a number, or a list of numbers, of another type.
fn number_hint(found: &Ty, wanted: &Ty) -> Option<&'static str> {
    match (found, wanted) {
        (Ty::List(found), Ty::List(wanted)) if **found == Ty::FLOAT && **wanted == Ty::INT => {
            Some("functions of the module `float` take lists of `Float`s: `float.sum(list)`")
        }
        (found, wanted) if *found == Ty::INT && *wanted == Ty::FLOAT => {
            Some("write a literal with a decimal point, as in `1.0`, and convert other numbers: `n.to_float()`")
        }
        (found, wanted) if *found == Ty::FLOAT && *wanted == Ty::INT => {
            Some("convert it: `x.to_int()`, which is `None` if it does not fit, or `x.round().to_int()`")
        }
        (found, wanted) if *found == Ty::INT && *wanted == Ty::SIZE => Some("write a size, as in `64kb`"),
        (found, wanted) if *found == Ty::INT && *wanted == Ty::DURATION => Some("write a duration, as in `200ms`"),
        _ => None,
    }
}
