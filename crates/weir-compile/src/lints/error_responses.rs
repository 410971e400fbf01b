//! Error responses: expressions that are responses of `http` with a status of 400 or more.
//!
//! The answer is conservative: a response whose status is not constant is none. A name stands for the value that its `let` has
//! bound. A `fn` of another file is read as it is written, without its types: it makes an error response if its value is a call of
//! `http`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use weir_host::{Library, Type, Value};
use weir_syntax::ast::{
    Argument, Block, Expr, ExprKind, Function, Item, ItemKind, Let, LiteralValue, PatternKind, Statement,
    StatementKind, Tree, Visitor, walk_statement,
};

use super::total_expressions::receiver;
use crate::context::CheckContext;
use crate::typed_tree::{ArgumentSource, CallTarget, LocalId, Resolution, ResolvedCall, TypedTree};
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
    /// The items of the file.
    items: Range<usize>,
    /// The values of the `let`s of the file; `None` until one is asked for.
    bound: Option<BTreeMap<LocalId, &'t Expr>>,
}

impl<'t> ErrorResponses<'t> {
    pub(super) fn new(context: &CheckContext<'t>, typed: &'t TypedTree, file: usize) -> Self {
        let (library, tree, items) = (context.library, context.tree(), context.file_items(file));
        ErrorResponses { library, typed, tree, file, functions: BTreeMap::new(), items, bound: None }
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
            ExprKind::Name(_) => self.bound_value(expr).is_some_and(|value| self.contain(value)),
            ExprKind::Call { function, arguments } => self.contain_call(expr, (receiver(function), arguments)),
            ExprKind::Pipe { value, arguments, .. } => self.contain_call(expr, (Some(value), arguments)),
            _ => false,
        }
    }

    /// Returns the value that a `let` has bound to a name. It stands before the name, so that no name leads to itself.
    fn bound_value(&mut self, name: &Expr) -> Option<&'t Expr> {
        let Some(Resolution::Local(local)) = self.typed.resolution(name.id) else { return None };
        let (typed, tree, items) = (self.typed, self.tree, self.items.clone());
        let bound = self.bound.get_or_insert_with(|| {
            let mut values = BoundValues { typed, found: BTreeMap::new() };
            tree.items[items].iter().for_each(|item| values.item(item));
            values.found
        });
        bound.get(local).copied()
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
        let declared = self.typed.declarations.functions.get(name);
        let item = declared.and_then(|declared| Some((declared.file, &self.tree.items.get(declared.item)?.kind)));
        let is_error = match item {
            Some((file, ItemKind::Function(function))) if file == self.file => self.contain_block(&function.body),
            Some((_, ItemKind::Function(function))) => is_written_as_error(function),
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

/// Returns the items of the program that are `fn`s which are written as ones that make error responses: the warnings of other files
/// depend on them.
pub(super) fn written_in(tree: &Tree) -> Vec<usize> {
    let is_error =
        |item: &Arc<Item>| matches!(&item.kind, ItemKind::Function(function) if is_written_as_error(function));
    tree.items.iter().enumerate().filter(|(_, item)| is_error(item)).map(|(at, _)| at).collect()
}

/// Returns whether a `fn` is written as one that makes an error response.
fn is_written_as_error(function: &Function) -> bool {
    function.body.value().is_some_and(is_written_error)
}

fn is_written_error(expr: &Expr) -> bool {
    let is_error_block = |block: &Block| block.value().is_some_and(is_written_error);
    match &expr.kind {
        ExprKind::Try(value) => is_written_error(value),
        ExprKind::Block(block) => is_error_block(block),
        ExprKind::If { then, otherwise: Some(otherwise), .. } => is_error_block(then) && is_written_error(otherwise),
        ExprKind::Match { arms, .. } => arms.iter().all(|arm| is_written_error(&arm.body)),
        ExprKind::Call { function, arguments } => {
            if matches!(&function.kind, ExprKind::Name(name) if name.as_str() == "Ok") {
                return arguments.first().is_some_and(|argument| is_written_error(&argument.value));
            }
            let ExprKind::Field { object, name } = &function.kind else { return false };
            let is_http = matches!(&object.kind, ExprKind::Name(module) if module.as_str() == "http");
            is_http && is_written_error_call(name.as_str(), arguments)
        }
        _ => false,
    }
}

fn is_written_error_call(function: &str, arguments: &[Argument]) -> bool {
    let is_error = |argument: &Argument| match &argument.value.kind {
        ExprKind::Literal(literal) => matches!(literal.value, LiteralValue::Int(status) if status >= LOWEST_ERROR),
        _ => false,
    };
    match function {
        "bad_request" | "not_found" | "problem" => true,
        "status" => arguments.first().is_some_and(is_error),
        "html" | "json" => arguments.get(1).is_some_and(is_error),
        _ => false,
    }
}

/// The values that `let`s bind to names.
struct BoundValues<'t> {
    typed: &'t TypedTree,
    found: BTreeMap<LocalId, &'t Expr>,
}

impl<'t> Visitor<'t> for BoundValues<'t> {
    fn statement(&mut self, statement: &'t Statement) {
        if let StatementKind::Let(Let { pattern, value, .. }) = &statement.kind
            && let PatternKind::Bind(_) = &pattern.kind
            && let Some(local) = self.typed.pattern_local(pattern.id)
        {
            self.found.insert(local, value);
        }
        walk_statement(self, statement);
    }
}
