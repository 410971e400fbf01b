//! Diagnostics as data: what is wrong, where, why, and what would mend it.
//!
//! A pass makes values and never text for a terminal; [`render`](crate::render()) draws them.
//! A message is one terse sentence that begins in lower case and ends without a full stop; a label says what stands at
//! its place ("expected `Int`, found `Text`"); a note adds a reason; a hint is something that can be done.

use crate::{Code, Severity, Span};

/// One finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Which rule was broken; `weir explain` shows its page.
    pub code: Code,
    /// How bad it is; follows from the code.
    pub severity: Severity,
    /// One terse sentence.
    pub message: String,
    /// The places; the first primary one is where the reader looks first.
    pub labels: Vec<Label>,
    /// Reasons that belong to no place.
    pub notes: Vec<String>,
    /// What can be done.
    pub help: Vec<Hint>,
}

/// A marked place with a few words on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What stands there; may be empty.
    pub text: String,
    /// Whether the fault is here, or this place only explains it.
    pub primary: bool,
}

/// Something that can be done, with the edit that does it where a machine can.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hint {
    /// The advice, as an imperative sentence.
    pub text: String,
    /// The change of the text that follows the advice.
    pub edit: Option<Edit>,
}

/// A replacement of one range of the source text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// What is replaced; empty to insert.
    pub span: Span,
    /// The text that takes its place.
    pub replacement: String,
}

impl Diagnostic {
    /// A diagnostic of this code, as yet without a place.
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

    /// Adds the place where the fault is.
    #[must_use]
    pub fn at(self, span: Span, text: impl Into<String>) -> Self {
        self.label(Label { span, text: bounded(text.into()), primary: true })
    }

    /// Adds a place that explains the fault.
    #[must_use]
    pub fn because(self, span: Span, text: impl Into<String>) -> Self {
        self.label(Label { span, text: bounded(text.into()), primary: false })
    }

    fn label(mut self, label: Label) -> Self {
        self.labels.push(label);
        self
    }

    /// Adds a reason that belongs to no place.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(bounded(text.into()));
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        self.help.push(Hint { text: bounded(text.into()), edit: None });
        self
    }

    /// Adds advice with the edit that follows it.
    #[must_use]
    pub fn fix(mut self, text: impl Into<String>, span: Span, replacement: impl Into<String>) -> Self {
        let edit = Edit { span, replacement: replacement.into() };
        self.help.push(Hint { text: bounded(text.into()), edit: Some(edit) });
        self
    }

    /// Where the fault is: the first primary label's place, else the first label's.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        let primary = self.labels.iter().find(|label| label.primary);
        primary.or(self.labels.first()).map(|label| label.span)
    }

    /// Whether the program cannot run because of it.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// The most bytes of each sentence: a program may have a name of a megabyte in it.
const SENTENCE_BYTES_MAX: usize = 1_000;

/// The sentence, without its middle where it is too long.
fn bounded(sentence: String) -> String {
    if sentence.len() <= SENTENCE_BYTES_MAX {
        return sentence;
    }
    let begin = sentence.floor_char_boundary(SENTENCE_BYTES_MAX / 2);
    let end = sentence.ceil_char_boundary(sentence.len() - SENTENCE_BYTES_MAX / 4);
    format!("{}…{}", &sentence[..begin], &sentence[end..])
}
