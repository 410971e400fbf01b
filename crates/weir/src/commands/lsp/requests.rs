//! Requests of the protocol, one row each.

use lsp_server::Request;
use serde_json::{Value, json};
use weir_ide::{Definition, Document, Position};
use weir_syntax::{Edit, SourceId, Span};

use super::protocol;

/// A request handler. Takes the document, its URI, and the parameters of the request.
pub(super) type RequestHandler = fn(&Document, &str, &Value) -> Result<Value, String>;

/// Every request with its handler.
const REQUESTS: [(&str, RequestHandler); 13] = [
    ("textDocument/hover", hover),
    ("textDocument/definition", definition),
    ("textDocument/references", references),
    ("textDocument/documentHighlight", highlights),
    ("textDocument/completion", completion),
    ("textDocument/signatureHelp", signature_help),
    ("textDocument/prepareRename", prepare_rename),
    ("textDocument/rename", rename),
    ("textDocument/formatting", formatting),
    ("textDocument/codeAction", code_actions),
    ("textDocument/documentSymbol", symbols),
    ("textDocument/inlayHint", inlay_hints),
    ("textDocument/codeLens", code_lenses),
];

/// Returns the handler of a request.
pub(super) fn handler(method: &str) -> Option<RequestHandler> {
    REQUESTS.iter().find(|(name, _)| *name == method).map(|(_, answer)| *answer)
}

/// Returns the capabilities that the server announces.
pub(super) fn capabilities() -> Value {
    json!({
        // Full texts: a check reads the whole text anyway.
        "textDocumentSync": { "openClose": true, "change": 1 },
        "hoverProvider": true,
        "definitionProvider": true,
        "referencesProvider": true,
        "documentHighlightProvider": true,
        "completionProvider": { "triggerCharacters": ["."] },
        "signatureHelpProvider": { "triggerCharacters": ["(", ","] },
        "renameProvider": { "prepareProvider": true },
        "documentFormattingProvider": true,
        "codeActionProvider": { "codeActionKinds": ["quickfix"] },
        "documentSymbolProvider": true,
        "inlayHintProvider": true,
        "codeLensProvider": {},
    })
}

/// Returns the request that makes the editor tell which Weir files change on disk, such as those that are not open and that
/// another program writes.
pub(super) fn watch_of_files() -> Request {
    let watchers = json!({ "watchers": [{ "globPattern": "**/*.weir" }] });
    let registration =
        json!({ "id": "weir-files", "method": "workspace/didChangeWatchedFiles", "registerOptions": watchers });
    let params = json!({ "registrations": [registration] });
    Request::new("weir-files".to_owned().into(), "client/registerCapability".to_owned(), params)
}

fn hover(document: &Document, _: &str, params: &Value) -> Result<Value, String> {
    let hover = document.hover(offset(document, &params["position"])?);
    Ok(hover.map_or(Value::Null, |hover| {
        json!({
            "contents": { "kind": "markdown", "value": hover.markdown },
            "range": protocol::range(document, hover.span),
        })
    }))
}

fn definition(document: &Document, address: &str, params: &Value) -> Result<Value, String> {
    match document.definition(offset(document, &params["position"])?) {
        Some(Definition::Here(span)) => Ok(protocol::location(document, address, span)),
        Some(Definition::Rust(place)) => Ok(protocol::rust_location(&place)),
        // The location of the Rust source is unknown to a command that was built elsewhere.
        Some(Definition::Library(_)) | None => Ok(Value::Null),
    }
}

fn references(document: &Document, address: &str, params: &Value) -> Result<Value, String> {
    let spans = document.references(offset(document, &params["position"])?);
    Ok(spans.into_iter().map(|span| protocol::location(document, address, span)).collect())
}

fn highlights(document: &Document, _: &str, params: &Value) -> Result<Value, String> {
    let spans = document.references(offset(document, &params["position"])?);
    let here = spans.into_iter().filter(|span| document.other_file(span.start).is_none());
    Ok(here.map(|span| json!({ "range": protocol::range(document, span) })).collect())
}

fn completion(document: &Document, _: &str, params: &Value) -> Result<Value, String> {
    let found = document.completions(offset(document, &params["position"])?);
    let items = found.iter().enumerate().map(|(rank, completion)| protocol::completion(document, completion, rank));
    // Completions that do not match the word so far are left out, so the editor must ask again as the word grows.
    Ok(json!({ "isIncomplete": true, "items": items.collect::<Vec<_>>() }))
}

fn signature_help(document: &Document, _: &str, params: &Value) -> Result<Value, String> {
    let help = document.call_help(offset(document, &params["position"])?);
    Ok(help.map_or(Value::Null, |help| {
        let parameters: Vec<Value> = help.parameters.iter().map(|parameter| json!({ "label": parameter })).collect();
        let signature = json!({
            "label": help.signature,
            "documentation": { "kind": "markdown", "value": help.doc },
            "parameters": parameters,
        });
        json!({ "signatures": [signature], "activeSignature": 0, "activeParameter": help.active })
    }))
}

fn prepare_rename(document: &Document, _: &str, params: &Value) -> Result<Value, String> {
    let span =
        document.prepare_rename(offset(document, &params["position"])?).map_err(|refusal| refusal.to_string())?;
    Ok(protocol::range(document, span))
}

fn rename(document: &Document, address: &str, params: &Value) -> Result<Value, String> {
    let new = params["newName"].as_str().ok_or("the new name is missing")?;
    let edits = document.rename(offset(document, &params["position"])?, new).map_err(|refusal| refusal.to_string())?;
    Ok(protocol::changes(document, address, &edits))
}

fn formatting(document: &Document, _: &str, _: &Value) -> Result<Value, String> {
    let edits: Vec<Edit> = document.formatting();
    Ok(protocol::edits(document, &edits))
}

fn code_actions(document: &Document, address: &str, params: &Value) -> Result<Value, String> {
    Ok(document
        .actions(span(document, &params["range"])?)
        .iter()
        .map(|action| protocol::action(document, address, action))
        .collect())
}

fn symbols(document: &Document, _: &str, _: &Value) -> Result<Value, String> {
    Ok(document.outline().iter().map(|symbol| protocol::symbol(document, symbol)).collect())
}

fn inlay_hints(document: &Document, _: &str, params: &Value) -> Result<Value, String> {
    let hints = document.inlay_hints(span(document, &params["range"])?);
    Ok(hints.iter().map(|hint| protocol::inlay_hint(document, hint)).collect())
}

fn code_lenses(document: &Document, address: &str, _: &Value) -> Result<Value, String> {
    Ok(document.test_lenses().iter().map(|lens| protocol::test_lens(document, address, lens)).collect())
}

/// Returns the span of a range, whose end may stand before its start.
fn span(document: &Document, range: &Value) -> Result<Span, String> {
    let (start, end) = (offset(document, &range["start"])?, offset(document, &range["end"])?);
    Ok(Span::new(SourceId(0), start.min(end), start.max(end)))
}

/// Returns the byte offset of a position.
fn offset(document: &Document, position: &Value) -> Result<u32, String> {
    let number = |name: &str| position[name].as_u64().map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    match (number("line"), number("character")) {
        (Some(line), Some(character)) => Ok(document.offset(Position { line, character })),
        _ => Err("the position is missing".into()),
    }
}
