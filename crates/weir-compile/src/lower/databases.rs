//! The constraints of databases: each database has one writer at a time, for which a constraint stands that every step holds which writes
//! it.
//!
//! That of the program's own database is called `tables`. A step also holds it to write tables in memory that have references, and to
//! restore shared values. That of an existing database has the name of its first table behind it, such as `tables.customers`. So a
//! slow database holds up the flows that write it, and no others. A step that needs two takes them in the order of their names, as it
//! takes all resources.

use std::sync::Arc;

use weir_host::{Mode, Resource, Text, Value};
use weir_ir::expr::Constraint;
use weir_syntax::ast::AtomicResource;

use super::Lowering;
use crate::declarations::{DatabaseAddress, DeclaredTable};
use crate::lang_items::TABLES;

impl Lowering<'_, '_> {
    /// Returns the name of the constraint of the database of a table: the program's own one if the table is kept in memory.
    pub(super) fn database_of(&self, table: &str) -> Text {
        let declarations = &self.program.declarations;
        let Some(database) = declarations.existing_database(table) else { return TABLES.into() };
        let address = self.known_address(database);
        let is_there = |(_, other): &(&Arc<str>, &DeclaredTable)| {
            other.existing.as_ref().is_some_and(|existing| self.known_address(&existing.database) == address)
        };
        let first = declarations.tables.iter().find(is_there).map_or(table, |(first, _)| first);
        format!("{TABLES}.{first}").into()
    }

    /// Returns the constraint that a step holds which writes a table; `None` if that needs no database.
    pub(super) fn database_to_write(&self, table: &str) -> Option<Constraint> {
        let takes_turns = self.is_stored(table) || self.program.declarations.has_references(table);
        takes_turns.then(|| database(self.database_of(table)))
    }

    /// Returns the constraints of the databases that a step needs which writes these tables.
    pub(super) fn databases_to_write<'t>(&self, tables: impl Iterator<Item = &'t str>) -> Vec<Constraint> {
        tables.filter_map(|table| self.database_to_write(table)).collect()
    }

    /// Returns the constraints of the databases that a step needs which names these resources.
    pub(super) fn databases_named(&self, resources: &[AtomicResource]) -> Vec<Constraint> {
        let names: Vec<Arc<str>> = resources.iter().map(|resource| self.held_name(resource)).collect();
        self.databases_to_write(names.iter().map(|name| &**name))
    }

    /// Returns the address itself if it is a `config` that has a value: two may have the same one.
    fn known_address(&self, address: &DatabaseAddress) -> DatabaseAddress {
        let DatabaseAddress::Config(name) = address else { return address.clone() };
        match self.configured_value(name) {
            Some(Value::Text(known)) => DatabaseAddress::Text(known),
            _ => address.clone(),
        }
    }
}

/// Returns the constraint of a database for a step that writes it.
pub(super) fn database(name: Text) -> Constraint {
    Constraint { resource: Resource::Constraint(name), mode: Mode::Write, per_session: false }
}
