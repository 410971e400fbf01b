//! Fused conditions: a switch evaluates the comparisons that decide it, so that no Boolean is stored in between.
//!
//! *Source.* Fusion of a comparison with the branch that tests it, as instruction selection does it by tiling trees of which
//! each inner node has one use (Aho, Ganapathi, Tjiang 1989, §2).
//!
//! *Law.* A primitive that compares scalars or combines Booleans (`not`, `and`, `or`) can neither fail nor be observed. The
//! switch may evaluate it if nothing else uses its result, and if its operands are there and unchanged when the switch
//! runs: primitive and switch are in the same arm and the same atomic step, its operands are scalars, and no call takes
//! them by `&mut`. Deeper nesting than a fixed bound stays as it is.
//!
//! The pass moves nothing: it records at each such node which switch evaluates it (`condition of %5` in the printed graph).
//! Engines obey. To them the switch is what uses the operands.

use weir_host::Library;

use crate::graph::{Conditions, Graph, NodeId, may_hold_condition};

pub(super) fn run(graph: &mut Graph, library: &Library) {
    if graph.nodes.iter().any(may_hold_condition) {
        let conditions = Conditions::new(graph, library);
        let parts = |(switch, _)| conditions.parts(switch).into_iter().map(move |part| (part, switch));
        let fused: Vec<(NodeId, NodeId)> = graph.nodes().flat_map(parts).collect();
        for (part, switch) in fused {
            graph.nodes[part.0 as usize].condition_of = Some(switch);
        }
    }
    graph.nodes.iter_mut().flat_map(|node| node.kind.bodies_mut()).for_each(|body| run(body, library));
}
