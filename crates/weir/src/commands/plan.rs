//! `weir plan`: what a program's plan means for it: which nodes are in which section, on what, and why.

use weir_ir::graph::{Graph, Kind, Program};
use weir_ir::plan::{Plan, REST, Section, is_stateless};
use weir_ir::program::Flow;

use crate::arguments::PlanArguments;
use crate::terminal::{Paint, Terminal};
use crate::{Exit, Library, plan_file, project};

/// Checks and shows a plan.
pub(crate) fn plan(arguments: &PlanArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    let program = match project::program(&arguments.file, library, terminal) {
        Ok(program) => program,
        Err(exit) => return exit,
    };
    match plan_file::read(&arguments.file, arguments.plan.as_deref(), &program, terminal) {
        Ok(Some((path, plan))) => {
            let heading = terminal.output().bold(&path.display().to_string());
            terminal.print(&format!("{heading}\n{}", shown(&plan, &program, terminal.output())))
        }
        Ok(None) => {
            let (name, doc) = (weir_runtime::ENGINES[0].name, weir_runtime::ENGINES[0].doc);
            let can = format!("{}{}", all_nodes(&program), engines(terminal.output()));
            terminal.print(&format!("no plan; the defaults: engine {name} ({doc})\n{can}"))
        }
        Err(exit) => exit,
    }
}

/// What the patterns of a plan may name.
fn all_nodes(program: &Program) -> String {
    let nodes = nodes(&Plan::default(), program, None);
    if nodes.is_empty() { nodes } else { format!("\nnodes that a plan may name:\n{nodes}") }
}

fn engines(paint: Paint) -> String {
    let lines = weir_runtime::ENGINES
        .iter()
        .map(|row| format!("  {}  {}\n", paint.green(&format!("{:16}", row.name)), row.doc));
    format!("\nengines that a plan may name:\n{}", lines.collect::<String>())
}

fn shown(plan: &Plan, program: &Program, paint: Paint) -> String {
    let engine = plan.engine.as_ref().map(|engine| engine.value.to_string());
    let engine = engine.unwrap_or_else(|| weir_runtime::ENGINES[0].name.to_owned());
    let mut text = format!("engine {engine}");
    for (name, given) in [
        ("threads", &plan.threads),
        ("flows at a time", &plan.flows),
        ("queue", &plan.queue),
        ("sessions", &plan.sessions),
    ] {
        if let Some(given) = given {
            text.push_str(&format!(", {name} {}", given.value));
        }
    }
    if let Some(idle) = &plan.session_idle {
        text.push_str(&format!(", sessions idle for {}", weir_ir::plan::shown(idle.value)));
    }
    text.push('\n');
    for (index, section) in plan.sections.iter().enumerate() {
        text.push_str(&format!("\n{}{}\n", paint.green(section.name.value.as_str()), details(section)));
        if let Some(why) = &section.why {
            text.push_str(&format!("  {}\n", paint.faint(&format!("because {why}"))));
        }
        if let Some(node) = stateful(plan, program, index) {
            let alone = format!("works on one flow at a time, because `{node}` has a state");
            text.push_str(&format!("  {}\n", paint.faint(&alone)));
        }
        text.push_str(&nodes(plan, program, Some(index)));
    }
    let rest = nodes(plan, program, None);
    if !rest.is_empty() {
        text.push_str(&format!("\n{}\n{rest}", paint.green(REST)));
    }
    text
}

fn details(section: &Section) -> String {
    let engine = section.engine.as_ref().map(|engine| format!(", engine {}", engine.value));
    let number = |name: &str, given: &Option<weir_ir::plan::Given<usize>>| {
        given.as_ref().map(|given| format!(", {name} {}", given.value)).unwrap_or_default()
    };
    let threads = number("threads", &section.threads);
    let queue = number("queue", &section.queue);
    let replicas = number("replicas", &section.replicas);
    format!("{}{threads}{queue}{replicas}", engine.unwrap_or_default())
}

/// The first node of a section that has a state, because of which copies of it may not work side by side.
fn stateful<'a>(plan: &Plan, program: &'a Program, section: usize) -> Option<&'a str> {
    let flows = program.entries.iter().flat_map(|entry| &entry.flows);
    let mut own = flows.flat_map(|flow| {
        flow.body.nodes.iter().filter(move |node| plan.section_of(&flow.name, &node.name) == Some(section))
    });
    own.find(|node| !is_stateless(node)).map(|node| node.name.as_str())
}

/// The calls and repeated bodies of a section, by flow.
fn nodes(plan: &Plan, program: &Program, section: Option<usize>) -> String {
    let flows = program.entries.iter().flat_map(|entry| &entry.flows);
    flows.map(|flow| nodes_of(plan, flow, section)).collect()
}

fn nodes_of(plan: &Plan, flow: &Flow<Graph>, section: Option<usize>) -> String {
    let works = flow.body.nodes.iter().filter(|node| is_work(&node.kind));
    let names =
        works.filter(|node| plan.section_of(&flow.name, &node.name) == section).map(|node| node.name.to_string());
    let names: Vec<String> = names.collect();
    if names.is_empty() { String::new() } else { format!("  {}: {}\n", flow.name, names.join(", ")) }
}

/// Whether the node does something that a section is made for.
fn is_work(kind: &Kind) -> bool {
    !matches!(
        kind,
        Kind::Prim(_)
            | Kind::Switch { .. }
            | Kind::Select { .. }
            | Kind::Acquire { .. }
            | Kind::Release { .. }
            | Kind::Return
            | Kind::Fail
    )
}
