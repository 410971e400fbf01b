//! Checks the ports and addresses of sources that are written as literals, and that no two sources listen at one address.

use weir_host::{ListenAddress, ListenProtocol, SourceSignature, Value};
use weir_syntax::ast::{Argument, Expr, ExprKind, Item, ItemKind};
use weir_syntax::{Code, Diagnostic, Span};

use crate::constant::constant;
use crate::context::CheckContext;
use crate::typed_tree::{ArgumentSource, EntryInfo, TypedTree};

/// Reports every argument with which its source cannot be opened.
pub(crate) fn check(context: &mut CheckContext<'_>, typed: &TypedTree) {
    let mut listening: Vec<(ListenAddress, Span)> = Vec::new();
    for entry in typed.entries() {
        let Some((address, span)) = address(context, entry) else { continue };
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
fn address(context: &mut CheckContext<'_>, entry: &EntryInfo) -> Option<(ListenAddress, Span)> {
    let library = context.library;
    let (module, name) = entry.source.rsplit_once('.')?;
    let (signature, source) = library.modules.get(module)?.sources.get(name)?;
    let protocol: ListenProtocol = source.listens()?;
    let (callee, arguments) = call(context.tree().items.get(entry.item)?)?;
    let known = |name| known_argument(signature, entry, arguments, name, callee);
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

/// Returns the transport or the source of an entry point and its arguments.
fn call(item: &Item) -> Option<(Span, &[Argument])> {
    match &item.kind {
        ItemKind::Service(service) => Some((service.transport.span, &service.arguments)),
        ItemKind::Entry(entry) => Some(source_call(&entry.source)),
        _ => None,
    }
}

fn source_call(source: &Expr) -> (Span, &[Argument]) {
    match &source.kind {
        ExprKind::Call { function, arguments } => (function.span, arguments),
        _ => (source.span, &[]),
    }
}

/// Returns the value of a parameter and the place in the text that gives it; `None` if it is computed.
fn known_argument(
    signature: &SourceSignature,
    entry: &EntryInfo,
    arguments: &[Argument],
    name: &str,
    callee: Span,
) -> Option<(Value, Span)> {
    let index = signature.parameters.iter().position(|parameter| parameter.name.as_str() == name)?;
    match entry.supplied.get(index)? {
        ArgumentSource::Argument(at) => {
            let argument = arguments.get(*at)?;
            constant(&argument.value).map(|value| (value, argument.span))
        }
        _ => signature.parameters[index].default.clone().map(|value| (value, callee)),
    }
}
