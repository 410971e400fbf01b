//! Declares the tables of databases that other programs have declared, when all configured values are declared:
//! `existing(database: crm, writable: true)`.

use weir_host::Value;
use weir_syntax::Span;
use weir_syntax::ast::{Argument, ExprKind, ItemKind, Name, TableClauseKind};

use super::Declarer;
use crate::constant::constant;
use crate::declarations::{DatabaseAddress, DeclaredDatabase, DeclaredTable};
use crate::symbol::Symbol;
use crate::types::Ty;

impl Declarer<'_, '_> {
    /// Resolves the databases of all tables that have the clause.
    pub(super) fn existing_tables(&mut self) {
        let tree = self.context.tree();
        for item in &tree.items {
            let ItemKind::Table(table) = &item.kind else { continue };
            self.begin(item);
            let clause = table.clauses.iter().find_map(|clause| match &clause.kind {
                TableClauseKind::Existing(arguments) => Some((arguments, clause.span)),
                _ => None,
            });
            let Some((arguments, span)) = clause else { continue };
            let Some(declared) = self.declarations.tables.get_mut(&table.name.text).map(std::mem::take) else {
                continue;
            };
            if declared.soft.is_some() {
                let message = "a table is either `soft`, or one of an existing database".to_owned();
                self.table_fault(span, message, "leave out one of the two clauses");
            }
            if table.clauses.iter().any(|clause| matches!(clause.kind, TableClauseKind::Migrate { .. })) {
                let message = "the rows of an existing database are not converted".to_owned();
                self.table_fault(span, message, "leave out `migrate`");
            }
            let existing = self.existing(arguments, span);
            self.declarations.tables.insert(table.name.text.clone(), DeclaredTable { existing, ..declared });
        }
    }

    /// Returns the database of a table; `None` if it is reported.
    fn existing(&mut self, arguments: &[Argument], span: Span) -> Option<DeclaredDatabase> {
        let (mut database, mut writable) = (None, false);
        for argument in arguments {
            match (argument.name.as_ref().map_or("", Name::as_str), constant(&argument.value)) {
                ("database", Some(Value::Text(address))) => database = Some(DatabaseAddress::Text(address)),
                ("database", None) if self.configured_text(argument).is_some() => {
                    database = self.configured_text(argument);
                }
                ("writable", Some(Value::Bool(value))) => writable = value,
                _ => {
                    let message = "`existing` takes `database`, an address or a `config` of the type `Text`, and \
                                   `writable`, `true` or `false`"
                        .to_owned();
                    let hint = "name the database: `existing(database: \"crm.db\", writable: true)`";
                    self.table_fault(argument.span, message, hint);
                    return None;
                }
            }
        }
        if database.is_none() {
            let hint = "name the file or the address: `existing(database: \"crm.db\")`";
            self.table_fault(span, "the clause names no database".to_owned(), hint);
        }
        Some(DeclaredDatabase { database: database?, writable })
    }

    /// Returns the `config` that an argument names, if it is a text.
    fn configured_text(&mut self, argument: &Argument) -> Option<DatabaseAddress> {
        let ExprKind::Name(name) = &argument.value.kind else { return None };
        let (known, declared) = self.declarations.config.get_key_value(name.as_str())?;
        if declared.secret || declared.ty != Ty::TEXT {
            return None;
        }
        let known = known.clone();
        self.declarations.refer(name.span, Symbol::Config(name.as_str().into()));
        Some(DatabaseAddress::Config(known))
    }
}
