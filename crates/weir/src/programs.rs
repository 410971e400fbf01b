//! Program arguments: a file is a program, a folder contains programs.
//!
//! A command for one program reads the `main.weir` of a folder; a command for several reads all programs below the
//! folder. Hidden folders and Cargo's `target` are skipped, and links to folders are not followed.

#[cfg(feature = "tools")]
mod below_folders;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::Exit;
use crate::terminal::Terminal;
#[cfg(feature = "tools")]
pub(crate) use below_folders::{expand, for_each};

/// Argument that means standard input.
const STANDARD_INPUT: &str = "-";
/// Main program of a folder.
pub(crate) const MAIN: &str = "main.weir";
/// Returns true if the path means standard input.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == STANDARD_INPUT
}

/// Returns the folder of a program, which its files are relative to.
pub(crate) fn folder(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty() && !is_standard_input(path));
    parent.unwrap_or(Path::new(".")).to_owned()
}

/// Returns the name of a program: the name of its file, or of its folder if the file is `main.weir`.
pub(crate) fn name_of(file: &Path) -> String {
    let stem = file.file_stem().and_then(OsStr::to_str).unwrap_or("program");
    if is_standard_input(file) {
        return "standard-input".to_owned();
    }
    if stem != "main" {
        return stem.to_owned();
    }
    let whole = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folder = whole.parent().and_then(Path::file_name).and_then(OsStr::to_str);
    folder.unwrap_or(stem).to_owned()
}

/// Returns the parser of an argument that names one program.
pub(crate) fn program_argument() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(|named| main_program(PathBuf::from(named)))
}

/// Returns the main program of a folder; any other path stays as it is.
fn main_program(named: PathBuf) -> PathBuf {
    let main = if named == Path::new(".") { PathBuf::from(MAIN) } else { named.join(MAIN) };
    if named.is_dir() && main.is_file() { main } else { named }
}

/// Reports a file that cannot be read.
pub(crate) fn cannot_read(path: &Path, error: &io::Error, terminal: &mut Terminal) -> Exit {
    let name = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            let nearby = programs_in(&folder(path));
            let hint = match nearby.as_slice() {
                [] => "check the path".to_owned(),
                some => format!("programs in this folder: {}", some.join(", ")),
            };
            terminal.fail(Exit::Environment, &format!("no such file: `{name}`"), &[&hint])
        }
        io::ErrorKind::IsADirectory => {
            let programs = programs_in(path);
            let hint = match programs.first() {
                Some(first) => format!("did you mean `{first}`?"),
                None => "`weir new NAME` creates a folder with a program".to_owned(),
            };
            terminal.fail(Exit::Environment, &format!("the folder `{name}` has no `main.weir`"), &[&hint])
        }
        _ => terminal.fail(Exit::Environment, &format!("cannot read `{name}`: {error}"), &[]),
    }
}

/// Returns the first few programs in a folder.
fn programs_in(folder: &Path) -> Vec<String> {
    /// A longer list would not help.
    const SHOWN_MAX: usize = 4;
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|ending| ending == "weir"));
    let mut names: Vec<String> =
        paths.map(|path| path.strip_prefix("./").unwrap_or(&path).display().to_string()).collect();
    names.sort();
    names.truncate(SHOWN_MAX);
    names
}

/// Returns the file of a program's tables: in `data`, or beside the program.
pub(crate) fn database_of(file: &Path, data: Option<&Path>) -> PathBuf {
    let folder = data.map_or_else(|| folder(file), Path::to_owned);
    folder.join(format!("{}.db", name_of(file)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::name_of;

    #[test]
    fn a_program_is_called_after_its_file_or_its_folder() {
        assert_eq!(name_of(Path::new("shop.weir")), "shop");
        assert_eq!(name_of(Path::new("/nowhere/shop/main.weir")), "shop");
        assert_eq!(name_of(Path::new("-")), "standard-input");
    }
}
