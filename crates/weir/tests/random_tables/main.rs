//! Differential test: random programs with tables give the same answers under the reference evaluator, with tables in memory,
//! and on the calling thread with the tables in memory, in SQLite and in PostgreSQL. Also under the engines, which take turns: a program
//! runs under one of them in each store. Also if the store refuses transactions at random: then they are executed again.
//! Some programs run on tables that SQL has made before, and give the answers of tables in memory.
//!
//! A program is a sequence of statements, each a flow of its own. Queries stand there twice: as the table computes them, and
//! as functions on the list of all rows; a statement of which the two differ says so.
//!
//! `WEIR_RANDOM_TABLES` sets the number of programs, `WEIR_RANDOM_TABLES_FROM` the first seed. PostgreSQL gets one program of
//! fifty, or of `WEIR_RANDOM_TABLES_POSTGRES`. One of four, or of `WEIR_RANDOM_TABLES_EXISTING`, runs on tables that SQL has made.

mod conditions;
mod existing;
mod gathered;
mod queries;
mod statements;
mod tables;
mod under_engines;

use std::path::PathBuf;

use test_support::postgres::PostgresServer;
use test_support::random::Random;
use weir_host::{Failure, Library, Value};
use weir_ir::evaluate::Evaluator;
use weir_ir::expr::Program;
use weir_ir::graph::Program as GraphProgram;
use weir_library::http::Response;
use weir_library::tables::{ExistingDatabases, PostgresAddress, TableLocation, TableStorage};
use weir_runtime::{ENGINES, EngineRow, Options, run_on_calling_thread};
use weir_syntax::{SourceFile, Sources, Style, render_all};

use statements::RandomProgram;

/// Default number of programs.
const PROGRAMS: u64 = 60;

/// By default, one program of this many runs in PostgreSQL, too.
const POSTGRES_EVERY: u64 = 50;

/// By default, one program of this many runs on tables that SQL has made.
const EXISTING_ONE_OF: u64 = 4;

/// Returns the number in a variable of the environment.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(otherwise)
}

/// An SQLite database, which is removed when this is dropped.
struct ScratchDatabase(PathBuf);

impl ScratchDatabase {
    fn new(seed: u64) -> ScratchDatabase {
        let name = format!("weir-random-tables-{}-{seed}", std::process::id());
        // In memory, if that is possible: nobody looks for what a power cut leaves.
        let roots = [PathBuf::from("/dev/shm"), std::env::temp_dir()];
        let folders = roots.map(|root| root.join(&name)).into_iter();
        let mut made = folders.filter(|folder| std::fs::create_dir_all(folder).is_ok());
        ScratchDatabase(made.next().expect("a folder for the database"))
    }

    fn place(&self) -> TableLocation {
        TableLocation::File(self.0.join("tables.db"))
    }

    /// Returns a storage that finds existing databases in this folder.
    fn storage(&self) -> TableStorage {
        let folder = self.0.clone();
        TableStorage::at(self.place()).with_existing(ExistingDatabases { folder, ..ExistingDatabases::default() })
    }
}

impl Drop for ScratchDatabase {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the library whose stored tables are at this place.
fn library_at(place: TableLocation) -> Library {
    library_of(TableStorage::at(place))
}

fn library_of(storage: TableStorage) -> Library {
    let mut library = weir_library::library();
    library.environment.insert_placing(storage);
    library
}

/// Returns an answer as a text: the body of the response, or the failure. Which of several broken rules a failure names is left to
/// the store.
fn shown(answer: Result<Value, Failure>) -> String {
    match answer {
        Ok(Value::Host(value)) => {
            let response =
                value.as_any().downcast_ref::<Response>().expect("a flow of a service answers with a response");
            String::from_utf8_lossy(response.body()).into_owned()
        }
        Ok(other) => panic!("a flow of a service answers {other:?}"),
        Err(failure) if failure.message.contains("differ") => failure.message.to_string(),
        Err(failure) => format!("the flow fails: {:?}", failure.kind),
    }
}

/// Returns the answers of the flows under the reference evaluator.
fn evaluated(program: &Program, flows: u64, storage: TableStorage) -> Vec<String> {
    let library = library_of(storage);
    let mut evaluator = Evaluator::new(program, &library).unwrap_or_else(|initial| panic!("{}", initial.failure));
    let run = |flow| evaluator.run(0, 0, vec![Value::Int(flow)]).map_err(|failure| *failure);
    (0..flows as i64).map(run).map(shown).collect()
}

/// Returns the answers of the flows on the calling thread, with these tables. Lists of more than two elements have strips.
fn executed(graph: &GraphProgram, flows: u64, storage: TableStorage) -> Vec<String> {
    let library = library_of(storage);
    let inputs = (0..flows as i64).map(|flow| vec![Value::Int(flow)]);
    let options = Options { strip_max: 2, ..Options::default() };
    let answers = run_on_calling_thread(graph, &library, &options, inputs);
    let closing = library.environment.get::<TableStorage>().map(|storage| weir_host::Closing::close(&*storage));
    closing.expect("the storage").unwrap_or_else(|failure| panic!("{failure}"));
    answers.unwrap_or_else(|error| panic!("{error}")).into_iter().map(shown).collect()
}

/// Returns the program of a text.
fn compiled(text: &str) -> Program {
    let mut sources = Sources::default();
    let id = sources.add(SourceFile::new("random.weir", text));
    let checked = weir_compile::check(id, sources.file(id), &library_at(TableLocation::Memory));
    let errors = checked.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).cloned();
    let errors = errors.collect::<Vec<_>>();
    checked.expr.unwrap_or_else(|| panic!("{}\n{text}", render_all(&sources, &errors, Style::Plain)))
}

/// Compares the answers of a flow in two places, and what a statement says about its two spellings.
fn compare(program: &RandomProgram, seed: u64, wanted: &[String], place: &str, found: &[String]) {
    for (at, (wanted, found)) in wanted.iter().zip(found).enumerate() {
        let differ = wanted != found || found.contains("differ");
        assert!(
            !differ,
            "seed {seed}, {place}: statement {at} answers\n{found}\ninstead of\n{wanted}\n\n{}\n\n{}",
            program.steps[at],
            program.text()
        );
    }
    assert_eq!(wanted.len(), found.len(), "seed {seed}, {place}");
}

/// Returns the engine under which a program runs in each store.
fn engine_of(seed: u64) -> &'static EngineRow {
    &ENGINES[(seed % ENGINES.len() as u64) as usize]
}

/// Returns the server in which a program runs, if it does.
fn postgres_of(seed: u64) -> Option<&'static PostgresServer> {
    let runs = seed.is_multiple_of(number("WEIR_RANDOM_TABLES_POSTGRES", POSTGRES_EVERY));
    if runs { PostgresServer::shared() } else { None }
}

/// Returns the answers of the flows under an engine, with these tables.
fn executed_under_engine(
    graph: &GraphProgram,
    flows: u64,
    storage: TableStorage,
    engine: &'static EngineRow,
) -> Vec<String> {
    under_engines::answers(graph, library_of(storage), flows, engine).into_iter().map(shown).collect()
}

/// Returns the number of flows of a program, and their answers under the reference evaluator.
fn evaluated_in_memory(program: &RandomProgram, seed: u64) -> (u64, Vec<String>) {
    let flows = program.steps.len() as u64;
    let wanted = evaluated(&compiled(&program.text()), flows, TableStorage::at(TableLocation::Memory));
    compare(program, seed, &wanted, "the evaluator", &wanted);
    (flows, wanted)
}

/// Compares a program on tables of its own with the same program on tables that SQL has made.
fn same_on_existing_tables(seed: u64) {
    let program = RandomProgram::of_any_database(seed);
    let (flows, wanted) = evaluated_in_memory(&program, seed);
    let graph = optimized(&compiled(&program.text_on_existing_tables(existing::FILE)));
    let engine = engine_of(seed);
    for (name, run) in [
        ("existing tables in SQLite", &(|storage| executed(&graph, flows, storage)) as &dyn Fn(TableStorage) -> _),
        ("the same, with refusals", &|storage| executed(&graph, flows, storage.refusing(seed))),
        (engine.name, &|storage| executed_under_engine(&graph, flows, storage, engine)),
    ] {
        let database = ScratchDatabase::new(seed);
        existing::make_in_sqlite(&program.items, &database.0);
        compare(&program, seed, &wanted, name, &run(database.storage()));
    }
    // PostgreSQL numbers the rows of such a table in another way: it leaves gaps.
    if let Some(server) = postgres_of(seed).filter(|_| !program.items.auto) {
        same_on_existing_tables_of_postgres(&program.storing_no_nul(), seed, server);
    }
}

fn same_on_existing_tables_of_postgres(program: &RandomProgram, seed: u64, server: &PostgresServer) {
    let (flows, wanted) = evaluated_in_memory(program, seed);
    let engine = engine_of(seed);
    for (name, run) in [
        ("existing tables in PostgreSQL", &executed as &dyn Fn(&GraphProgram, u64, TableStorage) -> _),
        (engine.name, &|graph, flows, storage| executed_under_engine(graph, flows, storage, engine)),
    ] {
        let schema = format!("existing_{}{seed}", name.len());
        let address = server.schema(&schema);
        existing::make_in_postgres(&program.items, server, &schema);
        let graph = optimized(&compiled(&program.text_on_existing_tables(&address)));
        compare(program, seed, &wanted, name, &run(&graph, flows, ScratchDatabase::new(seed).storage()));
    }
}

/// Returns the graph of a program after all passes.
fn optimized(program: &Program) -> GraphProgram {
    weir_ir::optimize(program, &library_at(TableLocation::Memory))
}

fn same_everywhere(seed: u64) {
    let program = RandomProgram::new(seed);
    let flows = program.steps.len() as u64;
    let expr = compiled(&program.text());
    let memory = || TableStorage::at(TableLocation::Memory);
    let wanted = evaluated(&expr, flows, memory());
    compare(&program, seed, &wanted, "the evaluator", &wanted);
    let repeated = evaluated(&expr, flows, memory().refusing(seed));
    compare(&program, seed, &wanted, "the evaluator, with refusals", &repeated);
    let graph = optimized(&expr);
    compare(&program, seed, &wanted, "in memory", &executed(&graph, flows, memory()));
    let repeated = executed(&graph, flows, memory().refusing(seed));
    compare(&program, seed, &wanted, "in memory, with refusals", &repeated);
    for (name, refuses) in [("SQLite", false), ("SQLite, with refusals", true)] {
        let database = ScratchDatabase::new(seed);
        let storage = TableStorage::at(database.place());
        let storage = if refuses { storage.refusing(seed) } else { storage };
        compare(&program, seed, &wanted, name, &executed(&graph, flows, storage));
    }
    let engine = engine_of(seed);
    let under_engine = |place| executed_under_engine(&graph, flows, TableStorage::at(place), engine);
    let place = |store: &str| format!("{store}, under `{}`", engine.name);
    compare(&program, seed, &wanted, &place("memory"), &under_engine(TableLocation::Memory));
    let database = ScratchDatabase::new(seed);
    compare(&program, seed, &wanted, &place("SQLite"), &under_engine(database.place()));
    if let Some(server) = postgres_of(seed) {
        let location = |name: &str| {
            let address = server.schema(&format!("random_{name}{seed}"));
            TableLocation::Postgres(PostgresAddress::parse(&address, None).expect("an address"))
        };
        compare(&program, seed, &wanted, "PostgreSQL", &executed(&graph, flows, TableStorage::at(location(""))));
        compare(&program, seed, &wanted, &place("PostgreSQL"), &under_engine(location("under_")));
    }
}

#[test]
fn random_programs_with_tables_give_the_same_answers_in_every_store() {
    let from = number("WEIR_RANDOM_TABLES_FROM", 0);
    for seed in from..from + number("WEIR_RANDOM_TABLES", PROGRAMS) {
        match Random::new(seed).below(number("WEIR_RANDOM_TABLES_EXISTING", EXISTING_ONE_OF)) {
            0 => same_on_existing_tables(seed),
            _ => same_everywhere(seed),
        }
    }
}

/// Each flow writes the first of two tables of a transaction, which is executed again if its commit is refused.
#[test]
fn a_commit_that_is_refused_leaves_every_table_as_it_was() {
    const FLOWS: u64 = 40;
    let expr = compiled(
        "use http\n\nrecord Item { id: Int }\nrecord Owner { name: Text }\n\ntable items: Item key id\n\
         table owners: Owner key name\n\nservice steps on http(port: 8080) {\n  get \"/{n}\" (n: Int) {\n    \
         let id = atomic items, owners { items.insert(Item { id: n })? }\n    http.text(\"{id}\")\n  }\n}\n",
    );
    let wanted: Vec<String> = (0..FLOWS).map(|flow| flow.to_string()).collect();
    let memory = || TableStorage::at(TableLocation::Memory).refusing(1);
    assert_eq!(evaluated(&expr, FLOWS, memory()), wanted, "the evaluator");
    let graph = optimized(&expr);
    assert_eq!(executed(&graph, FLOWS, memory()), wanted, "in memory");
    let database = ScratchDatabase::new(u64::MAX);
    let stored = TableStorage::at(database.place()).refusing(1);
    assert_eq!(executed(&graph, FLOWS, stored), wanted, "SQLite");
}

/// The programs contain every statement, and most of them succeed.
#[test]
fn random_programs_have_every_statement() {
    let texts: Vec<String> = (0..200).map(|seed| RandomProgram::new(seed).text()).collect();
    let all = texts.concat();
    for part in [
        ".insert(",
        ".upsert(",
        ".update(",
        ".update_all(",
        ".delete(",
        ".delete_all(",
        ".count(",
        ".exists(",
        "order by",
        " desc",
        "limit",
        " after ",
        ".group_by(",
        ".sum()",
        ".average()",
        ".max()",
        ".min()",
        ".unique().length()",
        "atomic ",
        "for _ in [1, 2] {",
        "fail(",
        "owners[r.owner]",
        "number_at(",
        "is_known(r",
        "headed(",
        "keyed(",
        "fold sum",
        "soft(",
        "cascade",
        "auto",
        "unique ",
        "index ",
        "Bytes",
        "Time",
        "Option(Float)",
        "Option(Level)",
        "Option(Time)",
        "Some(it) => it",
        "12 / r.number",
        "key name soft",
    ] {
        assert!(all.contains(part), "no program has `{part}`");
    }
}

/// Parts that programs on existing tables have.
const EXISTING_PARTS: [&str; 15] = [
    "writable: true",
    "r in seen_items",
    "seen_items[",
    "r in items",
    "owners[r.owner]",
    ".insert(",
    ".upsert(",
    ".update(",
    ".update_all(",
    ".delete(",
    ".delete_all(",
    "atomic items, owners",
    "auto ",
    "unique ",
    "index ",
];

#[test]
fn random_programs_read_and_write_existing_tables() {
    let text = |seed| RandomProgram::of_any_database(seed).text_on_existing_tables(existing::FILE);
    let all: String = (0..100).map(text).collect();
    for part in EXISTING_PARTS {
        assert!(all.contains(part), "no program has `{part}`");
    }
}
