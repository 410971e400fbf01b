//! Declares the tables of databases that other programs have declared, when all configured values are declared:
//! `existing(database: crm, writable: true)`.

use std::sync::Arc;

use weir_host::Value;
use weir_syntax::ast::{Argument, ExprKind, ItemKind, Name, TableClauseKind};
use weir_syntax::{Code, Diagnostic, Span};

use super::Declarer;
use crate::constant::constant;
use crate::declarations::{DatabaseAddress, DeclaredDatabase, DeclaredTable};
use crate::symbol::Symbol;
use crate::types::Ty;

impl<'c> Declarer<'_, 'c> {
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
            let whole: Arc<str> = self.declarations.own(&table.name.text).into();
            let Some(declared) = self.declarations.tables.get_mut(&whole).map(std::mem::take) else {
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
            self.declarations.tables.insert(whole, DeclaredTable { existing, ..declared });
        }
    }

    /// Returns the database of a table; `None` if it is reported.
    fn existing(&mut self, arguments: &'c [Argument], span: Span) -> Option<DeclaredDatabase> {
        let (mut database, mut writable) = (None, false);
        for argument in arguments {
            let value = constant(self.meant(&argument.value));
            match (argument.name.as_ref().map_or("", Name::as_str), value) {
                ("database", Some(Value::Text(address))) => database = Some(DatabaseAddress::Text(address)),
                ("database", None) if self.configured_text(argument).is_some() => {
                    database = self.configured_text(argument);
                }
                ("database", None) if self.names_config_of_main(argument) => return None,
                ("writable", Some(Value::Bool(value))) => writable = value,
                _ => {
                    let message = "`existing` takes `database`, a constant text or a `config` of the type `Text`, and \
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

    /// Reports a `config` of the main file in the declaration of a module. Returns whether the argument names a `config`: one that
    /// the module declares has been reported.
    fn names_config_of_main(&mut self, argument: &Argument) -> bool {
        let ExprKind::Name(name) = &argument.value.kind else { return false };
        if self.declarations.file != 0 && self.declarations.config.contains_key(self.declarations.own(name.as_str())) {
            return true;
        }
        let is_other = self.declarations.file != 0 && self.declarations.config.contains_key(name.as_str());
        if is_other {
            let module = &self.declarations.here().module;
            let message = format!("the module `{module}` names a configured database");
            let diagnostic = Diagnostic::new(Code::MainFileItem, message)
                .at(argument.value.span, "a `config` of the main file")
                .hint("declare this table in the main file, or write the address of the database here");
            self.context.report(diagnostic);
        }
        is_other
    }

    /// Returns the `config` that an argument names, if it is a text.
    fn configured_text(&mut self, argument: &Argument) -> Option<DatabaseAddress> {
        let ExprKind::Name(name) = &argument.value.kind else { return None };
        if self.declarations.file != 0 {
            return None;
        }
        let (known, declared) = self.declarations.config.get_key_value(name.as_str())?;
        if declared.secret || declared.ty != Ty::TEXT {
            return None;
        }
        let known = known.clone();
        self.declarations.refer(name.span, Symbol::Config(name.as_str().into()));
        Some(DatabaseAddress::Config(known))
    }
}
