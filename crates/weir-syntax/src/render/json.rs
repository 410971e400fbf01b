//! Diagnostics as JSON: one object on one line each.
//!
//! ```text
//! {"code":"E0102","name":"UnterminatedText","severity":"error","message":"…",
//!  "labels":[{"file":"a.weir","start":{"offset":8,"line":1,"column":9},"end":{…},"text":"…","primary":true}],
//!  "notes":["…"],"help":[{"text":"…","edit":{"file":"a.weir","start":{…},"end":{…},"replacement":"\""},"certain":true}]}
//! ```
//!
//! Offsets are bytes, counted from 0; lines and columns are counted from 1. `edit` is null if no edit is known,
//! and `certain` says whether it may be applied without asking the author.

use crate::{Certainty, Diagnostic, Edit, Hint, Label, Severity, Sources, Span};
use serde_json::{Value, json};

/// Renders a diagnostic as one line of JSON, without the line end.
#[must_use]
pub fn render_json(sources: &Sources, diagnostic: &Diagnostic) -> String {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let labels: Vec<Value> = diagnostic.labels.iter().map(|each| label(sources, each)).collect();
    let help: Vec<Value> = diagnostic.help.iter().map(|each| hint(sources, each)).collect();
    let object = json!({
        "code": diagnostic.code.id(),
        "name": diagnostic.code.name(),
        "severity": severity,
        "message": diagnostic.message,
        "labels": labels,
        "notes": diagnostic.notes,
        "help": help,
    });
    object.to_string()
}

fn label(sources: &Sources, label: &Label) -> Value {
    let mut object = range(sources, label.span);
    object["text"] = json!(label.text);
    object["primary"] = json!(label.primary);
    object
}

fn hint(sources: &Sources, hint: &Hint) -> Value {
    let edit = hint.edit.as_ref().map(|edit| replacement(sources, edit));
    json!({ "text": hint.text, "edit": edit, "certain": hint.certainty == Certainty::Certain })
}

fn replacement(sources: &Sources, edit: &Edit) -> Value {
    let mut object = range(sources, edit.span);
    object["replacement"] = json!(edit.replacement);
    object
}

fn range(sources: &Sources, span: Span) -> Value {
    let Some(file) = sources.get(span.source) else { return json!({ "file": null }) };
    let part = file.part_at(span.start);
    let position = |offset: u32| {
        let at = file.line_column(offset);
        json!({ "offset": offset.saturating_sub(part.start), "line": at.line, "column": at.column })
    };
    json!({ "file": part.name, "start": position(span.start), "end": position(span.end) })
}
