//! `weir doc`: documentation of a program (services, types and functions with their effects) or of the library's
//! modules, as one HTML page; and of one module or function of the library, as text.
//!
//! The page is static: it has no scripts and loads nothing.

mod changed_columns;
mod library;
mod markdown;
mod page;
mod program;
mod table_uses;
mod text;

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::commands::arguments::DocArguments;
use crate::programs::name_of;
use crate::project::Project;
use crate::terminal::{ErrorFormat, Terminal};
use crate::{Exit, Library};

/// Writes the page.
pub(crate) fn doc(arguments: &DocArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    match &arguments.file {
        None if arguments.output.is_none() && !arguments.open && io::stdout().is_terminal() => {
            return terminal.print(&text::overview(library));
        }
        Some(name) if !name.exists() && !arguments.open => {
            match name.to_str().and_then(|name| text::of_name(name, library)) {
                Some(Ok(text)) => return terminal.write(arguments.output.as_deref(), &text),
                Some(Err(message)) => {
                    let module = name.to_str().and_then(|name| name.split('.').next()).unwrap_or_default();
                    let hint = format!("`weir doc {module}` lists what it has");
                    return terminal.fail(Exit::Environment, &message, &[&hint]);
                }
                None => {}
            }
        }
        _ => {}
    }
    let page = match &arguments.file {
        None => library::page(library),
        Some(file) => match of_program(file, library, terminal) {
            Ok(page) => page,
            Err(exit) => return exit,
        },
    };
    match (&arguments.output, arguments.open) {
        (output, false) => terminal.write(output.as_deref(), &page.html()),
        (Some(output), true) => match terminal.write(Some(output), &page.html()) {
            Exit::Success => open(output, terminal),
            exit => exit,
        },
        (None, true) => match temporary(&page.html()) {
            Ok(path) => open(&path, terminal),
            Err(error) => terminal.fail(Exit::Environment, &format!("cannot write a temporary file: {error}"), &[]),
        },
    }
}

/// Writes the page to a new temporary file.
fn temporary(page: &str) -> io::Result<PathBuf> {
    let (folder, process) = (std::env::temp_dir(), std::process::id());
    let mut number = 0;
    loop {
        let path = folder.join(format!("weir-doc-{process}-{number}.html"));
        // A file that is there already was left by an earlier process, or is a link that another user has made.
        match File::options().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            file => {
                file?.write_all(page.as_bytes())?;
                return Ok(path);
            }
        }
    }
}

/// The program that opens a file on this system.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else if cfg!(windows) {
    "explorer"
} else {
    "xdg-open"
};

/// Opens the page in the browser.
fn open(path: &Path, terminal: &mut Terminal) -> Exit {
    let browser = std::env::var_os("BROWSER").filter(|browser| !browser.is_empty()).unwrap_or_else(|| OPENER.into());
    let reason = match Command::new(&browser).arg(path).status() {
        Ok(status) if status.success() => return Exit::Success,
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    let message = format!("cannot open the page with `{}`: {reason}", browser.display());
    let hint = format!("the page is `{}`; the variable `BROWSER` names another program", path.display());
    terminal.fail(Exit::Environment, &message, &[&hint])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_page_goes_beside_one_that_is_there() {
        let paths = ["first", "second"].map(|page| temporary(page).unwrap());
        let pages = paths.each_ref().map(|path| std::fs::read_to_string(path).unwrap());
        paths.iter().for_each(|path| std::fs::remove_file(path).unwrap());
        assert_eq!(pages, ["first", "second"]);
    }
}
