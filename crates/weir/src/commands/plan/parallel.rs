//! The part of `weir plan` that says what a flow may compute on several cores, and what forbids it.

use weir_ir::graph::Program;
use weir_ir::plan::Parallelism;
use weir_runtime::{EngineRow, IndependentPart, LoopRounds};

use crate::Library;
use crate::effective_plan::EffectivePlan;
use crate::terminal::Paint;

/// Lists the loops whose rounds may run on several cores, and the loops and long calls that may run beside others.
pub(super) fn parallelism(effective: &EffectivePlan, program: &Program, library: &Library, paint: Paint) -> String {
    let (verb, condition) = condition(effective);
    let listed = |heading: String, lines: String| match lines.is_empty() {
        true => String::new(),
        false => format!("\n{}\n{lines}", paint.green(&heading)),
    };
    let rounds = listed(format!("rounds that {verb} on several cores {condition}"), rounds(program, library));
    let heading = format!("loops and long calls that {verb} beside others, on several cores {condition}");
    rounds + &listed(heading, independent_parts(program, library))
}

/// Returns the verb of a heading, and the condition under which flows use several cores with this plan.
fn condition(effective: &EffectivePlan) -> (&'static str, &'static str) {
    let may_fork = weir_runtime::engine(effective.engine()).is_some_and(EngineRow::may_fork);
    let is_off = effective.plan.parallel.as_ref().is_some_and(|parallel| parallel.value == Parallelism::Off);
    match (may_fork, is_off) {
        (false, _) => ("would run", "under an engine whose sections have several threads"),
        (true, true) => ("would run", "without `parallel = \"off\"`"),
        (true, false) => ("run", "while some are idle"),
    }
}

/// Lists the loops that only compute, whether their rounds may run on several cores, and what forbids it.
fn rounds(program: &Program, library: &Library) -> String {
    let Ok(loops) = weir_runtime::loops(program, library) else { return String::new() };
    let line = |LoopRounds { path, obstacle, .. }: &LoopRounds| match obstacle {
        None => format!("  {path}\n"),
        Some(obstacle) => format!("  {path}: no, {obstacle}\n"),
    };
    loops.iter().filter(|found| !found.is_in_turn).map(line).collect()
}

/// Lists the loops and long calls that stand behind others: beside which of them each may run, or what forbids it. Those that
/// depend on another one are left out.
fn independent_parts(program: &Program, library: &Library) -> String {
    let Ok(parts) = weir_runtime::independent_parts(program, library) else { return String::new() };
    let line = |IndependentPart { path, beside, obstacle, .. }: &IndependentPart| match obstacle {
        None => format!("  {path}: beside {}\n", beside.join(", ")),
        Some(obstacle) => format!("  {path}: no, {obstacle}\n"),
    };
    parts.iter().filter(|part| !part.is_dependent).map(line).collect()
}
