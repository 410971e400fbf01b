//! The files of a program: the main file, and the modules that it uses, directly or through others.
//!
//! A file is a module. `use billing.invoices` names the file `billing/invoices.weir` of the program's folder, or, if the
//! main file declares `library billing = "../billing"`, the file `invoices.weir` of that folder. In a library's files,
//! `use` names files of the same library. Modules of the standard library come first: a file cannot replace them.
//!
//! All files are laid one behind the other in one [`SourceFile`], so that one offset says the file too, and merged into one
//! tree. Files that an edit leaves as they are keep their trees ([`kept_trees`]).

mod circles;
mod in_text;
mod kept_trees;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use weir_host::{Library, Text};
use weir_syntax::ast::{FileIndex, Item, ItemKind, LibraryFolder, Tree, UsedModule};
use weir_syntax::{Code, Diagnostic, FilePlace, Parsed, SourceFile, SourceId, Span, parse_file};

use crate::parallel::in_parallel;
pub use kept_trees::KeptTrees;
use kept_trees::PlacedFile;
pub(crate) use kept_trees::fingerprint;

/// The maximum number of files of a program.
pub const FILES_MAX: usize = 4_096;

/// The minimum length of the files that are parsed together for which it pays to start threads.
const PARALLEL_BYTES_MIN: usize = 128 * 1024;

/// Reads the files of modules; the disk of the command, or the open documents of an editor.
pub trait ModuleFiles {
    /// Reads the file of a module.
    fn read(&mut self, place: &ModulePlace<'_>) -> ModuleFile;

    /// Returns the path of a library that the main file of the folder declares, if the program is another file.
    fn library(&mut self, _name: &str) -> Option<String> {
        None
    }
}

/// The place of a module's file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModulePlace<'p> {
    /// The path of the library that has it, as the program declares it; `None` for the folder of the program.
    pub library: Option<&'p str>,
    /// The names of its folders and its own name.
    pub names: Vec<&'p str>,
}

/// The file of a module, or the reason why there is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ModuleFile {
    /// The file was read.
    Found {
        /// The name that diagnostics show.
        name: String,
        /// The text.
        text: String,
    },
    /// There is no such file.
    Missing,
    /// The file exists and is not read; the reason, as a clause: "it is a link to a file outside of the folder".
    Refused(String),
}

/// A folder without modules, for a program of one file.
pub struct NoModules;

impl ModuleFiles for NoModules {
    fn read(&mut self, _: &ModulePlace<'_>) -> ModuleFile {
        ModuleFile::Missing
    }
}

/// The parsed files of a program.
pub struct ProgramFiles {
    pub(crate) source: SourceId,
    pub(crate) parsed: Parsed,
    pub(crate) modules: FileModules,
}

/// The modules of a program, by the files that they are.
#[derive(Default)]
pub(crate) struct FileModules {
    /// The offset at which each file begins.
    starts: Vec<u32>,
    /// The name of each module, with those of its folders; empty for the main file.
    names: Vec<Text>,
    /// The library of each module; empty for the folder of the program.
    libraries: Vec<Text>,
    indices: BTreeMap<Text, usize>,
    /// The fingerprint of the text of each file.
    contents: Vec<u64>,
    /// The modules whose absence has been reported.
    reported: BTreeSet<Text>,
}

impl FileModules {
    /// Returns the index of the file that has the byte at `offset`.
    pub(crate) fn index_at(&self, offset: u32) -> usize {
        if self.starts.len() < 2 { 0 } else { self.starts.partition_point(|start| *start <= offset).saturating_sub(1) }
    }

    /// Returns the offset at which a file begins.
    pub(crate) fn start(&self, file: usize) -> u32 {
        self.starts.get(file).copied().unwrap_or_default()
    }

    /// Returns the fingerprint of the text of a file.
    pub(crate) fn content(&self, file: usize) -> u64 {
        self.contents.get(file).copied().unwrap_or_default()
    }

    /// Returns the names of the modules, by file.
    pub(crate) fn names(&self) -> &[Text] {
        &self.names
    }

    /// Returns the name of the module that a file means by the path in its `use`.
    pub(crate) fn meant(&self, file: usize, path: &str) -> Text {
        match self.libraries.get(file) {
            Some(library) if !library.is_empty() => format!("{library}.{path}").into(),
            _ => path.into(),
        }
    }

    /// Returns the file of a module.
    pub(crate) fn file(&self, module: &str) -> Option<usize> {
        self.indices.get(module).copied()
    }

    /// Returns the path by which a file could use the module of the program with this last name, of those that other files
    /// use.
    pub(crate) fn loaded_module(&self, file: usize, name: &str) -> Option<&str> {
        let library = self.libraries.get(file)?;
        let paths = self.names.iter().enumerate().filter(|(at, _)| *at != file).filter_map(|(_, module)| match library
            .is_empty()
        {
            true => Some(module.as_str()),
            false => module.strip_prefix(library.as_str())?.strip_prefix('.'),
        });
        paths.into_iter().find(|path| path.rsplit('.').next() == Some(name))
    }

    /// Returns whether a file belongs to a library.
    pub(crate) fn is_of_library(&self, file: usize) -> bool {
        self.libraries.get(file).is_some_and(|library| !library.is_empty())
    }

    /// Returns whether the absence of a module has been reported.
    pub(crate) fn is_reported(&self, module: &str) -> bool {
        self.reported.contains(module)
    }

    fn add(&mut self, start: u32, content: u64, name: Text, library: Text) {
        if !name.is_empty() {
            self.indices.insert(name.clone(), self.names.len());
        }
        self.starts.push(start);
        self.contents.push(content);
        self.names.push(name);
        self.libraries.push(library);
    }
}

impl ProgramFiles {
    /// Parses a program of one file. `source` is its number in the caller's [`weir_syntax::Sources`].
    #[must_use]
    pub fn single(source: SourceId, file: &SourceFile) -> Self {
        Self::main_file(source, file, &mut KeptTrees::default())
    }

    fn main_file(source: SourceId, file: &SourceFile, trees: &mut KeptTrees) -> Self {
        let parsed = Parsed { tree: Tree::default(), diagnostics: Vec::new(), comments: Vec::new() };
        let mut program = ProgramFiles { source, parsed, modules: FileModules::default() };
        program.add_file(file, 0, (Text::default(), Text::default()), trees);
        program
    }

    /// Parses a program: its main file, which `file` has, and all modules that it uses, which are appended to `file`.
    #[must_use]
    pub fn load(source: SourceId, file: &mut SourceFile, library: &Library, files: &mut dyn ModuleFiles) -> Self {
        Self::load_again(source, file, library, files, &mut KeptTrees::default())
    }

    /// Parses a program again after an edit: only the files that have changed. The result is that of [`Self::load`], except for
    /// the offsets at which modules begin.
    #[must_use]
    pub fn load_again(
        source: SourceId,
        file: &mut SourceFile,
        library: &Library,
        files: &mut dyn ModuleFiles,
        trees: &mut KeptTrees,
    ) -> Self {
        trees.begin();
        let program = Self::main_file(source, file, trees);
        let mut loading = Loading { program, text: file, trees, library, files, uses: Vec::new() };
        // Those that a round adds use others in turn.
        let mut round = 0..1;
        while !round.is_empty() {
            round.clone().for_each(|file| loading.modules_of(file));
            round = round.end..loading.program.modules.names.len();
            loading.program.parse(round.clone(), loading.text, loading.trees);
        }
        let Loading { mut program, uses, trees, .. } = loading;
        trees.end();
        let circle = circles::find(&program.modules, &uses);
        program.parsed.diagnostics.extend(circle);
        program
    }

    /// Parses the files of a program whose modules are known.
    pub(crate) fn with_texts(
        known: &FileModules,
        source: SourceId,
        file: &mut SourceFile,
        texts: &[(String, String)],
    ) -> Self {
        let trees = &mut KeptTrees::default();
        let mut program = Self::main_file(source, file, trees);
        let modules = known.names.iter().zip(&known.libraries).skip(1);
        for ((module, library), (name, text)) in modules.zip(texts) {
            let Some(part) = file.append_at(program.behind(trees), name.as_str(), text) else { break };
            let start = part.start;
            program.add_file(file, start, (module.clone(), library.clone()), trees);
        }
        program
    }

    /// Adds the file at the end of the text, which begins at `start`, with its tree.
    fn add_file(&mut self, text: &SourceFile, start: u32, names: (Text, Text), trees: &mut KeptTrees) {
        let file = self.modules.names.len();
        self.place_file(text, start, names, trees);
        self.parse(file..file + 1, text, trees);
    }

    /// Adds the file at the end of the text, which is still to be parsed.
    fn place_file(&mut self, text: &SourceFile, start: u32, (module, library): (Text, Text), trees: &mut KeptTrees) {
        let place = FilePlace { file: self.modules.names.len() as FileIndex, offset: start };
        let content = trees.place(&PlacedFile { module: &module, source: self.source, text: text.text(), place });
        self.modules.add(start, content, module, library);
    }

    /// Parses the files that have changed, on several cores if they are long, and adds the trees of all these files.
    fn parse(&mut self, files: Range<usize>, text: &SourceFile, trees: &mut KeptTrees) {
        let new = files.clone().filter(|file| trees.parsed(&self.modules.names[*file]).is_none());
        let places: Vec<(usize, usize)> = new.map(|file| (file, text.parts()[file].end as usize)).collect();
        let bytes: usize = places.iter().map(|(file, end)| end - self.modules.start(*file) as usize).sum();
        let (source, modules) = (self.source, &self.modules);
        let parse = |(file, end): (usize, usize)| {
            let place = FilePlace { file: file as FileIndex, offset: modules.start(file) };
            (file, Arc::new(parse_file(source, &text.text()[..end], place)))
        };
        let parsed = match bytes < PARALLEL_BYTES_MIN {
            true => places.into_iter().map(parse).collect(),
            false => in_parallel(places, parse),
        };
        for (file, parsed) in parsed {
            trees.keep(&self.modules.names[file], parsed);
        }
        for file in files {
            let parsed = trees.parsed(&self.modules.names[file]).expect("all files have been parsed");
            self.add_tree(file, &parsed);
        }
    }

    fn add_tree(&mut self, file: usize, parsed: &Parsed) {
        let whole = &mut self.parsed;
        if file == 0 {
            whole.tree.docs = parsed.tree.docs.clone();
            whole.tree.span = parsed.tree.span;
        }
        whole.tree.items.extend_from_slice(&parsed.tree.items);
        whole.tree.span = whole.tree.span.to(parsed.tree.span);
        whole.tree.node_counts.extend_from_slice(&parsed.tree.node_counts);
        whole.diagnostics.extend_from_slice(&parsed.diagnostics);
        whole.comments.extend_from_slice(&parsed.comments);
    }

    /// Returns the offset of the next file.
    fn behind(&self, trees: &KeptTrees) -> usize {
        self.modules.names.last().map_or(0, |last| trees.behind(last))
    }

    /// Returns the number of the program's text in the caller's [`weir_syntax::Sources`].
    #[must_use]
    pub fn source(&self) -> SourceId {
        self.source
    }

    /// Returns the tree of all files.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.parsed.tree
    }

    /// Returns the path of a library that the main file declares.
    fn library(&self, name: &str) -> Option<&str> {
        let main = self.parsed.tree.items.iter().take_while(|item| item.file == 0);
        let mut libraries = library_items(main);
        libraries.find(|library| library.name.as_str() == name).map(|library| &*library.path)
    }
}

/// Returns the libraries that items declare.
pub fn library_items<'t>(items: impl Iterator<Item = &'t Arc<Item>>) -> impl Iterator<Item = &'t LibraryFolder> {
    items.filter_map(|item| if let ItemKind::Library(found) = &item.kind { Some(found) } else { None })
}

/// A `use` of one file's module in another file.
struct ModuleUse {
    from: usize,
    to: usize,
    span: Span,
}

struct Loading<'l> {
    program: ProgramFiles,
    text: &'l mut SourceFile,
    trees: &'l mut KeptTrees,
    library: &'l Library,
    files: &'l mut dyn ModuleFiles,
    uses: Vec<ModuleUse>,
}

impl Loading<'_> {
    /// Loads the modules that a file uses.
    fn modules_of(&mut self, file: usize) {
        let start = self.program.modules.start(file);
        let items = &self.program.parsed.tree.items;
        let first = items.partition_point(|item| item.span.start < start);
        // Behind it may be the items of files that were loaded since.
        let behind = items.partition_point(|item| usize::from(item.file) <= file);
        let used = items[first..behind].iter().filter_map(|item| match &item.kind {
            ItemKind::Use(used) => Some(&used.modules),
            _ => None,
        });
        let used: Vec<UsedModule> = used.flatten().cloned().collect();
        for used in used.into_iter().filter(|used| !used.name.is_missing()) {
            self.use_module(file, &used);
        }
    }

    fn use_module(&mut self, from: usize, used: &UsedModule) {
        let path = used.path();
        let meant = self.program.modules.meant(from, &path);
        if self.library.modules.contains_key(&*path) {
            return self.hidden(&meant, used);
        }
        if self.program.modules.is_reported(&meant) {
            return;
        }
        let to = self.program.modules.file(&meant).or_else(|| self.load_module(&meant, used));
        if let Some(to) = to {
            self.uses.push(ModuleUse { from, to, span: used.span });
        }
    }

    /// Reads and parses the file of a module, and returns its index.
    fn load_module(&mut self, meant: &Text, used: &UsedModule) -> Option<usize> {
        if self.program.modules.names.len() == FILES_MAX {
            let diagnostic = Diagnostic::new(Code::ModuleFile, format!("the module `{meant}` is not loaded"))
                .at(used.span, format!("a program has at most {FILES_MAX} files"));
            self.refuse(meant, diagnostic);
            return None;
        }
        let (name, text) = match self.read(meant) {
            ModuleFile::Found { name, text } => (name, text),
            ModuleFile::Missing => return None,
            ModuleFile::Refused(why) => {
                let diagnostic = Diagnostic::new(Code::ModuleFile, format!("the module `{meant}` cannot be read"));
                self.refuse(meant, diagnostic.at(used.span, why));
                return None;
            }
        };
        let Some(part) = self.text.append_at(self.program.behind(self.trees), name, &text) else {
            let diagnostic = Diagnostic::new(Code::ModuleFile, format!("the module `{meant}` is not loaded"))
                .at(used.span, "the files of a program have at most 4 GiB in all");
            self.refuse(meant, diagnostic);
            return None;
        };
        let start = part.start;
        let library = meant.split('.').next().filter(|first| self.library_path(first).is_some());
        let library = library.map(Text::from).unwrap_or_default();
        self.program.place_file(self.text, start, (meant.clone(), library), self.trees);
        Some(self.program.modules.names.len() - 1)
    }

    /// Returns the path of a library of the program.
    fn library_path(&mut self, name: &str) -> Option<String> {
        let declared = self.program.library(name).map(str::to_owned);
        declared.or_else(|| self.files.library(name))
    }

    /// Reads the file of a module.
    fn read(&mut self, module: &str) -> ModuleFile {
        let mut names: Vec<&str> = module.split('.').collect();
        let library = self.library_path(names[0]);
        if library.is_some() {
            names.remove(0);
        }
        if names.is_empty() {
            return ModuleFile::Refused("this names the folder of a library, not a module in it".to_owned());
        }
        self.files.read(&ModulePlace { library: library.as_deref(), names })
    }

    /// Reports a file that has the name of a module of the standard library. Only a file with public items is meant to be a
    /// module.
    fn hidden(&mut self, meant: &Text, used: &UsedModule) {
        let ModuleFile::Found { name, text } = self.read(meant) else { return };
        if text.lines().any(|line| line.starts_with("pub ")) {
            let diagnostic = Diagnostic::new(Code::ModuleFile, format!("there are two modules `{meant}`"))
                .at(used.span, "a module of the standard library")
                .note(format!("the file `{name}` has the same name"))
                .hint("rename the file");
            self.refuse(meant, diagnostic);
        }
    }

    fn refuse(&mut self, module: &Text, diagnostic: Diagnostic) {
        if self.program.modules.reported.insert(module.clone()) {
            self.program.parsed.diagnostics.push(diagnostic);
        }
    }
}
