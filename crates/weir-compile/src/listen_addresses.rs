//! Checks the ports and addresses of sources that are constants, and that no two sources listen at one address.

use weir_host::{ListenAddress, ListenProtocol, Value};
use weir_syntax::{Code, Diagnostic, Span};

use crate::context::CheckContext;
use crate::source_arguments::{known_argument, source_call};
use crate::typed_tree::{EntryInfo, TypedTree};

/// Reports every argument with which its source cannot be opened.
pub(crate) fn check(context: &mut CheckContext<'_>, typed: &TypedTree) {
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
