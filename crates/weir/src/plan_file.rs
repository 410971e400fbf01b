//! Plan files: `main.plan.toml` beside `main.weir`, or the file that `--plan` names.

#[cfg(feature = "tools")]
mod check;

use std::io;
use std::path::{Path, PathBuf};

use weir_ir::graph::Program;
use weir_ir::plan::{Plan, PlanProblem, ProblemSeverity};

use crate::Exit;
use crate::programs::{cannot_read, is_standard_input};
use crate::terminal::{Paint, Terminal};
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
    let shown = problems.iter().map(|problem| render(problem, &path, &text, terminal.messages()));
    terminal.eprint(&shown.collect::<String>());
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
    let text = std::fs::read_to_string(&path).map_err(|error| no_plan(&path, &error, terminal))?;
    let (plan, mut problems) = Plan::parse(&text);
    problems.retain(PlanProblem::is_error);
    let shown = problems.iter().map(|problem| render(problem, &path, &text, terminal.messages()));
    terminal.eprint(&shown.collect::<String>());
    if problems.is_empty() { Ok(plan.tables.map(|address| address.value.to_string())) } else { Err(Exit::Failure) }
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

/// Returns the plan file beside a program.
fn beside(program: &Path) -> Option<PathBuf> {
    Some(program.with_extension(ENDING)).filter(|path| !is_standard_input(program) && path.is_file())
}

/// Formats a problem with its source line.
fn render(problem: &PlanProblem, path: &Path, text: &str, paint: Paint) -> String {
    let (line, column) = problem.line_column(text);
    let source = text.lines().nth(line - 1).unwrap_or_default();
    let rest = source.chars().count().saturating_sub(column - 1);
    let marked = text.get(problem.at.clone()).map_or(1, |marked| marked.chars().count()).clamp(1, rest.max(1));
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    let bar = paint.blue("|");
    let kind = match problem.severity {
        ProblemSeverity::Error => paint.red("error"),
        ProblemSeverity::Warning => paint.yellow("warning"),
    };
    let mut shown = format!("{kind}: {}\n", paint.bold(&problem.message));
    shown.push_str(&format!("{margin}{} {}:{line}:{column}\n", paint.blue("-->"), path.display()));
    shown.push_str(&format!("{margin} {bar}\n{} {bar} {source}\n", paint.blue(&number)));
    let before = " ".repeat(column - 1);
    shown.push_str(&format!("{margin} {bar} {before}{}\n", paint.red(&"^".repeat(marked))));
    if let Some(help) = &problem.help {
        shown.push_str(&format!("{margin} {} help: {help}\n", paint.blue("=")));
    }
    shown + "\n"
}
