//! The table of the functions of other languages: each expression in it compiles.

use std::fmt::Write;

use crate::support::{Scratch, repository, say};

/// The expressions of the second column, each with the number of its line.
fn expressions() -> Vec<(usize, String)> {
    let table = std::fs::read_to_string(repository().join("docs/functions.md")).expect("the table is there");
    let rows = table.lines().enumerate().filter(|(_, line)| line.starts_with("| "));
    let columns = rows.map(|(at, line)| (at + 1, line.replace("\\|", "\u{1}")));
    let cells = columns.filter_map(|(at, line)| Some((at, line.split('|').nth(2)?.trim().replace('\u{1}', "|"))));
    let written = cells.filter(|(_, cell)| cell != "Weir" && cell != "–");
    written
        .map(|(at, cell)| {
            let code = cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`'));
            (at, code.unwrap_or_else(|| panic!("docs/functions.md:{at}: `{cell}` is not one expression")).to_owned())
        })
        .collect()
}

/// Returns a program with a test for each expression, whose name is its line.
fn program(expressions: &[(usize, String)]) -> String {
    let mut program = String::from(
        "use base64, bytes, client, float, hex, html, json, list, log, map, path, random, regex, text, time, url\n\
         fn keep(_value: a) { }\n",
    );
    for (at, expression) in expressions {
        write!(
            program,
            "fn line{at}(n: Int, m: Int, x: Float, y: Float, s: Text, t: Text, xs: List(Int), ys: List(Int), \
             words: List(Text), ages: Map(Text, Int), others: Map(Text, Int), o: Option(Int), r: Result(Int), b: Bool, \
             data: Bytes, at: Time, later: Time) -> Result(()) {{\n  keep({expression})\n  Ok(())\n}}\n"
        )
        .expect("a text takes all");
    }
    program
}

/// Returns what the compiler reports about the program.
fn errors(text: &str) -> String {
    let said = say(&["check", Scratch::new("functions.weir", text.as_bytes()).path()]);
    said.messages + &said.output
}

#[test]
fn every_expression_of_the_table_compiles() {
    let expressions = expressions();
    assert!(expressions.len() > 100, "the table has {} expressions", expressions.len());
    let reported = errors(&program(&expressions));
    assert!(!reported.contains("error"), "{reported}");
}

#[test]
fn a_function_that_does_not_exist_is_found() {
    assert!(errors(&program(&[(1, "xs.fly()".to_owned())])).contains("E0211"));
}
