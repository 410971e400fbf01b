//! Lowers migrations: before a table is opened, its rows of the old type are converted, batch by batch.
//!
//! The database decides whether there is anything to do. Each round of the loop reads a batch (`tables.old_rows`), converts its
//! rows by the `fn` of the program, and stores them (`tables.store_converted`), which says whether more are left.

use weir_host::{Type, Value};
use weir_ir::expr::{Atom, Op};
use weir_ir::prim::Prim;
use weir_syntax::Span;

use super::branch::FallibleValue;
use super::{Binding, Callable, Lowering};
use crate::declarations::DeclaredMigration;
use crate::typed_tree::FailureTarget;

/// Maximum number of batches.
const BATCHES_MAX: u64 = 1_000_000_000;

impl Lowering<'_, '_> {
    /// Lowers the migration of a table, if it has one. `schema` is the table's description.
    pub(super) fn migrated(&mut self, name: &str, schema: &Value) {
        let program = self.program;
        let Some(migration) = &program.declarations.tables[name].migration else { return };
        let (span, more) = (migration.span, self.vars.variable("", Type::Bool));
        let pair = Type::tuple(vec![Type::Bool, Type::Bool]);
        let open_block = self.build_block(|lowering| {
            let left = lowering.batch(name, schema, migration, span);
            let done = lowering.prim(Prim::Not, vec![left.clone()], Type::Bool, span);
            lowering.prim(Prim::Record, vec![left, done], pair.clone(), span)
        });
        debug_assert!(open_block.exits().is_empty(), "a failure ends the start");
        let body = self.close_without_exits(open_block, &pair);
        let init = vec![Atom::Value(Value::Bool(true))];
        self.emit(Op::Loop { init, state: vec![more], body, at_most: BATCHES_MAX }, Type::Bool, span);
    }

    /// Lowers the conversion of a batch, and returns whether more rows are left.
    fn batch(&mut self, name: &str, schema: &Value, migration: &DeclaredMigration, span: Span) -> Atom {
        let (old, new) = (Type::named(&migration.old), self.row_type(name));
        let (olds, news) = (Type::list(old.clone()), Type::list(new.clone()));
        let schema = Atom::Value(schema.clone());
        let described = schema.clone();
        let rows = self.call_tables("old_rows", vec![schema.clone()], olds, span);
        let converted = self.collected((rows.clone(), ""), (&old, &news), span, |lowering, row, so_far| {
            let converted = lowering.converted((&described, row), migration, &new, span);
            lowering.appended(so_far, &converted, &news, span)
        });
        self.call_tables("store_converted", vec![schema, rows, converted], Type::Bool, span)
    }

    /// Lowers the conversion of a row of the table with this description. A failure ends the start.
    fn converted(
        &mut self,
        (schema, row): (&Atom, &Atom),
        migration: &DeclaredMigration,
        new: &Type,
        span: Span,
    ) -> Atom {
        let result = self.program.declarations.functions[migration.change].result.to_type();
        let change = Callable::Function(migration.change, self.scope());
        let given = vec![Some(Binding::Atom(row.clone()))];
        let converted = self.call_value(change, given, &result, (span, &[]));
        if !matches!(result, Type::Result(_)) {
            return converted;
        }
        let fallible = FallibleValue { subject: converted, of: result };
        self.match_fallible(fallible, new, span, |lowering, failure| {
            let failure = failure.unwrap_or(Atom::Value(Value::Unit));
            let described = vec![schema.clone(), row.clone(), failure];
            let failure = lowering.call_tables("not_converted", described, Type::Failure, span);
            lowering.failed(failure, &Type::Failure, (FailureTarget::Flow, None, Vec::new()), span)
        })
    }
}
