//! Code actions: the fixes that diagnostics offer as edits.

use weir_syntax::{Code, Edit, Span};

use crate::document::Document;

/// A fix for a diagnostic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeAction {
    /// The title, a phrase in the imperative.
    pub title: String,
    /// The diagnostic's code.
    pub code: Code,
    /// The edits.
    pub edits: Vec<Edit>,
}

impl Document {
    /// Returns the code actions for the diagnostics that touch `span`, in their order.
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
