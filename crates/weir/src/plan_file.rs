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
    let text = text_of(&path).map_err(|error| no_plan(&path, &error, terminal))?;
    let (plan, problems) = problems(&text, program);
    terminal.eprint(&rendered::rendered(&problems, (&path, &text), terminal.errors(), terminal.messages()));
    if problems.iter().any(PlanProblem::is_error) {
        return Err(Exit::Failure);
    }
    Ok(Some((path, plan.following(program))))
}

/// Returns the address of the tables in the plan beside a program.
///
/// # Errors
/// Prints the errors of the plan, and returns the exit code.
#[cfg(feature = "tools")]
pub(crate) fn tables_of(program_path: &Path, terminal: &mut Terminal) -> Result<Option<String>, Exit> {
    let Some(path) = beside(program_path) else { return Ok(None) };
    let text = text_of(&path).map_err(|error| no_plan(&path, &error, terminal))?;
    let (plan, mut problems) = Plan::parse(&text);
    problems.retain(PlanProblem::is_error);
    terminal.eprint(&rendered::rendered(&problems, (&path, &text), terminal.errors(), terminal.messages()));
    if problems.is_empty() { Ok(plan.tables.map(|address| address.value.to_string())) } else { Err(Exit::Failure) }
}

/// Reads a plan file.
fn text_of(path: &Path) -> io::Result<String> {
    let kind = std::fs::metadata(path)?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        // Reading a device or a pipe may never end.
        return Err(io::Error::other("it is no regular file"));
    }
    std::fs::read_to_string(path)
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
        io::ErrorKind::NotFound if path.is_symlink() => (
            format!("the plan `{name}` is a link to a file that does not exist"),
            "restore the file, or remove the link",
        ),
        io::ErrorKind::NotFound => (format!("no such plan: `{name}`"), "check the path after `--plan`"),
        io::ErrorKind::IsADirectory => (
            format!("`{name}` is a folder, not a plan"),
            "a plan is a file: the one beside the program, or that of `--plan`",
        ),
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

/// Returns the plan file beside a program. Whatever has its name counts, also if it cannot be read: the plan may say what the
/// program must not do.
fn beside(program: &Path) -> Option<PathBuf> {
    let path = Some(program.with_extension(ENDING)).filter(|_| !is_standard_input(program));
    path.filter(|path| path.symlink_metadata().is_ok())
}
