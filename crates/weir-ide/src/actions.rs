//! What can be done about a diagnostic: its hints that a machine can follow.

use weir_syntax::{Code, Edit, Span};

use crate::document::Document;

/// A change that mends something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeAction {
    /// What it does, as a sentence.
    pub title: String,
    /// What it mends.
    pub code: Code,
    /// The change.
    pub edits: Vec<Edit>,
}

impl Document {
    /// What can be done about the diagnostics that `span` touches, in their order.
    #[must_use]
    pub fn actions(&self, span: Span) -> Vec<CodeAction> {
        let touched = self.diagnostics().iter().filter(|diagnostic| {
            let mut places = diagnostic.labels.iter().filter(|label| label.primary).map(|label| label.span);
            places.any(|place| place.start <= span.end && span.start <= place.end)
        });
        let hints = touched.flat_map(|diagnostic| diagnostic.help.iter().map(|hint| (diagnostic.code, hint)));
        let with_edit = hints.filter_map(|(code, hint)| Some((code, hint, hint.edit.clone()?)));
        with_edit.map(|(code, hint, edit)| CodeAction { title: hint.text.clone(), code, edits: vec![edit] }).collect()
    }
}
