//! `weir graph --passes`, `--ir` and `--time-passes`: the passes, a program at any point between them, and what each takes.

use std::fmt::Write;
use std::time::{Duration, Instant};

use weir_host::Library;
use weir_ir::expr::Program;
use weir_ir::passes::{EXPR_PASSES, GRAPH_PASSES, LOWERING, ProgramStage, optimize_with};
use weir_ir::print;

use crate::commands::arguments::Ir;

/// Returns the steps from the checked program to the graph that runs, in their order.
fn steps() -> impl Iterator<Item = (Ir, &'static str, &'static str)> {
    let exprs = EXPR_PASSES.iter().map(|pass| (Ir::Expr, pass.name, pass.caption));
    let graphs = GRAPH_PASSES.iter().map(|pass| (Ir::Graph, pass.name, pass.caption));
    exprs.chain([(Ir::Graph, LOWERING, "turns control flow into data and resources into edges")]).chain(graphs)
}

/// Returns the list of passes as a table.
pub(super) fn list() -> String {
    let mut text = String::new();
    for (ir, name, caption) in steps() {
        // Writing to a `String` cannot fail.
        _ = writeln!(text, "{:<6} {name:<16} {caption}", ir.word());
    }
    text
}

/// Returns the program as text, in this representation after this step: if none is named, before all passes as
/// expressions, and behind all of them as graphs.
///
/// # Errors
/// Fails if the step leaves a program in the other representation behind.
pub(super) fn printed(
    program: &Program,
    library: &Library,
    ir: Option<Ir>,
    after: Option<&str>,
) -> Result<String, String> {
    let Some(after) = after else {
        return Ok(match ir {
            Some(Ir::Graph) | None => print::graph(&optimize_with(program, library, &mut |_, _| {})),
            Some(Ir::Expr) => print::expr(program),
        });
    };
    let left = steps().find(|(_, name, _)| *name == after).map(|(ir, ..)| ir);
    if let (Some(wanted), Some(left)) = (ir, left)
        && wanted != left
    {
        return Err(format!("`{after}` leaves the program behind as `--ir {}`", left.word()));
    }
    let mut text = String::new();
    _ = optimize_with(program, library, &mut |name, stage| {
        if name == after {
            text = match stage {
                ProgramStage::Expr(program) => print::expr(program),
                ProgramStage::Graph(program) => print::graph(program),
            };
        }
    });
    Ok(text)
}

/// Returns a table of the time that each step takes for this program.
pub(super) fn timed(program: &Program, library: &Library) -> String {
    let mut text = String::new();
    let (mut begun, mut all) = (Instant::now(), Duration::ZERO);
    let mut line = |name: &str, took: Duration| _ = writeln!(text, "{:>10.1} µs  {name}", took.as_secs_f64() * 1e6);
    _ = optimize_with(program, library, &mut |name, _| {
        let took = begun.elapsed();
        all += took;
        line(name, took);
        begun = Instant::now();
    });
    line("all", all);
    text
}
