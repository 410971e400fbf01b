//! Diagnostics as data: the error, its source range, its cause, and a fix.
//!
//! A pass creates values, never terminal output; [`render`](crate::render()) draws them. A message is one terse
//! sentence that begins in lower case and has no full stop. A label describes its source range ("expected `Int`, found
//! `Text`"), a note adds a reason, and a hint proposes an action.

use crate::{Code, Severity, Span};

/// An error or warning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The rule that was broken; `weir explain` shows its page.
    pub code: Code,
    /// Severity; follows from the code.
    pub severity: Severity,
    /// One terse sentence.
    pub message: String,
    /// Labelled source ranges. The first primary one is where the reader should look first.
    pub labels: Vec<Label>,
    /// Reasons without a source range.
    pub notes: Vec<String>,
    /// Proposed actions.
    pub help: Vec<Hint>,
}

/// A source range with a short text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Source range.
    pub span: Span,
    /// Text of the label; may be empty.
    pub text: String,
    /// True if the error is here; false if this place explains it.
    pub primary: bool,
}

/// A proposed action, with a machine-applicable edit if possible.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hint {
    /// The action, as an imperative sentence.
    pub text: String,
    /// The edit that performs the action.
    pub edit: Option<Edit>,
    /// The certainty that the edit is what the author meant.
    pub certainty: Certainty,
}

/// The certainty that an edit is what the author meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Certainty {
    /// There is no other reading: `weir fix` applies the edit.
    Certain,
    /// The edit may be right, and keeps what the program does: `weir fix --suggestions` applies those of warnings.
    Suggested,
    /// Only the author knows: an editor offers the edit, and `weir fix` never applies it.
    Offered,
}

/// A replacement of one source range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// The replaced range; empty for an insertion.
    pub span: Span,
    /// The new text.
    pub replacement: String,
}

impl Diagnostic {
    /// Creates a diagnostic with this code and no label.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.severity(),
            message: bounded(message.into()),
            labels: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
        }
    }

    /// Adds a primary label: the place of the error.
    #[must_use]
    pub fn at(self, span: Span, text: impl Into<String>) -> Self {
        self.label(Label { span, text: bounded(text.into()), primary: true })
    }

    /// Adds a secondary label: a place that explains the error.
    #[must_use]
    pub fn because(self, span: Span, text: impl Into<String>) -> Self {
        self.label(Label { span, text: bounded(text.into()), primary: false })
    }

    fn label(mut self, label: Label) -> Self {
        self.labels.push(label);
        self
    }

    /// Adds a reason without a source range.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(bounded(text.into()));
        self
    }

    /// Adds a hint without an edit.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        self.help.push(Hint { text: bounded(text.into()), edit: None, certainty: Certainty::Offered });
        self
    }

    /// Adds a hint with an edit that is certain to be right: the diagnostic leaves no other reading.
    #[must_use]
    pub fn fix(self, text: impl Into<String>, span: Span, replacement: impl Into<String>) -> Self {
        self.edit(text, Edit { span, replacement: replacement.into() }, Certainty::Certain)
    }

    /// Adds a hint with an edit that may be right: the author decides.
    #[must_use]
    pub fn suggest(self, text: impl Into<String>, span: Span, replacement: impl Into<String>) -> Self {
        self.edit(text, Edit { span, replacement: replacement.into() }, Certainty::Suggested)
    }

    /// Adds a hint with an edit that changes what the program does, or hides what the diagnostic found: only an editor offers it.
    #[must_use]
    pub fn offer(self, text: impl Into<String>, span: Span, replacement: impl Into<String>) -> Self {
        self.edit(text, Edit { span, replacement: replacement.into() }, Certainty::Offered)
    }

    fn edit(mut self, text: impl Into<String>, edit: Edit, certainty: Certainty) -> Self {
        self.help.push(Hint { text: bounded(text.into()), edit: Some(edit), certainty });
        self
    }

    /// Returns the source range of the first primary label, or of the first label if none is primary.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        let primary = self.labels.iter().find(|label| label.primary);
        primary.or(self.labels.first()).map(|label| label.span)
    }

    /// Returns true if the diagnostic keeps the program from running.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Maximum length of a sentence in bytes. A name in a program may be a megabyte long.
const SENTENCE_BYTES_MAX: usize = 1_000;

/// Returns the sentence, with its middle left out if it is too long.
fn bounded(sentence: String) -> String {
    if sentence.len() <= SENTENCE_BYTES_MAX {
        return sentence;
    }
    let begin = sentence.floor_char_boundary(SENTENCE_BYTES_MAX / 2);
    let end = sentence.ceil_char_boundary(sentence.len() - SENTENCE_BYTES_MAX / 4);
    format!("{}…{}", &sentence[..begin], &sentence[end..])
}
