//! The types of the parameters of routes, as a program declares them.

use weir_host::Type;
use weir_ir::graph::{Graph, Node, NodeKind};
use weir_ir::program::{Flow, Variable};

/// Returns the type that the parameter of a route has in the program. The flow of a service with `before` begins with a body that has
/// not been read.
pub(crate) fn read_type<'f>(flow: &'f Flow<Graph>, parameter: &'f Variable) -> &'f Type {
    if !matches!(&parameter.ty, Type::Named(name) if name.as_str() == "http.RequestBody") {
        return &parameter.ty;
    }
    let is_read =
        |node: &&Node| matches!(&node.kind, NodeKind::Call { function, .. } if function.as_str() == "http.read_body");
    match flow.body.nodes.iter().find(is_read).and_then(|node| node.outputs.first()) {
        Some(Type::Result(read)) => &read.0,
        _ => &parameter.ty,
    }
}
