//! `weir check --explain io`: the rounds of input and output of each flow, and the reason for each wait.

use std::fmt::Write as _;

use weir_host::{Library, Resource, Text};
use weir_ir::graph::Program;
use weir_ir::io_rounds::{IoCall, Repetition, WaitReason, io_calls};
use weir_syntax::SourceFile;

/// Returns the rounds of each flow of a program, as text.
pub(super) fn explained(program: &Program, library: &Library, file: &SourceFile) -> String {
    let mut text = String::new();
    for flow in program.entries.iter().flat_map(|entry| &entry.flows) {
        let calls = io_calls(&flow.body, library);
        _ = writeln!(text, "{}: {}", flow.name, summary(&calls));
        for round in 1..=rounds(&calls) {
            let of_round: Vec<&IoCall> = calls.iter().filter(|call| call.round == round).collect();
            _ = writeln!(text, "  round {round}: {}", queries(&of_round).join(", "));
            let waits = of_round.iter().filter_map(|call| waited(call, &calls, file));
            let mut waits: Vec<String> = waits.collect();
            waits.dedup();
            waits.iter().for_each(|wait| _ = writeln!(text, "    {wait}"));
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn rounds(calls: &[IoCall]) -> u32 {
    calls.iter().map(|call| call.round).max().unwrap_or(0)
}

/// Returns the numbers of rounds and queries.
fn summary(calls: &[IoCall]) -> String {
    let count = |round: u32| queries(&calls.iter().filter(|call| call.round == round).collect::<Vec<_>>()).len();
    let rounds = rounds(calls);
    let queries: usize = (1..=rounds).map(count).sum();
    match rounds {
        0 => "no queries".to_owned(),
        _ => format!("{}, {}", counted(rounds as usize, "round"), counted(queries, "query")),
    }
}

fn counted(count: usize, what: &str) -> String {
    let plural = what.strip_suffix('y').map_or_else(|| format!("{what}s"), |stem| format!("{stem}ies"));
    if count == 1 { format!("1 {what}") } else { format!("{count} {plural}") }
}

/// Returns the queries of a round: calls of a batched function are one.
fn queries(calls: &[&IoCall]) -> Vec<String> {
    let mut shown: Vec<(&Text, bool, usize, Repetition)> = Vec::new();
    for call in calls {
        let gathers = call.is_batched && call.repetition != Repetition::InTurn;
        let known = shown.iter_mut().find(|(function, batched, ..)| gathers && *batched && *function == &call.function);
        match known {
            Some((_, _, count, repetition)) => (*count, *repetition) = (*count + 1, (*repetition).max(call.repetition)),
            None => shown.push((&call.function, gathers, 1, call.repetition)),
        }
    }
    let query =
        |(function, gathers, count, repetition): (&Text, bool, usize, Repetition)| match (gathers, count, repetition) {
            (true, 1, Repetition::Once) => function.to_string(),
            (true, count, Repetition::Once) => format!("{function} (a batch of {count} calls)"),
            (true, ..) => format!("{function} (a batch with a call for each element)"),
            (false, _, Repetition::Once) => function.to_string(),
            (false, _, Repetition::Together) => format!("{function} (for each element, at the same time)"),
            (false, _, Repetition::InTurn) => format!("{function} (in each round of a loop, one after the other)"),
        };
    shown.into_iter().map(query).collect()
}

/// Returns the reason for which a call does not begin in an earlier round.
fn waited(call: &IoCall, calls: &[IoCall], file: &SourceFile) -> Option<String> {
    let wait = call.wait.as_ref()?;
    let earlier = &calls[wait.call].function;
    let at = |call: &IoCall| file.line_column(call.origin.start);
    let place = at(call);
    let why = match &wait.why {
        WaitReason::Argument => format!("needs what {earlier} returns"),
        WaitReason::Branch => format!("is in a branch that {earlier} decides about"),
        WaitReason::Order(resource) => {
            format!("keeps its order with {earlier}: one of them changes {}", named(resource))
        }
        WaitReason::End => format!("has an effect, and the request may end because of {earlier}"),
    };
    Some(format!("{} (line {}) {why}", call.function, place.line))
}

fn named(resource: &Resource) -> String {
    match resource {
        Resource::Shared(name) => format!("the shared value `{name}`"),
        Resource::Constraint(name) => format!("`{name}`"),
        Resource::World(name) => format!("what `{name}` stands for"),
        Resource::State(_) => "the state of the call".to_owned(),
    }
}
