//! Completion of clauses: behind a table, in the head of a query, and between the members of a service.

use weir_compile::Symbol;
use weir_syntax::ast::{ExprKind, Item, ItemKind, Method, Service, TableClauseKind, TableDeclaration};

use super::{Completion, CompletionKind};
use crate::document::Document;

/// The names of the limits of a `soft` table.
const SOFT_WORDS: &[&str] = &["ttl", "at_most", "capacity"];

/// The names of the parts of an `existing` table.
const EXISTING_WORDS: &[&str] = &["database", "writable"];

/// The words in the head of a query, behind what it iterates over.
const QUERY_WORDS: &[&str] = &["after", "desc", "limit", "order by"];

/// The words that begin a member of a service, besides methods.
const MEMBER_WORDS: &[&str] = &["before", "on failure of", "session"];

impl Document {
    /// Returns what may stand at `offset` in a clause of a table, which is not yet a part of it if it is incomplete.
    pub(super) fn parts_of_table(&self, offset: u32) -> Option<Vec<Completion>> {
        let item = self.items().take_while(|item| item.span.start < offset).last()?;
        let ItemKind::Table(table) = &item.kind else { return None };
        let written = self.file().text().get(item.span.start as usize..offset as usize)?;
        // A clause on a line of its own is indented.
        let line = written.rsplit('\n').next().unwrap_or_default();
        if written.contains('\n') && !line.starts_with([' ', '\t']) {
            return None;
        }
        Some(self.clause(table, written))
    }

    /// Returns what may follow the text of a table declaration.
    fn clause(&self, table: &TableDeclaration, written: &str) -> Vec<Completion> {
        let last = written.split_whitespace().last().unwrap_or_default();
        let open = written.rfind('(').filter(|open| !written[*open..].contains(')'));
        let opened_by = open.and_then(|open| written[..open].split_whitespace().last());
        let part = open.and_then(|open| written[open + 1..].rsplit(',').next());
        // The name of the part whose value follows.
        let named = part.and_then(|part| part.split_once(':')).map(|(name, _)| name.trim());
        match (opened_by, last) {
            (Some("existing"), _) if named == Some("database") => self.texts(),
            (Some("existing"), _) if named == Some("writable") => words(&["false", "true"]),
            (Some(_), _) if named.is_some() => Vec::new(),
            (Some("soft"), _) => words(SOFT_WORDS),
            (Some("existing"), _) => words(EXISTING_WORDS),
            (Some(_), _) | (None, "key" | "index" | "unique" | "references") => self.columns(table),
            (None, _) if last.ends_with(':') => self.behind_colon(written),
            (None, "migrate") => self.types(""),
            (None, "table") => Vec::new(),
            _ => {
                let mut found = words(&TableClauseKind::WORDS);
                found.extend(words(ending_words(written)));
                found
            }
        }
    }

    /// Returns the `config`s and `const`s of texts, which may name a database.
    fn texts(&self) -> Vec<Completion> {
        let is_text = |item: &&Item| match &item.kind {
            ItemKind::Config(config) => !config.secret && self.file().slice(config.ty.span) == "Text",
            ItemKind::Constant(constant) => matches!(constant.value.kind, ExprKind::Text(_)),
            _ => false,
        };
        self.items().filter(is_text).flat_map(|item| self.declared(item, "")).collect()
    }

    /// Returns the types of rows, the tables that a row can reference, or the `fn`s that can migrate rows.
    fn behind_colon(&self, written: &str) -> Vec<Completion> {
        match clause_word(written) {
            Some("references") => self.declared_tables(),
            Some("migrate") => {
                self.items().filter(|item| is_function(item)).flat_map(|item| self.declared(item, "")).collect()
            }
            _ => self.types(""),
        }
    }

    fn declared_tables(&self) -> Vec<Completion> {
        let tables = self.items().filter(|item| matches!(item.kind, ItemKind::Table(_)));
        let of_modules = self.used().filter_map(|used| {
            let module = self.file_named(used.called().as_str())?;
            Some(self.public_tables(used.called().as_str(), &module))
        });
        tables.flat_map(|item| self.declared(item, "")).chain(of_modules.flatten()).collect()
    }

    /// Returns the tables of a module that other modules may use, with the name of the module before them.
    fn public_tables(&self, called: &str, module: &str) -> Vec<Completion> {
        let items = self.checked.public_items(module).into_iter();
        let tables = items.filter(|(_, symbol)| matches!(symbol, Symbol::Shared(_)));
        tables
            .map(|(name, symbol)| self.of_symbol(&format!("{called}.{name}"), CompletionKind::Shared, &symbol))
            .collect()
    }

    /// Returns the fields of the rows.
    fn columns(&self, table: &TableDeclaration) -> Vec<Completion> {
        let row = self.file().slice(table.row.span);
        let whole = self.checked.whole_name(self.whole().start, row);
        self.fields(if row.contains('.') { row } else { &whole })
    }

    /// Returns the words that may follow in the head of a `for`, if `offset` is in one.
    pub(super) fn query_words(&self, offset: u32) -> Vec<Completion> {
        let head = self.before(offset).rsplit(['{', '}']).next().unwrap_or_default();
        let is_query = head.split_once("for ").is_some_and(|(_, rest)| rest.contains(" in "));
        if is_query { words(QUERY_WORDS) } else { Vec::new() }
    }

    /// Returns the words that begin a member of a service, if `offset` is between its members.
    pub(super) fn members_of_service(&self, offset: u32) -> Option<Vec<Completion>> {
        let is_between = |service: &&Service| {
            let in_member = |span: weir_syntax::Span| span.start < offset && offset <= span.end;
            let in_braces = service.braces.start < offset && offset < service.braces.end;
            in_braces && !service.members.iter().any(|member| in_member(member.span))
        };
        let mut services = self.items().filter_map(|item| match &item.kind {
            ItemKind::Service(service) => Some(service),
            _ => None,
        });
        services.find(is_between)?;
        let methods = Method::ALL.iter().map(|method| Completion::new(method.word(), CompletionKind::Keyword, ""));
        Some(methods.chain(words(MEMBER_WORDS)).collect())
    }
}

fn words(words: &[&'static str]) -> Vec<Completion> {
    words.iter().map(|word| Completion::new(*word, CompletionKind::Keyword, "")).collect()
}

/// Returns the word that begins the last clause of a table declaration.
fn clause_word(written: &str) -> Option<&str> {
    let mut words = written.rsplit(|character: char| !character.is_alphanumeric() && character != '_');
    words.find(|word| TableClauseKind::WORDS.contains(word))
}

/// Returns the words that may end the last clause.
fn ending_words(written: &str) -> &'static [&'static str] {
    match clause_word(written) {
        Some("key") => &["auto"],
        Some("references") => &["cascade"],
        Some("migrate") => &["batched"],
        _ => &[],
    }
}

fn is_function(item: &Item) -> bool {
    matches!(item.kind, ItemKind::Function(_))
}
