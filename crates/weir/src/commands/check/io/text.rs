//! The explanation as text.

use std::fmt::Write as _;

use weir_host::Library;
use weir_ir::graph::Program;
use weir_ir::io_rounds::IoCall;
use weir_syntax::ast::ItemKind;
use weir_syntax::{SourceFile, SourceId, Span};

use super::{FlowCalls, IoQuery, Places, flows, reasons};
use crate::humanize::grouped;

/// Returns the rounds of each flow of a program.
pub(in super::super) fn explained(program: &Program, library: &Library, file: &SourceFile) -> String {
    let places = Places { program, file };
    let mut text = String::new();
    for flow in flows(program, library) {
        _ = writeln!(text, "{}: {}", flow.name, summary(&flow));
        for round in 1..=flow.rounds() {
            _ = writeln!(text, "  round {round}");
            flow.queries(round).iter().for_each(|query| write_query(&mut text, query, &flow, &places));
        }
        text.push('\n');
    }
    text.push_str(&configured(file));
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// Returns a note on the values of `config`, if the program has any: another one may choose other branches.
fn configured(file: &SourceFile) -> String {
    let main = file.slice(Span { source: SourceId(0), start: 0, end: file.part_at(0).end });
    let tree = weir_syntax::parse(SourceId(0), main).tree;
    let values = tree.items.iter().filter_map(|item| match &item.kind {
        ItemKind::Config(config) if !config.secret => {
            let default = config.default.as_ref().map_or("not set", |default| file.slice(default.span));
            Some(format!("`{}` is {default}", config.name))
        }
        _ => None,
    });
    let values = values.collect::<Vec<_>>().join(", ");
    if values.is_empty() { values } else { format!("these are the rounds if {values}\n") }
}

/// Returns the numbers of rounds and queries.
fn summary(flow: &FlowCalls) -> String {
    if flow.calls.is_empty() {
        return "no queries".to_owned();
    }
    let least = if flow.repeats() { "at least " } else { "" };
    format!("{least}{}, {}", counted(flow.rounds() as usize, "round"), counted(flow.query_count(), "query"))
}

fn counted(count: usize, what: &str) -> String {
    let plural = what.strip_suffix('y').map_or_else(|| format!("{what}s"), |stem| format!("{stem}ies"));
    if count == 1 { format!("1 {what}") } else { format!("{count} {plural}") }
}

fn write_query(text: &mut String, query: &IoQuery<'_>, flow: &FlowCalls, places: &Places<'_>) {
    let name = &query.name;
    if let [call] = query.calls[..] {
        let several = repeated(call, places).map_or_else(String::new, |several| format!(", {several}"));
        let arm = reasons::arm(call, &flow.calls, places).map_or_else(String::new, |arm| format!(", {arm}"));
        _ = writeln!(text, "    {name} ({}){arm}{several}", places.call(call));
    } else {
        let at_most = query.calls[0].batch_max.filter(|_| query.calls.iter().any(|call| call.for_each));
        let batch = at_most
            .map_or_else(|| "one batch".to_owned(), |most| format!("batches of at most {}", grouped(most as u64)));
        _ = writeln!(text, "    {name}, {batch} of these calls:");
    }
    for call in &query.calls {
        let why = reasons::waits(call, &flow.calls, places);
        if query.calls.len() > 1 {
            let several = if call.for_each { ", for each element" } else { "" };
            let why = why.map_or_else(String::new, |why| format!(", {why}"));
            let arm = reasons::arm(call, &flow.calls, places).map_or_else(String::new, |arm| format!(", {arm}"));
            _ = writeln!(text, "      {}{arm}{several}{why}", places.call(call));
        } else if let Some(why) = why {
            _ = writeln!(text, "      {why}");
        }
    }
}

/// Returns how a call is repeated, if it is.
fn repeated(call: &IoCall, places: &Places<'_>) -> Option<String> {
    let together = match call.batch_max {
        _ if !call.for_each => None,
        None => Some("for each element".to_owned()),
        Some(_) if call.has_several_batches() => {
            Some("for each element, one batch for all that agree in the other arguments".to_owned())
        }
        Some(at_most) => Some(format!("for each element, in batches of at most {}", grouped(at_most as u64))),
    };
    // Reads that are sent together are made again in each round of a loop.
    if let (Some(ahead), None) = (call.ahead, &call.in_turn) {
        let each = together.map_or_else(String::new, |together| format!("{together}, "));
        return Some(each + reasons::ahead(ahead));
    }
    match (&call.in_turn, together) {
        (None, Some(together)) if !call.is_batched() => Some(format!("{together}, at the same time")),
        (None, together) => together,
        (Some(reason), _) => Some(reasons::turns(reason, places)),
    }
}
