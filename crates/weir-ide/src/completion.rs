//! Completion: members after a dot, modules, types, names and keywords.

mod clauses;
mod context;
mod members;
mod names;

use std::collections::BTreeMap;

use weir_syntax::{Code, Edit, Span};

use crate::document::Document;
use context::Context;

/// A completion proposal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The text that is shown and inserted.
    pub label: String,
    /// The kind of the proposal.
    pub kind: CompletionKind,
    /// The signature or type, on one line; may be empty.
    pub detail: String,
    /// The documentation, as Markdown; may be empty.
    pub documentation: String,
    /// The span of the partial word that the label replaces.
    pub span: Span,
    /// Edits elsewhere, such as adding a module to a `use`.
    pub also: Vec<Edit>,
}

/// The kind of a completion proposal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CompletionKind {
    /// A field of a record.
    Field,
    /// A local name.
    Local,
    /// A `fn` of the program or a function of the library.
    Function,
    /// A source of the library.
    Source,
    /// A shared value.
    Shared,
    /// A constraint.
    Constraint,
    /// A `config` or `secret`.
    Config,
    /// A variant of an enum.
    Variant,
    /// A record, enum or host type.
    Type,
    /// A module that the program uses or could use.
    Module,
    /// A keyword.
    Keyword,
}

impl Document {
    /// Returns the proposals at `offset`, likely kinds first, at most [`COMPLETIONS_MAX`] of each kind. A proposal
    /// contains the letters of the partial word in their order. There are none in texts and in comments, but for `// allow`.
    #[must_use]
    pub fn completions(&self, offset: u32) -> Vec<Completion> {
        let (start, begun) = self.word_before(offset);
        let span = Span::new(self.whole().source, start, offset);
        let mut found = match self.context(start) {
            Context::Nothing => Vec::new(),
            Context::Warning => warnings(),
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

/// The maximum number of proposals of one kind. More would not help the user, and take long to transmit.
pub const COMPLETIONS_MAX: usize = 200;

/// Returns whether the label contains the letters of the partial word in their order, ignoring case.
fn fits(label: &str, begun: &str) -> bool {
    let mut letters = label.chars().flat_map(char::to_lowercase);
    begun.chars().flat_map(char::to_lowercase).all(|wanted| letters.any(|letter| letter == wanted))
}

/// Returns the codes of the warnings that a comment can silence.
fn warnings() -> Vec<Completion> {
    let allowed = weir_syntax::codes::ALL.iter().filter(|code| code.can_be_allowed());
    let completion = |code: &Code| Completion::new(code.id(), CompletionKind::Keyword, code.title());
    allowed.map(completion).collect()
}

impl Completion {
    /// Creates a completion whose span is set later.
    fn new(label: impl Into<String>, kind: CompletionKind, detail: impl Into<String>) -> Self {
        let span = Span::default();
        let (documentation, also) = (String::new(), Vec::new());
        Self { label: label.into(), kind, detail: detail.into(), documentation, span, also }
    }

    fn documented(self, documentation: impl Into<String>) -> Self {
        Self { documentation: documentation.into(), ..self }
    }
}
