//! Failure location: the places of a failure in the source, found by the node path in the trace.
//!
//! A `?` adds the `fn`s that a failure leaves to its backtrace when it passes. Other failures, such as those of arithmetic,
//! end the flow where they arise: the calls around that place are those that were inlined (`Program::inlined_calls`).

use weir_host::{Failure, PropagationSite, Text};
use weir_ir::graph::{Graph, Node, NodeKind, Operand, Origin, Program};
use weir_ir::prim::Prim;
use weir_ir::program;
use weir_syntax::SourceFile;
use weir_trace::{BacktraceEntry, FlowKey};

/// A program and its source file.
pub(crate) struct FailureLocator {
    pub(crate) program: Program,
    pub(crate) file: SourceFile,
}

/// The places of a failure.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FailureTrace {
    /// The place in the body of the flow, and the function that is called there.
    pub(crate) place: String,
    /// The places in `fn`s that it has passed, innermost first.
    pub(crate) passed: Vec<String>,
}

impl FailureLocator {
    /// Returns the places of the failure of a flow. One with a position belongs there, and not to the node that has learned of it.
    pub(super) fn flow(
        &self,
        key: FlowKey,
        path: &str,
        backtrace: &[BacktraceEntry],
        position: Option<u32>,
    ) -> FailureTrace {
        let flow = self.program.entries.get(key.entry as usize).and_then(|of| of.flows.get(key.route as usize));
        let found = flow.and_then(|flow| {
            let node_path = path.strip_prefix(&*flow.name)?.strip_prefix(": ")?;
            let trace = match position {
                Some(position) => self.passed(&weir_syntax::location(&self.file, position), backtrace),
                None => self.body(&flow.body, node_path, backtrace)?,
            };
            Some(FailureTrace { place: format!("{} at {}", flow.name, trace.place), ..trace })
        });
        found.unwrap_or_else(|| self.passed(path, backtrace))
    }

    /// Returns the places of the failure of an initial value or of the arguments of a source.
    pub(super) fn initial(&self, name: &str, path: &str, failure: &Failure) -> Option<FailureTrace> {
        let shared = self.program.shared.iter().find(|shared| &*shared.name == name).map(|shared| &shared.init);
        let arguments = self.program.entries.iter().find(|entry| &*entry.name == name).map(|entry| &entry.arguments);
        let backtrace: Vec<BacktraceEntry> = failure.backtrace().iter().map(entry).collect();
        [shared, arguments].into_iter().flatten().find_map(|body| self.body(body, path, &backtrace))
    }

    /// Describes an entry point by its source, as programs name it.
    pub(super) fn source(&self, entry: u32) -> &str {
        let source = self.program.entries.get(entry as usize).map_or("a source", |entry| &*entry.source);
        // The source `http` of the module `http`.
        source.split_once('.').filter(|(module, name)| module == name).map_or(source, |(module, _)| module)
    }

    fn body(&self, body: &Graph, path: &str, backtrace: &[BacktraceEntry]) -> Option<FailureTrace> {
        let (graph, node) = find(body, path)?;
        // With a backtrace, the node is the place in the flow itself.
        let failed = if backtrace.is_empty() { cause(graph, node) } else { node };
        let origin = if failed.origin.end > 0 { failed.origin } else { node.origin };
        let function = match &failed.kind {
            NodeKind::Call { function, .. } => function.clone(),
            NodeKind::Prim(Prim::Unwrap) => kept_call(body, failed).unwrap_or_default(),
            _ => Text::default(),
        };
        // Programs write statements on tables by the names of the tables.
        let function = if function.starts_with("tables.") { "" } else { &*function };
        if !backtrace.is_empty() {
            return Some(self.passed(&place(&self.file, origin, function), backtrace));
        }
        let (sites, origin, failed) = inlined_backtrace(&self.program, origin, function.into());
        let lines = sites.iter().map(|of| passed(&self.file, &of.failed, &of.function, of.position));
        Some(FailureTrace { place: place(&self.file, origin, &failed), passed: lines.collect() })
    }

    fn passed(&self, place: &str, backtrace: &[BacktraceEntry]) -> FailureTrace {
        let passed = backtrace.iter().map(|of| passed(&self.file, &of.failed, &of.function, of.position));
        FailureTrace { place: place.to_owned(), passed: passed.collect() }
    }
}

fn entry(site: &PropagationSite) -> BacktraceEntry {
    let (failed, function) = (site.failed.as_str().into(), site.function.as_str().into());
    BacktraceEntry { failed, function, position: site.position }
}

/// Returns the places in the inlined `fn`s around an operation that failed and passed no `?`, and the place of the outermost
/// call. `failed` is the function that the operation calls, if any.
pub(crate) fn inlined_backtrace<B>(
    program: &program::Program<B>,
    mut origin: Origin,
    mut failed: Text,
) -> (Vec<PropagationSite>, Origin, Text) {
    let mut sites = Vec::new();
    for (_, call) in program.inlined_calls_around(origin) {
        sites.push(PropagationSite { failed, function: call.function.clone(), position: origin.start });
        (failed, origin) = (call.function.clone(), call.called_at);
    }
    (sites, origin, failed)
}

/// Describes a place and the function that is called there.
fn place(file: &SourceFile, origin: Origin, function: &str) -> String {
    let place = weir_syntax::location(file, origin.start);
    if function.is_empty() { place } else { format!("{place}, {function}") }
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

/// Returns the function of the call whose failure was kept until the flow came to this node: both have the place of the call.
fn kept_call(body: &Graph, node: &Node) -> Option<Text> {
    let mut found = None;
    body.each_node(&mut |call| {
        if let NodeKind::Call { function, keeps_failure: true, .. } = &call.kind
            && call.origin == node.origin
        {
            found = Some(function.clone());
        }
    });
    found
}

/// Returns the call whose failure a `?` passed on, or the node itself.
fn cause<'a>(graph: &'a Graph, node: &'a Node) -> &'a Node {
    let mut at = node;
    // An operation that fails by itself has passed nothing on, whatever its operands come from.
    if matches!(node.kind, NodeKind::Prim(_)) {
        return node;
    }
    // Every step goes to an earlier node, so the loop terminates.
    while let (NodeKind::Fail | NodeKind::Switch { .. } | NodeKind::Prim(_), Some(Operand::Port(from, _))) =
        (&at.kind, at.inputs.first())
    {
        at = graph.node(*from);
    }
    if matches!(at.kind, NodeKind::Call { .. }) { at } else { node }
}
