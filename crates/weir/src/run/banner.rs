//! Start-up banner: addresses, routes, engine and plan of the program.

use std::path::Path;

use serde_json::{Map, json};
use weir_host::{TypeDefinition, source_text};
use weir_ir::graph::{Graph, Program};
use weir_ir::program::{Entry, Flow};
use weir_library::log::{LogFormat, LogLevel, LogLine, now};
use weir_runtime::RunningProgram;

use super::log::LogStyle;
use crate::effective_plan::EffectivePlan;
use crate::read_type::read_type;
use crate::terminal::Paint;

/// Formats the banner; as JSON, it is one line, without the routes.
pub(super) fn banner(
    file: &Path,
    effective: &EffectivePlan,
    program: &Program,
    running: &RunningProgram,
    style: LogStyle,
) -> String {
    let threads = effective.plan.threads.as_ref().map_or_else(cores, |threads| threads.value);
    match style.format {
        LogFormat::Text => text(file, (effective, threads), program, running, style.paint),
        LogFormat::Json => json_line(file, (effective, threads), program, running),
    }
}

fn json_line(
    file: &Path,
    (effective, threads): (&EffectivePlan, usize),
    program: &Program,
    running: &RunningProgram,
) -> String {
    let places = program.entries.iter().zip(running.descriptions());
    let sources: Vec<_> = places.map(|(entry, at)| json!({ "name": &*entry.name, "at": at.as_str() })).collect();
    let fields = Map::from_iter([
        ("event".to_owned(), "started".into()),
        ("file".to_owned(), file.display().to_string().into()),
        ("engine".to_owned(), effective.engine().to_string().into()),
        ("threads".to_owned(), threads.into()),
        ("plan".to_owned(), effective.path.as_ref().map(|path| path.display().to_string()).into()),
        ("sources".to_owned(), sources.into()),
    ]);
    LogLine { level: LogLevel::Info, message: "started".to_owned(), fields, trace_id: None }.json(&now()) + "\n"
}

fn text(
    file: &Path,
    (effective, threads): (&EffectivePlan, usize),
    program: &Program,
    running: &RunningProgram,
    paint: Paint,
) -> String {
    let plural = if threads == 1 { "" } else { "s" };
    let plan = effective.path.as_ref().map(|path| format!(", plan {}", path.display())).unwrap_or_default();
    let engine = format!("engine {}, {threads} thread{plural}{plan}", effective.engine());
    let mut text = format!("{} {}\n", paint.bold(&file.display().to_string()), paint.faint(&engine));
    for (entry, place) in program.entries.iter().zip(running.descriptions()) {
        text.push_str(&format!("\n  {} {}\n", paint.bold(&entry.name), paint.blue(place)));
        text.push_str(&routes(entry, &program.types, paint));
    }
    text.push_str(&format!("\n  {}\n", paint.faint("Ctrl-C finishes the flows in progress and stops the program")));
    text
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Formats the routes of a service in columns, with their parameters.
fn routes(entry: &Entry<Graph>, types: &[TypeDefinition], paint: Paint) -> String {
    let routes = || entry.flows.iter().filter_map(|flow| flow.route.as_ref());
    let method = routes().map(|route| route.method.chars().count()).max().unwrap_or(0);
    let pattern = routes().map(|route| route.pattern.chars().count()).max().unwrap_or(0);
    let lines = entry.flows.iter().filter_map(|flow| {
        let route = flow.route.as_ref()?;
        let padded = format!("{:method$}", route.method);
        let path = format!("{:pattern$}", route.pattern);
        Some(
            format!("    {} {path}  {}", paint.green(&padded), paint.faint(&parameters(flow, types)))
                .trim_end()
                .to_owned()
                + "\n",
        )
    });
    lines.collect()
}

fn parameters(flow: &Flow<Graph>, types: &[TypeDefinition]) -> String {
    let Some(route) = &flow.route else { return String::new() };
    let shown = route.parameters.iter().zip(&flow.parameters).map(|(parameter, variable)| {
        let default = parameter.default.as_ref().map(|value| source_text(value, &variable.ty, types));
        let default = default.map(|default| format!(" = {default}")).unwrap_or_default();
        format!("{}: {}{default}", parameter.name, read_type(flow, variable))
    });
    shown.collect::<Vec<_>>().join(", ")
}
