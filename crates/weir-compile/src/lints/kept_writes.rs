//! Kept writes: warns of error responses that end a transaction behind a write, and do not take the write back.
//!
//! A transaction ends with an error response if that is the value of a `return` in it, or its own value. The response is reported
//! if a write of a table comes before it on some path, except for
//! 1. a write whose own result decides that the response is made, as in
//!    `if !users.delete(name)? { return http.not_found() }`: it probably has not written anything, and
//! 2. a write on a path that leaves the transaction before.
//!
//! A row that a write has returned decides nothing by this rule: a program that looks at its fields knows that it is written.

use std::collections::BTreeMap;

use weir_host::{Type, TypeShape};
use weir_syntax::ast::{
    Arm, AtomicResource, Block, Expr, ExprKind, Let, Pattern, PatternKind, StatementKind, Visitor, walk_expr,
    walk_statement,
};
use weir_syntax::{Code, Diagnostic, Span};

use super::error_responses::ErrorResponses;
use crate::context::CheckContext;
use crate::typed_tree::{LocalId, Resolution, TypedTree};
use crate::types::Ty;

/// The warnings of every error response that keeps what its transaction has written.
pub(super) struct KeptWrites<'t> {
    typed: &'t TypedTree,
    responses: ErrorResponses<'t>,
    pub(super) found: Vec<Diagnostic>,
}

impl<'t> KeptWrites<'t> {
    pub(super) fn new(context: &CheckContext<'t>, typed: &'t TypedTree, file: usize) -> Self {
        KeptWrites { typed, responses: ErrorResponses::new(context, typed, file), found: Vec::new() }
    }

    /// Looks at an expression: a transaction with all that is in it, nothing else.
    pub(super) fn expr(&mut self, expr: &'t Expr) {
        let ExprKind::Atomic { resources, body } = &expr.kind else { return };
        if resources.iter().any(|resource| self.is_table(resource)) {
            let (written, deciding, rounds) = (Vec::new(), BTreeMap::new(), Vec::new());
            TransactionWalk { lint: self, written, deciding, rounds, in_closure: false }.block(body, true);
        }
    }

    fn is_table(&self, resource: &AtomicResource) -> bool {
        self.typed.declarations.tables.contains_key(&self.typed.held_name(resource))
    }

    fn report(&mut self, response: Span, write: Span) {
        let diagnostic = Diagnostic::new(Code::KeptWrites, "an error response does not take back what was written")
            .at(response, "ends the transaction as a success does")
            .because(write, "this write takes effect")
            .hint("check before the first write; or end with an `Err` or `fail(…)`, and answer it behind the `atomic`")
            .hint("if the writes are to be kept, make the response behind the `atomic`");
        self.found.push(diagnostic);
    }
}

/// A transaction, along whose paths the walk goes.
struct TransactionWalk<'w, 't> {
    lint: &'w mut KeptWrites<'t>,
    /// The writes before the current place, each once, in their order.
    written: Vec<Span>,
    /// The writes whose results decide the value of a local.
    deciding: BTreeMap<LocalId, Vec<Span>>,
    /// For each loop around the current place, the error responses in it that no write precedes in their round.
    rounds: Vec<Vec<Span>>,
    /// True in a closure, whose `return` leaves only the closure.
    in_closure: bool,
}

impl<'t> TransactionWalk<'_, 't> {
    /// Walks a block. `ends` if its value is that of the transaction.
    fn block(&mut self, block: &'t Block, ends: bool) {
        let last = block.value().map(|value| value.id);
        for statement in &block.statements {
            match &statement.kind {
                StatementKind::Expr(expr) => self.expr(expr, ends && last == Some(expr.id)),
                StatementKind::Let(statement) => self.binding(statement),
                _ => walk_statement(self, statement),
            }
        }
    }

    fn binding(&mut self, statement: &'t Let) {
        let deciding = self.scrutinee(&statement.value);
        if let Some(otherwise) = &statement.otherwise {
            self.branch(&deciding, &otherwise.body, false);
        } else if let PatternKind::Bind(_) = &statement.pattern.kind
            && let Some(local) = self.lint.typed.pattern_local(statement.pattern.id)
            && !self.is_row(&statement.value)
        {
            self.deciding.insert(local, deciding);
        }
    }

    /// Walks an expression. `ends` if its value is that of the transaction.
    fn expr(&mut self, expr: &'t Expr, ends: bool) {
        match &expr.kind {
            ExprKind::Return(Some(value)) => self.expr(value, !self.in_closure),
            ExprKind::Block(block) | ExprKind::Atomic { body: block, .. } => self.block(block, ends),
            ExprKind::Else { value, otherwise, .. } => {
                let deciding = self.scrutinee(value);
                self.branch(&deciding, otherwise, ends);
                self.value(value, ends);
            }
            ExprKind::If { condition, then, otherwise } => {
                let deciding = self.scrutinee(condition);
                let leaves = then.value().is_some_and(|value| self.leaves(value));
                self.branch_of(&deciding, leaves, |walk| walk.block(then, ends));
                otherwise.iter().for_each(|otherwise| self.branch(&deciding, otherwise, ends));
            }
            ExprKind::Match { value, arms } => self.arms(value, arms, ends),
            ExprKind::For { items, query, body, .. } => {
                self.expr(items, false);
                query.exprs().for_each(|expr| self.expr(expr, false));
                self.round(body);
            }
            ExprKind::Fold { initial, items, body, .. } => {
                [initial, items].into_iter().for_each(|expr| self.expr(expr, false));
                self.round(body);
            }
            ExprKind::Loop { initial, body, until, at_most, .. } => {
                [initial, at_most].into_iter().for_each(|expr| self.expr(expr, false));
                self.round(body);
                self.expr(until, false);
            }
            ExprKind::Closure { body, .. } => {
                let around = std::mem::replace(&mut self.in_closure, true);
                self.expr(body, false);
                self.in_closure = around;
            }
            _ => {
                walk_expr(self, expr);
                if self.lint.typed.is_table_write(expr) {
                    self.written.push(expr.span);
                }
                self.value(expr, ends);
            }
        }
    }

    /// Looks at the value of the transaction, behind all that it consists of.
    fn value(&mut self, value: &Expr, ends: bool) {
        if !ends || !self.lint.responses.contain(value) {
            return;
        }
        match (self.written.first(), self.rounds.last_mut()) {
            (Some(write), _) => self.lint.report(value.span, *write),
            (None, Some(round)) => round.push(value.span),
            (None, None) => {}
        }
    }

    /// Walks an expression whose value decides what runs next. Returns the writes whose results decide its value.
    fn scrutinee(&mut self, value: &'t Expr) -> Vec<Span> {
        let before = self.written.len();
        self.expr(value, false);
        let mut deciding = DecidingWrites { transaction: self, found: self.written[before..].to_vec() };
        deciding.expr(value);
        deciding.found
    }

    fn arms(&mut self, value: &'t Expr, arms: &'t [Arm], ends: bool) {
        let deciding = self.scrutinee(value);
        for arm in arms {
            let deciding = if is_success(&arm.pattern) { &[][..] } else { &deciding };
            self.branch_of(deciding, self.leaves(&arm.body), |walk| {
                arm.guard.iter().for_each(|guard| walk.expr(guard, false));
                walk.expr(&arm.body, ends);
            });
        }
    }

    fn branch(&mut self, deciding: &[Span], body: &'t Expr, ends: bool) {
        self.branch_of(deciding, self.leaves(body), |walk| walk.expr(body, ends));
    }

    /// Walks a branch that the results of these writes have chosen. What it writes is written behind it, unless it leaves.
    fn branch_of(&mut self, deciding: &[Span], leaves: bool, walk: impl FnOnce(&mut Self)) {
        let around = self.written.clone();
        self.written.retain(|write| !deciding.contains(write));
        let before = self.written.len();
        walk(self);
        let inside = std::mem::replace(&mut self.written, around);
        if !leaves {
            self.written.extend_from_slice(&inside[before..]);
        }
    }

    /// Walks the body of a loop, whose writes come before the next round.
    fn round(&mut self, body: &'t Block) {
        self.rounds.push(Vec::new());
        let before = self.written.len();
        self.block(body, false);
        let open = self.rounds.pop().unwrap_or_default();
        match (self.written.get(before).copied(), self.rounds.last_mut()) {
            (Some(write), _) => open.into_iter().for_each(|response| self.lint.report(response, write)),
            (None, Some(outer)) => outer.extend(open),
            (None, None) => {}
        }
    }

    fn leaves(&self, expr: &Expr) -> bool {
        self.lint.typed.expr_type(expr.id).is_never()
    }

    /// Returns whether the value has fields, so that it is what a write has left and not whether it wrote.
    fn is_row(&self, value: &Expr) -> bool {
        match self.lint.typed.expr_type(value.id) {
            Ty::Tuple(_) => true,
            Ty::Plain(Type::Named(name)) => {
                let declared = self.lint.typed.declarations.types.get(name);
                declared.is_some_and(|declared| matches!(declared.definition.shape, TypeShape::Record(_)))
            }
            _ => false,
        }
    }
}

impl<'t> Visitor<'t> for TransactionWalk<'_, 't> {
    fn block(&mut self, block: &'t Block) {
        self.block(block, false);
    }

    fn expr(&mut self, expr: &'t Expr) {
        self.expr(expr, false);
    }
}

/// Finds the writes whose results decide the value of an expression.
struct DecidingWrites<'w, 'l, 't> {
    transaction: &'w TransactionWalk<'l, 't>,
    found: Vec<Span>,
}

impl<'t> Visitor<'t> for DecidingWrites<'_, '_, 't> {
    fn expr(&mut self, expr: &'t Expr) {
        if let Some(Resolution::Local(local)) = self.transaction.lint.typed.resolution(expr.id) {
            self.found.extend(self.transaction.deciding.get(local).into_iter().flatten());
        }
        walk_expr(self, expr);
    }
}

/// Returns whether a pattern matches only what a write returns that has written: `Some(row)`, `Ok(key)`.
fn is_success(pattern: &Pattern) -> bool {
    match &pattern.kind {
        PatternKind::Variant { path, .. } => matches!(path.last().as_str(), "Some" | "Ok"),
        _ => false,
    }
}
