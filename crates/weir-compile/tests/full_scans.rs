//! Warnings of queries of the largest or the smallest value of a column, which read the whole table unless an index has the values in order.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use weir_compile::ProgramFiles;
use weir_syntax::{Code, Sources};

/// Returns the advice of each warning of a `fn` with this body.
fn advice(body: &str) -> Vec<String> {
    let text = format!(
        "use http\n\nrecord Message {{ id: Int, to: Text, sent: Time, size: Int }}\n\n\
         enum State {{ Open, Closed }}\n\nrecord Task {{ to: Text, id: Int, state: State, read: Bool, seen: Bool }}\n\n\
         table messages: Message key id auto index (to, size)\ntable recent: Message key id auto soft\n\
         table tasks: Task key (to, id) index state index read\n\n\
         service board on http(port: 1) {{\n  get \"/\" {{\n    let found = {body}\n    http.json(found)\n  }}\n}}\n"
    );
    let (mut sources, library) = (Sources::new(), weir_library::library());
    let program = ProgramFiles::in_text("board.weir", &text, &library, &mut sources);
    let file = sources.file(program.source());
    let compiled = weir_compile::compile_program(program, file, &library);
    assert!(compiled.expr.is_some(), "{text}");
    let scans = compiled.diagnostics.iter().filter(|diagnostic| diagnostic.code == Code::FullScan);
    scans.map(|diagnostic| format!("{diagnostic:?}")).collect()
}

#[test]
fn the_largest_and_the_smallest_value_of_a_column_without_an_index_name_the_index() {
    for body in [
        "(for m in messages { m.sent }).max()",
        "(for m in messages { m.sent }).min()",
        "(for m in messages if m.to != \"ada\" { m.sent }).max()",
        "for m in messages order by m.sent desc limit 3 { m.id }",
    ] {
        let found = advice(body);
        assert!(found.len() == 1 && found[0].contains("`index sent`"), "{body}: {found:?}");
    }
}

#[test]
fn values_that_an_index_has_in_order_are_not_reported() {
    for body in [
        "(for m in messages { m.to }).max()",
        "(for m in messages { m.id }).min()",
        "(for m in messages if m.to == \"ada\" { m.size }).max()",
        "(for m in messages if m.to == \"ada\" { m.sent }).max()",
        "(for m in recent { m.sent }).max()",
        "for m in messages order by m.to, m.size, m.id limit 3 { m.id }",
        // Everything is read anyway.
        "for m in messages order by m.sent { m.id }",
        "for m in messages if m.to.length() > 3 order by m.sent limit 3 { m.id }",
        "(for m in messages { m.size }).sum()",
    ] {
        let found = advice(body);
        assert!(found.is_empty(), "{body}: {found:?}");
    }
}

#[test]
fn a_later_column_of_the_key_and_a_bool_need_an_index_of_their_own() {
    for (body, index) in [
        ("(for t in tasks { t.id }).max()", "`index id`"),
        ("for t in tasks order by t.id limit 3 { t.to }", "`index id`"),
        ("(for t in tasks { t.seen }).min()", "`index seen`"),
    ] {
        let found = advice(body);
        assert!(found.len() == 1 && found[0].contains(index), "{body}: {found:?}");
    }
    for body in ["(for t in tasks { t.to }).max()", "(for t in tasks { t.read }).max()"] {
        assert_eq!(advice(body), [] as [String; 0], "{body}");
    }
}

/// A database has the names of the variants.
#[test]
fn no_index_has_the_order_of_an_enum() {
    for body in ["(for t in tasks { t.state }).max()", "for t in tasks order by t.state desc limit 3 { t.id }"] {
        let found = advice(body);
        let says_why = |said: &String| {
            said.contains("no index has the order by `state`") && said.contains("order by another column")
        };
        assert!(found.len() == 1 && says_why(&found[0]) && !found[0].contains("`index state`"), "{body}: {found:?}");
    }
}

#[test]
fn the_order_of_two_comparisons_makes_no_difference() {
    for body in ["tasks.count(|t| t.id < 3 && t.to < \"b\")", "tasks.count(|t| t.to < \"b\" && t.id < 3)"] {
        assert_eq!(advice(body), [] as [String; 0], "{body}");
    }
}
