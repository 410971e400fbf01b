//! The part of a project that only commands other than `run` need.

use std::path::{Path, PathBuf};

use weir_compile::{CheckCache, Checked};
use weir_host::Library;
use weir_ir::expr;
use weir_ir::graph::Program;
use weir_syntax::{SourceFile, SourceId};

use super::Project;
use crate::Exit;
use crate::terminal::{ErrorFormat, Terminal};

/// Compiles the program in a file.
///
/// # Errors
/// Prints the diagnostics, and returns the exit code.
pub(crate) fn program(path: &Path, library: &Library, terminal: &mut Terminal) -> Result<Program, Exit> {
    let mut project = Project::default();
    let id = project.read(path, terminal)?;
    project.compile(id, library).ok_or_else(|| project.report(ErrorFormat::Human, terminal))
}

/// Returns the program of a file in expressions, as the checker leaves it behind, if it is right.
///
/// # Errors
/// Shows what is wrong, and gives the exit code.
pub(crate) fn expressions(path: &Path, library: &Library, terminal: &mut Terminal) -> Result<expr::Program, Exit> {
    let mut project = Project::default();
    let id = project.read(path, terminal)?;
    let program = (!project.has_errors()).then(|| project.check(id, library).expr).flatten();
    program.filter(|_| !project.has_errors()).ok_or_else(|| project.report(ErrorFormat::Human, terminal))
}

impl Project {
    /// Returns a project whose files belong together if they are below one of the named folders.
    pub(crate) fn below(named: &[PathBuf]) -> Project {
        Project { roots: named.iter().filter(|path| path.is_dir()).cloned().collect(), ..Project::default() }
    }

    /// Adds a text as that of a file.
    pub(crate) fn add(&mut self, path: &Path, text: &str) -> SourceId {
        self.paths.push(path.to_owned());
        self.sources.add(SourceFile::new(path.display().to_string(), text))
    }

    /// Checks a program with all its modules.
    pub(crate) fn check(&mut self, id: SourceId, library: &Library) -> Checked {
        let cache = &mut CheckCache::default();
        let program = self.load(id, library, cache);
        let checked = weir_compile::check_program(program, self.sources.file(id), library, cache);
        self.diagnostics.extend(checked.diagnostics.iter().cloned());
        checked
    }
}
