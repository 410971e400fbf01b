//! `weir graph`: the graph of a program as an outline, as Graphviz source, or as an SVG image; its regions; its passes.

use weir_draw::{DetailLevel, Drawing};

use crate::commands::arguments::{GraphArguments, GraphFormat};
use crate::terminal::Terminal;
use crate::{Exit, Library, plan_file, project};

mod passes;

/// Draws a program, or prints what passes make of it.
pub(crate) fn graph(arguments: &GraphArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    if arguments.passes {
        return terminal.write(arguments.output.as_deref(), &passes::list());
    }
    if arguments.ir.is_some() || arguments.after.is_some() || arguments.time_passes {
        return print(arguments, library, terminal);
    }
    if arguments.regions {
        return regions(arguments, library, terminal);
    }
    draw(arguments, library, terminal)
}

/// Prints the regions of a program.
fn regions(arguments: &GraphArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    let program = match project::program(&arguments.file, library, terminal) {
        Ok(program) => program,
        Err(exit) => return exit,
    };
    match weir_runtime::regions(&program, library) {
        Ok(text) => terminal.write(arguments.output.as_deref(), &text),
        Err(error) => terminal.fail(Exit::Failure, &error.to_string(), &[]),
    }
}

/// Prints a program as it is between two passes, or how long they take.
fn print(arguments: &GraphArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    let program = match project::expressions(&arguments.file, library, terminal) {
        Ok(program) => program,
        Err(exit) => return exit,
    };
    if arguments.time_passes {
        return terminal.write(arguments.output.as_deref(), &passes::timed(&program, library));
    }
    match passes::printed(&program, library, arguments.ir, arguments.after.as_deref()) {
        Ok(text) => terminal.write(arguments.output.as_deref(), &text),
        Err(message) => terminal.fail(Exit::Usage, &message, &["`weir graph --passes` lists the passes"]),
    }
}

fn draw(arguments: &GraphArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    if arguments.fold && matches!(arguments.format, GraphFormat::Text) {
        let hint = "add `--format svg` or `--format dot`";
        return terminal.fail(Exit::Usage, "`--fold` draws pictures, and the outline is none", &[hint]);
    }
    let program = match project::program(&arguments.file, library, terminal) {
        Ok(program) => program,
        Err(exit) => return exit,
    };
    let plan = match plan_file::read(&arguments.file, arguments.plan.as_deref(), &program, terminal) {
        Ok(read) => read.map(|(_, plan)| plan),
        Err(exit) => return exit,
    };
    let detail = match (arguments.all, arguments.fold) {
        (true, _) => DetailLevel::Everything,
        (false, true) => DetailLevel::FoldedFns,
        (false, false) => DetailLevel::Folded,
    };
    let drawing = Drawing { program: &program, library: Some(library), plan: plan.as_ref(), detail };
    let text = match arguments.format {
        GraphFormat::Text => weir_draw::outline(&drawing),
        GraphFormat::Dot => weir_draw::dot(&drawing),
        GraphFormat::Svg => match weir_draw::svg(&drawing) {
            Ok(text) => text,
            Err(error) => {
                return terminal.fail(Exit::Failure, &error.to_string(), &["`--format dot` has no size limit"]);
            }
        },
    };
    terminal.write(arguments.output.as_deref(), &text)
}
