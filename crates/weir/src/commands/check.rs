//! `weir check`: prints the errors and warnings of programs and of the plans beside them, and explains their queries.

use std::path::Path;

use crate::commands::arguments::{CheckArguments, ExplainedSubject};
use crate::project::Project;
use crate::terminal::Terminal;
use crate::{Exit, Library, plan_file, programs};

mod io;

/// Checks every file and its plan, and prints all diagnostics.
pub(crate) fn check(arguments: &CheckArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    programs::for_each(&arguments.files, terminal, |file, terminal| check_file(file, library, arguments, terminal))
}

fn check_file(path: &Path, library: &Library, arguments: &CheckArguments, terminal: &mut Terminal) -> Exit {
    let mut project = Project::default();
    let id = match project.read(path, terminal) {
        Ok(id) => id,
        Err(exit) => return exit,
    };
    let program = project.compile(id, library);
    let reported = project.report(arguments.error_format, terminal);
    let Some(program) = program else { return reported };
    if let Some(ExplainedSubject::Io) = arguments.explain {
        let exit = terminal.print(&io::explained(&program, library, project.sources.file(id)));
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
