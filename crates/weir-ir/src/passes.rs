//! The passes: rewrites of a program that keep its answers, its failures and the order of its effects.
//!
//! A pass is one file and one row of [`EXPR_PASSES`] or [`GRAPH_PASSES`]. Its file says where it comes from and by which
//! *law* it may rewrite. [`optimize()`] runs all of them, in the order of the lists, which is fixed:
//!
//! 1. Locks are ordered first. The checker has done that to compiled programs, because its warnings depend on what steps hold.
//! 2. What is known is computed (loop state, aggregates, constants), because it decides switches and so removes code.
//!    Each of the three leaves fields and copies behind that the next one resolves.
//! 3. Then calls that may gather leave their folds (lifted calls), which leaves copies behind that the next two merge or remove.
//! 4. Then equal work is merged (common subexpressions) and unused work removed (dead code).
//! 5. Sinking moves work into arms, where the passes before would no longer see that two arms do the same. Look-ups are the
//!    last of the expression IR: they stand right before the change of their entry, and nothing comes between them again.
//! 6. After the lowering, passes of the graph work on order, which the expression IR does not show. Detaching looks for last
//!    uses and adds edges, so the removal of edges that others imply comes behind it. The fusion of conditions is the last: it
//!    says how nodes are evaluated, and no pass has to keep that right.
//!
//! The verifier runs after each pass if debug assertions are on. The reference evaluator runs programs *before* all passes:
//! so every comparison of an engine with the evaluator tests the passes too.

use weir_host::Library;

use crate::expr::Block;
use crate::graph::Graph;
use crate::move_only::TypeDefinitions;
use crate::program::Program;
use crate::{lower, verify};
use facts::Facts;
pub use lock_order::{Hoisting, order_locks};

mod aggregates;
mod common;
mod constants;
mod dead_code;
mod detach;
mod facts;
mod fused_conditions;
mod lifted_calls;
mod lock_order;
mod look_ups;
mod loop_state;
mod redundant_order;
mod rewrite;
mod sinking;

/// One pass.
pub struct Pass<F> {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line that says what it does.
    pub caption: &'static str,
    rewrite: F,
}

/// A pass over the expression IR, which rewrites the body of one flow.
pub type ExprPass = Pass<fn(&mut Block, &mut Facts<'_>)>;

/// A pass over graphs, which rewrites the graph of one flow.
pub type GraphPass = Pass<fn(&mut Graph, &Library)>;

/// The passes over the expression IR, in their order.
pub static EXPR_PASSES: &[ExprPass] = &[
    Pass {
        name: "lock-order",
        caption: "takes the locks that a step needs before its own, in the strongest mode",
        rewrite: lock_order::run,
    },
    Pass { name: "loop-state", caption: "splits records that loops carry into their fields", rewrite: loop_state::run },
    Pass {
        name: "aggregates",
        caption: "takes parts of known records and variants directly",
        rewrite: aggregates::run,
    },
    Pass {
        name: "constants",
        caption: "evaluates primitives of constants and decides switches on them",
        rewrite: constants::run,
    },
    Pass {
        name: "lifted-calls",
        caption: "makes reads of a fold that need no earlier round in a for before it",
        rewrite: lifted_calls::run,
    },
    Pass { name: "common-calls", caption: "evaluates equal pure operations once", rewrite: common::run },
    Pass { name: "dead-code", caption: "removes operations whose result is not used", rewrite: dead_code::run },
    Pass { name: "sinking", caption: "moves work into the one arm that uses its result", rewrite: sinking::run },
    Pass {
        name: "look-ups",
        caption: "computes what does not need an entry of a map before it is looked up",
        rewrite: look_ups::run,
    },
];

/// The passes over graphs, in their order.
pub static GRAPH_PASSES: &[GraphPass] = &[
    Pass {
        name: "detach",
        caption: "moves a field or element out of its value before it is replaced",
        rewrite: detach::run,
    },
    Pass {
        name: "redundant-order",
        caption: "removes order edges that other edges imply",
        rewrite: redundant_order::run,
    },
    Pass {
        name: "fused-conditions",
        caption: "lets switches evaluate their conditions themselves",
        rewrite: fused_conditions::run,
    },
];

/// The name of the step between the passes over the expression IR and those over graphs.
pub const LOWERING: &str = "lowering";

/// A program as it is after one step of [`optimize_with`].
#[derive(Clone, Copy)]
pub enum ProgramStage<'p> {
    /// A program in the expression IR.
    Expr(&'p Program<Block>),
    /// A program in graphs.
    Graph(&'p Program<Graph>),
}

/// Runs all passes and lowers the program to graphs: the way from the checked program to what engines run.
///
/// # Panics
/// Panics on a program that the verifier refuses. If debug assertions are on, it also panics if a pass leaves such a
/// program behind.
#[must_use]
pub fn optimize(program: &Program<Block>, library: &Library) -> Program<Graph> {
    optimize_with(program, library, &mut |_, _| {})
}

/// Does the same as [`optimize`], and shows `observe` the program after each step, with the step's name.
#[must_use]
pub fn optimize_with(
    program: &Program<Block>,
    library: &Library,
    observe: &mut dyn FnMut(&'static str, ProgramStage<'_>),
) -> Program<Graph> {
    let mut program = program.clone();
    for pass in EXPR_PASSES {
        run(pass, &mut program, library);
        observe(pass.name, ProgramStage::Expr(&program));
    }
    let mut graph = lower(&program, library);
    debug_assert_eq!(verify::graph(&graph, library), [], "the lowering leaves a right program behind");
    observe(LOWERING, ProgramStage::Graph(&graph));
    for pass in GRAPH_PASSES {
        run_on_graph(pass, &mut graph, library);
        observe(pass.name, ProgramStage::Graph(&graph));
    }
    graph
}

/// Runs one pass over all flows of a program in the expression IR.
pub fn run(pass: &ExprPass, program: &mut Program<Block>, library: &Library) {
    let session_scoped = lock_order::session_scoped(program);
    let definitions = TypeDefinitions { program: &program.types, library };
    for flow in program.entries.iter_mut().flat_map(|entry| &mut entry.flows) {
        let mut facts = Facts::new(flow, definitions, &session_scoped);
        (pass.rewrite)(&mut flow.body, &mut facts);
        flow.former_sites.append(&mut facts.former_sites);
    }
    debug_assert_eq!(verify::expr(program, library), [], "`{}` leaves a right program behind", pass.name);
}

/// Runs one pass over all flows of a program in graphs.
pub fn run_on_graph(pass: &GraphPass, program: &mut Program<Graph>, library: &Library) {
    for flow in program.entries.iter_mut().flat_map(|entry| &mut entry.flows) {
        (pass.rewrite)(&mut flow.body, library);
    }
    debug_assert_eq!(verify::graph(program, library), [], "`{}` leaves a right program behind", pass.name);
}
