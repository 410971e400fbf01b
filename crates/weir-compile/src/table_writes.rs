//! Calls that write tables.

use weir_host::{Mode, Resource};
use weir_syntax::ast::{Expr, Visitor, walk_expr};

use crate::effects::EffectSummary;
use crate::lang_items::TABLES;
use crate::typed_tree::{CallTarget, Resolution, TableStatement, TypedTree};
use crate::types::Ty;

impl TypedTree {
    /// Returns true if a `fn` with these effects writes a table.
    pub(crate) fn writes_tables(&self, effects: &EffectSummary) -> bool {
        let is_table = |resource: &Resource| match resource {
            Resource::Shared(name) => self.declarations.tables.contains_key(name.as_str()),
            _ => false,
        };
        effects.resources.iter().any(|(resource, mode)| *mode == Mode::Write && is_table(resource))
    }

    /// Returns true if a call is a statement that writes a table, or one of a `fn` that writes tables.
    pub(crate) fn is_table_write(&self, call: &Expr) -> bool {
        match self.call(call.id).map(|call| &call.target) {
            Some(CallTarget::Host(path)) => {
                let statement = path.strip_prefix(TABLES).and_then(|rest| rest.strip_prefix('.'));
                statement.is_some_and(|name| matches!(name, "insert" | "upsert" | "delete"))
            }
            Some(CallTarget::Table(statement)) => !matches!(statement, TableStatement::Count | TableStatement::Exists),
            Some(CallTarget::Function(name)) => self.fn_writes_tables(name),
            _ => false,
        }
    }

    /// Returns true if an expression may write a table when it is evaluated, or when a function in it is called.
    pub(crate) fn may_write_tables(&self, expr: &Expr) -> bool {
        let mut writes = TableWrites { typed: self, found: false };
        writes.expr(expr);
        writes.found
    }

    fn fn_writes_tables(&self, name: &str) -> bool {
        self.effects_of(name).is_some_and(|effects| self.writes_tables(effects))
    }
}

/// Looks for something that may write a table.
struct TableWrites<'t> {
    typed: &'t TypedTree,
    found: bool,
}

impl<'t> Visitor<'t> for TableWrites<'t> {
    fn expr(&mut self, expr: &'t Expr) {
        // What a local holds that is called, or given to a function, and what a service does, is not looked up here.
        let is_named = match self.typed.resolution(expr.id) {
            Some(Resolution::Function(name)) => self.typed.fn_writes_tables(name),
            Some(Resolution::Local(_)) => matches!(self.typed.expr_type(expr.id), Ty::Function(_)),
            _ => false,
        };
        let target = self.typed.call(expr.id).map(|call| &call.target);
        let is_unknown = matches!(target, Some(CallTarget::Local(_) | CallTarget::Service { .. }));
        self.found |= is_named || is_unknown || self.typed.is_table_write(expr);
        walk_expr(self, expr);
    }
}
