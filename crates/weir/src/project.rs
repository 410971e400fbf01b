//! Project: source files, read and compiled, with their diagnostics.

#[cfg(feature = "tools")]
mod for_tools;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use weir_compile::{CheckCache, ProgramFiles};
use weir_host::Library;
use weir_ir::graph::Program;
use weir_syntax::{Diagnostic, SourceId, Sources};

use crate::Exit;
use crate::module_files::FolderFiles;
use crate::programs::{cannot_read, is_standard_input};
use crate::terminal::{ErrorFormat, Terminal};
#[cfg(feature = "tools")]
pub(crate) use for_tools::{expressions, program};

/// Maximum number of bytes read from standard input; a longer text is not a valid source file.
const INPUT_BYTES_MAX: u64 = weir_syntax::SOURCE_BYTES_MAX as u64 + 1;

/// Source files and diagnostics of a command.
#[derive(Default)]
pub(crate) struct Project {
    pub(crate) sources: Sources,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// The folders that the command names, below which there may be libraries without a main file.
    roots: Vec<PathBuf>,
    /// The paths of the main files, by their ids.
    paths: Vec<PathBuf>,
    /// The module files that were read, as canonical paths, without those of libraries.
    pub(crate) modules: Vec<PathBuf>,
    /// All module files that the programs name, as far as they may exist.
    pub(crate) named_modules: Vec<PathBuf>,
}

impl Project {
    /// Reads a file into the project. A text that is too long or not UTF-8 becomes a diagnostic.
    ///
    /// # Errors
    /// Reports a file that cannot be read, and returns the exit code.
    pub(crate) fn read(&mut self, path: &Path, terminal: &mut Terminal) -> Result<SourceId, Exit> {
        let (name, bytes) = read(path).map_err(|error| cannot_read(path, &error, terminal))?;
        let (id, refusal) = self.sources.add_bytes(name, bytes);
        self.diagnostics.extend(refusal);
        self.paths.push(path.to_owned());
        Ok(id)
    }

    /// Loads the modules of a program.
    fn load(&mut self, id: SourceId, library: &Library, cache: &mut CheckCache) -> ProgramFiles {
        let mut files = FolderFiles::of(&self.paths[id.0 as usize], &self.roots);
        let program = ProgramFiles::load_again(id, self.sources.file_mut(id), library, &mut files, &mut cache.trees);
        self.modules.extend(files.read);
        self.named_modules.extend(files.named);
        program
    }

    /// Compiles a file; returns `None` if it has errors.
    pub(crate) fn compile(&mut self, id: SourceId, library: &Library) -> Option<Program> {
        self.compile_again(id, library, &mut CheckCache::default())
    }

    /// Compiles a file again, with the cache of its state before an edit; returns `None` if it has errors.
    pub(crate) fn compile_again(&mut self, id: SourceId, library: &Library, cache: &mut CheckCache) -> Option<Program> {
        if self.has_errors() {
            return None;
        }
        let program = self.load(id, library, cache);
        let compiled = weir_compile::compile_again(program, self.sources.file(id), library, cache);
        self.diagnostics.extend(compiled.diagnostics);
        compiled.graph.filter(|_| !self.has_errors())
    }

    /// Returns true if there is an error.
    pub(crate) fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// Prints all diagnostics, and returns the exit status.
    pub(crate) fn report(&self, format: ErrorFormat, terminal: &mut Terminal) -> Exit {
        let text = match format {
            ErrorFormat::Human => {
                weir_syntax::render_all(&self.sources, &self.diagnostics, terminal.messages().style())
            }
            ErrorFormat::Json => {
                let lines = self
                    .diagnostics
                    .iter()
                    .map(|diagnostic| weir_syntax::render_json(&self.sources, diagnostic) + "\n");
                lines.collect()
            }
        };
        terminal.eprint(&text);
        if self.has_errors() { Exit::Failure } else { Exit::Success }
    }
}

/// Reads the name and the bytes of a file or of standard input.
pub(crate) fn read(path: &Path) -> io::Result<(String, Vec<u8>)> {
    if is_standard_input(path) {
        let mut bytes = Vec::new();
        io::stdin().lock().take(INPUT_BYTES_MAX).read_to_end(&mut bytes)?;
        return Ok(("standard input".to_owned(), bytes));
    }
    let not_regular = not_a_regular_file(path)?;
    not_regular.map_or_else(|| Ok((path.display().to_string(), std::fs::read(path)?)), |why| Err(io::Error::other(why)))
}

/// Returns the reason why a file is none to read programs from: reading a device or a pipe may never end. A folder is for the
/// caller to report.
///
/// # Errors
/// Fails if the file does not exist.
pub(crate) fn not_a_regular_file(path: &Path) -> io::Result<Option<&'static str>> {
    let kind = std::fs::metadata(path)?.file_type();
    let reason = "it is no regular file; `-` reads the standard input";
    Ok((!kind.is_file() && !kind.is_dir()).then_some(reason))
}
