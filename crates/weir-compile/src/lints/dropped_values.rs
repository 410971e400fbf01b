//! Dropped values: warns of statements that compute a value without an effect and do not use it.

use weir_host::Library;
use weir_syntax::ast::{Arm, Block, Expr, ExprKind, Let, Statement, StatementKind, TextPart};
use weir_syntax::{Code, Diagnostic};

use super::total_expressions::{TotalExpressions, is_pure, receiver};
use crate::context::CheckContext;
use crate::effects::EffectSummary;
use crate::typed_tree::{CallTarget, Resolution, TypedTree};
use crate::types::Ty;
use crate::weir_modules::WeirModules;
use crate::whole_lines::{alone_on_lines, has_comment};

/// The warnings of every statement whose value has no effect and is not used.
pub(super) struct DroppedValues<'c> {
    text: &'c str,
    library: &'c Library,
    modules: &'c WeirModules,
    typed: &'c TypedTree,
    pub(super) found: Vec<Diagnostic>,
}

impl<'c> DroppedValues<'c> {
    pub(super) fn new(context: &CheckContext<'c>, typed: &'c TypedTree) -> Self {
        let (text, library, modules) = (context.text, context.library, context.modules);
        DroppedValues { text, library, modules, typed, found: Vec::new() }
    }

    /// Looks at the statements of a block, without their children.
    pub(super) fn block(&mut self, block: &Block) {
        let drops_all = self.typed.is_unit_block(block);
        let dropped = block.statements.len() - usize::from(block.value().is_some() && !drops_all);
        block.statements[..dropped].iter().for_each(|statement| self.statement_of(statement));
    }

    fn statement_of(&mut self, statement: &Statement) {
        let StatementKind::Expr(expr) = &statement.kind else { return };
        let ty = self.typed.expr_type(expr.id);
        let is_value = !ty.is_never() && *ty != Ty::UNIT && !matches!(ty, Ty::Error | Ty::Result(_));
        if is_value && self.is_pure(expr) {
            let is_total = TotalExpressions { library: self.library, typed: self.typed }.contain(expr);
            let effect = if is_total { "has no effect" } else { "has no effect unless it fails" };
            let diagnostic = Diagnostic::new(Code::UnusedValue, "this value is not used")
                .at(expr.span, format!("{effect}; its value of type `{ty}` is dropped"))
                .hint(self.advice(expr));
            let lines = alone_on_lines(self.text, expr.span).filter(|lines| !has_comment(self.text, *lines));
            self.found.push(match lines {
                _ if !is_total => {
                    let hint = "remove it, or if it is there to fail, write `let _ = …`";
                    diagnostic.offer(hint, expr.span.at_start(), "let _ = ")
                }
                Some(lines) => diagnostic.suggest("remove it", lines, ""),
                None => diagnostic.hint("remove it"),
            });
        }
    }

    /// Returns whether evaluating the expression has no effect other than its value.
    fn is_pure(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Literal(_) => true,
            ExprKind::Name(_) => self.names_pure(expr),
            ExprKind::Closure { body, .. } => self.is_pure(body),
            ExprKind::Formatted { value, .. } => self.is_pure(value),
            ExprKind::Else { value, otherwise, .. } => self.is_pure(value) && self.is_pure(otherwise),
            ExprKind::If { condition, then, otherwise } => {
                self.is_pure(condition)
                    && self.is_pure_block(then)
                    && otherwise.iter().all(|otherwise| self.is_pure(otherwise))
            }
            ExprKind::Match { value, arms } => self.is_pure(value) && arms.iter().all(|arm| self.is_pure_arm(arm)),
            ExprKind::Block(block) => self.is_pure_block(block),
            ExprKind::Text(text) | ExprKind::Html(text) => text.parts.iter().all(|part| match part {
                TextPart::Literal { .. } => true,
                TextPart::Expr(expr) => self.is_pure(expr),
            }),
            ExprKind::Field { object, .. } | ExprKind::TupleIndex { object, .. } => self.is_pure(object),
            ExprKind::Index { object, index } => self.is_pure(object) && self.is_pure(index),
            ExprKind::Unary { operand, .. } => self.is_pure(operand),
            ExprKind::Binary { left, right, .. } => self.is_pure(left) && self.is_pure(right),
            ExprKind::Tuple(values) | ExprKind::List(values) => values.iter().all(|value| self.is_pure(value)),
            ExprKind::Map(entries) => {
                entries.iter().all(|entry| self.is_pure(&entry.key) && self.is_pure(&entry.value))
            }
            ExprKind::Record { base, fields, .. } => {
                base.iter().all(|base| self.is_pure(base)) && fields.iter().all(|field| self.is_pure(&field.value))
            }
            ExprKind::Call { function, arguments } => {
                self.calls_pure(expr)
                    && receiver(function).is_none_or(|object| self.is_pure(object))
                    && arguments.iter().all(|argument| self.is_pure(&argument.value))
            }
            ExprKind::Pipe { value, arguments, .. } => {
                self.calls_pure(expr)
                    && self.is_pure(value)
                    && arguments.iter().all(|argument| self.is_pure(&argument.value))
            }
            _ => false,
        }
    }

    fn is_pure_block(&self, block: &Block) -> bool {
        block.statements.iter().all(|statement| match &statement.kind {
            StatementKind::Expr(expr) => self.is_pure(expr),
            StatementKind::Let(Let { value, otherwise, .. }) => {
                self.is_pure(value) && otherwise.iter().all(|otherwise| self.is_pure(&otherwise.body))
            }
            StatementKind::Expect(_) | StatementKind::FailureHandler(_) => false,
        })
    }

    fn is_pure_arm(&self, arm: &Arm) -> bool {
        arm.guard.iter().all(|guard| self.is_pure(guard)) && self.is_pure(&arm.body)
    }

    /// Returns whether a name stands for a value, or for a function that has no effect when it is called.
    fn names_pure(&self, name: &Expr) -> bool {
        match self.typed.resolution(name.id) {
            Some(Resolution::Function(name)) => self.is_pure_fn(name),
            _ => true,
        }
    }

    fn is_pure_host(&self, path: &str) -> bool {
        self.library.function(path).is_some_and(|function| is_pure(&function.signature))
    }

    fn is_pure_fn(&self, name: &str) -> bool {
        self.typed.effects_of(name).is_some_and(EffectSummary::is_empty)
    }

    fn is_pure_weir(&self, path: &str) -> bool {
        let function = self.modules.function(path, self.library, crate::check::check_module);
        function.and_then(|found| found.module.typed.fn_effects.get(found.at)).is_some_and(EffectSummary::is_empty)
    }

    fn calls_pure(&self, call: &Expr) -> bool {
        match self.typed.call(call.id).map(|call| &call.target) {
            Some(CallTarget::Host(path)) => self.is_pure_host(path),
            Some(CallTarget::Function(name)) => self.is_pure_fn(name),
            Some(CallTarget::Weir(path)) => self.is_pure_weir(path),
            Some(CallTarget::Variant(_) | CallTarget::Length | CallTarget::Failure) => true,
            Some(
                CallTarget::Local(_) | CallTarget::Service { .. } | CallTarget::Table(_) | CallTarget::Fail { .. },
            )
            | None => false,
        }
    }

    fn advice(&self, expr: &Expr) -> String {
        let receiver = match &expr.kind {
            ExprKind::Call { function, .. } => receiver(function),
            _ => None,
        };
        match receiver.map(|object| (&object.kind, self.typed.resolution(object.id))) {
            Some((ExprKind::Name(name), Some(Resolution::Shared(_) | Resolution::SharedNow(_)))) => {
                let others = match self.typed.expr_type(receiver.map_or(expr.id, |object| object.id)) {
                    Ty::Map(..) => format!(", `{name}.put(key, value)` one entry"),
                    Ty::List(_) => format!(", `{name}.push(value)` appends to it"),
                    _ => String::new(),
                };
                format!("this does not change the shared value: `{name}.set(…)` replaces it{others}")
            }
            Some((ExprKind::Name(name), _)) if !name.is_upper() => {
                format!("values never change: give the new one a name, `let new_{name} = …`")
            }
            _ => "give it a name with `let`".to_owned(),
        }
    }
}
