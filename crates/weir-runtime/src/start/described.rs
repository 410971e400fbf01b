//! Descriptions of a program that is not started: its regions, and how its loops and calls are run.

use weir_host::Library;
use weir_ir::graph::{Graph, Program};
use weir_ir::plan::Plan;
use weir_ir::program::Flow;

use super::{Options, gathering};
use crate::prepare::{
    IndependentPart, LoopRounds, Preparation, PrepareError, PreparedFlow, QueuedCall, queued_calls_of,
};
use crate::resources::Resources;

/// Returns the regions of a program as text: the nodes that run as one piece of bytecode, and why each region ends where it
/// ends.
///
/// # Errors
/// Fails if the program does not fit the library.
pub fn regions(program: &Program, library: &Library) -> Result<String, PrepareError> {
    let mut text = String::new();
    each_flow(program, library, |preparation, flow, prepared| text += &preparation.regions(flow, prepared))?;
    Ok(text)
}

/// Returns the loops of a program that only compute, and whether their rounds may run on several cores.
///
/// # Errors
/// Fails if the program does not fit the library.
pub fn loops(program: &Program, library: &Library) -> Result<Vec<LoopRounds>, PrepareError> {
    let mut found = Vec::new();
    each_flow(program, library, |_, flow, prepared| Preparation::loops(flow, prepared, &mut found))?;
    Ok(found)
}

/// Returns the loops and long calls of a program that stand behind others, and whether they may run beside them.
///
/// # Errors
/// Fails if the program does not fit the library.
pub fn independent_parts(program: &Program, library: &Library) -> Result<Vec<IndependentPart>, PrepareError> {
    let mut found = Vec::new();
    each_flow(program, library, |preparation, flow, prepared| {
        preparation.independent_parts(flow, prepared, &mut found);
    })?;
    Ok(found)
}

/// Returns the calls of a program that take their turns in the queue of their section under this plan.
///
/// # Errors
/// Fails if the program does not fit the library.
pub fn queued_calls(program: &Program, library: &Library, plan: &Plan) -> Result<Vec<QueuedCall>, PrepareError> {
    let mut found = Vec::new();
    each_flow_under(program, library, Some(plan), |_, flow, prepared| {
        queued_calls_of(&flow.name, &prepared.body, &mut found);
    })?;
    Ok(found)
}

/// Prepares each flow of a program that is not started.
fn each_flow(
    program: &Program,
    library: &Library,
    see: impl FnMut(&Preparation<'_>, &Flow<Graph>, &PreparedFlow),
) -> Result<(), PrepareError> {
    each_flow_under(program, library, None, see)
}

/// Prepares each flow of a program that is not started, under a plan that cuts its bodies.
fn each_flow_under(
    program: &Program,
    library: &Library,
    plan: Option<&Plan>,
    mut see: impl FnMut(&Preparation<'_>, &Flow<Graph>, &PreparedFlow),
) -> Result<(), PrepareError> {
    let options = Options::default();
    let mut resources = Resources::of(program, &library.environment, options.sessions, &options.platform);
    let mut preparation = Preparation::new(program, library, &mut resources, gathering(library, &options));
    if let Some(plan) = plan {
        preparation = preparation.cut_by(plan);
    }
    for entry in &program.entries {
        for flow in &entry.flows {
            let prepared = preparation.flow(flow, entry.ordered)?;
            see(&preparation, flow, &prepared);
        }
    }
    Ok(())
}
