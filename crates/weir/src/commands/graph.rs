//! `weir graph`: a program's graph as an outline, for Graphviz, or as a picture.

use weir_draw::{DetailLevel, Drawing};

use crate::arguments::{GraphArguments, GraphFormat};
use crate::terminal::Terminal;
use crate::{Exit, Library, plan_file, project};

/// Draws a program.
pub(crate) fn graph(arguments: &GraphArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    let program = match project::program(&arguments.file, library, terminal) {
        Ok(program) => program,
        Err(exit) => return exit,
    };
    let plan = match plan_file::read(&arguments.file, arguments.plan.as_deref(), &program, terminal) {
        Ok(read) => read.map(|(_, plan)| plan),
        Err(exit) => return exit,
    };
    let detail = if arguments.all { DetailLevel::Everything } else { DetailLevel::Folded };
    let drawing = Drawing { program: &program, library: Some(library), plan: plan.as_ref(), detail };
    let text = match arguments.format {
        GraphFormat::Text => weir_draw::outline(&drawing),
        GraphFormat::Dot => weir_draw::dot(&drawing),
        GraphFormat::Svg => match weir_draw::svg(&drawing) {
            Ok(text) => text,
            Err(error) => {
                return terminal.fail(Exit::Failure, &error.to_string(), &["`--format dot` has no such limit"]);
            }
        },
    };
    terminal.write(arguments.output.as_deref(), &text)
}
