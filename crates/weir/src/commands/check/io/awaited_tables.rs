//! The tables whose changes a transaction in PostgreSQL always waits for.

use std::collections::BTreeSet;

use weir_host::{HostType, Text};
use weir_ir::graph::{Graph, NodeKind, Operand, Program};
use weir_library::tables::Schema;

/// Returns the tables that number their rows, and those with references: the database has to answer before the flow goes on.
pub(super) fn awaited_tables(program: &Program) -> BTreeSet<Text> {
    let awaited = |schema: Schema| schema.auto || !schema.references.is_empty();
    let tables = program.shared.iter().filter(|shared| schema_in(&shared.init).is_some_and(awaited));
    tables.map(|shared| shared.name.clone()).collect()
}

/// Returns the description of the table that an initial value opens.
fn schema_in(init: &Graph) -> Option<Schema> {
    let opens = |kind: &NodeKind| matches!(kind, NodeKind::Call { function } if function.as_str() == "tables.open");
    let open = init.nodes.iter().find(|node| opens(&node.kind))?;
    let Some(Operand::Constant(index)) = open.inputs.first() else { return None };
    Schema::from_value(init.constants.get(*index as usize)?.clone()).ok()
}
