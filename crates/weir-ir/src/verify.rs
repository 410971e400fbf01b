//! The verifier: checks the rules that a program in either IR must keep before anything may run or rewrite it.
//!
//! The compiler runs the verifier after each pass in debug builds; a violation is a bug of a pass, never of a user.
//! Each [`Violation`] names its [`Rule`], and each rule has a test with a program that breaks it.

use weir_host::{Library, Type};

use crate::program::{AT_END, Entry, Program};
use crate::{expr as e, graph as g};

mod arms;
mod blocks;
mod bodies;
mod calls;
mod conditions;
mod detached;
mod graphs;
mod operand;
mod order;
mod prims;
mod report;
mod types;
mod uses;
mod view;

use report::Report;
pub use report::{Rule, Violation};
pub(crate) use types::scalar;

/// Returns the violations of a program in the expression IR.
#[must_use]
pub fn expr(program: &e::Program, library: &Library) -> Vec<Violation> {
    let mut report = Report::default();
    whole(program, library, &mut report);
    let types = types::TypeTable::new(program, library);
    for shared in &program.shared {
        report.place = format!("shared {}", shared.name);
        blocks::flow(&types, library, &[], &shared.init, Some(&shared.ty), &mut report);
    }
    for entry in &program.entries {
        report.place = format!("{}, arguments", entry.name);
        blocks::flow(&types, library, &[], &entry.arguments, None, &mut report);
        for flow in &entry.flows {
            report.place = format!("{}, {}", entry.name, flow.name);
            blocks::flow(&types, library, &flow.parameters, &flow.body, Some(&flow.result), &mut report);
        }
    }
    report.violations
}

/// Returns the violations of a program in graphs.
#[must_use]
pub fn graph(program: &g::Program, library: &Library) -> Vec<Violation> {
    let mut report = Report::default();
    whole(program, library, &mut report);
    let types = types::TypeTable::new(program, library);
    let session_scoped = program.session_scoped();
    for shared in &program.shared {
        report.place = format!("shared {}", shared.name);
        graphs::flow(&types, library, &[], &shared.init, Some(&shared.ty), &session_scoped, &mut report);
    }
    for entry in &program.entries {
        report.place = format!("{}, arguments", entry.name);
        graphs::flow(&types, library, &[], &entry.arguments, None, &session_scoped, &mut report);
        for flow in &entry.flows {
            report.place = format!("{}, {}", entry.name, flow.name);
            graphs::flow(
                &types,
                library,
                &flow.parameters,
                &flow.body,
                Some(&flow.result),
                &session_scoped,
                &mut report,
            );
        }
    }
    report.violations
}

/// Checks the names of the program, and its routes.
fn whole<B>(program: &Program<B>, library: &Library, report: &mut Report) {
    once(program.types.iter().map(|definition| &*definition.name), "type", report);
    once(program.shared.iter().map(|shared| &*shared.name), "shared value", report);
    for entry in &program.entries {
        report.place.clone_from(&entry.name.to_string());
        let source = entry.source.rsplit_once('.');
        let known = source.and_then(|(module, name)| library.modules.get(module)?.sources.get(name));
        // The flows of an entry without a source are tests, which are run by name.
        if known.is_none() && !entry.source.is_empty() {
            report.add(Rule::Known, "", format!("there is no source `{}`", entry.source));
        }
        once(entry.flows.iter().map(|flow| &*flow.name), "flow", report);
        ends(entry, report);
        for flow in &entry.flows {
            let routed = flow.route.as_ref().map_or(flow.parameters.len(), |route| route.parameters.len());
            if routed != flow.parameters.len() {
                let count = flow.parameters.len();
                report.add(Rule::Types, &flow.name, format!("the route has {routed} parameters, the flow {count}"));
            }
        }
    }
    report.place.clear();
    once(program.entries.iter().map(|entry| &*entry.name), "entry", report);
}

/// Checks that a stream has one flow for its elements and at most one for their end, without parameters and answer.
fn ends<B>(entry: &Entry<B>, report: &mut Report) {
    if entry.source.is_empty() {
        // The flows are tests, which no source begins.
        return;
    }
    let mut behind = entry.flows.iter().skip(AT_END).filter(|flow| flow.route.is_none());
    let Some(end) = behind.next() else { return };
    if !end.parameters.is_empty() || end.result != Type::Unit || entry.flows[0].route.is_some() {
        report.add(Rule::Types, &end.name, "the flow of an end takes and answers nothing".to_owned());
    }
    if let Some(more) = behind.next() {
        report.add(Rule::Once, &more.name, "a third flow of a stream".to_owned());
    }
}

fn once<'a>(names: impl Iterator<Item = &'a str>, what: &str, report: &mut Report) {
    let mut seen = std::collections::BTreeSet::new();
    for name in names.filter(|name| !seen.insert(*name)) {
        report.add(Rule::Once, "", format!("two of the name `{name}`: {what}"));
    }
}
