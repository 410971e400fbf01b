//! `weir tables`: shows the tables of a program, and what a start would change in its database, or copies the database.

use weir_host::{HostType, Value};
use weir_ir::expr::{Atom, Block, Call, Let, Op, Origin, Program};
use weir_library::tables::{PlacedStatement, Schema, SearchStatement, TableLocation, TableQuery, backup, report};
use weir_syntax::SourceFile;

use crate::arguments::ErrorFormat;
use crate::commands::arguments::TablesArguments;
use crate::project::Project;
use crate::table_location::table_location;
use crate::terminal::Terminal;
use crate::{Exit, Library, plan_file};

/// Prints every table, or makes a backup.
pub(crate) fn tables(arguments: &TablesArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    let planned = plan_file::tables_of(&arguments.file);
    let (data, given) = (arguments.data.as_deref(), arguments.tables.as_deref());
    let place = match table_location(&arguments.file, data, given, planned.as_deref()) {
        Ok(place) => place,
        Err(failure) => return terminal.fail(Exit::Usage, &failure.message, &[]),
    };
    if let Some(copy) = &arguments.backup {
        let TableLocation::File(file) = &place else {
            let hint = "`pg_dump` copies a PostgreSQL database while programs write it";
            return terminal.fail(Exit::Usage, "`--backup` copies SQLite databases", &[hint]);
        };
        return match backup(file, copy) {
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
        match report(schema, &statements_on(&schema.name, &program, project.sources.file(id)), &place) {
            Ok(text) => printed += &text,
            Err(failure) => return terminal.fail(Exit::Environment, &failure.message, &[]),
        }
    }
    terminal.print(&printed)
}

/// Returns the statements of a program that search a table, each once, in the order of the text.
fn statements_on(table: &str, program: &Program, file: &SourceFile) -> Vec<PlacedStatement> {
    let mut found: Vec<(Origin, SearchStatement)> = Vec::new();
    let mut see = |binding: &Let| {
        let Op::Call(call) = &binding.op else { return };
        if call.arguments.first().and_then(Atom::shared).is_some_and(|shared| shared.as_str() == table) {
            found.extend(searched(call).map(|statement| (binding.origin, statement)));
        }
    };
    let flows = program.entries.iter().flat_map(|entry| entry.flows.iter().map(|flow| &flow.body));
    flows.chain(program.shared.iter().map(|shared| &shared.init)).for_each(|body| body.each_binding(&mut see));
    found.sort_by_key(|(origin, _)| origin.start);
    let mut statements: Vec<PlacedStatement> = Vec::new();
    for (origin, statement) in found {
        let place = weir_syntax::location(file, origin.start);
        match statements.iter_mut().find(|known| known.statement == statement) {
            // A body that is lowered twice, such as one that is inlined, has one place.
            Some(known) if known.places.contains(&place) => {}
            Some(known) => known.places.push(place),
            None => statements.push(PlacedStatement { statement, places: vec![place] }),
        }
    }
    statements
}

/// Returns the search of a call of the module `tables`.
fn searched(call: &Call) -> Option<SearchStatement> {
    let value = |atom: &Atom| match atom {
        Atom::Value(value) => Some(value.clone()),
        _ => None,
    };
    let query = call.arguments.get(2).and_then(value).and_then(|value| TableQuery::from_value(value).ok());
    let column = call.arguments.get(4).and_then(value).and_then(|value| usize::from_value(value).ok());
    SearchStatement::of(&call.function, query, column)
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
