//! The calls of a program that are gathered into batches.

use indexmap::IndexMap;
use weir_host::{Batch, Library, World};
use weir_ir::graph::{NodeKind, Program};
use weir_runtime::name_of_batches;

use crate::terminal::Paint;

/// Lists the batched functions of a program, each with its limits and the flows that call it; empty if there are none.
pub(super) fn gathered_calls(program: &Program, library: &Library, paint: Paint) -> String {
    let mut flows_of: IndexMap<String, (Batch, World, Vec<&str>)> = IndexMap::new();
    for flow in program.entries.iter().flat_map(|entry| &entry.flows) {
        flow.body.each_node(&mut |node| {
            let NodeKind::Call { function: path, .. } = &node.kind else { return };
            let Some(function) = library.function(path) else { return };
            let Some(batch) = function.signature.batch else { return };
            let world = function.signature.effects.world;
            let (_, _, flows) = flows_of.entry(name_of_batches(node, path)).or_insert((batch, world, Vec::new()));
            if flows.last() != Some(&flow.name.as_str()) {
                flows.push(&flow.name);
            }
        });
    }
    if flows_of.is_empty() {
        return String::new();
    }
    let lines = flows_of.iter().map(|(path, (batch, world, flows))| {
        let Batch { at_most, in_flight, .. } = batch;
        let out = match (world, in_flight) {
            (World::Writes, _) => "one batch after the other, because it writes".to_owned(),
            (_, 1) => "one batch after the other".to_owned(),
            _ => format!("{in_flight} batches at a time"),
        };
        format!("  {path}, at most {at_most} calls in a batch, {out}: {}\n", flows.join(", "))
    });
    format!("\n{}\n{}", paint.green("calls of all flows that are gathered into batches"), lines.collect::<String>())
}
