//! `weir explain`: the page of a diagnostic code, or a list of all codes.

use weir_syntax::Code;

use crate::Exit;
use crate::commands::arguments::ExplainArguments;
use crate::terminal::{Paint, Terminal};

/// Prints a page.
pub(crate) fn explain(arguments: &ExplainArguments, terminal: &mut Terminal) -> Exit {
    let paint = terminal.output();
    let Some(id) = &arguments.code else {
        let lines = weir_syntax::codes::ALL.iter().map(|code| format!("{}  {}\n", paint.bold(code.id()), code.title()));
        return terminal.print(&lines.collect::<String>());
    };
    match Code::from_id(id) {
        Some(code) => terminal.print(&page(code, paint)),
        None => terminal.fail(
            Exit::Usage,
            &format!("unknown diagnostic `{id}`"),
            &["`weir explain` without a code lists all of them"],
        ),
    }
}

/// Formats a page: headings in bold, code indented.
fn page(code: Code, paint: Paint) -> String {
    let mut shown = String::new();
    let mut in_code = false;
    for line in code.page().lines() {
        if line.starts_with("```") {
            in_code = !in_code;
            continue;
        }
        let heading = line.trim_start_matches('#').trim_start();
        let line = match (in_code, line.starts_with('#')) {
            (true, _) => format!("    {line}"),
            (false, true) if line.starts_with("# ") => format!("{}: {}", paint.red(code.id()), paint.bold(heading)),
            (false, true) => paint.bold(heading),
            (false, false) => line.to_owned(),
        };
        shown.push_str(line.trim_end());
        shown.push('\n');
    }
    if code.can_be_allowed() {
        shown.push_str(&format!(
            "\nTo keep the code without the warning, write `// allow {}: why` above it.\n",
            code.id()
        ));
    }
    shown
}
