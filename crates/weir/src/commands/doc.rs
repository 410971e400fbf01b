//! `weir doc`: documentation of a program (services, types and functions with their effects) or of the library's
//! modules, as one HTML page.
//!
//! The page is static: it has no scripts and loads nothing.

mod library;
mod markdown;
mod page;
mod program;

use std::path::Path;

use crate::arguments::ErrorFormat;
use crate::commands::arguments::DocArguments;
use crate::programs::name_of;
use crate::project::Project;
use crate::terminal::Terminal;
use crate::{Exit, Library};

/// Writes the page.
pub(crate) fn doc(arguments: &DocArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    let page = match &arguments.file {
        None => library::page(library),
        Some(file) => match of_program(file, library, terminal) {
            Ok(page) => page,
            Err(exit) => return exit,
        },
    };
    terminal.write(arguments.output.as_deref(), &page.html())
}

fn of_program(path: &Path, library: &Library, terminal: &mut Terminal) -> Result<page::DocPage, Exit> {
    let mut project = Project::default();
    let id = project.read(path, terminal)?;
    let checked = project.check(id, library);
    let exit = project.report(ErrorFormat::Human, terminal);
    match &checked.expr {
        Some(expr) if exit == Exit::Success => {
            Ok(program::page(&name_of(path), &checked, &weir_ir::lower(expr, library), library))
        }
        _ => Err(exit),
    }
}
