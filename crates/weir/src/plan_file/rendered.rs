//! Problems of a plan as text with excerpts, or as one line of JSON each.

use std::path::Path;

use serde_json::{Value, json};
use weir_ir::plan::{PlanProblem, ProblemSeverity};
use weir_syntax::SourceFile;

use crate::terminal::{ErrorFormat, Paint};

/// Formats the problems of a plan file.
pub(super) fn rendered(
    problems: &[PlanProblem],
    (path, text): (&Path, &str),
    format: ErrorFormat,
    paint: Paint,
) -> String {
    let rendered = problems.iter().map(|problem| match format {
        ErrorFormat::Human => render(problem, path, text, paint),
        ErrorFormat::Json => render_json(problem, path, text),
    });
    rendered.collect()
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
