//! Output of `weir top --once`: a table in columns, or one JSON object.

use std::time::Duration;

use serde_json::json;

use super::model::Model;
use super::rows::{self, BatchesRow, RouteRow, SectionRow, SortOrder};
use crate::humanize::{grouped, rate, rounded, short_time};

/// Formats the program, its routes, its sections and its batches, if it has batched functions, in columns.
pub(super) fn text(model: &Model) -> String {
    let mut text = heading(model) + "\n\n";
    let routes: Vec<_> = rows::routes(model, SortOrder::Program).iter().map(route_cells).collect();
    text += &columns(&["route", "rate/s", "mean", "p50", "p99", "running", "failed"], &routes);
    let sections: Vec<_> = rows::sections(model, SortOrder::Program).iter().map(section_cells).collect();
    text.push('\n');
    text += &columns(&["section", "engine", "threads", "waiting", "rate/s"], &sections);
    let batches: Vec<_> = rows::batches(model, SortOrder::Program).iter().map(batches_cells).collect();
    if !batches.is_empty() {
        text.push('\n');
        text += &columns(&["batches of", "rate/s", "calls", "gathered", "took", "p99", "in flight", "all"], &batches);
    }
    if model.lost > 0 {
        text += &format!("\n{} events were lost\n", grouped(model.lost));
    }
    text
}

/// Formats the same as one JSON object on one line, with times in nanoseconds.
pub(super) fn json(model: &Model) -> String {
    let failures = model.failures.iter();
    let failures = failures.map(|failure| json!({ "failure": failure.text, "count": failure.count }));
    let object = json!({
        "program": model.hello,
        "running_ns": model.at_ns,
        "routes": rows::routes(model, SortOrder::Program),
        "sections": rows::sections(model, SortOrder::Program),
        "batches": rows::batches(model, SortOrder::Program),
        "failures": failures.collect::<Vec<_>>(),
        "lost": model.lost,
    });
    format!("{object}\n")
}

/// Formats name, process, engine and running time of the program.
fn heading(model: &Model) -> String {
    let up = rounded(Duration::from_nanos(model.at_ns));
    match &model.hello {
        Some(hello) => {
            let plan = hello.plan.as_ref().map(|plan| format!(", plan {plan}")).unwrap_or_default();
            format!("{} (process {}, engine {}{plan}), up {up}", hello.program, hello.pid, hello.engine)
        }
        None => format!("a program, up {up}"),
    }
}

fn time(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), short_time)
}

fn route_cells(row: &RouteRow) -> Vec<String> {
    vec![
        row.route.clone(),
        rate(row.rate),
        time(row.mean_ns),
        time(row.p50_ns),
        time(row.p99_ns),
        grouped(row.running),
        grouped(row.failed),
    ]
}

fn section_cells(row: &SectionRow) -> Vec<String> {
    let waiting = format!("{} of {}", grouped(row.waiting), grouped(row.waiting_max));
    vec![row.section.clone(), row.engine.clone(), row.threads(), waiting, rate(row.rate)]
}

fn batches_cells(row: &BatchesRow) -> Vec<String> {
    vec![
        row.function.clone(),
        rate(row.rate),
        row.calls_per_batch.map_or_else(|| "-".to_owned(), rate),
        time(row.waited_mean_ns),
        time(row.took_mean_ns),
        time(row.took_p99_ns),
        row.in_flight(),
        grouped(row.batches),
    ]
}

/// Aligns the first column left and the others right.
fn columns(heads: &[&str], rows: &[Vec<String>]) -> String {
    let heads: Vec<String> = heads.iter().map(ToString::to_string).collect();
    let width = |column: usize| {
        let cells = std::iter::once(&heads).chain(rows).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(index, (cell, width))| match index {
            0 => format!("{cell:width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    std::iter::once(&heads).chain(rows).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::recorded;
    use super::*;

    const TRACE: &str = include_str!("recorded.jsonl");

    #[test]
    fn a_recorded_trace_as_a_table() {
        insta::assert_snapshot!(text(&recorded(TRACE)));
    }

    #[test]
    fn a_recorded_trace_as_json() {
        let object: serde_json::Value = serde_json::from_str(&json(&recorded(TRACE))).unwrap();
        insta::assert_snapshot!(serde_json::to_string_pretty(&object).unwrap());
    }
}
