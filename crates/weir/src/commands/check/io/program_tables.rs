//! The properties of tables that decide what a flow waits for.

use weir_host::HostType;
use weir_ir::graph::{Graph, NodeKind, Operand, Program};
use weir_ir::io_rounds::ProgramTables;
use weir_library::tables::Schema;

/// Returns the tables that are in memory, and those whose changes a transaction in PostgreSQL always waits for: they number their rows
/// or have references.
pub(super) fn program_tables(program: &Program) -> ProgramTables {
    let mut tables = ProgramTables::default();
    for shared in &program.shared {
        let Some(schema) = schema_in(&shared.init) else { continue };
        if schema.soft.is_some() {
            tables.in_memory.insert(shared.name.clone());
        } else if schema.auto || !schema.references.is_empty() {
            tables.awaited.insert(shared.name.clone());
        }
    }
    tables
}

/// Returns the description of the table that an initial value opens.
fn schema_in(init: &Graph) -> Option<Schema> {
    let opens = |kind: &NodeKind| matches!(kind, NodeKind::Call { function, .. } if function.as_str() == "tables.open");
    let open = init.nodes.iter().find(|node| opens(&node.kind))?;
    let Some(Operand::Constant(index)) = open.inputs.first() else { return None };
    Schema::from_value(init.constants.get(*index as usize)?.clone()).ok()
}
