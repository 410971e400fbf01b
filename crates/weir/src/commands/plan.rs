//! `weir plan`: shows how a plan divides a program into sections, and their engines, threads and queues.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use weir_ir::graph::{Graph, NodeKind, Program};
use weir_ir::plan::Plan;
use weir_ir::program::Flow;
use weir_runtime::{EngineSection, Options};

use batches::gathered_calls;
use parallel::parallelism;
use pipelines::holding_loops;

use crate::commands::arguments::PlanArguments;
use crate::effective_plan::{EffectivePlan, start_hints};
use crate::table_location::postgres_address;
use crate::terminal::{Paint, Terminal};
use crate::{Exit, Library, project};

mod batches;
mod parallel;
mod pipelines;

/// Checks and prints a plan.
pub(crate) fn plan(arguments: &PlanArguments, library: &Library, terminal: &mut Terminal) -> Exit {
    let program = match project::program(&arguments.file, library, terminal) {
        Ok(program) => program,
        Err(exit) => return exit,
    };
    let effective = match EffectivePlan::of(&arguments.file, &arguments.execution, &program, terminal) {
        Ok(effective) => effective,
        Err(exit) => return exit,
    };
    if effective.is_default() {
        let row = &weir_runtime::ENGINES[0];
        let paint = terminal.output();
        let rounds = parallelism(&effective, &program, library, paint);
        let gathered = gathered_calls(&program, library, paint);
        let can = format!("{}{gathered}{rounds}{}", all_nodes(&program), engines(paint));
        return terminal.print(&format!("no plan; defaults: engine {} ({})\n{can}", row.name, row.doc));
    }
    if let Some(address) = &effective.plan.tables
        && let Err(failure) = postgres_address(&address.value)
    {
        return terminal.fail(Exit::Failure, &failure.to_string(), &[]);
    }
    let options = Options { plan: effective.plan.clone(), ..Options::default() };
    match weir_runtime::sections(&program, library, &options) {
        Ok(sections) => {
            let paint = terminal.output();
            let shown = shown(&effective, &program, &sections, paint);
            let holding =
                if sections.is_empty() { String::new() } else { holding_loops(&effective, &program, library, paint) };
            let held = if effective.engine() == POOL { held_threads(&program, library, paint) } else { String::new() };
            let gathered = gathered_calls(&program, library, paint);
            let rounds = parallelism(&effective, &program, library, paint);
            terminal.print(&format!("{}{shown}{holding}{gathered}{held}{rounds}", heading(&effective, paint)))
        }
        Err(error) => terminal.fail(Exit::Failure, &error.to_string(), start_hints(&error)),
    }
}

/// Lists the nodes that patterns can name.
fn all_nodes(program: &Program) -> String {
    let nodes = nodes(&Plan::default(), program, None);
    if nodes.is_empty() { nodes } else { format!("\nnodes that a plan can name:\n{nodes}") }
}

fn engines(paint: Paint) -> String {
    let lines = weir_runtime::ENGINES
        .iter()
        .map(|row| format!("  {}  {}\n", paint.green(&format!("{:16}", row.name)), row.doc));
    format!("\nengines that a plan can name:\n{}", lines.collect::<String>())
}

/// Formats the file of the plan and its settings for the whole program.
fn heading(effective: &EffectivePlan, paint: Paint) -> String {
    let path = effective.path.as_ref().map(|path| format!("{}\n", paint.bold(&path.display().to_string())));
    let settings = effective.plan.settings();
    let settings: String = settings.iter().map(|(key, value)| format!(", {key} {}", without_password(value))).collect();
    format!("{}engine {}{settings}\n", path.unwrap_or_default(), effective.engine())
}

/// Returns a setting, with `…` in place of the password of an address.
fn without_password(setting: &str) -> Cow<'_, str> {
    let parts = setting.split_once("://").and_then(|(scheme, rest)| {
        let (login, place) = rest.rsplit_once('@')?;
        let (user, _) = login.split_once(':')?;
        Some((scheme, user, place))
    });
    match parts {
        Some((scheme, user, place)) => Cow::Owned(format!("{scheme}://{user}:…@{place}")),
        None => Cow::Borrowed(setting),
    }
}

/// The engine whose flows hold their threads while they wait.
const POOL: &str = "pool";

/// Lists the calls that hold a thread of `pool` while they wait, by flow.
fn held_threads(program: &Program, library: &Library, paint: Paint) -> String {
    let flows = program.entries.iter().flat_map(|entry| &entry.flows);
    let lines: String = flows.map(|flow| held_by(flow, library)).collect();
    if lines.is_empty() {
        return lines;
    }
    format!("\n{}\n{lines}", paint.yellow("calls that hold their thread while they wait, so that no other flow has it"))
}

fn held_by(flow: &Flow<Graph>, library: &Library) -> String {
    let mut names = Vec::new();
    flow.body.each_node(&mut |node| {
        let NodeKind::Call { function, .. } = &node.kind else { return };
        let effects = library.function(function).map(|function| &function.signature.effects);
        if effects.is_some_and(|effects| effects.waits && !effects.awaits_peer) {
            names.push(node.name.to_string());
        }
    });
    if names.is_empty() { String::new() } else { format!("  {}: {}\n", flow.name, names.join(", ")) }
}

/// Formats the sections of the engine, and the flows that it does not divide.
fn shown(effective: &EffectivePlan, program: &Program, sections: &[EngineSection], paint: Paint) -> String {
    let is_divided = |flow: &Flow<Graph>| sections.iter().any(|section| section.holds_nodes_of(&flow.name));
    let whole = program.entries.iter().flat_map(|entry| &entry.flows).filter(|flow| !is_divided(flow));
    let whole: String = whole.map(|flow| nodes_of(&Plan::default(), flow, None)).collect();
    let shown = sections.iter().map(|section| shown_section(effective, section, paint)).collect();
    if !whole.is_empty() || sections.is_empty() {
        return format!("{shown}\n{}\n{whole}", paint.green("each flow as a whole"));
    }
    shown
}

fn shown_section(effective: &EffectivePlan, section: &EngineSection, paint: Paint) -> String {
    let mut text = format!("\n{}{}\n", paint.green(&section.name), details(section));
    let why = section.planned.and_then(|index| effective.plan.sections.get(index)?.reason.clone());
    let because = why.map(|why| format!("because {}", why.value));
    let alone =
        section.state.as_ref().map(|node| format!("processes one flow at a time, because `{node}` has private state"));
    for reason in because.into_iter().chain(alone) {
        text.push_str(&format!("  {}\n", paint.faint(&reason)));
    }
    for same_flow in section.nodes.chunk_by(|(one, _), (other, _)| one == other) {
        let names: Vec<&str> = same_flow.iter().map(|(_, node)| node.as_str()).collect();
        text.push_str(&format!("  {}: {}\n", same_flow[0].0, names.join(", ")));
    }
    text
}

/// Formats the settings of a section.
fn details(section: &EngineSection) -> String {
    let shared = if section.shares_threads() { ", shared" } else { "" };
    let replicas = if section.replicas > 1 { format!(", replicas {}", section.replicas) } else { String::new() };
    let threads = range(section.threads());
    format!(", engine {}, threads {threads}{shared}, queue {}{replicas}", section.engine, section.queue)
}

fn range(threads: RangeInclusive<usize>) -> String {
    let (least, most) = threads.into_inner();
    if least == most { most.to_string() } else { format!("{least} to {most}") }
}

/// Lists the calls and repeated bodies of a section, by flow.
fn nodes(plan: &Plan, program: &Program, section: Option<usize>) -> String {
    let flows = program.entries.iter().flat_map(|entry| &entry.flows);
    flows.map(|flow| nodes_of(plan, flow, section)).collect()
}

fn nodes_of(plan: &Plan, flow: &Flow<Graph>, section: Option<usize>) -> String {
    let mut names = Vec::new();
    flow.body.each_node(&mut |node| {
        if is_work(&node.kind) && plan.section_of_node(&flow.name, node) == section {
            names.push(node.name.to_string());
        }
    });
    if names.is_empty() { String::new() } else { format!("  {}: {}\n", flow.name, names.join(", ")) }
}

/// Returns true if the node does work, as opposed to control flow.
fn is_work(kind: &NodeKind) -> bool {
    !matches!(
        kind,
        NodeKind::Prim(_)
            | NodeKind::Switch { .. }
            | NodeKind::Select { .. }
            | NodeKind::Acquire { .. }
            | NodeKind::Release { .. }
            | NodeKind::Return
            | NodeKind::Fail
    )
}
