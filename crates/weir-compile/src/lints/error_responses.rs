//! Error responses: expressions that are responses of `http` with a status of 400 or more.
//!
//! The answer is conservative: a response whose status is not constant is none, nor is one that a `fn` of another file makes.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_host::{Library, Type, Value};
use weir_syntax::ast::{Argument, Block, Expr, ExprKind, ItemKind, Tree};

use super::total_expressions::receiver;
use crate::context::CheckContext;
use crate::typed_tree::{ArgumentSource, CallTarget, ResolvedCall, TypedTree};
use crate::types::Ty;

/// The lowest status of a response that reports an error.
const LOWEST_ERROR: i64 = 400;

/// Knows which expressions of one file are error responses.
pub(super) struct ErrorResponses<'t> {
    library: &'t Library,
    typed: &'t TypedTree,
    tree: &'t Tree,
    file: usize,
    /// The `fn`s that were looked at, and whether their values are error responses.
    functions: BTreeMap<Arc<str>, bool>,
}

impl<'t> ErrorResponses<'t> {
    pub(super) fn new(context: &CheckContext<'t>, typed: &'t TypedTree, file: usize) -> Self {
        ErrorResponses { library: context.library, typed, tree: context.tree(), file, functions: BTreeMap::new() }
    }

    /// Returns whether the expression is an error response, perhaps in an `Ok`.
    pub(super) fn contain(&mut self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Try(value) | ExprKind::Else { value, .. } | ExprKind::Within { value, .. } => self.contain(value),
            ExprKind::Block(block) => self.contain_block(block),
            ExprKind::If { then, otherwise: Some(otherwise), .. } => {
                self.contain_block(then) && self.contain(otherwise)
            }
            ExprKind::Match { arms, .. } => arms.iter().all(|arm| self.contain(&arm.body)),
            ExprKind::Call { function, arguments } => self.contain_call(expr, (receiver(function), arguments)),
            ExprKind::Pipe { value, arguments, .. } => self.contain_call(expr, (Some(value), arguments)),
            _ => false,
        }
    }

    fn contain_block(&mut self, block: &Block) -> bool {
        block.value().is_some_and(|value| self.contain(value))
    }

    fn contain_call(&mut self, call: &Expr, given: (Option<&Expr>, &[Argument])) -> bool {
        let typed = self.typed;
        let Some(resolved) = typed.call(call.id) else { return false };
        match &resolved.target {
            CallTarget::Host(path) => self.contain_host_call(path, resolved, given),
            CallTarget::Function(name) => self.contain_fn(name),
            CallTarget::Variant(Value::OK) if matches!(typed.expr_type(call.id), Ty::Result(_)) => {
                argument(resolved, 0, given).is_some_and(|value| self.contain(value))
            }
            _ => false,
        }
    }

    fn contain_host_call(&mut self, path: &str, call: &ResolvedCall, given: (Option<&Expr>, &[Argument])) -> bool {
        match path {
            "http.bad_request" | "http.not_found" | "http.problem" => true,
            "http.status" => self.is_error_status(argument(call, 0, given)),
            "http.html" | "http.json" => self.is_error_status(argument(call, 1, given)),
            // Functions such as `http.with_header` return their first argument with more in it.
            _ if self.changes_response(path) => argument(call, 0, given).is_some_and(|value| self.contain(value)),
            _ => false,
        }
    }

    fn changes_response(&self, path: &str) -> bool {
        let is_response = |ty: &Type| matches!(ty, Type::Named(name) if name.as_str() == "http.Response");
        let signature = self.library.function(path).map(|function| &function.signature);
        signature.and_then(|signature| signature.parameters.first()).is_some_and(|first| is_response(&first.ty))
    }

    fn is_error_status(&self, status: Option<&Expr>) -> bool {
        let value = status.and_then(|status| self.typed.constant(status).ok());
        matches!(value, Some(Value::Int(status)) if status >= LOWEST_ERROR)
    }

    fn contain_fn(&mut self, name: &Arc<str>) -> bool {
        if let Some(known) = self.functions.get(name) {
            return *known;
        }
        let declared = self.typed.declarations.functions.get(name).filter(|declared| declared.file == self.file);
        let is_error = match declared.and_then(|declared| self.tree.items.get(declared.item)).map(|item| &item.kind) {
            Some(ItemKind::Function(function)) => self.contain_block(&function.body),
            _ => false,
        };
        self.functions.insert(name.clone(), is_error);
        is_error
    }
}

/// Returns the argument of a parameter, by the number of the parameter, if it is written.
fn argument<'e>(
    call: &ResolvedCall,
    parameter: usize,
    (first, arguments): (Option<&'e Expr>, &'e [Argument]),
) -> Option<&'e Expr> {
    match call.supplied.get(parameter)? {
        ArgumentSource::Object | ArgumentSource::Piped => first,
        ArgumentSource::Argument(at) => arguments.get(*at).map(|argument| &argument.value),
        ArgumentSource::Default => None,
    }
}
