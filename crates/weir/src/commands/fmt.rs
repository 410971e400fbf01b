//! `weir fmt`: the formatter.

use std::path::Path;

use crate::commands::arguments::FmtArguments;
use crate::programs::is_standard_input;
use crate::project::Project;
use crate::terminal::{ErrorFormat, Terminal};
use crate::{Exit, programs};

/// Formats every file in place, or reports files that are not formatted.
pub(crate) fn fmt(arguments: &FmtArguments, terminal: &mut Terminal) -> Exit {
    programs::for_each(&arguments.files, terminal, |file, terminal| format_file(file, arguments.check, terminal))
}

fn format_file(path: &Path, only_check: bool, terminal: &mut Terminal) -> Exit {
    let mut project = Project::default();
    let id = match project.read(path, terminal) {
        Ok(id) => id,
        Err(exit) => return exit,
    };
    let text = project.sources.file(id).text().to_owned();
    let parsed = weir_syntax::parse(id, &text);
    project.diagnostics.extend(parsed.diagnostics.iter().cloned());
    if project.has_errors() {
        // A file with syntax errors stays unchanged.
        return project.report(ErrorFormat::Human, terminal);
    }
    let formatted = weir_syntax::format(&text, &parsed).unwrap_or_else(|| text.clone());
    match (only_check, is_standard_input(path)) {
        (true, _) if formatted == text => Exit::Success,
        (true, _) => {
            terminal.eprint(&format!("{} is not formatted\n", path.display()));
            Exit::Failure
        }
        (false, true) => terminal.print(&formatted),
        (false, false) if formatted == text => Exit::Success,
        (false, false) => write(path, &formatted, terminal),
    }
}

fn write(path: &Path, text: &str, terminal: &mut Terminal) -> Exit {
    let exit = terminal.write(Some(path), text);
    if exit == Exit::Success {
        terminal.eprint(&format!("formatted {}\n", path.display()));
    }
    exit
}
