//! `weir new`: creates a folder with a working service, or with `--rust` a Cargo project with host functions.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Exit;
use crate::commands::arguments::NewArguments;
use crate::terminal::Terminal;

const SERVICE: &str = include_str!("../../templates/main.weir");
const SERVICE_WITH_FUNCTIONS: &str = include_str!("../../templates/rust.weir");
const FUNCTIONS: &str = include_str!("../../examples/words.rs");
const CARGO: &str = include_str!("../../templates/Cargo.toml.template");
/// Source folder of this command. A new Cargo project depends on it if it exists.
const THIS_CRATE: &str = env!("CARGO_MANIFEST_DIR");
/// Maximum length of a project name, as in Cargo's registry.
const NAME_CHARACTERS_MAX: usize = 64;

/// Creates the folder, and prints the next steps.
pub(crate) fn new(arguments: &NewArguments, terminal: &mut Terminal) -> Exit {
    let name = match name(&arguments.path) {
        Ok(name) => name,
        Err((message, hint)) => return terminal.fail(Exit::Usage, &message, &[hint]),
    };
    let files =
        if arguments.rust { files_with_rust(&name) } else { vec![("main.weir", SERVICE.replace("NAME", &name))] };
    match write(&arguments.path, &files) {
        Ok(()) => terminal.print(&next_steps(arguments, &files, terminal)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let message = format!("`{}` already exists", arguments.path.display());
            terminal.fail(Exit::Environment, &message, &["choose another name"])
        }
        Err(error) => {
            terminal.fail(Exit::Environment, &format!("cannot create `{}`: {error}", arguments.path.display()), &[])
        }
    }
}

/// Returns the name of the service: the last component of the path as an identifier.
fn name(path: &Path) -> Result<String, (String, &'static str)> {
    let last = path.file_name().map(|name| name.to_string_lossy().replace('-', "_")).unwrap_or_default();
    let begins = last.starts_with(|first: char| first.is_ascii_lowercase());
    let goes_on = last.chars().all(|other| other.is_ascii_lowercase() || other.is_ascii_digit() || other == '_');
    let message = format!("`{}` is not a valid service name", path.display());
    if begins && goes_on && last.len() <= NAME_CHARACTERS_MAX {
        return if is_taken(&last) {
            Err((message, "the language or the new program uses this word"))
        } else {
            Ok(last)
        };
    }
    Err((message, "a name begins with a lower-case letter and contains lower-case letters, digits, `-` and `_`"))
}

/// Returns whether the word is reserved, or a module or `fn` of the new program.
fn is_taken(name: &str) -> bool {
    let service = SERVICE.replace("NAME", name);
    let is_reserved = !weir_syntax::parse(weir_syntax::SourceId(0), &service).diagnostics.is_empty();
    is_reserved || ["http", "words", "greeting"].contains(&name)
}

fn files_with_rust(name: &str) -> Vec<(&'static str, String)> {
    let here = Path::new(THIS_CRATE).is_dir();
    let weir = if here { format!("{{ path = {THIS_CRATE:?} }}") } else { format!("{:?}", env!("CARGO_PKG_VERSION")) };
    vec![
        ("Cargo.toml", CARGO.replace("NAME", name).replace("WEIR", &weir)),
        ("src/main.rs", FUNCTIONS.to_owned()),
        ("main.weir", SERVICE_WITH_FUNCTIONS.replace("NAME", name)),
        (".gitignore", "/target\n".to_owned()),
    ]
}

/// Writes the files into a new folder.
fn write(folder: &Path, files: &[(&str, String)]) -> io::Result<()> {
    fs::create_dir(folder)?;
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, text)?;
    }
    Ok(())
}

fn next_steps(arguments: &NewArguments, files: &[(&str, String)], terminal: &Terminal) -> String {
    let paint = terminal.output();
    let folder = &arguments.path;
    let mut text = format!("created {} with {}\n\n", paint.bold(&folder.display().to_string()), list(files));
    let program = folder.join("main.weir");
    let (run, try_it) = if arguments.rust {
        let manifest: PathBuf = folder.join("Cargo.toml");
        let run = format!("cargo run --manifest-path {} -- run {}", manifest.display(), program.display());
        (run, "curl 'http://127.0.0.1:8080/count/la?text=la+li+la'")
    } else {
        (format!("weir run {}", program.display()), "curl http://127.0.0.1:8080/hello/river")
    };
    text.push_str(&format!("  {}\n  {}\n", paint.green(&run), paint.green(try_it)));
    text
}

fn list(files: &[(&str, String)]) -> String {
    files.iter().map(|(path, _)| *path).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_new_program_could_not_have_are_refused() {
        for taken in ["for", "http", "words", "greeting", "Shop", "1st"] {
            assert!(name(Path::new(taken)).is_err(), "{taken}");
        }
        assert_eq!(name(Path::new("here/my-shop")), Ok("my_shop".to_owned()));
    }
}
