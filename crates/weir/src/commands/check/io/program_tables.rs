//! The properties of tables that decide what a flow waits for.

use weir_host::{Mode, Resource, Text};
use weir_ir::graph::{Graph, Program};
use weir_ir::io_rounds::ExplainedTables;
use weir_ir::program::Flow;
use weir_library::tables::TableReference;

use crate::table_location::schema_in;

/// Returns the tables that are in memory, those whose changes a transaction in PostgreSQL always waits for, because they number their
/// rows, have references or are of an existing database, and these references.
pub(super) fn program_tables(program: &Program) -> ExplainedTables {
    let mut tables = ExplainedTables::default();
    for shared in &program.shared {
        let Some(schema) = schema_in(&shared.init) else { continue };
        if schema.soft.is_some() {
            tables.in_memory.insert(shared.name.clone());
            continue;
        }
        let takes_lock = |flow: &Flow<Graph>| takes_lock(&flow.body, &Resource::Shared(shared.name.clone()));
        if !program.entries.iter().flat_map(|entry| &entry.flows).any(takes_lock) {
            tables.unchanged.insert(shared.name.clone());
        }
        if schema.existing.is_some() || !schema.indexes.iter().any(|index| index.unique) {
            tables.updated_in_place.insert(shared.name.clone());
        }
        if schema.auto || schema.existing.is_some() || !schema.references.is_empty() {
            tables.awaited.insert(shared.name.clone());
        }
        let stored = |references: Vec<TableReference>| references.into_iter().filter(|reference| reference.stored);
        let targets = stored(schema.references).map(|reference| name_in_program(program, &reference.target));
        tables.references.insert(shared.name.clone(), targets.collect());
        let sources: Vec<Text> =
            stored(schema.referenced_by).map(|reference| name_in_program(program, &reference.source)).collect();
        if !sources.is_empty() {
            tables.referenced_by.insert(shared.name.clone(), sources);
        }
    }
    tables
}

/// Returns true if a flow changes a resource, or an atomic step in it does: only then do its uses take locks.
fn takes_lock(graph: &Graph, resource: &Resource) -> bool {
    graph.nodes.iter().any(|node| {
        let used = node.uses.iter().map(|usage| (&usage.resource, usage.mode));
        let held = node.kind.constraints().iter().map(|constraint| (&constraint.resource, constraint.mode));
        let changes = |(of, mode)| of == resource && mode == Mode::Write;
        used.chain(held).any(changes) || node.bodies().iter().any(|body| takes_lock(body, resource))
    })
}

/// Returns the name in the program of a table with this name in the database.
fn name_in_program(program: &Program, in_database: &str) -> Text {
    let is_it = |init: &Graph| schema_in(init).is_some_and(|schema| schema.name == in_database);
    let shared = program.shared.iter().find(|shared| is_it(&shared.init));
    shared.map_or_else(|| in_database.into(), |shared| shared.name.clone())
}
