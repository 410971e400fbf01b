//! Rule: a type name means one thing in the workspace.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::LexError;

use crate::File;
use crate::source;

/// The files that declare each type name, except those of tests. A file that declares a name twice has it once: it
/// selects one of two definitions by a `cfg`.
///
/// # Errors
/// Fails if a file is not made of Rust tokens.
pub fn declarations(files: &[File]) -> Result<BTreeMap<String, BTreeSet<String>>, LexError> {
    let tests = test_modules(files);
    let mut declarations: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| !tests.iter().any(|test| file.path.starts_with(test))) {
        for found in source::scan(&file.text)?.types {
            declarations.entry(found.text).or_default().insert(file.path.clone());
        }
    }
    Ok(declarations)
}

/// The paths, without `.rs`, of modules that are compiled for tests only.
fn test_modules(files: &[File]) -> Vec<String> {
    let modules = files.iter().flat_map(|file| {
        let lines: Vec<&str> = file.text.lines().collect();
        let folder = folder_of_modules(&file.path);
        let tests = lines.windows(2).filter(|pair| pair[0].starts_with("#[cfg(") && pair[0].contains("test"));
        let names = tests.filter_map(|pair| pair[1].strip_prefix("mod ")?.strip_suffix(';'));
        names.map(|name| format!("{folder}/{name}.")).collect::<Vec<_>>()
    });
    let files: Vec<String> = modules.collect();
    let folders = files.iter().map(|file| format!("{}/", file.trim_end_matches('.')));
    folders.chain(files.clone()).collect()
}

/// The folder in which the modules of a file are: `src/` for its root, else the folder of the same name.
fn folder_of_modules(path: &str) -> &str {
    let module = path.trim_end_matches(".rs");
    ["/lib", "/main"].iter().find_map(|root| module.strip_suffix(root)).unwrap_or(module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_tests_do_not_count() {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let files = [
            file("x/src/lib.rs", "#[cfg(test)]\nmod model;\nstruct A;"),
            file("x/src/model.rs", "struct A;"),
            file("x/src/model/more.rs", "struct A;"),
            file("x/src/b.rs", "#[cfg(loom)]\nstruct B;\n#[cfg(not(loom))]\nstruct B;\nenum A {}"),
        ];
        let found = declarations(&files).expect("these are tokens");
        assert_eq!(found["A"], BTreeSet::from(["x/src/lib.rs".to_owned(), "x/src/b.rs".to_owned()]));
        assert_eq!(found["B"].len(), 1);
    }
}
