//! `weir tables`: shows the tables of a program, and what a start would change in its database, or copies the database.

use std::collections::BTreeMap;

use std::path::Path;
use weir_compile::{Checked, QueryRest};

use weir_host::{HostType, Text, Value};
use weir_ir::expr::{Atom, Block, Let, Op, Origin, Program, Var};
use weir_ir::prim::Prim;
use weir_library::tables::{
    PlacedStatement, Schema, SearchStatement, StatementCall, TableLocation, backup, check_others, report,
    undeclared_tables,
};
use weir_syntax::SourceFile;

use crate::commands::arguments::TablesArguments;
use crate::configuration::Configuration;
use crate::project::Project;
use crate::run::signals::ignore_file_size;
use crate::table_location::{existing_databases, table_location};
use crate::terminal::{ErrorFormat, Terminal};
use crate::{Exit, Library, plan_file};

/// Prints every table, or makes a backup. Fails if a start would.
pub(crate) fn tables(arguments: &TablesArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    let planned = match plan_file::tables_of(&arguments.file, terminal) {
        Ok(planned) => planned,
        Err(exit) => return exit,
    };
    let (data, given) = (arguments.data.as_deref(), arguments.tables.as_deref());
    let place = match table_location(&arguments.file, data, given, planned.as_deref()) {
        Ok(place) => place,
        Err(failure) => return terminal.fail(Exit::Usage, &failure.message, &[]),
    };
    if let Some(copy) = &arguments.backup {
        return back_up((&place, copy), (arguments, library), terminal);
    }
    let mut project = Project::default();
    let id = match project.read(&arguments.file, terminal) {
        Ok(id) => id,
        Err(exit) => return exit,
    };
    // A `config` may name an existing database.
    let mut library = library.clone();
    Configuration::read_for_tests(id, project.sources.file(id), &arguments.configuration).apply(&mut library);
    let checked = project.check(id, &library);
    let exit = project.report(ErrorFormat::Human, terminal);
    let Some(program) = &checked.expr else { return exit };
    let declared = program.shared.iter().filter_map(|shared| Some((&shared.name, schema_in(&shared.init)?)));
    let (names, schemas): (Vec<&Text>, Vec<Schema>) = declared.unzip();
    if schemas.is_empty() {
        return terminal.print("no tables; declare one at the top level: `table users: User key name`\n");
    }
    let existing = existing_databases(&arguments.file);
    let statements = ProgramStatements::of(program, &checked, project.sources.file(id));
    let (mut printed, mut fails) = (String::new(), false);
    for (name, schema) in names.into_iter().zip(&schemas) {
        match report((schema, &schemas), &statements.on(name), (&place, &existing)) {
            Ok(report) => {
                printed += &once(&report.text, &printed);
                fails |= report.fails;
            }
            Err(failure) => return terminal.fail(Exit::Environment, &failure.message, &[]),
        }
    }
    printed += &undeclared_tables(&schemas, &place);
    // A start that fails for another reason does not get that far.
    if !fails && let Err(failure) = check_others(&schemas, (&place, &existing)) {
        (printed, fails) = (format!("{printed}a start fails: {failure}\n"), true);
    }
    if fails && ["  a start runs: ", "  a start converts "].iter().any(|change| printed.contains(change)) {
        printed += "a start changes no table, because it fails\n";
    }
    match terminal.print(&printed) {
        Exit::Success if fails => Exit::Failure,
        exit => exit,
    }
}

/// Returns the description of a table without the failure of a start that another table has had before, such as that of a reference between
/// the two.
fn once(text: &str, before: &str) -> String {
    let is_repeated = |line: &&str| line.starts_with("  a start fails: ") && before.contains(line);
    match text.split_inclusive('\n').find(is_repeated) {
        Some(line) => text.replace(line, "  a start fails, as said above\n"),
        None => text.to_owned(),
    }
}

/// Copies the database of a program.
fn back_up(
    (place, copy): (&TableLocation, &Path),
    (arguments, library): (&TablesArguments, &Library),
    terminal: &mut Terminal,
) -> Exit {
    let TableLocation::File(file) = place else {
        let hint = "`pg_dump` copies a PostgreSQL database while programs write it";
        return terminal.fail(Exit::Usage, "`--backup` copies SQLite databases", &[hint]);
    };
    if let Err(error) = ignore_file_size() {
        return terminal.fail(Exit::Environment, &format!("cannot make a copy: {error}"), &[]);
    }
    match backup(file, copy) {
        Ok(bytes) => terminal.print(&format!("{bytes} bytes copied to {}\n", copy.display())),
        Err(_) if !file.exists() && !stores_rows(arguments, library, terminal) => {
            let hint =
                "rows of `soft` tables are in memory, and those of `existing` ones in databases of other programs";
            let message = "the program has no stored tables, so that there is nothing to copy";
            terminal.fail(Exit::Usage, message, &[hint])
        }
        Err(failure) => terminal.fail(Exit::Environment, &failure.message, &[]),
    }
}

/// Returns false if a program has no table in its own database.
fn stores_rows(arguments: &TablesArguments, library: &Library, terminal: &mut Terminal) -> bool {
    let mut project = Project::default();
    let Ok(id) = project.read(&arguments.file, terminal) else { return true };
    let checked = project.check(id, library);
    checked.expr.is_none_or(|program| {
        let mut schemas = program.shared.iter().filter_map(|shared| schema_in(&shared.init));
        schemas.any(|schema| is_stored(&schema))
    })
}

/// Returns whether the rows of a table are in the database of the program.
fn is_stored(schema: &Schema) -> bool {
    schema.soft.is_none() && schema.existing.is_none()
}

/// The statements of a program that search tables.
struct ProgramStatements<'p> {
    checked: &'p Checked,
    file: &'p SourceFile,
    /// The parts of the tuples that queries take as arguments.
    records: BTreeMap<Var, Vec<Option<Value>>>,
    /// The place of each statement, its table, and the statement.
    found: Vec<(Origin, Text, SearchStatement)>,
}

impl<'p> ProgramStatements<'p> {
    fn of(program: &Program, checked: &'p Checked, file: &'p SourceFile) -> Self {
        let mut statements = ProgramStatements { checked, file, records: BTreeMap::new(), found: Vec::new() };
        let flows = program.entries.iter().flat_map(|entry| entry.flows.iter().map(|flow| &flow.body));
        for body in flows.chain(program.shared.iter().map(|shared| &shared.init)) {
            statements.records.clear();
            body.each_binding(&mut |binding| statements.see(binding));
        }
        statements.found.sort_by_key(|(origin, ..)| origin.start);
        statements
    }

    fn see(&mut self, binding: &Let) {
        match &binding.op {
            Op::Prim(Prim::Record, parts) => {
                self.records.insert(binding.bound.var, parts.iter().map(known).collect());
            }
            Op::Call(call) => {
                let Some(table) = call.arguments.first().and_then(Atom::shared) else { return };
                let query_arguments = match call.arguments.get(3) {
                    Some(Atom::Var(var)) => self.records.get(var).cloned().unwrap_or_default(),
                    Some(Atom::Value(Value::Record(parts))) => parts.iter().cloned().map(Some).collect(),
                    _ => Vec::new(),
                };
                let arguments = call.arguments.iter().map(known).collect();
                let statement = StatementCall { function: call.function.to_string(), arguments, query_arguments };
                let statement = SearchStatement::of(statement);
                self.found.extend(statement.map(|statement| (binding.origin, table.clone(), statement)));
            }
            _ => {}
        }
    }

    /// Returns the statements on a table, each once, in the order of the text.
    fn on(&self, table: &str) -> Vec<PlacedStatement> {
        let mut statements: Vec<PlacedStatement> = Vec::new();
        for (origin, _, statement) in self.found.iter().filter(|(_, of, _)| of.as_str() == table) {
            let place = weir_syntax::location(self.file, origin.start);
            let rest = self.rest(*origin);
            match statements.iter_mut().find(|known| known.statement == *statement && known.rest == rest) {
                // A body that is lowered twice, such as one that is inlined, has one place.
                Some(known) if known.places.contains(&place) => {}
                Some(known) => known.places.push(place),
                None => statements.push(PlacedStatement { statement: statement.clone(), rest, places: vec![place] }),
            }
        }
        statements
    }

    /// Returns what the program does with the rows of a query, in the order in which it does it.
    fn rest(&self, origin: Origin) -> Vec<String> {
        let of_query = |rest: &&QueryRest| (rest.query.start, rest.query.end) == (origin.start, origin.end);
        self.checked.query_rests.iter().filter(of_query).map(|rest| rest.what.clone()).collect()
    }
}

/// Returns a value that is known without running the program.
fn known(atom: &Atom) -> Option<Value> {
    match atom {
        Atom::Value(value) => Some(value.clone()),
        _ => None,
    }
}

/// Returns the description of the table that an initial value opens.
pub(crate) fn schema_in(block: &Block) -> Option<Schema> {
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
