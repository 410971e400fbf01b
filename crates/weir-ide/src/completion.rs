//! What could stand here: members behind a dot, modules, types, or names and words.

mod context;
mod members;
mod names;

use std::collections::BTreeMap;

use weir_syntax::{Edit, Span};

use crate::document::Document;
use context::Context;

/// Something that could stand at a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// What is shown and written.
    pub label: String,
    /// What it is.
    pub kind: CompletionKind,
    /// Its signature or type, on one line; may be empty.
    pub detail: String,
    /// What its author says of it, as Markdown; may be empty.
    pub documentation: String,
    /// The part of the word that is already there, which the label replaces.
    pub span: Span,
    /// What must change elsewhere, such as a module to be added to a `use`.
    pub also: Vec<Edit>,
}

/// The kinds of completions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CompletionKind {
    /// A field of a record.
    Field,
    /// A name that a body binds.
    Local,
    /// A `fn` of the program or a function of the library.
    Function,
    /// A source of the library.
    Source,
    /// A shared value.
    Shared,
    /// A constraint.
    Constraint,
    /// A variant of an enum.
    Variant,
    /// A record, enum or host type.
    Type,
    /// A module that the program uses, or could use.
    Module,
    /// A word of the language.
    Keyword,
}

impl Document {
    /// What could stand at `offset`, the most likely kinds first, and at most [`COMPLETIONS_MAX`] of each: of a word that
    /// is begun, what has its letters in their order. Nothing in a comment or a text.
    #[must_use]
    pub fn completions(&self, offset: u32) -> Vec<Completion> {
        let (start, begun) = self.word_before(offset);
        let span = Span::new(self.whole().source, start, offset);
        let mut found = match self.context(start) {
            Context::Nothing => Vec::new(),
            Context::Member { dot } => self.members(dot),
            Context::Module => self.modules(),
            Context::Type => self.types(begun),
            Context::Name => self.names(start, begun),
        };
        found.retain(|completion| fits(&completion.label, begun));
        found.iter_mut().for_each(|completion| completion.span = span);
        found.sort_by(|a, b| (a.kind, !a.also.is_empty(), &a.label).cmp(&(b.kind, !b.also.is_empty(), &b.label)));
        found.dedup_by(|a, b| a.kind == b.kind && a.label == b.label);
        let mut of_kind = BTreeMap::<_, usize>::new();
        found.retain(|completion| {
            let count = of_kind.entry(completion.kind).or_default();
            *count += 1;
            *count <= COMPLETIONS_MAX
        });
        found
    }
}

/// The most completions of one kind: more are no help to anybody, and take long to be sent.
pub const COMPLETIONS_MAX: usize = 200;

/// Whether the letters of the word that is begun stand in the label in their order, in either case.
fn fits(label: &str, begun: &str) -> bool {
    let mut letters = label.chars().flat_map(char::to_lowercase);
    begun.chars().flat_map(char::to_lowercase).all(|wanted| letters.any(|letter| letter == wanted))
}

impl Completion {
    /// A completion whose place is filled in later.
    fn new(label: impl Into<String>, kind: CompletionKind, detail: impl Into<String>) -> Self {
        let span = Span::default();
        let (documentation, also) = (String::new(), Vec::new());
        Self { label: label.into(), kind, detail: detail.into(), documentation, span, also }
    }

    fn documented(self, documentation: impl Into<String>) -> Self {
        Self { documentation: documentation.into(), ..self }
    }
}
