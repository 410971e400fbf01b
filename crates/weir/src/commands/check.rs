//! `weir check`: prints the errors and warnings of programs and of the plans beside them, and explains their queries.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use weir_library::log::LogFormat;

use crate::commands::arguments::{CheckArguments, ExplainedSubject};
use crate::project::Project;
use crate::terminal::{ErrorFormat, Terminal};
use crate::{Exit, Library, plan_file, programs};

mod io;

/// Checks every file and its plan, and prints all diagnostics.
pub(crate) fn check(arguments: &CheckArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    terminal.set_formats(arguments.error_format, LogFormat::Text);
    let mut modules = BTreeSet::new();
    programs::for_each(&arguments.files, terminal, |file, terminal| {
        check_file(file, library, (arguments, &mut modules), terminal)
    })
}

/// Checks a program, unless it is a module of one that was checked before.
fn check_file(
    path: &Path,
    library: &Library,
    (arguments, modules): (&CheckArguments, &mut BTreeSet<PathBuf>),
    terminal: &mut Terminal,
) -> Exit {
    if path.canonicalize().is_ok_and(|whole| modules.contains(&whole)) {
        return Exit::Success;
    }
    let mut project = Project::below(&arguments.files);
    let id = match project.read(path, terminal) {
        Ok(id) => id,
        Err(exit) => return exit,
    };
    let program = project.compile(id, library);
    modules.extend(project.modules.drain(..));
    let reported = project.report(arguments.error_format, terminal);
    let Some(program) = program else { return reported };
    if let Some(ExplainedSubject::Io) = arguments.explain {
        let explained = match arguments.error_format {
            ErrorFormat::Human => io::explained,
            ErrorFormat::Json => io::explained_in_json,
        };
        let exit = terminal.print(&explained(&program, library, project.sources.file(id)));
        if exit != Exit::Success {
            return exit;
        }
    }
    let denied = arguments.deny_warnings && !project.diagnostics.is_empty();
    match plan_file::check(path, &program, (arguments.error_format, arguments.deny_warnings), terminal) {
        Exit::Success if denied => Exit::Failure,
        exit => exit,
    }
}
