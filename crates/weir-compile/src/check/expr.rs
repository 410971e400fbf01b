//! The type of each form of expression.

use weir_host::TypeShape;
use weir_syntax::ast::{
    Block, Expr, ExprKind, FieldValue, Let, Literal, LiteralValue, MapEntry, Name, Path, Statement, StatementKind,
    TextLiteral, TextPart,
};
use weir_syntax::{Code, Diagnostic, Span};

use super::{Cases, Checker, Expected, Leaves};
use crate::index::Entity;
use crate::suggest::nearest;
use crate::typed::Meaning;
use crate::types::Ty;

impl<'a> Checker<'a> {
    /// Checks an expression against what its place expects, and gives its type.
    pub(super) fn expr(&mut self, expr: &'a Expr, expected: Option<&Expected>) -> Ty {
        let found = self.infer(expr, expected);
        let ty = match expected {
            Some(expected) => self.agree(expr.span, found, expected),
            None => found,
        };
        if let Some(slot) = self.expr_types.get_mut(expr.id.0 as usize) {
            *slot = ty.clone();
            self.expr_spans[expr.id.0 as usize] = expr.span;
        }
        self.reached = expr.span.end;
        ty
    }

    /// What an expression is whose place expects `expected`; reports a disagreement.
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
        self.mismatch_hint(diagnostic, span, &found, &wanted)
    }

    /// What usually mends a disagreement of these two types.
    fn mismatch_hint(&mut self, diagnostic: Diagnostic, span: Span, found: &Ty, wanted: &Ty) -> Diagnostic {
        match (found, wanted) {
            (Ty::Result(pair), wanted) if pair.0 == *wanted => diagnostic.fix(
                "add `?` to end the flow if it fails, or handle it with `else { … }`",
                span.at_end(),
                "?",
            ),
            (Ty::Option(some), wanted) if **some == *wanted => {
                diagnostic.hint("say what to take instead if there is none: `else { … }`")
            }
            (found, Ty::Option(some)) if *found == **some => diagnostic.hint("wrap it: `Some(…)`"),
            (found, Ty::Result(pair)) if *found == pair.0 => diagnostic.hint("wrap it: `Ok(…)`"),
            (Ty::Plain(_), wanted) if *wanted == Ty::TEXT => diagnostic.hint("make a text of it: `\"{…}\"`"),
            (found, wanted) if *found == Ty::INT && *wanted == Ty::FLOAT => {
                diagnostic.hint("write the number with a point, as in `1.0`")
            }
            (found, wanted) if *found == Ty::INT && *wanted == Ty::SIZE => {
                diagnostic.hint("write a size, as in `64kb`")
            }
            (found, wanted) if *found == Ty::INT && *wanted == Ty::DURATION => {
                diagnostic.hint("write a duration, as in `200ms`")
            }
            _ => diagnostic,
        }
    }

    fn infer(&mut self, expr: &'a Expr, expected: Option<&Expected>) -> Ty {
        let wanted = expected.map(|expected| &expected.ty);
        match &expr.kind {
            ExprKind::Literal(literal) => literal_type(literal),
            ExprKind::Text(text) => self.text(text),
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
            ExprKind::For { pattern, items, body } => self.for_(pattern, items, body),
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
            ExprKind::Record { path, base, fields } => self.record(expr.span, path, base.as_deref(), fields),
            ExprKind::Tuple(elements) if elements.is_empty() => Ty::UNIT,
            ExprKind::Tuple(elements) => self.tuple(elements, wanted),
            ExprKind::List(elements) => self.list(expr.span, elements, wanted),
            ExprKind::Map(entries) => self.map(expr.span, entries, wanted),
            ExprKind::Within { .. } => self.unsupported(expr, "`within`"),
            ExprKind::Race(_) => self.unsupported(expr, "`race`"),
            ExprKind::Retry { .. } => self.unsupported(expr, "`retry`"),
            ExprKind::With { replacements, body } => self.with(expr, replacements, body, expected),
            ExprKind::Error => Ty::Error,
        }
    }

    fn unsupported(&mut self, expr: &Expr, what: &str) -> Ty {
        self.not_yet(expr.span, what);
        Ty::Error
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

    /// Reports a value that has no text.
    fn shown(&mut self, span: Span, ty: &Ty) {
        let ty = self.inference.resolve(ty);
        let opaque = ty.name().is_some_and(|name| self.is_opaque(name));
        if !opaque && !matches!(ty, Ty::Function(_) | Ty::Result(_)) {
            return;
        }
        let mut diagnostic = Diagnostic::new(Code::NoText, format!("a value of the type `{ty}` has no text"))
            .at(span, format!("this is `{ty}`"));
        if let Ty::Result(_) = ty {
            diagnostic = diagnostic.hint("take the value out first, with `?` or `else { … }`");
        }
        self.report(diagnostic);
    }

    pub(super) fn is_opaque(&self, name: &str) -> bool {
        let definition = self.declarations.definition(self.library, name);
        definition.is_some_and(|definition| matches!(definition.shape, TypeShape::Opaque { .. }))
    }

    /// `object.name` where it is not called: a field, a variant, or a function named as a value.
    fn field(&mut self, expr: &'a Expr, object: &'a Expr, name: &Name, expected: Option<&Ty>) -> Ty {
        if let Some(path) = super::names::path_of(expr)
            && let Some(ty) = self.path_value(expr, &path, expected)
        {
            return ty;
        }
        let ty = self.expr(object, None);
        let ty = self.inference.shallow(&ty);
        if name.is_missing() || ty == Ty::Error {
            return Ty::Error;
        }
        match self.field_of(&ty, name.as_str()) {
            Some((index, field)) => {
                self.meanings.insert(expr.id, Meaning::Field(index));
                self.refer_field(&ty, name);
                field
            }
            None => self.no_field(object.span, &ty, name),
        }
    }

    pub(super) fn refer_field(&mut self, record: &Ty, name: &Name) {
        if let Some(of) = record.name() {
            self.refer(name.span, Entity::Field(of.clone(), name.as_str().into()));
        }
    }

    /// The index and type of a record's field.
    pub(super) fn field_of(&self, ty: &Ty, name: &str) -> Option<(u32, Ty)> {
        let definition = self.declarations.definition(self.library, ty.name()?)?;
        let TypeShape::Record(fields) = &definition.shape else { return None };
        let index = fields.iter().position(|field| field.name.as_str() == name)?;
        Some((index as u32, Ty::fixed(&fields[index].ty)))
    }

    fn no_field(&mut self, object: Span, ty: &Ty, name: &Name) -> Ty {
        let resolved = self.inference.resolve(ty);
        if let Ty::Unknown(_) = resolved {
            return self.unknown_here(object);
        }
        let mut diagnostic = Diagnostic::new(Code::UnknownField, format!("`{resolved}` has no field `{name}`"))
            .at(name.span, "no such field")
            .because(object, format!("this is `{resolved}`"));
        let fields = self.fields_of(&resolved);
        if let Some(near) = nearest(name.as_str(), fields.iter().map(String::as_str)) {
            diagnostic = diagnostic.fix(format!("did you mean `{near}`?"), name.span, near);
        } else if !fields.is_empty() {
            diagnostic = diagnostic.hint(format!("it has {}", listed(&fields)));
        } else if self.has_method(&resolved, name.as_str()) {
            diagnostic = diagnostic.fix("call it", name.span.at_end(), "()");
        } else if let Ty::Result(_) = resolved {
            diagnostic = diagnostic.fix("take the value out first, with `?` or `else { … }`", object.at_end(), "?");
        }
        self.report(diagnostic);
        Ty::Error
    }

    pub(super) fn fields_of(&self, ty: &Ty) -> Vec<String> {
        let definition = ty.name().and_then(|name| self.declarations.definition(self.library, name));
        match definition.map(|definition| &definition.shape) {
            Some(TypeShape::Record(fields)) => fields.iter().map(|field| field.name.to_string()).collect(),
            _ => Vec::new(),
        }
    }

    /// A value whose type has to be known to go on.
    pub(super) fn unknown_here(&mut self, span: Span) -> Ty {
        let diagnostic = Diagnostic::new(Code::UnknownElementType, "the type of this has to be known here")
            .at(span, "nothing before this place says what it is")
            .hint("write its type where it is bound: `let name: Type = …`");
        self.report(diagnostic);
        Ty::Error
    }

    fn tuple_index(&mut self, expr: &Expr, object: &'a Expr, index: u32, index_span: Span) -> Ty {
        let ty = self.expr(object, None);
        match self.inference.shallow(&ty) {
            Ty::Tuple(elements) if (index as usize) < elements.len() => {
                self.meanings.insert(expr.id, Meaning::Field(index));
                elements[index as usize].clone()
            }
            Ty::Error => Ty::Error,
            Ty::Unknown(_) => self.unknown_here(object.span),
            other => {
                let ty = self.inference.resolve(&other);
                let diagnostic = Diagnostic::new(Code::UnknownField, format!("`{ty}` has no part {index}"))
                    .at(index_span, "no such part")
                    .because(object.span, format!("this is `{ty}`"))
                    .hint("parts of a tuple are counted from 0");
                self.report(diagnostic);
                Ty::Error
            }
        }
    }

    fn index(&mut self, object: &'a Expr, index: &'a Expr) -> Ty {
        let ty = self.expr(object, None);
        match self.inference.shallow(&ty) {
            Ty::List(element) => {
                self.expr(index, Some(&Expected::new(Ty::INT, object.span, "a list is indexed by a number")));
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

    pub(super) fn not_a_collection(&mut self, span: Span, ty: &Ty, what: &str) -> Ty {
        let ty = self.inference.resolve(ty);
        if ty == Ty::Error {
            return Ty::Error;
        }
        if let Ty::Unknown(_) = ty {
            return self.unknown_here(span);
        }
        let mut diagnostic =
            Diagnostic::new(Code::NotACollection, format!("a value of the type `{ty}` cannot be {what}"))
                .at(span, format!("this is `{ty}`"));
        if let Ty::Result(_) = ty {
            diagnostic = diagnostic.fix("take the value out first, with `?` or `else { … }`", span.at_end(), "?");
        } else {
            diagnostic = diagnostic.hint("only a list can be");
        }
        self.report(diagnostic);
        Ty::Error
    }

    fn record(&mut self, span: Span, path: &Path, base: Option<&'a Expr>, fields: &'a [FieldValue]) -> Ty {
        let ty = self.record_type(path);
        if let Some(base) = base {
            self.expr(base, Some(&Expected::new(ty.clone(), path.span, format!("a `{path}` is made here"))));
        }
        let mut given: Vec<&Name> = Vec::new();
        for field in fields {
            let expected = self.field_expected(&ty, path, &field.name);
            self.expr(&field.value, expected.as_ref());
            if let Some(first) = given.iter().find(|name| name.text == field.name.text) {
                let diagnostic =
                    Diagnostic::new(Code::RecordFields, format!("the field `{}` is given twice", field.name))
                        .at(field.name.span, "given again here")
                        .because(first.span, "first given here");
                self.report(diagnostic);
            }
            given.push(&field.name);
        }
        if base.is_none() {
            self.missing_fields(span, path, &ty, &given);
        }
        ty
    }

    pub(super) fn record_type(&mut self, path: &Path) -> Ty {
        if path.last().is_missing() {
            return Ty::Error;
        }
        if let Some(whole) = self.type_named(&path.names) {
            let definition = self.declarations.definition(self.library, &whole);
            if definition.is_some_and(|definition| matches!(definition.shape, TypeShape::Record(_))) {
                self.refer(path.last().span, Entity::Type(whole.clone()));
                return Ty::named(&whole);
            }
        }
        let known = self.declarations.types.iter();
        let records =
            known.filter(|(_, ty)| matches!(ty.definition.shape, TypeShape::Record(_))).map(|(name, _)| name.as_str());
        let diagnostic =
            Diagnostic::new(Code::UnknownType, format!("there is no record `{path}`")).at(path.span, "not declared");
        let near = nearest(path.last().as_str(), records).map(str::to_owned);
        let diagnostic = match near {
            Some(near) => diagnostic.fix(format!("did you mean `{near}`?"), path.span, near),
            None => diagnostic.hint(format!("declare it: `record {} {{ … }}`", path.last())),
        };
        self.report(diagnostic);
        Ty::Error
    }

    fn field_expected(&mut self, ty: &Ty, path: &Path, name: &Name) -> Option<Expected> {
        if *ty == Ty::Error || name.is_missing() {
            return None;
        }
        match self.field_of(ty, name.as_str()) {
            Some((_, field)) => {
                self.refer_field(ty, name);
                let why = format!("the field `{name}` of `{path}` is `{field}`");
                Some(Expected::new(field, name.span, why))
            }
            None => {
                self.no_field(path.span, ty, name);
                Some(Expected::plain(Ty::Error))
            }
        }
    }

    fn missing_fields(&mut self, span: Span, path: &Path, ty: &Ty, given: &[&Name]) {
        let missing: Vec<String> = self.fields_of(ty);
        let missing: Vec<String> =
            missing.into_iter().filter(|field| !given.iter().any(|name| name.as_str() == field)).collect();
        if missing.is_empty() {
            return;
        }
        let (fields, are) = if missing.len() == 1 { ("field", "is") } else { ("fields", "are") };
        let diagnostic = Diagnostic::new(
            Code::RecordFields,
            format!("the {fields} {} of `{path}` {are} not given", listed(&missing)),
        )
        .at(span, "not all fields have a value")
        .hint(format!("add `{}: …`", missing[0]));
        self.report(diagnostic);
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
            self.open.push((span, wanted.clone()));
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
            "the values of a map have one type: this is the first",
        );
        if entries.is_empty() {
            self.open.push((span, value.clone()));
        }
        Ty::map(key, value)
    }

    /// Checks expressions that have one type; the first says which, unless the place does.
    fn alike(&mut self, elements: impl Iterator<Item = &'a Expr>, ty: &Ty, why: &str) {
        let mut expected = Expected::plain(ty.clone());
        for element in elements {
            self.expr(element, Some(&expected));
            if expected.why.is_none() {
                expected.why = Some((element.span, why.to_owned()));
            }
        }
    }

    /// A block: its type is its value's, or [`Ty::NEVER`] where it never gets to its end.
    pub(super) fn block(&mut self, block: &'a Block, expected: Option<&Expected>) -> Ty {
        let mark = self.scope.mark();
        let value = block.value();
        let gives_unit = expected.is_some_and(|expected| self.inference.shallow(&expected.ty) == Ty::UNIT);
        let mut leaves = false;
        let mut ty = Ty::UNIT;
        for (at, statement) in block.statements.iter().enumerate() {
            let is_value = value.is_some() && at + 1 == block.statements.len();
            if let (StatementKind::Expr(expr), true, false) = (&statement.kind, is_value, gives_unit) {
                // A value behind a statement that never ends is never looked at.
                ty = self.expr(expr, expected.filter(|_| !leaves));
            } else {
                leaves |= self.statement(statement).is_never();
            }
        }
        if gives_unit && value.is_some() {
            self.unit_blocks.insert(block.span.start);
        }
        self.scope.leave(mark);
        if leaves || ty.is_never() {
            return Ty::NEVER;
        }
        match expected {
            Some(expected) if value.is_none() => self.agree(end_of(block), Ty::UNIT, expected),
            _ => ty,
        }
    }

    fn statement(&mut self, statement: &'a Statement) -> Ty {
        match &statement.kind {
            StatementKind::Let(binding) => self.let_(binding),
            StatementKind::Expr(expr) => {
                let ty = self.expr(expr, None);
                self.dropped(expr, &ty);
                ty
            }
            StatementKind::Expect(condition) => {
                self.expect(condition);
                Ty::UNIT
            }
            // Checked before the body that it stands in.
            StatementKind::FailureHandler(_) => Ty::UNIT,
        }
    }

    /// Warns of a failure that nobody would see.
    fn dropped(&mut self, expr: &Expr, ty: &Ty) {
        if !self.fallible(ty) || matches!(self.inference.shallow(ty), Ty::Option(_)) {
            return;
        }
        let diagnostic = Diagnostic::new(Code::UnhandledFailure, "this may fail, and nothing says what happens then")
            .at(expr.span, format!("has the type `{}`", self.inference.resolve(ty)))
            .fix("add `?` to end the flow if it fails, or handle it with `else { … }`", expr.span.at_end(), "?");
        self.report(diagnostic);
    }

    fn let_(&mut self, binding: &'a Let) -> Ty {
        let written = binding.ty.as_ref().map(|ty| {
            let written = self.written(ty);
            Expected::new(written, ty.span, "the type that is written here")
        });
        let unwraps = binding.otherwise.is_some() && !super::pattern::names_outcome(&binding.pattern);
        let value = if unwraps { self.expr(&binding.value, None) } else { self.expr(&binding.value, written.as_ref()) };
        let mut ty = value.clone();
        let mut failure = None;
        if unwraps && let Some((inner, failed)) = self.unwrapped(&value) {
            ty = match &written {
                Some(written) => self.agree(binding.value.span, inner, written),
                None => inner,
            };
            failure = Some(failed);
        }
        if let Some(otherwise) = &binding.otherwise {
            self.let_otherwise(binding, otherwise, failure, &ty);
        }
        if let (Some(written), true) = (written, ty == Ty::Error || ty.is_never()) {
            ty = written.ty;
        }
        let clean = self.pattern(&binding.pattern, &ty);
        if let (Some(local), Some(call)) =
            (self.pattern_locals.get(&binding.pattern.id), self.calls.get(&binding.value.id))
        {
            self.local_calls.insert(*local, call.target.clone());
        }
        if clean && binding.otherwise.is_none() {
            self.matches.push(Cases::Whole(&binding.pattern));
        }
        if value.is_never() { Ty::NEVER } else { Ty::UNIT }
    }

    /// The `else` of a `let`: gives a value for the pattern, or leaves where the pattern may not match.
    fn let_otherwise(
        &mut self,
        binding: &'a Let,
        otherwise: &'a weir_syntax::ast::Otherwise,
        failure: Option<Option<Ty>>,
        ty: &Ty,
    ) {
        let refutable = super::pattern::is_refutable(&binding.pattern);
        if failure.is_none() && !refutable && *ty != Ty::Error {
            self.cannot_fail(binding.value.span, ty, "`else`");
        }
        let expected = Expected::new(ty.clone(), binding.value.span, "stands for the value of this");
        let found = self.with_failure(otherwise.failure.as_ref(), failure.flatten(), &otherwise.body, Some(&expected));
        if refutable && !found.is_never() && found != Ty::Error {
            let diagnostic = Diagnostic::new(Code::ElseFallsThrough, "the `else` of this `let` must leave")
                .at(otherwise.body.span, "goes on, with nothing bound")
                .because(binding.pattern.span, "this pattern may not match")
                .hint("end it with `return …`");
            self.report(diagnostic);
        }
    }

    /// Whether the body that is checked is that of a closure.
    pub(super) fn in_closure(&self) -> bool {
        matches!(self.leaves, Leaves::Closure)
    }
}

fn end_of(block: &Block) -> Span {
    match block.statements.last() {
        Some(last) => last.span,
        None => block.span,
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

/// `` `a`, `b` and `c` ``.
pub(super) fn listed(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}
