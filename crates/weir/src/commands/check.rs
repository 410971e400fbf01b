//! `weir check`: says what is wrong with programs.

use crate::arguments::CheckArguments;
use crate::project::Project;
use crate::terminal::Terminal;
use crate::{Exit, Library, programs};

/// Checks every file, and shows all that is wrong in one go.
pub(crate) fn check(arguments: &CheckArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    let files = match programs::all(&arguments.files, terminal) {
        Ok(files) => files,
        Err(exit) => return exit,
    };
    let mut worst = Exit::Success;
    for file in &files {
        let mut project = Project::default();
        let exit = match project.read(file, terminal) {
            Ok(id) => {
                project.compile(id, library);
                project.report(arguments.error_format, terminal)
            }
            Err(exit) => exit,
        };
        if exit.code() > worst.code() {
            worst = exit;
        }
    }
    worst
}
