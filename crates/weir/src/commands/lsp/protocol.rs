//! Protocol encoding: results of `weir-ide` as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_ide::{
    CodeAction, Completion, CompletionKind, Document, DocumentSymbol, FileLocation, InlayHint, Position, SymbolKind,
    TestLens,
};
use weir_syntax::{Diagnostic, Edit, Severity, Span};

/// Encodes a source range as lines and UTF-16 columns.
pub(super) fn range(document: &Document, span: Span) -> Value {
    json!({ "start": position(document, span.start), "end": position(document, span.end) })
}

fn position(document: &Document, offset: u32) -> Value {
    let position = document.position(offset);
    json!({ "line": position.line, "character": position.character })
}

/// Encodes a location in a file.
pub(super) fn location(document: &Document, address: &str, span: Span) -> Value {
    json!({ "uri": address_of(document, address, span), "range": range(document, span) })
}

/// Returns the URI of the file that has a source range. `address` is that of the document.
fn address_of(document: &Document, address: &str, span: Span) -> String {
    match document.other_file(span.start) {
        None => address.to_owned(),
        Some(file) => FileLocation { file: file.into(), position: Position { line: 0, character: 0 } }.uri(),
    }
}

/// Encodes a location in a Rust file.
pub(super) fn rust_location(place: &FileLocation) -> Value {
    let position = json!({ "line": place.position.line, "character": place.position.character });
    json!({ "uri": place.uri(), "range": { "start": position, "end": position } })
}

/// `DiagnosticTag.Unnecessary` of the protocol: editors show the code faded.
const UNNECESSARY: u32 = 1;

/// Encodes all diagnostics of a document.
pub(super) fn diagnostics(document: &Document, address: &str) -> Value {
    document.diagnostics().iter().map(|found| diagnostic(document, address, found)).collect()
}

fn diagnostic(document: &Document, address: &str, found: &Diagnostic) -> Value {
    let place = found.span().unwrap_or_default();
    let related = found.labels.iter().filter(|label| label.span != place && !label.text.is_empty());
    let related =
        related.map(|label| json!({ "location": location(document, address, label.span), "message": label.text }));
    let tags: &[u32] = if found.code.is_unnecessary() { &[UNNECESSARY] } else { &[] };
    json!({
        "range": range(document, place),
        "tags": tags,
        "severity": match found.severity { Severity::Error => 1, Severity::Warning => 2 },
        "code": found.code.id(),
        "source": "weir",
        "message": message(found, place),
        "relatedInformation": related.collect::<Vec<_>>(),
    })
}

/// Returns the message with the labels at its place, its notes and its hints.
fn message(found: &Diagnostic, place: Span) -> String {
    let at = found.labels.iter().filter(|label| label.span == place && !label.text.is_empty());
    let mut lines = vec![found.message.clone()];
    lines.extend(at.map(|label| label.text.clone()));
    lines.extend(found.notes.iter().map(|note| format!("note: {note}")));
    lines.extend(found.help.iter().map(|hint| format!("help: {}", hint.text)));
    lines.join("\n")
}

/// Encodes edits of one document.
pub(super) fn edits(document: &Document, edits: &[Edit]) -> Value {
    edits.iter().map(|edit| json!({ "range": range(document, edit.span), "newText": edit.replacement })).collect()
}

/// Encodes edits of the files of a program as a workspace edit.
pub(super) fn changes(document: &Document, address: &str, edits: &[Edit]) -> Value {
    let mut changes: BTreeMap<String, Vec<Edit>> = BTreeMap::new();
    for edit in edits {
        changes.entry(address_of(document, address, edit.span)).or_default().push(edit.clone());
    }
    let changes: BTreeMap<String, Value> =
        changes.into_iter().map(|(address, edits)| (address, self::edits(document, &edits))).collect();
    json!({ "changes": changes })
}

/// Encodes a quick fix.
pub(super) fn action(document: &Document, address: &str, action: &CodeAction) -> Value {
    json!({ "title": action.title, "kind": "quickfix", "edit": changes(document, address, &action.edits) })
}

/// Encodes a type behind a name.
pub(super) fn inlay_hint(document: &Document, hint: &InlayHint) -> Value {
    json!({
        "position": position(document, hint.offset),
        "label": hint.label,
        "kind": INLAY_HINT_TYPE,
        "textEdits": edits(document, hint.edit.as_slice()),
    })
}

/// `InlayHintKind.Type` of the protocol.
const INLAY_HINT_TYPE: u32 = 1;

/// Encodes a test with the command that runs it, which the editor's extension provides.
pub(super) fn test_lens(document: &Document, address: &str, lens: &TestLens) -> Value {
    let command = json!({ "title": "Run test", "command": "weir.runTest", "arguments": [address, lens.name] });
    json!({ "range": range(document, lens.span), "command": command })
}

/// Encodes a completion. Editors sort by `sortText`, which preserves the order of the completions.
pub(super) fn completion(document: &Document, completion: &Completion, rank: usize) -> Value {
    json!({
        "label": completion.label,
        "kind": completion_kind(completion.kind),
        "detail": completion.detail,
        "documentation": { "kind": "markdown", "value": completion.documentation },
        "sortText": format!("{rank:05}"),
        "textEdit": { "range": range(document, completion.span), "newText": completion.label },
        "additionalTextEdits": edits(document, &completion.also),
    })
}

/// Returns the protocol's number for a kind of completion.
fn completion_kind(kind: CompletionKind) -> u8 {
    match kind {
        CompletionKind::Function => 3,
        CompletionKind::Field => 5,
        CompletionKind::Local => 6,
        CompletionKind::Type => 7,
        CompletionKind::Module => 9,
        CompletionKind::Keyword => 14,
        CompletionKind::Variant => 20,
        CompletionKind::Shared | CompletionKind::Constraint | CompletionKind::Config => 21,
        CompletionKind::Source => 23,
    }
}

/// Encodes a symbol with its children. Nesting is bounded: items have members, members have none.
pub(super) fn symbol(document: &Document, each: &DocumentSymbol) -> Value {
    json!({
        "name": each.name,
        "kind": symbol_kind(each.kind),
        "range": range(document, each.span),
        "selectionRange": range(document, each.name_span),
        "children": each.children.iter().map(|child| symbol(document, child)).collect::<Vec<_>>(),
    })
}

/// Returns the protocol's number for a kind of symbol.
fn symbol_kind(kind: SymbolKind) -> u8 {
    match kind {
        SymbolKind::Service => 3,
        SymbolKind::Route => 6,
        SymbolKind::Field => 8,
        SymbolKind::Enum => 10,
        SymbolKind::Function | SymbolKind::Test => 12,
        SymbolKind::Shared => 13,
        SymbolKind::Constraint | SymbolKind::Config => 14,
        SymbolKind::Variant => 22,
        SymbolKind::Record => 23,
        SymbolKind::Entry | SymbolKind::Handler => 24,
    }
}
