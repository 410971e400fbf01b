//! The plan of a program as it lies on disk: `main.plan.toml` beside `main.weir`, or what `--plan` names.

use std::io;
use std::path::{Path, PathBuf};

use weir_ir::graph::Program;
use weir_ir::plan::{Plan, PlanProblem};

use crate::Exit;
use crate::programs::{cannot_read, is_standard_input};
use crate::terminal::{Paint, Terminal};

/// What the name of a plan ends in.
const ENDING: &str = "plan.toml";

/// The plan of a program: the named one, or the one beside it, or none.
///
/// # Errors
/// Says what is wrong with the plan, and gives the exit code.
pub(crate) fn read(
    program_path: &Path,
    named: Option<&Path>,
    program: &Program,
    terminal: &mut Terminal,
) -> Result<Option<(PathBuf, Plan)>, Exit> {
    let Some(path) = named.map(Path::to_owned).or_else(|| beside(program_path)) else { return Ok(None) };
    let text = std::fs::read_to_string(&path).map_err(|error| no_plan(&path, &error, terminal))?;
    let (plan, mut problems) = Plan::parse(&text);
    // What cannot be read would only be complained about a second time.
    if problems.is_empty() {
        problems = plan.check(program, &weir_runtime::engine_facts());
    }
    if problems.is_empty() {
        return Ok(Some((path, plan.following(program))));
    }
    let shown = problems.iter().map(|problem| render(problem, &path, &text, terminal.messages()));
    terminal.eprint(&shown.collect::<String>());
    Err(Exit::Failure)
}

/// Says that a plan cannot be read.
fn no_plan(path: &Path, error: &io::Error, terminal: &mut Terminal) -> Exit {
    let name = path.display();
    let (message, hint) = match error.kind() {
        io::ErrorKind::NotFound => (format!("there is no plan `{name}`"), "check the path behind `--plan`"),
        io::ErrorKind::IsADirectory => {
            (format!("`{name}` is a folder, and a plan is a file"), "check the path behind `--plan`")
        }
        io::ErrorKind::InvalidData => (format!("the plan `{name}` is not UTF-8 text"), "save the file as UTF-8"),
        _ => return cannot_read(path, error, terminal),
    };
    terminal.fail(Exit::Environment, &message, &[hint])
}

/// The plan that lies beside a program.
fn beside(program: &Path) -> Option<PathBuf> {
    Some(program.with_extension(ENDING)).filter(|path| !is_standard_input(program) && path.is_file())
}

/// A problem with the line that it is in.
fn render(problem: &PlanProblem, path: &Path, text: &str, paint: Paint) -> String {
    let (line, column) = problem.line_column(text);
    let source = text.lines().nth(line - 1).unwrap_or_default();
    let rest = source.chars().count().saturating_sub(column - 1);
    let marked = text.get(problem.at.clone()).map_or(1, |marked| marked.chars().count()).clamp(1, rest.max(1));
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    let bar = paint.blue("|");
    let mut shown = format!("{}: {}\n", paint.red("error"), paint.bold(&problem.message));
    shown.push_str(&format!("{margin}{} {}:{line}:{column}\n", paint.blue("-->"), path.display()));
    shown.push_str(&format!("{margin} {bar}\n{} {bar} {source}\n", paint.blue(&number)));
    let before = " ".repeat(column - 1);
    shown.push_str(&format!("{margin} {bar} {before}{}\n", paint.red(&"^".repeat(marked))));
    if let Some(help) = &problem.help {
        shown.push_str(&format!("{margin} {} help: {help}\n", paint.blue("=")));
    }
    shown + "\n"
}
