//! `weir test`: runs the tests of programs in parallel on the reference evaluator.
//!
//! Every test has its own shared values, and draws its random numbers from the same seed, so that tests are independent
//! and give the same result each time. A test that takes longer than the time limit fails, and is left behind.

mod difference;
mod workers;

use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_compile::Checked;
use weir_host::{Failure, TypeDefinition};
use weir_ir::evaluate::{Evaluator, InitialFailure};
use weir_ir::expr::Program;
use weir_library::crypto::Secrets;
use weir_library::files::Root;
use weir_library::http::{RouteFailure, TestedServices};
use weir_library::tables::ScratchSchemas;
use weir_syntax::SourceFile;
use weir_syntax::ast::ItemKind;

use crate::commands::arguments::TestArguments;
use crate::configuration::Configuration;
use crate::programs::folder;
use crate::project::Project;
use crate::run::failure_location::passed;
use crate::table_location::postgres_address;
use crate::terminal::{ErrorFormat, Paint, Terminal};
use crate::{Exit, Library, programs};
use workers::{TestResult, TestRun, run_all, with_inlined_calls};

/// Maximum number of tests that a message names.
const NAMES_MAX: usize = 10;

/// Counts over all files.
#[derive(Default)]
struct TestSummary {
    passed: usize,
    failed: usize,
    left_out: usize,
    /// The names of the first tests that the filter leaves out.
    names_left_out: Vec<String>,
    /// The modules of the programs that were tested; their tests ran with those of the program.
    modules: BTreeSet<PathBuf>,
}

impl TestSummary {
    fn leave_out<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        for name in names {
            self.left_out += 1;
            if self.names_left_out.len() < NAMES_MAX {
                self.names_left_out.push(name.to_owned());
            }
        }
    }

    fn is_nothing(&self) -> bool {
        self.passed + self.failed + self.left_out == 0
    }
}

/// Runs the tests of every file.
pub(crate) fn test(arguments: &TestArguments, mut library: Library, terminal: &mut Terminal) -> Exit {
    let files = match programs::expand(&arguments.files, terminal) {
        Ok(files) => files,
        Err(exit) => return exit,
    };
    // This runtime drives timers and other asynchronous waits; the evaluator blocks on them.
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build() {
        // A test that takes longer than its limit waits by the runtime until the process ends.
        Ok(runtime) => ManuallyDrop::new(runtime),
        Err(error) => return terminal.fail(Exit::Environment, &format!("cannot start a thread: {error}"), &[]),
    };
    let schemas = match arguments.tables.as_deref().map(scratch_schemas).transpose() {
        Ok(schemas) => schemas,
        Err((exit, failure)) => return terminal.fail(exit, &failure.message, &[]),
    };
    let begun = Instant::now();
    let (mut total, mut worst) = (TestSummary::default(), Exit::Success);
    for file in &files {
        if file.canonicalize().is_ok_and(|whole| total.modules.contains(&whole)) {
            continue;
        }
        if let Ok(root) = Root::open(&folder(file)) {
            library.environment.insert(root.without_private_files());
        }
        let tested = test_file(file, arguments, (&library, schemas.as_ref()), runtime.handle(), &mut total, terminal);
        if let Err(exit) = tested
            && exit.code() > worst.code()
        {
            worst = exit;
        }
    }
    if let Err(failure) = schemas.map_or(Ok(()), |schemas| schemas.end()) {
        return terminal.fail(Exit::Environment, &failure.message, &[]);
    }
    if let (Exit::Success, 0, Some(filter)) = (worst, total.passed + total.failed, &arguments.filter) {
        return refuse_filter(filter, arguments.exact, &total, terminal);
    }
    if total.is_nothing() && worst != Exit::Success {
        // Errors have been printed, and a summary would suggest success.
        return worst;
    }
    let printed = terminal.print(&summary(&total, begun.elapsed(), terminal.output()));
    match (worst, total.failed) {
        (Exit::Success, 0) => printed,
        (Exit::Success, _) => Exit::Failure,
        (worst, _) => worst,
    }
}

/// Reports a filter that chooses no test.
fn refuse_filter(filter: &str, exact: bool, total: &TestSummary, terminal: &mut Terminal) -> Exit {
    let rule = if exact { "is named" } else { "has a name with" };
    let names: Vec<String> = total.names_left_out.iter().map(|name| format!("{name:?}")).collect();
    let hint = match total.left_out - names.len() {
        _ if names.is_empty() => "there are no tests; add one at the top level: `test \"name\" { … }`".to_owned(),
        0 => format!("the tests are: {}", names.join(", ")),
        more => format!("the tests are: {}, and {more} more", names.join(", ")),
    };
    terminal.fail(Exit::Usage, &format!("no test {rule} {filter:?}, so none was run"), &[&hint])
}

/// Begins a run of tests whose stored tables are in a database.
fn scratch_schemas(address: &str) -> Result<Arc<ScratchSchemas>, (Exit, Failure)> {
    let address = postgres_address(address).map_err(|failure| (Exit::Usage, failure))?;
    ScratchSchemas::begin(address).map_err(|failure| (Exit::Environment, failure))
}

fn summary(total: &TestSummary, took: Duration, paint: Paint) -> String {
    if total.is_nothing() {
        return "no tests; add one at the top level: `test \"name\" { … }`\n".to_owned();
    }
    let failed = match total.failed {
        0 => String::new(),
        failed => format!(", {}", paint.red(&format!("{failed} failed"))),
    };
    let left_out = if total.left_out == 0 { String::new() } else { format!(", {} skipped", total.left_out) };
    format!("{} passed{failed}{left_out} {}\n", total.passed, paint.faint(&format!("in {}", shown(took))))
}

fn test_file(
    path: &Path,
    arguments: &TestArguments,
    (library, schemas): (&Library, Option<&Arc<ScratchSchemas>>),
    runtime: &tokio::runtime::Handle,
    total: &mut TestSummary,
    terminal: &mut Terminal,
) -> Result<(), Exit> {
    let mut project = Project::below(&arguments.files);
    let id = project.read(path, terminal)?;
    let configuration = Configuration::read_for_tests(id, project.sources.file(id), &arguments.configuration);
    let mut library = configured(library, &configuration);
    let checked = project.check(id, &library);
    total.modules.extend(project.modules.drain(..));
    let exit = project.report(ErrorFormat::Human, terminal);
    let (names, places): (Vec<String>, Vec<_>) = declared(&checked).into_iter().unzip();
    let Some(tests) = checked.tests.filter(|_| exit == Exit::Success) else { return Err(exit) };
    if let Some(program) = &checked.expr {
        match tested_services(program, &library) {
            Ok(services) => library.environment.insert(services),
            Err(initial) => {
                let message = initial_message(program, initial, project.sources.file(id));
                return Err(terminal.fail(Exit::Failure, &message, &[]));
            }
        }
    }
    let file = project.sources.file(id);
    let wanted = |at: &usize| is_wanted(&names[*at], arguments);
    // The tests of a library are those of its own folder.
    let own: Vec<usize> = (0..names.len()).filter(|at| places[*at].is_some()).collect();
    let chosen: Vec<usize> = own.iter().copied().filter(wanted).collect();
    total.leave_out(own.iter().filter(|at| !wanted(at)).map(|at| names[*at].as_str()));
    if chosen.is_empty() {
        return Ok(());
    }
    configuration.check(terminal)?;
    let run = TestRun {
        tests,
        chosen: chosen.clone(),
        library,
        schemas: schemas.cloned(),
        seed: arguments.seed,
        limit: Duration::from_secs(arguments.time_limit.into()),
    };
    let (mut text, mut shown_part) = (String::new(), None);
    for (at, outcome) in chosen.iter().zip(run_all(run, runtime)) {
        let failed_at = outcome.failed_at.filter(|origin| origin.end > 0).map(|origin| origin.start);
        let declared_at = places[*at].unwrap_or_default();
        let part = file.part_at(declared_at);
        if shown_part.replace(part.start) != Some(part.start) {
            text.push_str(&format!("{}\n", terminal.output().bold(&part.name)));
        }
        let place = weir_syntax::location(file, failed_at.unwrap_or(declared_at));
        text.push_str(&line(&names[*at], &place, &outcome, (file, terminal.output())));
        *(if outcome.failure.is_none() { &mut total.passed } else { &mut total.failed }) += 1;
    }
    terminal.print(&(text + "\n"));
    Ok(())
}

/// Returns the library with the configuration of a program and the secrets of tests.
fn configured(library: &Library, configuration: &Configuration) -> Library {
    let mut library = library.clone();
    configuration.apply(&mut library);
    library.environment.insert(Secrets::of_tests());
    library
}

/// Describes the failure of an initial value with its places.
fn initial_message(program: &Program, initial: InitialFailure, file: &SourceFile) -> String {
    let Some(failed_at) = initial.failed_at else { return initial.failure.message.to_string() };
    let (failure, origin) = with_inlined_calls(program, initial.failure, failed_at);
    let sites = failure.backtrace().iter();
    let passed = sites.map(|of| format!("\n    {}", passed(file, &of.failed, &of.function, of.position)));
    format!("{}: {}{}", weir_syntax::location(file, origin.start), failure.message, passed.collect::<String>())
}

/// Returns true if the filter chooses the test of this name.
fn is_wanted(name: &str, arguments: &TestArguments) -> bool {
    match &arguments.filter {
        Some(filter) if arguments.exact => name == filter,
        Some(filter) => name.contains(filter.as_str()),
        None => true,
    }
}

/// Returns the services of a program, for the tests that call them.
fn tested_services(program: &Program, library: &Library) -> Result<TestedServices, InitialFailure> {
    let mut services = TestedServices::default();
    let types: Arc<[TypeDefinition]> = program.types.clone().into();
    let mut evaluator = None;
    for (at, entry) in program.entries.iter().enumerate().filter(|(_, entry)| &*entry.source == "http.http") {
        let evaluator = match &mut evaluator {
            Some(evaluator) => evaluator,
            none => none.insert(Evaluator::new(program, library)?),
        };
        let failed = |failure, failed_at| InitialFailure { failure, failed_at };
        let arguments = evaluator.arguments(at).map_err(|failure| failed(*failure, evaluator.failed_at()))?;
        services.add(entry.name.clone(), &arguments, entry.routes(&types)).map_err(|failure| failed(failure, None))?;
    }
    Ok(services)
}

/// Returns the name and the offset of each test, in source order; without an offset for a test of a library.
fn declared(checked: &Checked) -> Vec<(String, Option<u32>)> {
    let tests = checked.parsed.tree.items.iter().filter_map(|item| match &item.kind {
        ItemKind::Test(test) => {
            let start = test.name_span.start;
            Some((test.name.to_string(), Some(start).filter(|start| !checked.is_of_library(*start))))
        }
        _ => None,
    });
    tests.collect()
}

fn line(name: &str, place: &str, outcome: &TestResult, (file, paint): (&SourceFile, Paint)) -> String {
    let took = paint.faint(&shown(outcome.took));
    match &outcome.failure {
        None => format!("  {} {name} {took}\n", paint.green("ok  ")),
        Some(failure) => {
            let message = difference::shortened(&failure.message);
            let sites = failure.backtrace().iter();
            let passed = sites.map(|site| "  ".to_owned() + &passed(file, &site.failed, &site.function, site.position));
            let lines = message.lines().map(str::to_owned).chain(passed);
            let routes = outcome.routes.iter().map(|failed| route_failure(failed, file));
            let shown: String = lines.chain(routes.flatten()).map(|line| format!("       {line}\n")).collect();
            let printed = match outcome.printed.as_str() {
                "" => String::new(),
                printed => {
                    printed.lines().fold("       printed:\n".to_owned(), |all, line| all + "         " + line + "\n")
                }
            };
            let place = paint.faint(&format!("at {place}"));
            format!("  {} {name} {took}\n       {place}\n{shown}{printed}", paint.red("FAIL"))
        }
    }
}

/// Describes the failure of a route that the test has called, with its places.
fn route_failure(failed: &RouteFailure, file: &SourceFile) -> Vec<String> {
    let place = weir_syntax::location(file, failed.position);
    let whole = format!("failure in {} at {place}: {}", failed.route, difference::shortened(&failed.failure.message));
    let sites = failed.failure.backtrace().iter();
    let passed = sites.map(|site| "  ".to_owned() + &passed(file, &site.failed, &site.function, site.position));
    whole.lines().map(str::to_owned).chain(passed).collect()
}

/// Formats a duration with at most three digits.
fn shown(time: Duration) -> String {
    match time.as_micros() {
        micros @ 0..1_000 => format!("{micros} us"),
        micros @ 1_000..1_000_000 => format!("{} ms", micros / 1_000),
        micros => format!("{}.{} s", micros / 1_000_000, micros / 100_000 % 10),
    }
}
