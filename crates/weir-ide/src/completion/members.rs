//! Completion after a dot: members of a module, variants of an enum, fields and functions of a value.

use weir_compile::{Symbol, SymbolInfo};
use weir_host::{Module, Signature, Text, Type, TypeDefinition, TypeShape};
use weir_syntax::Span;
use weir_syntax::ast::ItemKind;

use super::{Completion, CompletionKind};
use crate::document::Document;

impl Document {
    /// Returns the members of the expression that ends at `dot`.
    pub(super) fn members(&self, dot: u32) -> Vec<Completion> {
        let (start, word) = self.word_before(dot);
        let is_member = self.before(start).trim_end().ends_with('.');
        if !is_member && !self.is_value(dot) {
            if let Some(module) = self.file_named(word) {
                return self.public_items(&module);
            }
            if let Some(module) = self.module_named(word) {
                return self.module_members(word, module);
            }
            let variants = self.variants_of(word);
            if !variants.is_empty() {
                return variants;
            }
        }
        let statements = self.table_before(dot).map_or_else(Vec::new, |table| self.checked.table_statements(&table));
        if !statements.is_empty() {
            let completion = |(name, described): (&str, SymbolInfo)| {
                Completion::new(name, CompletionKind::Function, described.signature).documented(described.doc)
            };
            return statements.into_iter().map(completion).collect();
        }
        let mut found = self.type_before(dot).map(|ty| self.value_members(&ty)).unwrap_or_default();
        if self.is_shared(dot) {
            found.extend(self.state_functions(dot));
        }
        found
    }

    fn is_shared(&self, dot: u32) -> bool {
        self.checked.reference_at(dot).is_some_and(|found| matches!(found.symbol, Symbol::Shared(_)))
    }

    /// Returns the name of the shared value or table that ends at `dot`.
    fn table_before(&self, dot: u32) -> Option<Text> {
        match &self.checked.reference_at(dot)?.symbol {
            Symbol::Shared(name) => Some(name.clone()),
            _ => None,
        }
    }

    /// Describes the statement on a table whose name is at `offset`.
    pub(crate) fn statement_at(&self, offset: u32) -> Option<(Span, SymbolInfo)> {
        let span = self.word_at(offset)?;
        let before = self.before(span.start).trim_end().strip_suffix('.')?;
        let table = self.table_before(self.whole().start + before.trim_end().len() as u32)?;
        let name = self.file().slice(span);
        let found = self.checked.table_statements(&table).into_iter().find(|(known, _)| *known == name);
        found.map(|(_, described)| (span, described))
    }

    /// Returns the functions that change or read the shared value that ends at `dot`.
    fn state_functions(&self, dot: u32) -> Vec<Completion> {
        let ty = self.type_before(dot).unwrap_or_default();
        let head = ty.split('(').next().unwrap_or_default();
        let module = self.library.modules.get(weir_compile::STATE);
        let functions = module.into_iter().flat_map(|module| module.functions.values());
        let functions = functions.filter(|function| takes_first(&function.signature, head));
        functions.map(|function| self.function(&function.signature)).collect()
    }

    fn function(&self, signature: &Signature) -> Completion {
        self.of_symbol(&signature.name, CompletionKind::Function, &Symbol::HostFunction(signature.path().into()))
    }

    /// Returns whether the name that ends at `dot` is a value.
    fn is_value(&self, dot: u32) -> bool {
        let symbol = self.checked.reference_at(dot).map(|found| &found.symbol);
        matches!(symbol, Some(Symbol::Local(_) | Symbol::Shared(_) | Symbol::Field(..)))
    }

    /// Returns the type of the expression that ends at `dot`, as source text.
    fn type_before(&self, dot: u32) -> Option<String> {
        if self.is_value(dot) {
            let found = self.checked.reference_at(dot)?;
            let signature = self.checked.describe(&found.symbol, &self.library)?.signature;
            let ty = signature.split_once(": ").map(|(_, ty)| ty)?;
            return Some(ty.trim_end_matches(" per session").to_owned());
        }
        self.checked.type_at(dot).map(|(_, ty)| ty)
    }

    /// Returns the public items of a module of the program.
    fn public_items(&self, module: &str) -> Vec<Completion> {
        let items = self.checked.public_items(module).into_iter().map(|(name, symbol)| {
            let kind = match symbol {
                Symbol::Type(_) => CompletionKind::Type,
                Symbol::Constant(_) => CompletionKind::Config,
                Symbol::Constraint(_) => CompletionKind::Constraint,
                Symbol::Shared(_) => CompletionKind::Shared,
                _ => CompletionKind::Function,
            };
            self.of_symbol(&name, kind, &symbol)
        });
        items.collect()
    }

    fn module_members(&self, called: &str, module: &Module) -> Vec<Completion> {
        let also = self.use_edits(called);
        let in_rust = module.public_functions().map(|function| self.function(&function.signature));
        let functions = in_rust.chain(self.weir_functions(&module.name));
        let sources = module.sources.keys().filter(|name| **name != module.name).map(|name| {
            self.of_symbol(name, CompletionKind::Source, &Symbol::Source(format!("{}.{name}", module.name).into()))
        });
        let types = module.types.values().filter_map(|definition| {
            let name = definition.name.rsplit_once('.')?.1;
            Some(self.of_symbol(name, CompletionKind::Type, &Symbol::Type(definition.name.clone())))
        });
        let all = functions.chain(sources).chain(types);
        all.map(|completion| Completion { also: also.clone(), ..completion }).collect()
    }

    /// Returns the functions of a module that are written in Weir.
    fn weir_functions(&self, module: &str) -> Vec<Completion> {
        let names = self.checked.modules.names(module, &self.library);
        let completions = names.iter().map(|name| {
            let symbol = Symbol::HostFunction(format!("{module}.{name}").into());
            self.of_symbol(name, CompletionKind::Function, &symbol)
        });
        completions.collect()
    }

    /// Creates a completion that describes the symbol.
    pub(super) fn of_symbol(&self, label: &str, kind: CompletionKind, symbol: &Symbol) -> Completion {
        match self.checked.describe(symbol, &self.library) {
            Some(described) => Completion::new(label, kind, described.signature.clone())
                .documented([described.doc, described.effects.unwrap_or_default()].join("\n\n").trim().to_owned()),
            None => Completion::new(label, kind, ""),
        }
    }

    /// Returns the variants of the program's enum with this name.
    fn variants_of(&self, name: &str) -> Vec<Completion> {
        let enums = self.items().filter_map(|item| match &item.kind {
            ItemKind::Enum(declaration) if declaration.name.as_str() == name => Some(declaration),
            _ => None,
        });
        let variants = enums.flat_map(|declaration| &declaration.variants);
        let whole = self.checked.whole_name(self.whole().start, name);
        let completions = variants.map(|variant| {
            let symbol = Symbol::Variant(whole.clone(), variant.name.as_str().into());
            self.of_symbol(variant.name.as_str(), CompletionKind::Variant, &symbol)
        });
        completions.collect()
    }

    /// Returns the fields of a value of this type, and the functions that can be called on it.
    fn value_members(&self, ty: &str) -> Vec<Completion> {
        let head = ty.split('(').next().unwrap_or_default();
        let mut found = self.fields(head);
        let of_module = head.rsplit_once('.').map_or_else(Vec::new, |(module, _)| self.public_items(module));
        found.extend(of_module.into_iter().filter(|item| item.kind == CompletionKind::Function));
        if let Some(module) = module_of(head).and_then(|module| self.library.modules.get(module.as_str())) {
            let functions = module.public_functions().filter(|function| takes_first(&function.signature, head));
            found.extend(functions.map(|function| self.function(&function.signature)));
            // The first parameter of a function in Weir has the type that its module is named after.
            found.extend(self.weir_functions(&module.name));
        }
        if ["Text", "Bytes", "List", "Map"].contains(&head) {
            found.push(Completion::new("length", CompletionKind::Function, "fn length() -> Int"));
        }
        found
    }

    pub(super) fn fields(&self, name: &str) -> Vec<Completion> {
        if let Some(TypeDefinition { shape: TypeShape::Record(fields), .. }) = self.library.definition(name) {
            let completion =
                |field: &weir_host::Field| Completion::new(&*field.name, CompletionKind::Field, field.ty.to_string());
            return fields.iter().map(completion).collect();
        }
        let records = self.checked.parsed.tree.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Record(record) if *self.checked.whole_name(item.span.start, &record.name.text) == *name => {
                Some(record)
            }
            _ => None,
        });
        let fields = records.flat_map(|record| &record.fields).map(|field| {
            let ty = self.file().slice(field.ty.span);
            Completion::new(field.name.as_str(), CompletionKind::Field, ty).documented(field.docs.text())
        });
        fields.collect()
    }
}

/// Returns whether the function's first parameter may accept a value whose type starts with `head`.
fn takes_first(signature: &Signature, head: &str) -> bool {
    signature.parameters.first().is_some_and(|first| match &first.ty {
        Type::Parameter(_) => true,
        ty => ty.to_string().split('(').next() == Some(head),
    })
}

/// Returns the module whose functions can be called on a value whose type starts with `head`, as the compiler resolves
/// it.
fn module_of(head: &str) -> Option<String> {
    let plain = [
        "Text", "Bytes", "Int", "Float", "Time", "Duration", "Size", "Failure", "Html", "List", "Map", "Option",
        "Result",
    ];
    match head.rsplit_once('.') {
        Some((module, _)) => Some(module.to_owned()),
        None => plain.contains(&head).then(|| head.to_lowercase()),
    }
}
