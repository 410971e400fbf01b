//! Checks the arguments of sources that are constants, as far as their sources know how they will be refused at the start.

use std::sync::Arc;

use weir_host::{Route, SourceSignature, TypeDefinition, Value};
use weir_ir::expr::Program;
use weir_syntax::ast::{Argument, Expr, ExprKind, Item, ItemKind};
use weir_syntax::{Code, Diagnostic, Span};

use crate::context::CheckContext;
use crate::typed_tree::{ArgumentSource, EntryInfo, TypedTree};

/// Reports every argument with which its source would not start.
pub(crate) fn check(program: &Program, context: &mut CheckContext<'_>, typed: &TypedTree) {
    let types: Arc<[TypeDefinition]> = program.types.clone().into();
    for (entry, lowered) in typed.entries().iter().zip(&program.entries) {
        for diagnostic in faults(context, typed, entry, &lowered.routes(&types)).unwrap_or_default() {
            context.report(diagnostic);
        }
    }
}

fn faults(
    context: &CheckContext<'_>,
    typed: &TypedTree,
    entry: &EntryInfo,
    routes: &Arc<[Route]>,
) -> Option<Vec<Diagnostic>> {
    let (module, name) = entry.source.rsplit_once('.')?;
    let (signature, source) = context.library.modules.get(module)?.sources.get(name)?;
    let item = context.tree().items.get(entry.item)?;
    let call = source_call(item)?;
    let known = |index| known_argument(signature, typed, entry, call, index);
    let arguments: Vec<_> = (0..signature.parameters.len()).map(|index| Some(known(index)?.0)).collect();
    let faults = source.faults(&arguments, routes).into_iter().map(|(index, failure)| {
        let span = known(index).map_or(call.0, |(_, span)| span);
        let message = failure.message.to_string();
        Diagnostic::new(Code::SourceArgument, message).at(span, format!("{} would not start", source_name(item)))
    });
    Some(faults.collect())
}

/// Returns the name of a service, or of the source of a `for`.
fn source_name(item: &Item) -> String {
    match &item.kind {
        ItemKind::Service(service) => format!("`{}`", service.name),
        _ => "the source".to_owned(),
    }
}

/// Returns the transport or the source of an entry point and its arguments.
pub(crate) fn source_call(item: &Item) -> Option<(Span, &[Argument])> {
    match &item.kind {
        ItemKind::Service(service) => Some((service.transport.span, &service.arguments)),
        ItemKind::Entry(entry) => Some(called(&entry.source)),
        _ => None,
    }
}

fn called(source: &Expr) -> (Span, &[Argument]) {
    match &source.kind {
        ExprKind::Call { function, arguments } => (function.span, arguments),
        _ => (source.span, &[]),
    }
}

/// Returns the value of the parameter with this index and the place in the text that gives it; `None` if it is computed.
pub(crate) fn known_argument(
    signature: &SourceSignature,
    typed: &TypedTree,
    entry: &EntryInfo,
    (callee, arguments): (Span, &[Argument]),
    index: usize,
) -> Option<(Value, Span)> {
    match entry.supplied.get(index)? {
        ArgumentSource::Argument(at) => {
            let argument = arguments.get(*at)?;
            Some((typed.constant(&argument.value).ok()?, argument.span))
        }
        _ => signature.parameters[index].default.clone().map(|value| (value, callee)),
    }
}
