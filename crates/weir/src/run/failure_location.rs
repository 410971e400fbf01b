//! Failure location: the source location of a failed flow, found by the node path in the trace.

use weir_ir::graph::{Graph, Node, NodeKind, Operand, Program};
use weir_syntax::SourceFile;
use weir_trace::{BacktraceEntry, FlowKey};

/// A program and its source file.
pub(super) struct FailureLocator {
    pub(super) program: Program,
    pub(super) file: SourceFile,
}

impl FailureLocator {
    /// Describes a node path: the flow, the source location, and the called function. With a backtrace, the location is the
    /// one in the flow itself.
    pub(super) fn describe(&self, flow: FlowKey, path: &str, has_backtrace: bool) -> String {
        self.find(flow, path, has_backtrace).unwrap_or_else(|| path.to_owned())
    }

    /// Describes an entry of a backtrace.
    pub(super) fn passed(&self, entry: &BacktraceEntry) -> String {
        passed(&self.file, &entry.failed, &entry.function, entry.position)
    }

    /// Describes an entry point by its source, as programs name it.
    pub(super) fn source(&self, entry: u32) -> &str {
        let source = self.program.entries.get(entry as usize).map_or("a source", |entry| &*entry.source);
        // The source `http` of the module `http`.
        source.split_once('.').filter(|(module, name)| module == name).map_or(source, |(module, _)| module)
    }

    fn find(&self, key: FlowKey, path: &str, has_backtrace: bool) -> Option<String> {
        let flow = self.program.entries.get(key.entry as usize)?.flows.get(key.route as usize)?;
        let node_path = path.strip_prefix(&*flow.name)?.strip_prefix(": ")?;
        let (graph, node) = find(&flow.body, node_path)?;
        let failed = if has_backtrace { node } else { cause(graph, node) };
        let origin = if failed.origin.end > 0 { failed.origin } else { node.origin };
        let place = weir_syntax::location(&self.file, origin.start);
        match &failed.kind {
            NodeKind::Call { function } => Some(format!("{} at {place}, {function}", flow.name)),
            _ => Some(format!("{} at {place}", flow.name)),
        }
    }
}

/// Describes a place in a file where `function` has given a failure of `failed` to its caller.
pub(crate) fn passed(file: &SourceFile, failed: &str, function: &str, position: u32) -> String {
    let place = weir_syntax::location(file, position);
    let failed = if failed.is_empty() { "failed" } else { failed };
    format!("{failed} at {place}, in `{function}`")
}

/// Returns the node with this path, and its graph. The names of enclosing bodies are prefixes of the path.
fn find<'a>(graph: &'a Graph, path: &str) -> Option<(&'a Graph, &'a Node)> {
    graph.nodes.iter().find_map(|node| {
        if &*node.name == path {
            return Some((graph, node));
        }
        let within = path.strip_prefix(&*node.name)?.strip_prefix('/')?;
        node.bodies().iter().find_map(|body| find(body, within))
    })
}

/// Returns the call whose failure a `?` passed on, or the node itself.
fn cause<'a>(graph: &'a Graph, node: &'a Node) -> &'a Node {
    let mut at = node;
    // Every step goes to an earlier node, so the loop terminates.
    while let (NodeKind::Fail | NodeKind::Switch { .. } | NodeKind::Prim(_), Some(Operand::Port(from, _))) =
        (&at.kind, at.inputs.first())
    {
        at = graph.node(*from);
    }
    if matches!(at.kind, NodeKind::Call { .. }) { at } else { node }
}
