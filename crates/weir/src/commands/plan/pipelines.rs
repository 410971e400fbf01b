//! The part of `weir plan` that says where the rounds of a `for` in several sections do not overlap.

use weir_host::Library;
use weir_ir::graph::{Node, Program};
use weir_ir::plan::{HoldReason, HoldingLoop, Plan, REST};

use crate::effective_plan::EffectivePlan;
use crate::terminal::Paint;

/// Lists the loops in a `for` that keep its rounds from overlapping.
pub(super) fn holding_loops(effective: &EffectivePlan, program: &Program, library: &Library, paint: Paint) -> String {
    let plan = &effective.plan;
    let queued = weir_runtime::queued_calls(program, library, plan).unwrap_or_default();
    let flows = program.entries.iter().flat_map(|entry| &entry.flows);
    let lines: String = flows
        .flat_map(|flow| {
            let is_queued = |flow: &str, call: &Node| queued.iter().any(|of| of.flow == *flow && of.call == *call.name);
            let holding = plan.holding_loops(&flow.name, &flow.body, |call| is_queued(&flow.name, call));
            holding.into_iter().map(|holding| format!("  {}: {}\n", flow.name, described(plan, &holding)))
        })
        .collect();
    if lines.is_empty() {
        return lines;
    }
    let heading = "loops that keep the rounds of the `for` around them from overlapping";
    format!("\n{}\n{lines}", paint.yellow(heading))
}

fn described(plan: &Plan, HoldingLoop { rounds, inner, reason }: &HoldingLoop<'_>) -> String {
    let why = match *reason {
        HoldReason::OtherSection { of_loop, home } => format!(
            "it is in section `{}`, and the flow stays in `{}`: name its calls and those of the other loops in one section",
            section(plan, of_loop),
            section(plan, home)
        ),
        HoldReason::DependentRounds => {
            "each of its rounds needs the one before, and its calls are in several sections".to_owned()
        }
        HoldReason::CallsInTurns(of_calls) => {
            format!(
                "each of its calls of section `{}` waits until the one before has returned, which costs two hops",
                section(plan, of_calls)
            )
        }
    };
    format!("`{}` in `{}`: {why}", inner.name, rounds.name)
}

/// Returns the name of a section of the plan.
fn section(plan: &Plan, index: Option<usize>) -> &str {
    index.and_then(|index| plan.sections.get(index)).map_or(REST, |section| section.name.value.as_str())
}
