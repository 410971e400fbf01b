//! The explanation as JSON: an object for each flow, one a line.

use serde_json::{Value, json};
use weir_host::{Library, Resource, Text};
use weir_ir::graph::Program;
use weir_ir::io_rounds::{Ahead, IoCall, TurnReason, WaitReason};
use weir_syntax::SourceFile;

use super::{FlowCalls, Places, flows, reasons};

/// Returns the rounds of each flow of a program.
pub(in super::super) fn explained(program: &Program, library: &Library, file: &SourceFile) -> String {
    let places = Places { program, file };
    flows(program, library).iter().map(|flow| described(flow, &places).to_string() + "\n").collect()
}

fn described(flow: &FlowCalls, places: &Places<'_>) -> Value {
    let rounds: Vec<Value> = (1..=flow.rounds())
        .map(|round| {
            let queries = flow.queries(round).into_iter().map(|query| {
                let calls: Vec<Value> = query.calls.iter().map(|call| call_of(call, flow, places)).collect();
                json!({ "name": query.name, "function": query.calls[0].function.as_str(), "table": query.calls[0].table.as_ref().map(Text::as_str), "batched": query.calls[0].is_batched(), "batch_max": query.calls[0].batch_max, "calls": calls })
            });
            Value::Array(queries.collect())
        })
        .collect();
    json!({
        "flow": flow.name,
        "rounds": flow.rounds(),
        "queries": flow.query_count(),
        "repeats": flow.repeats(),
        "queries_of_rounds": rounds,
    })
}

fn call_of(call: &IoCall, flow: &FlowCalls, places: &Places<'_>) -> Value {
    let mut object = place(call.origin.start, places);
    let around = places.program.inlined_calls_around(call.origin);
    object["called_at"] = around.map(|(_, outer)| place(outer.called_at.start, places)).collect();
    object["arm"] = json!(reasons::arm(call, &flow.calls, places));
    object["for_each_element"] = json!(call.for_each);
    object["one_after_the_other"] = match &call.in_turn {
        None => Value::Null,
        Some(reason) => json!({ "reason": turn_code(reason), "text": reasons::turns(reason, places) }),
    };
    object["ahead"] = match call.ahead {
        None => Value::Null,
        Some(Ahead::Placed) => json!("placed"),
        Some(Ahead::PlacedBehindFirst) => json!("placed-behind-first"),
        Some(Ahead::AskedEarly) => json!("asked-early"),
        Some(Ahead::SentTogether) => json!("sent-together"),
    };
    object["waits"] = match &call.wait {
        None => Value::Null,
        Some(wait) => {
            let earlier = &flow.calls[wait.call];
            let mut of = place(earlier.origin.start, places);
            of["function"] = json!(earlier.function.as_str());
            json!({
                "reason": wait_code(&wait.why, places),
                "resource": resource(&wait.why),
                "for": of,
                "text": reasons::waits(call, &flow.calls, places),
            })
        }
    };
    object
}

fn place(offset: u32, places: &Places<'_>) -> Value {
    let at = places.file.line_column(offset);
    json!({ "file": places.file.part_at(offset).name.as_str(), "line": at.line, "column": at.column })
}

fn turn_code(reason: &TurnReason) -> &'static str {
    match reason {
        TurnReason::Loop { .. } => "loop",
        TurnReason::End(_) => "end",
        TurnReason::Return(_) => "return",
        TurnReason::Resource(_) => "order",
        TurnReason::Statements => "statements",
    }
}

fn wait_code(why: &WaitReason, places: &Places<'_>) -> &'static str {
    match why {
        WaitReason::Argument => "argument",
        WaitReason::Branch(_) => "branch",
        WaitReason::Order { .. } => "order",
        WaitReason::End(_) => "end",
        WaitReason::Return(_) => "return",
        WaitReason::Atomic { at, .. } if places.has_word("atomic", at.start) => "atomic",
        WaitReason::GivenUp => "given-up",
        WaitReason::Statement => "statement",
        WaitReason::Barrier => "barrier",
        WaitReason::Enclosing { why, .. } | WaitReason::Atomic { why, .. } => wait_code(why, places),
    }
}

/// Returns the name of the resource whose order is kept.
fn resource(why: &WaitReason) -> Option<&str> {
    match why {
        WaitReason::Order { resource, .. } => match resource {
            Resource::Shared(name) | Resource::Constraint(name) | Resource::World(name) | Resource::State(name) => {
                Some(name.as_str())
            }
        },
        WaitReason::Enclosing { why, .. } | WaitReason::Atomic { why, .. } => resource(why),
        _ => None,
    }
}
