//! Code actions: the fixes that diagnostics offer as edits, and comments that silence warnings.

use weir_syntax::{Code, Diagnostic, Edit, Span};

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
    /// Returns the code actions for the diagnostics that touch `span`, in their order: the fixes, and then comments that silence
    /// the warnings.
    #[must_use]
    pub fn actions(&self, span: Span) -> Vec<CodeAction> {
        let touched = self.diagnostics().iter().filter(|diagnostic| {
            let mut places = diagnostic.labels.iter().filter(|label| label.primary).map(|label| label.span);
            places.any(|place| place.start <= span.end && span.start <= place.end)
        });
        let touched: Vec<&Diagnostic> = touched.collect();
        let allow = |warning: &&Diagnostic| {
            let edit = self.checked.allow(warning, self.file().text())?;
            let title = format!("allow {} here: {}", warning.code.id(), warning.code.title().to_lowercase());
            Some(CodeAction { title, code: warning.code, edits: vec![edit] })
        };
        let allows: Vec<CodeAction> = touched.iter().filter_map(allow).collect();
        let hints =
            touched.into_iter().flat_map(|diagnostic| diagnostic.help.iter().map(|hint| (diagnostic.code, hint)));
        let with_edit = hints.filter_map(|(code, hint)| Some((code, hint, hint.edit.clone()?)));
        let fixes =
            with_edit.map(|(code, hint, edit)| CodeAction { title: hint.text.clone(), code, edits: vec![edit] });
        fixes.chain(allows).collect()
    }
}
