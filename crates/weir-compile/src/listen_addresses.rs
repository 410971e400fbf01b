//! Checks the ports and addresses of sources that are constants, and that no two sources listen at one address or read the
//! standard input.

use weir_host::{ListenAddress, ListenProtocol, Value};
use weir_syntax::{Code, Diagnostic, Span};

use crate::context::CheckContext;
use crate::source_arguments::{known_argument, source_call};
use crate::typed_tree::{EntryInfo, TypedTree};

/// Reports every argument with which its source cannot be opened.
pub(crate) fn check(context: &mut CheckContext<'_>, typed: &TypedTree) {
    standard_input(context, typed);
    let mut listening: Vec<(ListenAddress, Span)> = Vec::new();
    for entry in typed.entries() {
        let Some((address, span)) = address(context, typed, entry) else { continue };
        match listening.iter().find(|(other, _)| address.excludes(*other)) {
            None => listening.push((address, span)),
            Some((_, first)) => {
                let message = format!("two sources listen at {address}");
                let diagnostic = Diagnostic::new(Code::ListenAddress, message)
                    .at(span, "cannot listen here")
                    .because(*first, "listens there already")
                    .hint("choose another port");
                context.report(diagnostic);
            }
        }
    }
}

/// Reports every source but the first that reads the standard input.
fn standard_input(context: &mut CheckContext<'_>, typed: &TypedTree) {
    let mut reading: Option<Span> = None;
    for entry in typed.entries() {
        let library = context.library;
        let source =
            entry.source.rsplit_once('.').and_then(|(module, name)| library.modules.get(module)?.sources.get(name));
        if !source.is_some_and(|(_, source)| source.reads_standard_input()) {
            continue;
        }
        let Some((span, _)) = context.tree().items.get(entry.item).and_then(|item| source_call(item)) else { continue };
        let Some(first) = reading else {
            reading = Some(span);
            continue;
        };
        let diagnostic = Diagnostic::new(Code::StandardInputTwice, "two sources read the standard input")
            .at(span, "each line would go to one of them, by chance")
            .because(first, "reads it already")
            .hint("read it in one `for`, and call a `fn` for each use of the line");
        context.report(diagnostic);
    }
}

/// Returns the address at which a source listens and the argument that names its port, if they are known. Reports
/// arguments that are no address.
fn address(context: &mut CheckContext<'_>, typed: &TypedTree, entry: &EntryInfo) -> Option<(ListenAddress, Span)> {
    let library = context.library;
    let (module, name) = entry.source.rsplit_once('.')?;
    let (signature, source) = library.modules.get(module)?.sources.get(name)?;
    let protocol: ListenProtocol = source.listens()?;
    let call = source_call(context.tree().items.get(entry.item)?)?;
    let known = |name: &str| {
        let index = signature.parameters.iter().position(|parameter| parameter.name.as_str() == name)?;
        known_argument(signature, typed, entry, call, index)
    };
    let (port, ip) = (known("port"), known("address"));
    let port = port.and_then(|(value, span)| match value {
        Value::Int(port) => accepted(context, ListenAddress::port(port), span).map(|port| (port, span)),
        _ => None,
    });
    let ip = ip.and_then(|(value, span)| match value {
        Value::Text(text) => accepted(context, ListenAddress::ip(&text), span),
        _ => None,
    });
    let ((port, span), ip) = port.zip(ip)?;
    Some((ListenAddress { protocol, address: (ip, port).into() }, span))
}

fn accepted<T>(context: &mut CheckContext<'_>, checked: Result<T, String>, span: Span) -> Option<T> {
    let refuse = |message: String| {
        context.report(Diagnostic::new(Code::ListenAddress, message).at(span, "no source can listen here"));
    };
    checked.map_err(refuse).ok()
}
