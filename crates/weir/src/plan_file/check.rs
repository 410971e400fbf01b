//! The check of the plan beside a program, for `weir check`.

use std::path::Path;

use weir_ir::graph::Program;
use weir_ir::plan::PlanProblem;

use super::rendered::rendered;
use super::{beside, no_plan, problems, text_of};
use crate::Exit;
use crate::terminal::{ErrorFormat, Terminal};

/// Checks the plan beside a program, and prints its errors and warnings.
pub(crate) fn check(
    program_path: &Path,
    program: &Program,
    (format, deny_warnings): (ErrorFormat, bool),
    terminal: &mut Terminal,
) -> Exit {
    let Some(path) = beside(program_path) else { return Exit::Success };
    let text = match text_of(&path) {
        Ok(text) => text,
        Err(error) => return no_plan(&path, &error, terminal),
    };
    let (_, problems) = problems(&text, program);
    terminal.eprint(&rendered(&problems, (&path, &text), format, terminal.messages()));
    let denied = deny_warnings && !problems.is_empty();
    if denied || problems.iter().any(PlanProblem::is_error) { Exit::Failure } else { Exit::Success }
}
