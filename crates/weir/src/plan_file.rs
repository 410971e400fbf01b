//! Plan files: `main.plan.toml` beside `main.weir`, or the file that `--plan` names.

#[cfg(feature = "tools")]
mod check;
mod rendered;

use std::io;
use std::path::{Path, PathBuf};

use weir_ir::graph::Program;
use weir_ir::plan::{Plan, PlanProblem};

use crate::Exit;
use crate::programs::{cannot_read, is_standard_input};
use crate::terminal::Terminal;
#[cfg(feature = "tools")]
pub(crate) use check::check;

/// Suffix of plan files.
const ENDING: &str = "plan.toml";

/// Reads the plan of a program: the named file, or the one beside the program, or none.
///
/// # Errors
/// Prints the errors of the plan, and returns the exit code.
pub(crate) fn read(
    program_path: &Path,
    named: Option<&Path>,
    program: &Program,
    terminal: &mut Terminal,
) -> Result<Option<(PathBuf, Plan)>, Exit> {
    let Some(path) = named.map(Path::to_owned).or_else(|| beside(program_path)) else { return Ok(None) };
    let text = std::fs::read_to_string(&path).map_err(|error| no_plan(&path, &error, terminal))?;
    let (plan, problems) = problems(&text, program);
    terminal.eprint(&rendered::rendered(&problems, (&path, &text), terminal.errors(), terminal.messages()));
    if problems.iter().any(PlanProblem::is_error) {
        return Err(Exit::Failure);
    }
    Ok(Some((path, plan.following(program))))
}

/// Returns the address of the tables in the plan beside a program.
#[cfg(feature = "tools")]
pub(crate) fn tables_of(program_path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(beside(program_path)?).ok()?;
    Plan::parse(&text).0.tables.map(|address| address.value.to_string())
}

/// Parses and checks a plan.
fn problems(text: &str, program: &Program) -> (Plan, Vec<PlanProblem>) {
    let (plan, mut problems) = Plan::parse(text);
    // Checking a plan with unreadable parts would report the same errors twice.
    if !problems.iter().any(PlanProblem::is_error) {
        problems.extend(plan.check(program, &weir_runtime::engine_facts()));
    }
    (plan, problems)
}

/// Reports an unreadable plan file.
fn no_plan(path: &Path, error: &io::Error, terminal: &mut Terminal) -> Exit {
    let name = path.display();
    let (message, hint) = match error.kind() {
        io::ErrorKind::NotFound => (format!("no such plan: `{name}`"), "check the path after `--plan`"),
        io::ErrorKind::IsADirectory => (format!("`{name}` is a folder, not a plan"), "check the path after `--plan`"),
        io::ErrorKind::InvalidData => (format!("the plan `{name}` is not UTF-8 text"), "save the file as UTF-8"),
        _ => return cannot_read(path, error, terminal),
    };
    terminal.fail(Exit::Environment, &message, &[hint])
}

/// Returns the path of the plan of a program, which need not exist if it is not named.
#[cfg(feature = "tools")]
pub(crate) fn place(program: &Path, named: Option<&Path>) -> Option<PathBuf> {
    named.map(Path::to_owned).or_else(|| (!is_standard_input(program)).then(|| program.with_extension(ENDING)))
}

/// Returns the plan file beside a program.
fn beside(program: &Path) -> Option<PathBuf> {
    Some(program.with_extension(ENDING)).filter(|path| !is_standard_input(program) && path.is_file())
}
