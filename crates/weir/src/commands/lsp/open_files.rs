//! Open files: the program to which an open file belongs, with the texts of all open files in place of those on disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_host::Library;
use weir_ide::{CheckCache, Document};

use crate::module_files::{FolderFiles, canonical_or_new, main_file};

/// Returns the texts of open files, by canonical path. A new one need not have been saved.
pub(super) fn texts<'o>(open: impl Iterator<Item = (&'o str, &'o str)>) -> BTreeMap<PathBuf, String> {
    open.filter_map(|(address, text)| Some((canonical_or_new(&path_of(address)?)?, text.to_owned()))).collect()
}

/// Maximum number of programs whose caches are kept.
const PROGRAMS_MAX: usize = 8;

/// The caches of the programs that were checked last, each with the path of its main file. All open files of a program share
/// one.
#[derive(Default)]
pub(super) struct ProgramCaches {
    /// The program that was checked last is the last one.
    programs: Vec<(PathBuf, CheckCache)>,
}

impl ProgramCaches {
    /// Returns the cache of a program.
    fn of(&mut self, main: &Path) -> &mut CheckCache {
        let known = self.programs.iter().position(|(path, _)| path == main);
        let program = known.map_or_else(|| (main.to_owned(), CheckCache::default()), |at| self.programs.remove(at));
        if self.programs.len() == PROGRAMS_MAX {
            self.programs.remove(0);
        }
        self.programs.push(program);
        &mut self.programs.last_mut().expect("it was just added").1
    }
}

/// Checks the program of an open file: the one whose main file is in a folder above, if it uses the file, otherwise the file
/// itself.
pub(super) fn document(
    (address, text): (&str, &str),
    texts: BTreeMap<PathBuf, String>,
    library: &Arc<Library>,
    caches: &mut ProgramCaches,
) -> Document {
    let Some(path) = path_of(address) else {
        return Document::again(address, text, Arc::clone(library), caches.of(Path::new(address)));
    };
    let shown = path.display().to_string();
    if let Some(main) = main_file(&path).filter(|main| *main != path) {
        let text = main.canonicalize().ok().and_then(|main| texts.get(&main).cloned());
        let text = text.map(String::into_bytes).or_else(|| std::fs::read(&main).ok());
        let mut files = FolderFiles::of(&main, &[]).with_open(texts.clone());
        let name = main.display().to_string();
        let of_main = text.and_then(|text| {
            Document::of_program((&name, text), &mut files, |part| part == shown, Arc::clone(library), caches.of(&main))
        });
        if let Some(document) = of_main {
            return document;
        }
    }
    let mut files = FolderFiles::of(&path, &[]).with_open(texts);
    let own = Document::of_program((&shown, text.into()), &mut files, |_| true, Arc::clone(library), caches.of(&path));
    own.expect("a program has its main file")
}

/// Returns the path of a `file:` URI (RFC 8089).
fn path_of(address: &str) -> Option<PathBuf> {
    let encoded = address.strip_prefix("file://")?;
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let hex = (*first == b'%').then(|| behind.get(..2)).flatten();
        let decoded = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { &behind[2..] } else { behind };
    }
    let path = String::from_utf8(bytes).ok()?;
    Some(Path::new(&path).to_owned()).filter(|path| path.is_absolute())
}
