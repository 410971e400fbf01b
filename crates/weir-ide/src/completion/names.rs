//! Completion of names and keywords.

use weir_compile::Symbol;
use weir_host::Module;
use weir_syntax::ast::{Item, ItemKind, UsedModule};
use weir_syntax::{Edit, Span};

use super::{Completion, CompletionKind, fits};
use crate::document::{Document, SOURCE};

/// The built-in types.
const TYPES: &[&str] = &[
    "Bool", "Bytes", "Duration", "Failure", "Float", "Html", "Int", "List", "Map", "Option", "Result", "Size", "Text",
    "Time",
];

/// The built-in variants.
const VARIANTS: &[(&str, &str)] =
    &[("Some", "Some(value)"), ("None", "None"), ("Ok", "Ok(value)"), ("Err", "Err(failure)")];

/// The functions that need no `use`.
const CALLS: &[(&str, &str)] = &[("fail", "fail(why)"), ("Failure", "Failure(message)")];

/// The keywords inside a body.
const BODY_WORDS: &[&str] = &[
    "atomic",
    "else",
    "expect",
    "false",
    "fold",
    "for",
    "if",
    "let",
    "loop",
    "match",
    "on failure of",
    "race",
    "retry",
    "return",
    "true",
    "with",
    "within",
];

/// The keywords behind the name of a constraint.
const CONSTRAINT_WORDS: &[&str] = &["on", "per session", "read"];

/// The keywords behind `pub`.
const PUBLIC_WORDS: &[&str] = &["const", "constraint", "enum", "fn", "record", "table", "type"];

/// The keywords that start an item.
const ITEM_WORDS: &[&str] = &[
    "config",
    "const",
    "constraint",
    "enum",
    "fn",
    "for",
    "library",
    "on failure of",
    "pub",
    "record",
    "secret",
    "service",
    "shared",
    "table",
    "test",
    "type",
    "use",
];

impl Document {
    /// Returns the modules of the library that the program does not use.
    pub(super) fn modules(&self) -> Vec<Completion> {
        let modules = self.library.modules.values();
        let modules = modules.filter(|module| !module.is_internal());
        let unused = modules.filter(|module| !self.used().any(|used| used.name.as_str() == module.name.as_str()));
        unused.map(|module| self.module(&module.name, module)).collect()
    }

    fn module(&self, called: &str, module: &Module) -> Completion {
        Completion::new(called, CompletionKind::Module, "module").documented(module.doc.as_str())
    }

    /// Returns the types that can be named.
    pub(super) fn types(&self, begun: &str) -> Vec<Completion> {
        let plain = TYPES.iter().map(|name| Completion::new(*name, CompletionKind::Type, ""));
        let own = self.items().filter_map(|item| self.own_type(item, begun));
        let of_modules = self.used_modules().flat_map(|(called, module)| {
            let types = module.types.values().filter_map(move |definition| {
                let name = definition.name.rsplit_once('.')?.1;
                Some((format!("{called}.{name}"), definition.name.clone()))
            });
            types.map(|(label, name)| self.of_symbol(&label, CompletionKind::Type, &Symbol::Type(name)))
        });
        let modules = self.used_modules().map(|(called, module)| self.module(&called, module));
        plain.chain(own).chain(of_modules).chain(modules).collect()
    }

    fn own_type(&self, item: &Item, begun: &str) -> Option<Completion> {
        let name = match &item.kind {
            ItemKind::Record(record) => &record.name,
            ItemKind::Enum(declaration) => &declaration.name,
            ItemKind::Alias(alias) => &alias.name,
            _ => return None,
        };
        if !fits(name.as_str(), begun) {
            return None;
        }
        let whole = self.checked.whole_name(item.span.start, name.as_str());
        Some(self.of_symbol(name.as_str(), CompletionKind::Type, &Symbol::Type(whole)))
    }

    /// Returns what may stand behind the name of a constraint that `offset` is in or on the line of.
    fn parts_of_constraint(&self, offset: u32) -> Option<Vec<Completion>> {
        let before = self.items().take_while(|item| item.span.start < offset).last()?;
        let behind = self.text().get(before.span.end as usize..offset as usize).unwrap_or_default();
        if !matches!(before.kind, ItemKind::Constraint(_)) || !behind.chars().all(|character| character == ' ') {
            return None;
        }
        let words = CONSTRAINT_WORDS.iter().map(|word| Completion::new(*word, CompletionKind::Keyword, ""));
        let used = self.used_modules().map(|(called, module)| self.module(&called, module));
        Some(words.chain(used).chain(self.modules_to_add()).collect())
    }

    /// Returns the modules of the library that the program does not use, with the edits that add them.
    fn modules_to_add(&self) -> impl Iterator<Item = Completion> {
        self.modules().into_iter().map(|module| Completion { also: self.use_edits(&module.label), ..module })
    }

    /// Returns all names that are visible at `offset`, and the keywords that may stand there.
    pub(super) fn names(&self, offset: u32, begun: &str) -> Vec<Completion> {
        if let Some(parts) = self.parts_of_constraint(offset) {
            return parts;
        }
        if let Some(parts) = self.parts_of_table(offset).or_else(|| self.members_of_service(offset)) {
            return parts;
        }
        let in_item = self.items().any(|item| item.span.start < offset && offset <= item.span.end);
        if !in_item {
            let line = self.before(offset).lines().last().unwrap_or_default();
            let words = if line.trim() == "pub" { PUBLIC_WORDS } else { ITEM_WORDS };
            return words.iter().map(|word| Completion::new(*word, CompletionKind::Keyword, "")).collect();
        }
        let locals = self.checked.locals_at(offset).into_iter();
        let locals = locals.map(|local| Completion::new(local.name, CompletionKind::Local, local.ty));
        let declared = self.items().flat_map(|item| self.declared(item, begun));
        let variants = VARIANTS.iter().map(|(name, detail)| Completion::new(*name, CompletionKind::Variant, *detail));
        let calls = CALLS.iter().map(|(name, detail)| Completion::new(*name, CompletionKind::Function, *detail));
        let words = BODY_WORDS.iter().map(|word| Completion::new(*word, CompletionKind::Keyword, ""));
        let used = self.used_modules().map(|(called, module)| self.module(&called, module));
        let files = self.used().filter(|used| self.file_named(used.called().as_str()).is_some());
        let files = files.map(|used| Completion::new(used.called().as_str(), CompletionKind::Module, "module"));
        locals
            .chain(declared)
            .chain(files)
            .chain(calls)
            .chain(variants)
            .chain(words)
            .chain(self.query_words(offset))
            .chain(used)
            .chain(self.modules_to_add())
            .collect()
    }

    /// Returns the names that an item declares and that fit the partial word. Describing all names of a long file would
    /// be slow.
    pub(super) fn declared(&self, item: &Item, begun: &str) -> Vec<Completion> {
        let one = |name: &weir_syntax::ast::Name, kind, symbol: fn(weir_host::Text) -> Symbol| {
            let name = fits(name.as_str(), begun).then_some(name.as_str());
            let whole = |name| self.checked.whole_name(item.span.start, name);
            name.map(|name| self.of_symbol(name, kind, &symbol(whole(name)))).into_iter().collect()
        };
        match &item.kind {
            ItemKind::Function(function) => one(&function.name, CompletionKind::Function, Symbol::Function),
            ItemKind::Shared(shared) => one(&shared.name, CompletionKind::Shared, Symbol::Shared),
            ItemKind::Table(table) => one(&table.name, CompletionKind::Shared, Symbol::Shared),
            ItemKind::Constraint(constraint) => one(&constraint.name, CompletionKind::Constraint, Symbol::Constraint),
            ItemKind::Config(config) => one(&config.name, CompletionKind::Config, Symbol::Config),
            ItemKind::Constant(constant) => one(&constant.name, CompletionKind::Config, Symbol::Constant),
            ItemKind::Alias(alias) => one(&alias.name, CompletionKind::Type, Symbol::Type),
            ItemKind::Record(record) => one(&record.name, CompletionKind::Type, Symbol::Type),
            ItemKind::Enum(declaration) => {
                let of = self.checked.whole_name(item.span.start, declaration.name.as_str());
                let named = declaration.variants.iter().filter(|variant| fits(variant.name.as_str(), begun));
                let variants = named.map(|variant| {
                    let symbol = Symbol::Variant(of.clone(), variant.name.as_str().into());
                    self.of_symbol(variant.name.as_str(), CompletionKind::Variant, &symbol)
                });
                variants.collect()
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn used(&self) -> impl Iterator<Item = &UsedModule> {
        let uses = self.items().filter_map(|item| match &item.kind {
            ItemKind::Use(used) => Some(&used.modules),
            _ => None,
        });
        uses.flatten()
    }

    /// Returns the module of the program that has this name in the file.
    pub(super) fn file_named(&self, called: &str) -> Option<weir_host::Text> {
        let used = self.used().find(|used| used.called().as_str() == called)?;
        self.checked.used_module(self.whole().start, &used.path())
    }

    /// Returns the modules that the program uses, with their names in the file.
    fn used_modules(&self) -> impl Iterator<Item = (String, &Module)> {
        self.used().filter_map(|used| {
            let called = used.alias.as_ref().unwrap_or(&used.name).to_string();
            Some((called, self.library.modules.get(used.name.as_str())?))
        })
    }

    /// Returns the module with this name in the file, or in the library.
    pub(super) fn module_named(&self, called: &str) -> Option<&Module> {
        let used = self.used_modules().find(|(name, _)| name == called).map(|(_, module)| module);
        used.or_else(|| self.library.modules.get(called))
    }

    /// Returns the edits that make the program use a module; none if it does.
    pub(super) fn use_edits(&self, called: &str) -> Vec<Edit> {
        if self.used_modules().any(|(name, _)| name == called) {
            return Vec::new();
        }
        let edit = match self.used().last() {
            Some(last) => Edit { span: last.span.at_end(), replacement: format!(", {called}") },
            None => {
                let start = self.whole().start;
                let docs = self.checked.parsed.tree.docs.lines.last().filter(|_| start == 0);
                let docs = docs.map_or(start, |line| line.span.end);
                let at = Span::new(SOURCE, docs, docs);
                let gap = if docs == start { "" } else { "\n\n" };
                let end = if docs == start { "\n\n" } else { "" };
                Edit { span: at, replacement: format!("{gap}use {called}{end}") }
            }
        };
        vec![edit]
    }
}
