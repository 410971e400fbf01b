//! `weir check --explain io`: the rounds of input and output of each flow, and the reason for each wait.

use std::iter::repeat;

use weir_host::Library;
use weir_ir::graph::{Origin, Program};
use weir_ir::io_rounds::{IoCall, io_calls};
use weir_syntax::SourceFile;

mod json;
mod program_tables;
mod reasons;
mod text;

pub(super) use json::explained as explained_in_json;
use program_tables::program_tables;
pub(super) use text::explained;

/// The calls of one flow.
struct FlowCalls {
    /// The name of the flow; with that of its service, if the program has several.
    name: String,
    calls: Vec<IoCall>,
}

/// Calls of one round that are one query, or one query for each element of a list.
struct IoQuery<'a> {
    name: String,
    calls: Vec<&'a IoCall>,
}

/// Returns the calls of the flows of a program.
fn flows(program: &Program, library: &Library) -> Vec<FlowCalls> {
    let several = program.entries.len() > 1;
    let tables = program_tables(program);
    let flows = program.entries.iter().flat_map(|entry| entry.flows.iter().map(move |flow| (entry, flow)));
    let named = flows.map(|(entry, flow)| {
        let name = if several { format!("{}, {}", entry.name, flow.name) } else { flow.name.to_string() };
        FlowCalls { name, calls: io_calls(&flow.body, library, &tables) }
    });
    named.collect()
}

/// Returns true if the call waits until the writes of tables are durable.
fn is_commit(call: &IoCall) -> bool {
    call.function.as_str() == "tables.settle"
}

/// Returns the name of what is called: a function, or a statement as the program writes it.
fn name(call: &IoCall) -> String {
    let Some(table) = &call.table else {
        return match call.function.as_str() {
            _ if is_commit(call) => "commit of the tables".to_owned(),
            "tables.committed" => "commit of the transaction".to_owned(),
            function => function.to_owned(),
        };
    };
    let function = call.function.trim_start_matches("tables.").trim_start_matches("place_");
    match function.trim_end_matches("_to_change") {
        "get" | "row" => format!("{table}[key]"),
        "get_all" | "get_each" => format!("{table}[key] for all elements"),
        "join" => format!("query of {table} with rows that it names"),
        "select" | "count" | "sum" | "average" | "distinct" | "group" => format!("query of {table}"),
        "look_up" => format!("look-up in {table}"),
        "commit" => "commit of the transaction".to_owned(),
        "replace" => format!("{table}.update"),
        "replace_rows" => format!("{table}.update_all"),
        "set_savepoint" => format!("{table}.update_all: savepoint"),
        "read_columns" => format!("{table}.update_all: columns of the table"),
        "delete_old_rows" => format!("{table}.update_all: deletion of the old rows"),
        "insert_new_rows" => format!("{table}.update_all: insertion of the new rows"),
        "release_savepoint" => format!("{table}.update_all: end of the savepoint"),
        statement => format!("{table}.{statement}"),
    }
}

impl FlowCalls {
    fn rounds(&self) -> u32 {
        self.calls.iter().map(|call| call.round).max().unwrap_or(0)
    }

    /// Returns the queries of a round, in the order of the text: calls that share a batch are one.
    fn queries(&self, round: u32) -> Vec<IoQuery<'_>> {
        let mut queries: Vec<IoQuery<'_>> = Vec::new();
        for call in self.calls.iter().filter(|call| call.round == round) {
            match queries.iter_mut().find(|query| query.calls[0].shares_batch(call)) {
                Some(query) => query.calls.push(call),
                None => queries.push(IoQuery { name: name(call), calls: vec![call] }),
            }
        }
        queries
    }

    /// Returns the number of queries, each of which is counted once.
    fn query_count(&self) -> usize {
        (1..=self.rounds()).map(|round| self.queries(round).len()).sum()
    }

    /// Returns true if rounds or queries repeat, so that there can be more of them than the program shows.
    fn repeats(&self) -> bool {
        self.calls.iter().any(|call| call.in_turn.is_some() || (call.for_each && !call.is_batched()))
            || self.calls.iter().any(|call| call.for_each && call.has_several_batches())
    }
}

/// The places of a program's text, for messages.
struct Places<'a> {
    program: &'a Program,
    file: &'a SourceFile,
}

impl Places<'_> {
    /// Returns true if this word is written at a place.
    fn has_word(&self, word: &str, offset: u32) -> bool {
        self.file.text().get(offset as usize..).is_some_and(|rest| rest.starts_with(word))
    }

    /// Returns a place as `line 7`, or `prices.weir:7` in a module.
    fn line(&self, offset: u32) -> String {
        let line = self.file.line_column(offset).line;
        let (main, part) = (&self.file.part_at(0).name, &self.file.part_at(offset).name);
        if main == part { format!("line {line}") } else { format!("{part}:{line}") }
    }

    /// Returns the word that the text has at this place: `if`, `match`, `return`.
    fn word(&self, offset: u32) -> &str {
        let rest = self.file.text().get(offset as usize..).unwrap_or_default();
        rest.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default()
    }

    /// Returns the name of the function whose call is at this place, such as `any` of `ids.any(|id| id > 3)`.
    fn method(&self, at: Origin) -> Option<&str> {
        let call = self.file.text().get(at.start as usize..at.end as usize)?.strip_suffix(')')?;
        let mut open = 1;
        let arguments = call.rfind(|letter| {
            open += i32::from(letter == ')') - i32::from(letter == '(');
            open == 0
        })?;
        let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
        let function = &call[..arguments];
        let name = &function[function.trim_end_matches(is_name).len()..];
        let is_loop = ["", "for", "fold", "loop", "retry"].contains(&name);
        (!is_loop && !["for", "fold"].contains(&self.word(at.start))).then_some(name)
    }

    /// Returns the place of a call, and those of the calls of the `fn`s that it is in.
    fn call(&self, call: &IoCall) -> String {
        if is_commit(call) {
            return "before the answer or another effect".to_owned();
        }
        let around =
            self.program.inlined_calls_around(call.origin).zip([", called at "].into_iter().chain(repeat(" from ")));
        let called = around.map(|((_, outer), word)| word.to_owned() + &self.line(outer.called_at.start));
        self.line(call.origin.start) + &called.collect::<String>()
    }
}
