//! The check of the plan beside a program, for `weir check`.

use std::path::Path;

use serde_json::{Value, json};
use weir_ir::graph::Program;
use weir_ir::plan::{PlanProblem, ProblemSeverity};
use weir_syntax::SourceFile;

use super::{beside, no_plan, problems, render};
use crate::Exit;
use crate::arguments::ErrorFormat;
use crate::terminal::Terminal;

/// Checks the plan beside a program, and prints its errors and warnings.
pub(crate) fn check(
    program_path: &Path,
    program: &Program,
    (format, deny_warnings): (ErrorFormat, bool),
    terminal: &mut Terminal,
) -> Exit {
    let Some(path) = beside(program_path) else { return Exit::Success };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => return no_plan(&path, &error, terminal),
    };
    let (_, problems) = problems(&text, program);
    let shown = problems.iter().map(|problem| match format {
        ErrorFormat::Human => render(problem, &path, &text, terminal.messages()),
        ErrorFormat::Json => render_json(problem, &path, &text),
    });
    terminal.eprint(&shown.collect::<String>());
    let denied = deny_warnings && !problems.is_empty();
    if denied || problems.iter().any(PlanProblem::is_error) { Exit::Failure } else { Exit::Success }
}

/// Formats a problem as one line of JSON, in the form of a diagnostic without a code.
fn render_json(problem: &PlanProblem, path: &Path, text: &str) -> String {
    let file = SourceFile::new(path.display().to_string(), text);
    let position = |offset: usize| {
        let offset = u32::try_from(offset).unwrap_or(u32::MAX);
        let at = file.line_column(offset);
        json!({ "offset": offset, "line": at.line, "column": at.column })
    };
    let severity = match problem.severity {
        ProblemSeverity::Error => "error",
        ProblemSeverity::Warning => "warning",
    };
    let help: Vec<Value> = problem.help.iter().map(|help| json!({ "text": help, "edit": null })).collect();
    let label = json!({
        "file": file.name(), "start": position(problem.at.start), "end": position(problem.at.end),
        "text": "", "primary": true,
    });
    let object = json!({
        "code": null, "name": "Plan", "severity": severity, "message": problem.message,
        "labels": [label], "notes": [], "help": help,
    });
    format!("{object}\n")
}
