//! Lowers each form of expression to the atom that holds its value.

use std::borrow::Cow;
use std::rc::Rc;

use weir_host::{Type, Value};
use weir_ir::expr::Atom;
use weir_ir::prim::Prim;
use weir_syntax::Span;
use weir_syntax::ast::{
    BinaryOperator, Block, Expr, ExprKind, FieldValue, Let, Name, PatternId, Statement, StatementKind, TextLiteral,
    TextPart, UnaryOperator,
};

use super::branch::FallibleValue;
use super::{Binding, Callable, CodeScope, DEPTH_MAX, Lowering, TriedCall};
use crate::constant::{literal_value, prim_of};
use crate::typed_tree::{FailureTarget, LocalId, Resolution};
use crate::types::{Substitution, Ty};

impl<'a> Lowering<'a, '_> {
    /// Lowers an expression and returns its value.
    pub(super) fn expr(&mut self, expr: &'a Expr) -> Atom {
        if self.too_large || self.builder().has_ended() {
            return Atom::Value(Value::Unit);
        }
        self.depth += 1;
        let value = if self.depth > DEPTH_MAX {
            self.too_large(expr.span);
            Atom::Value(Value::Unit)
        } else {
            self.form(expr)
        };
        self.depth -= 1;
        value
    }

    pub(super) fn ty(&self, expr: &Expr) -> Type {
        self.concrete(self.typed.expr_type(expr.id)).to_type()
    }

    /// Returns the type with the current types in place of type parameters.
    pub(super) fn concrete<'t>(&self, ty: &'t Ty) -> Cow<'t, Ty> {
        if self.types.is_empty() { Cow::Borrowed(ty) } else { Cow::Owned(ty.substituted(&self.types)) }
    }

    pub(super) fn pattern_type(&self, id: PatternId) -> Type {
        if let Some(group) = self.group_pattern(id) {
            return group.clone();
        }
        self.concrete(self.typed.pattern_type(id)).to_type()
    }

    pub(super) fn local_type(&self, id: LocalId) -> Type {
        self.concrete(&self.typed.local(id).ty).to_type()
    }

    /// Returns the types that stand for the type parameters of the `fn` that an expression calls or names.
    pub(super) fn instance(&self, expr: &Expr) -> Rc<Substitution> {
        match self.typed.of(expr.id).instances.get(&expr.id) {
            Some(types) if self.types.is_empty() => Rc::new(types.clone()),
            Some(types) => {
                Rc::new(types.iter().map(|(name, ty)| (name.clone(), ty.substituted(&self.types))).collect())
            }
            None => Rc::default(),
        }
    }

    fn form(&mut self, expr: &'a Expr) -> Atom {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Literal(literal) => Atom::Value(literal_value(literal)),
            ExprKind::Text(text) => self.text(text),
            ExprKind::Html(text) => self.html(text),
            ExprKind::Formatted { value, format, .. } => self.formatted(value, *format, span),
            ExprKind::Name(_) => self.name(expr),
            ExprKind::Field { object, .. } => self.field(expr, object),
            ExprKind::TupleIndex { object, .. } => self.field(expr, object),
            ExprKind::Index { object, index } if self.table_named(object).is_some() => self.row_at(expr, object, index),
            ExprKind::Index { object, index } => {
                let operands = vec![self.expr(object), self.expr(index)];
                self.prim(Prim::Index, operands, self.ty(expr), span)
            }
            ExprKind::Call { function, arguments } => self.call(expr, function, None, arguments),
            ExprKind::Pipe { value, function, arguments } => self.call(expr, function, Some(value), arguments),
            ExprKind::Unary { operator, operand } => {
                let operands = vec![self.expr(operand)];
                let prim = if *operator == UnaryOperator::Negate { Prim::Negate } else { Prim::Not };
                self.prim(prim, operands, self.ty(expr), span)
            }
            ExprKind::Binary { operator, left, right, .. } => self.binary(expr, *operator, left, right),
            ExprKind::Try(value) => self.try_(expr, value),
            ExprKind::Else { value, otherwise, .. } => self.else_(expr, value, otherwise),
            ExprKind::If { condition, then, otherwise } => self.if_(expr, condition, then, otherwise.as_deref()),
            ExprKind::Match { value, arms } => self.match_(expr, value, arms),
            ExprKind::For { pattern, items, query, body } => self.for_(expr, (pattern, items), query, body),
            ExprKind::Fold { accumulator, initial, pattern, items, body } => {
                self.fold(expr, (accumulator, initial), (pattern, items), body)
            }
            ExprKind::Loop { state, initial, body, until, .. } => self.loop_(expr, (state, initial), body, until),
            ExprKind::Return(value) => {
                let ty = value.as_ref().map_or(Type::Unit, |value| self.ty(value));
                let value = value.as_ref().map_or(Atom::Value(Value::Unit), |value| self.expr(value));
                self.exit_body(value, &ty, span)
            }
            ExprKind::Block(block) => self.block(block),
            ExprKind::Atomic { resources, body } => self.atomic(expr, resources, body),
            ExprKind::Record { base, fields, .. } => self.record(expr, base.as_deref(), fields),
            ExprKind::Tuple(elements) if elements.is_empty() => Atom::Value(Value::Unit),
            ExprKind::Tuple(elements) => self.parts(Prim::Record, elements.iter(), expr),
            ExprKind::List(elements) => self.parts(Prim::List, elements.iter(), expr),
            ExprKind::Map(entries) => {
                self.parts(Prim::Map, entries.iter().flat_map(|entry| [&entry.key, &entry.value]), expr)
            }
            ExprKind::Closure { .. } => self.function_as_value(span),
            ExprKind::With { replacements, body } => self.with(expr, replacements, body),
            ExprKind::Within { value, limit } => self.within(expr, value, limit),
            ExprKind::Race(bodies) => self.race(expr, bodies),
            ExprKind::Retry { arguments, body } => self.retry(expr, arguments, body),
            // A program with a syntax error is never lowered.
            ExprKind::Error => Atom::Value(Value::Unit),
        }
    }

    fn parts(&mut self, prim: Prim, elements: impl Iterator<Item = &'a Expr>, expr: &Expr) -> Atom {
        let operands = elements.map(|element| self.expr(element)).collect();
        self.prim(prim, operands, self.ty(expr), expr.span)
    }

    fn text(&mut self, text: &'a TextLiteral) -> Atom {
        let mut parts: Vec<Atom> = Vec::new();
        for part in &text.parts {
            match part {
                TextPart::Literal { value, .. } => parts.push(Atom::Value(Value::text(value))),
                TextPart::Expr(expr) => {
                    let value = self.expr(expr);
                    let ty = self.concrete(self.typed.expr_type(expr.id));
                    parts.extend(self.shown(value, &ty, 0, expr.span));
                }
            }
        }
        match &parts[..] {
            [] => Atom::Value(Value::text("")),
            [Atom::Value(only @ Value::Text(_))] => Atom::Value(only.clone()),
            _ => self.prim(Prim::Interpolate, parts, Type::Text, text.span),
        }
    }

    fn name(&mut self, expr: &Expr) -> Atom {
        match self.typed.resolution(expr.id) {
            Some(Resolution::Local(local)) => match self.names.get(local) {
                Some(Binding::Atom(atom)) => atom.clone(),
                Some(Binding::Callable(_)) => self.function_as_value(expr.span),
                None => Atom::Value(Value::Unit),
            },
            Some(Resolution::Shared(name)) => Atom::Shared((&**name).into()),
            Some(Resolution::SharedNow(name)) => self.read_shared(name, expr.span),
            Some(Resolution::Config(name)) => self.configured(name, expr.span),
            Some(Resolution::Constant(name)) => Atom::Value(self.constant_value(name)),
            Some(Resolution::Variant(tag)) => Atom::Value(Value::Variant(*tag, None)),
            Some(Resolution::Function(_) | Resolution::Host(_) | Resolution::Weir(_)) => {
                self.function_as_value(expr.span)
            }
            Some(Resolution::Field(_)) | None => Atom::Value(Value::Unit),
        }
    }

    /// Lowers a read of a shared value, which is a call of `state.read`.
    fn read_shared(&mut self, name: &str, span: Span) -> Atom {
        let declared = self.program.declarations.shared.get(name);
        let ty = declared.map_or(Type::Unit, |declared| declared.ty.to_type());
        let value = Some(Binding::Atom(Atom::Shared(name.into())));
        self.call_host(&crate::lang_items::SHARED_READ.into(), vec![value], ty, (span, &[None]))
    }

    /// Reports a function as a value: functions are inlined at their calls and have no representation.
    fn function_as_value(&mut self, span: Span) -> Atom {
        let diagnostic = weir_syntax::Diagnostic::new(weir_syntax::Code::FunctionAsValue, "a function is not a value")
            .at(span, "neither called nor passed to a `fn`")
            .hint("call it, or pass it to a `fn` that takes a function");
        self.context.report_once(diagnostic);
        Atom::Value(Value::Unit)
    }

    fn field(&mut self, expr: &'a Expr, object: &'a Expr) -> Atom {
        let Some(Resolution::Field(index)) = self.typed.resolution(expr.id) else { return self.name(expr) };
        let object = self.expr(object);
        self.prim(Prim::Field(*index), vec![object], self.ty(expr), expr.span)
    }

    fn binary(&mut self, expr: &'a Expr, operator: BinaryOperator, left: &'a Expr, right: &'a Expr) -> Atom {
        let prim = match operator {
            BinaryOperator::And | BinaryOperator::Or => return self.connective(expr, operator, left, right),
            operator => prim_of(operator),
        };
        let operands = vec![self.expr(left), self.expr(right)];
        self.prim(prim, operands, self.ty(expr), expr.span)
    }

    /// Lowers `value?`. A failure ends the flow, or exits the `fn` as its `Err`.
    fn try_(&mut self, expr: &'a Expr, value: &'a Expr) -> Atom {
        let tried = self.typed.of(expr.id).tries.get(&expr.id);
        let tried = tried.filter(|_| !self.handled_calls.are_wanted()).map(|of| TriedCall {
            call: value.id,
            span: expr.span,
            to: of.to,
            of: of.of.clone(),
        });
        let around = std::mem::replace(&mut self.tried, tried);
        let subject = self.expr(value);
        self.tried = around;
        let arguments = match self.typed.resolution(value.id) {
            Some(Resolution::Local(local)) => self.handled_calls.of_local(*local),
            _ => self.handled_calls.of_call(value.id),
        };
        let of_ty = self.ty(value);
        let of = self.typed.of(expr.id).tries.get(&expr.id);
        let (to, failed) = of.map_or((FailureTarget::Flow, None), |of| (of.to, of.of.as_ref()));
        let span = expr.span;
        let failure_type = match &of_ty {
            Type::Result(pair) => pair.1.clone(),
            _ => Type::Failure,
        };
        self.match_fallible(FallibleValue { subject, of: of_ty }, &self.ty(expr), span, |lowering, failure| {
            let failure = failure.unwrap_or(Atom::Value(Value::Unit));
            lowering.failed(failure, &failure_type, (to, failed, arguments), span)
        })
    }

    fn else_(&mut self, expr: &'a Expr, value: &'a Expr, otherwise: &'a Expr) -> Atom {
        let subject = self.expr(value);
        let of = self.ty(value);
        self.match_fallible(FallibleValue { subject, of }, &self.ty(expr), expr.span, |lowering, failure| {
            lowering.bind_failure(otherwise, failure);
            lowering.expr(otherwise)
        })
    }

    fn bind_failure(&mut self, otherwise: &Expr, failure: Option<Atom>) {
        if let (Some(local), Some(failure)) = (self.typed.of(otherwise.id).failure_locals.get(&otherwise.id), failure) {
            self.names.insert(*local, Binding::Atom(failure));
        }
    }

    fn if_(&mut self, expr: &'a Expr, condition: &'a Expr, then: &'a Block, otherwise: Option<&'a Expr>) -> Atom {
        let condition = self.expr(condition);
        let ty = self.ty(expr);
        self.choose(
            condition,
            &ty,
            expr.span,
            |lowering| lowering.block_of(then, otherwise.is_none()),
            |lowering| otherwise.map_or(Atom::Value(Value::Unit), |otherwise| lowering.expr(otherwise)),
        )
    }

    /// Lowers a block; drops its value if `unit`.
    fn block_of(&mut self, block: &'a Block, unit: bool) -> Atom {
        let value = self.block(block);
        if unit { Atom::Value(Value::Unit) } else { value }
    }

    pub(super) fn block(&mut self, block: &'a Block) -> Atom {
        let value = self.statements(&block.statements);
        match block.value() {
            Some(last) if self.discards(block, last) => Atom::Value(Value::Unit),
            Some(_) => value,
            None => Atom::Value(Value::Unit),
        }
    }

    /// Returns whether the value of a block is dropped, because its place expects `()`.
    fn discards(&self, block: &Block, _last: &Expr) -> bool {
        self.typed.is_unit_block(block)
    }

    pub(super) fn statement(&mut self, statement: &'a Statement) -> Atom {
        match &statement.kind {
            StatementKind::Expr(expr) => self.expr(expr),
            StatementKind::Let(binding) => self.let_(binding),
            StatementKind::Expect(condition) => {
                self.expect(condition);
                Atom::Value(Value::Unit)
            }
            StatementKind::FailureHandler(_) => Atom::Value(Value::Unit),
        }
    }

    fn let_(&mut self, binding: &'a Let) -> Atom {
        if let Some(callable) = self.callable(&binding.value) {
            self.bind_callable(&binding.pattern, callable);
            return Atom::Value(Value::Unit);
        }
        let value = self.expr(&binding.value);
        if let (None, Some(local)) = (self.module, self.typed.pattern_local(binding.pattern.id)) {
            self.handled_calls.bound(local, binding.value.id);
        }
        let Some(otherwise) = &binding.otherwise else {
            self.hint_name(&binding.pattern, &value);
            self.bind(&binding.pattern, value);
            return Atom::Value(Value::Unit);
        };
        let pattern_type = self.pattern_type(binding.pattern.id);
        let value_type = self.ty(&binding.value);
        let value = if pattern_type == value_type {
            value
        } else {
            self.match_fallible(
                FallibleValue { subject: value, of: value_type },
                &pattern_type,
                binding.value.span,
                |lowering, failure| {
                    lowering.bind_failure(&otherwise.body, failure);
                    lowering.expr(&otherwise.body)
                },
            )
        };
        self.hint_name(&binding.pattern, &value);
        self.bind_or(&binding.pattern, value, &otherwise.body);
        Atom::Value(Value::Unit)
    }

    /// Names the variable of the last binding after the pattern that binds it.
    pub(super) fn hint_name(&mut self, pattern: &weir_syntax::ast::Pattern, value: &Atom) {
        let name = super::pattern_name(pattern);
        if let (Atom::Var(var), Some(last)) = (value, self.builder().lets_mut().last_mut())
            && last.bound.var == *var
            && last.bound.name.is_empty()
        {
            last.bound.name = name.into();
        }
    }

    fn record(&mut self, expr: &'a Expr, base: Option<&'a Expr>, fields: &'a [FieldValue]) -> Atom {
        let ty = self.ty(expr);
        let base = base.map(|base| self.expr(base));
        let given: Vec<(&Name, Atom)> = fields.iter().map(|field| (&field.name, self.expr(&field.value))).collect();
        let all = self.field_names(self.typed.expr_type(expr.id));
        match base {
            Some(mut record) => {
                for (name, value) in given {
                    let index = all.iter().position(|field| field == name.as_str()).unwrap_or(0);
                    record = self.prim(Prim::WithField(index as u32), vec![record, value], ty.clone(), expr.span);
                }
                record
            }
            None => {
                let values = all.iter().enumerate().map(|(at, field)| {
                    let found = given.iter().find(|(name, _)| name.as_str() == field);
                    found.map_or_else(|| self.omitted(expr.id, &ty, at), |(_, value)| value.clone())
                });
                let values = values.collect();
                self.prim(Prim::Record, values, ty, expr.span)
            }
        }
    }

    /// Returns the names of a record's fields, in order.
    pub(super) fn field_names(&self, ty: &Ty) -> Vec<String> {
        let definition = ty.name().and_then(|name| self.program.declarations.definition(self.context.library, name));
        match definition.map(|definition| &definition.shape) {
            Some(weir_host::TypeShape::Record(fields)) => fields.iter().map(|field| field.name.to_string()).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the callable that an expression denotes; `None` if it is a value.
    pub(super) fn callable(&mut self, expr: &'a Expr) -> Option<Callable<'a>> {
        if let ExprKind::Closure { parameters, body } = &expr.kind {
            let (names, scope) = (Rc::new(self.names.clone()), self.scope());
            let frame = self.frames.len().saturating_sub(1);
            return Some(Callable::Closure { parameters, body, names, scope, frame });
        }
        match self.typed.resolution(expr.id)? {
            Resolution::Local(local) => match self.names.get(local)? {
                Binding::Callable(callable) => Some(callable.clone()),
                Binding::Atom(_) => None,
            },
            Resolution::Function(name) => {
                let at = self.typed.declarations.fn_index(name);
                Some(Callable::Function(at, CodeScope { types: self.instance(expr), ..self.scope() }))
            }
            Resolution::Weir(path) => {
                let (at, code) = self.weir_code(path)?;
                Some(Callable::Function(at, CodeScope { code, types: self.instance(expr) }))
            }
            Resolution::Host(path) => Some(Callable::Host(path.clone())),
            _ => None,
        }
    }

    fn bind_callable(&mut self, pattern: &weir_syntax::ast::Pattern, callable: Callable<'a>) {
        if let Some(local) = self.typed.pattern_local(pattern.id) {
            self.names.insert(local, Binding::Callable(callable));
        }
    }

    pub(super) fn constant_true() -> Atom {
        Atom::Value(Value::Bool(true))
    }
}
