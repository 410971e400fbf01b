//! The fingerprint of everything that the check of a file depends on: its own text and place, and the *interfaces* of the
//! modules that it uses.
//!
//! The interface of a module is the text of its declarations, without the bodies of `fn`s and without private `fn`s, and the
//! interfaces of the modules that it uses: a file sees their types through those of its own modules. Bodies do not belong to
//! it, because signatures are written out.

use std::hash::{DefaultHasher, Hash, Hasher};

use weir_syntax::ast::{Item, ItemKind};

use crate::context::CheckContext;
use crate::declarations::Declarations;

/// The fingerprints of the files of a program, by the index of the file.
#[derive(Clone, Default)]
pub(crate) struct FileKeys {
    /// Empty if modules use each other in a circle, which is an error.
    keys: Vec<u64>,
    /// The fingerprints of what the `fn`s of each file depend on besides `fn`s.
    surroundings: Vec<u64>,
}

impl FileKeys {
    pub(crate) fn of(context: &CheckContext<'_>, declarations: &Declarations) -> Self {
        let mut interfaces = Interfaces::new(context, declarations);
        let files = 0..declarations.files.len();
        // A deletion writes the tables whose rows reference the deleted ones, which any file may declare.
        let tables = tables_of(context);
        let used = |interfaces: &mut Interfaces<'_>, file: usize| -> Option<Vec<u64>> {
            interfaces.used_by(file).into_iter().map(|used| interfaces.of(used)).collect()
        };
        let keys = files.clone().map(|file| {
            let used = used(&mut interfaces, file)?;
            // A test can call each service of the program by its name.
            let names: Vec<_> = declarations.services.iter().collect();
            let place = (context.source, file, context.files.start(file));
            Some(hashed((place, context.files.content(file), used, names, tables)))
        });
        let keys: Option<Vec<u64>> = keys.collect();
        let surroundings = files.map(|file| {
            let used = used(&mut interfaces, file)?;
            Some(hashed((interfaces.declarations_of(file, |_| false), used, tables)))
        });
        let surroundings: Option<Vec<u64>> = surroundings.collect();
        FileKeys { keys: keys.unwrap_or_default(), surroundings: surroundings.unwrap_or_default() }
    }

    /// Returns the fingerprint of everything that the check of a file depends on.
    pub(crate) fn key(&self, file: usize) -> Option<u64> {
        self.keys.get(file).copied()
    }

    /// Returns the fingerprint of everything that the `fn`s of a file depend on besides `fn`s.
    pub(crate) fn surroundings(&self, file: usize) -> Option<u64> {
        self.surroundings.get(file).copied()
    }
}

/// The interfaces of modules, computed as they are needed.
struct Interfaces<'c> {
    context: &'c CheckContext<'c>,
    declarations: &'c Declarations,
    known: Vec<InterfaceState>,
}

#[derive(Clone, Copy)]
enum InterfaceState {
    New,
    Open,
    Known(u64),
}

impl<'c> Interfaces<'c> {
    fn new(context: &'c CheckContext<'c>, declarations: &'c Declarations) -> Self {
        Interfaces { context, declarations, known: vec![InterfaceState::New; declarations.files.len()] }
    }

    /// Returns the files that a file uses.
    fn used_by(&self, file: usize) -> Vec<usize> {
        self.declarations.files[file].modules.values().filter_map(|module| module.file).collect()
    }

    /// Returns the fingerprint of the interface of a module; `None` if modules use each other in a circle.
    fn of(&mut self, file: usize) -> Option<u64> {
        match self.known[file] {
            InterfaceState::Known(known) => return Some(known),
            InterfaceState::Open => return None,
            InterfaceState::New => {}
        }
        self.known[file] = InterfaceState::Open;
        let used: Option<Vec<u64>> = self.used_by(file).into_iter().map(|used| self.of(used)).collect();
        let module = self.declarations.files[file].module.as_str();
        let own = self.declarations_of(file, |item| item.public.is_some());
        let interface = hashed((module, own, used?));
        self.known[file] = InterfaceState::Known(interface);
        Some(interface)
    }

    /// Returns the fingerprint of the declarations of a file, with the signatures of the `fn`s that `has` selects.
    fn declarations_of(&self, file: usize, has: impl Fn(&Item) -> bool) -> u64 {
        let mut hasher = DefaultHasher::new();
        for item in &self.context.tree().items[self.context.file_items(file)] {
            let end = match &item.kind {
                ItemKind::Function(function) if has(item) => function.body.span.start,
                ItemKind::Function(_) | ItemKind::Service(_) | ItemKind::Entry(_) | ItemKind::Test(_) => continue,
                _ => item.span.end,
            };
            item.public.is_some().hash(&mut hasher);
            self.context.text[item.span.start as usize..end as usize].hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// Returns the fingerprint of the declarations of all tables.
fn tables_of(context: &CheckContext<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for item in context.tree().items.iter().filter(|item| matches!(item.kind, ItemKind::Table(_))) {
        (context.files.names().get(usize::from(item.file)), item.public.is_some()).hash(&mut hasher);
        context.text[item.span.range()].hash(&mut hasher);
    }
    hasher.finish()
}

pub(crate) fn hashed(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
