//! The programs below folders, for commands that take any number of them.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::{MAIN, cannot_read};
use crate::Exit;
use crate::terminal::Terminal;

/// File extension of programs.
const ENDING: &str = "weir";
/// Build folder of Cargo.
const BUILT: &str = "target";
/// Maximum depth of nested folders.
const DEPTH_MAX: usize = 32;

/// Returns all named programs in the given order, those of a folder sorted by name.
///
/// # Errors
/// Reports a folder that cannot be read or has no program, and returns the exit code.
pub(crate) fn expand(named: &[PathBuf], terminal: &mut Terminal) -> Result<Vec<PathBuf>, Exit> {
    let mut programs = Vec::new();
    for path in named {
        if !path.is_dir() {
            programs.push(path.clone());
            continue;
        }
        let before = programs.len();
        collect_programs(path, DEPTH_MAX, &mut programs).map_err(|error| cannot_read(path, &error, terminal))?;
        if programs.len() == before {
            let message = format!("no program in the folder `{}`", path.display());
            return Err(terminal.fail(
                Exit::Environment,
                &message,
                &["`weir new NAME` creates a folder with a program"],
            ));
        }
    }
    Ok(programs)
}

/// Runs `act` on each of the named programs, and returns the worst exit status.
pub(crate) fn for_each(
    named: &[PathBuf],
    terminal: &mut Terminal,
    mut act: impl FnMut(&Path, &mut Terminal) -> Exit,
) -> Exit {
    let programs = match expand(named, terminal) {
        Ok(programs) => programs,
        Err(exit) => return exit,
    };
    let exits = programs.iter().map(|program| act(program, terminal));
    exits.max_by_key(|exit| exit.code()).unwrap_or(Exit::Success)
}

/// Collects the programs of a folder, then those of its subfolders.
fn collect_programs(folder: &Path, depth: usize, programs: &mut Vec<PathBuf>) -> io::Result<()> {
    let (mut own, mut folders) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let path = path.strip_prefix("./").map(Path::to_owned).unwrap_or(path);
        if kind.is_dir() && is_searched(&path) {
            folders.push(path);
        } else if path.extension().is_some_and(|ending| ending == ENDING) && path.is_file() {
            own.push(path);
        }
    }
    // The main file comes first: it leads to the modules.
    own.sort_by_key(|path| (path.file_name() != Some(OsStr::new(MAIN)), path.clone()));
    folders.sort();
    programs.append(&mut own);
    let deeper = if depth == 0 { &[] } else { folders.as_slice() };
    deeper.iter().try_for_each(|folder| collect_programs(folder, depth - 1, programs))
}

fn is_searched(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default();
    name != BUILT && !name.as_encoded_bytes().starts_with(b".")
}
