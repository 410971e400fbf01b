//! `weir tables`: shows the tables of a program, and what a start would change in its database, or copies the database.

use weir_host::{HostType, Value};
use weir_ir::expr::{Atom, Block, Op};
use weir_library::tables::{Schema, backup, report};

use crate::arguments::ErrorFormat;
use crate::commands::arguments::TablesArguments;
use crate::programs::database_of;
use crate::project::Project;
use crate::terminal::Terminal;
use crate::{Exit, Library};

/// Prints every table, or makes a backup.
pub(crate) fn tables(arguments: &TablesArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    let file = database_of(&arguments.file, arguments.data.as_deref());
    if let Some(copy) = &arguments.backup {
        return match backup(&file, copy) {
            Ok(bytes) => terminal.print(&format!("{bytes} bytes copied to {}\n", copy.display())),
            Err(failure) => terminal.fail(Exit::Environment, &failure.message, &[]),
        };
    }
    let mut project = Project::default();
    let id = match project.read(&arguments.file, terminal) {
        Ok(id) => id,
        Err(exit) => return exit,
    };
    let checked = project.check(id, library);
    let exit = project.report(ErrorFormat::Human, terminal);
    let Some(program) = checked.expr else { return exit };
    let schemas: Vec<Schema> = program.shared.iter().filter_map(|shared| schema_in(&shared.init)).collect();
    if schemas.is_empty() {
        return terminal.print("no tables; declare one at the top level: `table users: User key name`\n");
    }
    let mut printed = String::new();
    for schema in &schemas {
        match report(schema, &file) {
            Ok(text) => printed += &text,
            Err(failure) => return terminal.fail(Exit::Environment, &failure.message, &[]),
        }
    }
    terminal.print(&printed)
}

/// Returns the description of the table that an initial value opens.
fn schema_in(block: &Block) -> Option<Schema> {
    let opened = block.lets.iter().find_map(|binding| match &binding.op {
        Op::Call(call) if call.function.as_str() == "tables.open" => call.arguments.first(),
        _ => None,
    });
    let value: &Value = match opened? {
        Atom::Value(value) => value,
        _ => return None,
    };
    Schema::from_value(value.clone()).ok()
}
