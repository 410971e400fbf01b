//! Module files on disk: those of a program's folder, and those of the libraries that the program declares.
//!
//! The folder of a program is the nearest one above the file that has a `main.weir`, or the folder of the file. Nothing
//! outside of the folders is read: a link that leads out of them is refused.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use weir_compile::{ModuleFile, ModuleFiles, ModulePlace, library_items};
use weir_syntax::SourceId;
use weir_syntax::ast::ItemKind;

use crate::programs::{MAIN, folder, is_standard_input};

/// Maximum number of folders above a file that are searched for the main file.
const FOLDERS_ABOVE_MAX: usize = 16;

/// The module files of one program.
pub(crate) struct FolderFiles {
    /// The folder of the program, as diagnostics show it.
    folder: PathBuf,
    /// The files of the program's own folder that have been read, as canonical paths.
    pub(crate) read: Vec<PathBuf>,
    /// The libraries that the main file declares, if the program is another file.
    libraries: BTreeMap<String, String>,
    /// The texts of files that an editor has open, by canonical path.
    open: BTreeMap<PathBuf, String>,
    /// All module files that the program names, as far as they may exist.
    pub(crate) named: Vec<PathBuf>,
}

impl FolderFiles {
    /// Returns the module files of the program to which a file belongs. A file without a main file above may be a module of
    /// a library somewhere below one of these folders ([`folder_of_library`]).
    pub(crate) fn of(file: &Path, roots: &[PathBuf]) -> Self {
        let folder = match main_file(file) {
            None if !is_standard_input(file) => folder_of_library(file, roots),
            _ => folder_of_program(file),
        };
        let main = folder.join(MAIN);
        let is_main = file.file_name().is_some_and(|name| name == MAIN) || is_standard_input(file);
        let libraries = if is_main { BTreeMap::new() } else { declared_libraries(&main) };
        FolderFiles { folder, read: Vec::new(), libraries, open: BTreeMap::new(), named: Vec::new() }
    }
}

impl FolderFiles {
    /// Returns the files with the texts of those that an editor has open, by canonical path.
    #[cfg(feature = "tools")]
    pub(crate) fn with_open(self, open: BTreeMap<PathBuf, String>) -> Self {
        FolderFiles { open, ..self }
    }
}

impl FolderFiles {
    /// Returns a file of a folder that an editor has open and that has not been saved yet.
    fn unsaved(&self, file: &Path, root: &Path) -> ModuleFile {
        let path = if self.open.is_empty() { None } else { canonical_or_new(file) };
        match path.filter(|path| path.starts_with(root)).and_then(|path| self.open.get(&path)) {
            Some(text) => ModuleFile::Found { name: file.display().to_string(), text: text.clone() },
            None => ModuleFile::Missing,
        }
    }
}

impl ModuleFiles for FolderFiles {
    fn read(&mut self, place: &ModulePlace<'_>) -> ModuleFile {
        let folder = place.library.map_or_else(|| self.folder.clone(), |path| self.folder.join(path));
        let Ok(root) = folder.canonicalize() else {
            return ModuleFile::Refused(format!("the folder `{}` of the library cannot be read", folder.display()));
        };
        let mut file = place.names.iter().fold(folder, |path, name| path.join(name));
        file.set_extension("weir");
        self.named.push(file.clone());
        let canonical = match file.canonicalize() {
            Ok(canonical) => canonical,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.unsaved(&file, &root),
            Err(error) => return ModuleFile::Refused(error.to_string()),
        };
        if !canonical.starts_with(&root) {
            let folder = root.display();
            return ModuleFile::Refused(format!("`{}` is a link that leads out of `{folder}`", file.display()));
        }
        let name = file.strip_prefix(".").unwrap_or(&file).display().to_string();
        let text = self.open.get(&canonical).cloned().map_or_else(|| text_of(&canonical), Ok);
        match text {
            Ok(text) => {
                if place.library.is_none() {
                    self.read.push(canonical);
                }
                ModuleFile::Found { name, text }
            }
            Err(why) => ModuleFile::Refused(format!("`{name}` {why}")),
        }
    }

    fn library(&mut self, name: &str) -> Option<String> {
        self.libraries.get(name).cloned()
    }
}

/// Returns the canonical path of a file, which need not exist: that of the nearest folder above it that exists, and the names
/// below.
pub(crate) fn canonical_or_new(file: &Path) -> Option<PathBuf> {
    // A name of the text cannot lead out of the folder that exists.
    let is_plain = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
    let found = file.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let (above, canonical) = found?;
    let below = file.strip_prefix(above).ok()?;
    is_plain(below).then(|| if below.as_os_str().is_empty() { canonical } else { canonical.join(below) })
}

/// Returns the libraries that a main file declares; none if it cannot be read.
fn declared_libraries(main: &Path) -> BTreeMap<String, String> {
    let Ok(text) = text_of(main) else { return BTreeMap::new() };
    if !text.lines().any(|line| line.starts_with("library ")) {
        return BTreeMap::new();
    }
    let tree = weir_syntax::parse(SourceId(0), &text).tree;
    library_items(tree.items.iter()).map(|found| (found.name.to_string(), found.path.to_string())).collect()
}

/// Returns the text of a file, or the reason why it is none.
fn text_of(file: &Path) -> Result<String, String> {
    const BYTES_MAX: u64 = weir_syntax::SOURCE_BYTES_MAX as u64;
    let mut bytes = Vec::new();
    let kind = std::fs::metadata(file).map_err(|error| format!("cannot be read: {error}"))?.file_type();
    if !kind.is_file() {
        return Err("is no regular file".to_owned());
    }
    let opened = File::open(file).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes));
    opened.map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(format!("has more than {BYTES_MAX} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| format!("is not UTF-8 at byte {}", error.utf8_error().valid_up_to()))
}

/// Returns the folder of the program to which a file belongs.
pub(crate) fn folder_of_program(file: &Path) -> PathBuf {
    let own = folder(file);
    if is_standard_input(file) || file.file_name().is_some_and(|name| name == MAIN) {
        return own;
    }
    let Ok(whole) = own.canonicalize() else { return own };
    let mut above = whole.ancestors().take(FOLDERS_ABOVE_MAX).enumerate();
    match above.find(|(_, folder)| folder.join(MAIN).is_file()) {
        Some((0, _)) | None => own,
        // A path with `..` has other ancestors than the folder.
        Some((_, folder)) if own.components().any(|part| part == Component::ParentDir) => folder.to_owned(),
        Some((levels, _)) => match own.ancestors().nth(levels).filter(|_| own.is_absolute()) {
            Some(folder) => folder.to_owned(),
            None => (0..levels).fold(own, |path, _| path.join("..")),
        },
    }
}

/// Returns the nearest folder in which most of the modules that the file uses are found: its own one, or one above it, up to
/// the first of the roots that contains it.
fn folder_of_library(file: &Path, roots: &[PathBuf]) -> PathBuf {
    let own = folder(file);
    let Some(root) = roots.iter().find(|root| own.starts_with(root)) else { return own };
    let used = used_modules(file);
    let found = |folder: &Path| used.iter().filter(|module| folder.join(module).is_file()).count();
    let above = own.ancestors().take_while(|folder| folder.starts_with(root)).take(FOLDERS_ABOVE_MAX);
    // The last of several equal ones is the nearest.
    let folders: Vec<&Path> = above.collect();
    folders.into_iter().rev().max_by_key(|folder| found(folder)).map_or_else(|| own.clone(), Path::to_owned)
}

/// Returns the paths of the modules that a file uses, relative to the folder of its program.
fn used_modules(file: &Path) -> Vec<PathBuf> {
    let Ok(text) = text_of(file) else { return Vec::new() };
    let tree = weir_syntax::parse(SourceId(0), &text).tree;
    let used =
        tree.items.iter().filter_map(|item| if let ItemKind::Use(used) = &item.kind { Some(used) } else { None });
    let modules = used.flat_map(|used| &used.modules);
    modules.map(|module| PathBuf::from(module.path().replace('.', "/")).with_extension("weir")).collect()
}

/// Returns the main file of the program to which a file belongs.
pub(crate) fn main_file(file: &Path) -> Option<PathBuf> {
    Some(folder_of_program(file).join(MAIN)).filter(|main| main.is_file())
}
