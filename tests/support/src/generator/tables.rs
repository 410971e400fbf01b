//! Random tables and clauses of queries.

use super::{Generator, nowhere};
use weir_syntax::ast::{Argument, Name, QueryClauses, QueryOrder, TableClause, TableClauseKind, TableDeclaration};

/// Maximum depth of the expressions in a clause of a table.
const DEPTH: usize = 2;

impl Generator {
    pub(super) fn table(&mut self) -> TableDeclaration {
        TableDeclaration { name: self.lower(), row: self.ty(2), clauses: self.several(0, 4, Self::table_clause) }
    }

    fn table_clause(&mut self) -> TableClause {
        let kind = match self.below(8) {
            0 => TableClauseKind::Key { columns: self.columns(), auto: self.some(50, |_| nowhere()) },
            1 => TableClauseKind::Index(self.columns()),
            2 => TableClauseKind::Unique(self.columns()),
            3 => TableClauseKind::References {
                columns: self.columns(),
                table: self.lower_path(),
                cascade: self.some(50, |_| nowhere()),
            },
            4 => TableClauseKind::Default(self.several(1, 3, Self::named_argument)),
            5 => TableClauseKind::Migrate {
                old: self.ty(1),
                change: self.lower(),
                batched: self.some(50, |_| nowhere()),
            },
            6 => TableClauseKind::Existing(self.several(1, 2, Self::named_argument)),
            _ => TableClauseKind::Soft(self.several(0, 2, Self::named_argument)),
        };
        TableClause { kind, span: nowhere() }
    }

    fn columns(&mut self) -> Vec<Name> {
        self.several(1, 3, Self::lower)
    }

    fn named_argument(&mut self) -> Argument {
        Argument { name: Some(self.lower()), value: self.expr(DEPTH), span: nowhere() }
    }

    /// Generates the clauses of a `for`; most have none.
    pub(super) fn query(&mut self, depth: usize) -> QueryClauses {
        if !self.chance(30) {
            return QueryClauses::default();
        }
        let condition = self.some(50, |generator| *generator.boxed(depth));
        let order = self
            .several(0, 2, |generator| QueryOrder { value: *generator.boxed(depth), descending: generator.chance(50) });
        let limit = self.some(30, |generator| *generator.boxed(depth));
        // A cursor follows a limit.
        let after = if limit.is_some() { self.some(30, |generator| *generator.boxed(depth)) } else { None };
        QueryClauses { condition, order, limit, after }
    }
}
