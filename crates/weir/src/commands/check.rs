//! `weir check`: prints the errors and warnings of programs and of the plans beside them.

use std::path::Path;

use crate::arguments::{CheckArguments, ErrorFormat};
use crate::project::Project;
use crate::terminal::Terminal;
use crate::{Exit, Library, plan_file, programs};

/// Checks every file and its plan, and prints all diagnostics.
pub(crate) fn check(arguments: &CheckArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    programs::for_each(&arguments.files, terminal, |file, terminal| {
        check_file(file, library, arguments.error_format, terminal)
    })
}

fn check_file(path: &Path, library: &Library, format: ErrorFormat, terminal: &mut Terminal) -> Exit {
    let mut project = Project::default();
    match project.read(path, terminal) {
        Ok(id) => {
            let program = project.compile(id, library);
            let exit = project.report(format, terminal);
            program.map_or(exit, |program| plan_file::check(path, &program, format, terminal))
        }
        Err(exit) => exit,
    }
}
