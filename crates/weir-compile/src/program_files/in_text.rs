//! Files of a program in one text, for examples in documentation and tests.
//!
//! A comment that is the name of a file, such as `// billing/invoices.weir`, begins that file. A text that does not begin
//! with one is the main file alone. The files of a library stand under its path: `// ../common/dates.weir`.

use weir_host::Library;
use weir_syntax::{SourceFile, Sources};

use super::{ModuleFile, ModuleFiles, ModulePlace, ProgramFiles};

/// Files in one text.
struct FilesInText<'t> {
    files: Vec<(&'t str, &'t str)>,
}

impl ModuleFiles for FilesInText<'_> {
    fn read(&mut self, place: &ModulePlace<'_>) -> ModuleFile {
        let folder = place.library.map_or_else(String::new, |library| format!("{library}/"));
        let name = format!("{folder}{}.weir", place.names.join("/"));
        let found = self.files.iter().find(|(known, _)| *known == name);
        found.map_or(ModuleFile::Missing, |(_, text)| ModuleFile::Found { name, text: (*text).to_owned() })
    }
}

impl ProgramFiles {
    /// Loads the program whose files are in one text, and adds it to `sources`. `name` is that of a main file without a
    /// name.
    #[must_use]
    pub fn in_text(name: &str, text: &str, library: &Library, sources: &mut Sources) -> Self {
        let mut files = FilesInText { files: sections(text) };
        let main = if files.files.is_empty() { (name, text) } else { files.files.remove(0) };
        let source = sources.add(SourceFile::new(main.0, main.1));
        ProgramFiles::load(source, sources.file_mut(source), library, &mut files)
    }
}

/// Returns the names and the texts of the files.
fn sections(text: &str) -> Vec<(&str, &str)> {
    let mut files: Vec<(&str, usize, usize)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let named = line.trim_end().strip_prefix("// ").filter(|name| name.ends_with(".weir") && !name.contains(' '));
        if let Some(name) = named {
            files.push((name, at + line.len(), text.len()));
            let count = files.len();
            if count > 1 {
                files[count - 2].2 = at;
            }
        } else if files.is_empty() {
            return Vec::new();
        }
        at += line.len();
    }
    files.into_iter().map(|(name, start, end)| (name, &text[start..end])).collect()
}
