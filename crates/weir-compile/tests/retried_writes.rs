//! Warnings of writes of tables that a `retry` may repeat.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use weir_compile::ProgramFiles;
use weir_syntax::{Code, Sources};

const DECLARATIONS: &str = "use http, random, time\n\n\
    record Order { id: Int, request: Text, text: Text }\nrecord Note { id: Int, about: Option(Text), text: Text }\n\
    record Stock { name: Text, left: Int }\nrecord Seen { name: Text, at: Time }\n\
    table orders: Order key id auto unique request\ntable notes: Note key id auto unique about\n\
    table stock: Stock key name\ntable seen: Seen key name\ntable recent: Note key id auto soft\n\
    fn note(text: Text) -> Result(Int) { notes.insert(Note { about: None, text }) }\n\
    fn two(text: Text) -> Result(Int) {\n  note(text)?\n  note(text)\n}\n\
    fn both(text: Text) -> Result(Int) {\n  let id = atomic notes { two(text)? }\n  Ok(id)\n}\n\
    fn checked(text: Text) -> Result(()) {\n  if text == \"\" { fail(\"empty\") }\n  Ok(())\n}\n";

/// Returns the statements of the warnings of three attempts with this body.
fn repeated(body: &str) -> Vec<String> {
    repeated_in(3, body)
}

/// Returns the statements of the warnings of so many attempts with this body.
fn repeated_in(attempts: u64, body: &str) -> Vec<String> {
    let text = format!(
        "{DECLARATIONS}service board on http(port: 1) {{\n  post \"/\" (name: Text, body text: Text) {{\n    \
         let done = retry({attempts}) {{\n{body}\n    }}\n    match done {{\n      Ok(_) => http.text(\"done\")\n      Err(_) => http.text(\"failed\")\n    }}\n  }}\n}}\n"
    );
    let (mut sources, library) = (Sources::new(), weir_library::library());
    let program = ProgramFiles::in_text("board.weir", &text, &library, &mut sources);
    let file = sources.file(program.source());
    let compiled = weir_compile::compile_program(program, file, &library);
    assert!(compiled.expr.is_some(), "{text}\n{:?}", compiled.diagnostics);
    let warnings = compiled.diagnostics.iter().filter(|diagnostic| diagnostic.code == Code::RetriedEffect);
    let named = warnings.map(|warning| warning.message.split('`').nth(1).unwrap().to_owned());
    named.collect()
}

#[test]
fn a_write_before_something_that_may_fail_is_reported() {
    for (body, statements) in [
        ("notes.insert(Note { about: None, text })?\nnotes.insert(Note { about: None, text })?", &["notes.insert"][..]),
        ("notes.insert(Note { about: None, text })?\nchecked(text)?", &["notes.insert"]),
        ("notes.insert(Note { about: None, text })?\nchecked(text)", &["notes.insert"]),
        ("notes.insert(Note { about: None, text })?\nif name == \"\" { fail(\"no name\") }", &["notes.insert"]),
        ("let first = note(text)\nchecked(text)?\nfirst?", &["notes.insert"]),
        ("two(text)?", &["notes.insert"]),
        ("recent.insert(Note { about: None, text })?\nchecked(text)?", &["recent.insert"]),
        ("for n in [1, 2] { notes.insert(Note { about: None, text: \"{n}\" })? }", &["notes.insert"]),
        // A row with an absent value agrees with none.
        ("notes.insert(Note { about: Some(name), text })?\nchecked(text)?", &["notes.insert"]),
        // Each attempt has another key.
        ("orders.insert(Order { request: \"{random.int(1, 9)}\", text })?\nchecked(text)?", &["orders.insert"]),
        ("stock.insert(Stock { name: \"{stock.count()}\", left: 1 })?\nchecked(text)?", &["stock.insert"]),
        (
            "let id = notes.insert(Note { about: None, text })?\nstock.upsert(Stock { name: \"{id}\", left: 1 })?\nchecked(text)?",
            &["notes.insert", "stock.upsert"],
        ),
        // Each attempt counts on.
        (
            "let now = stock[name] else { Stock { name, left: 9 } }\nstock.upsert(Stock { ..now, left: now.left - 1 })?\nchecked(text)?",
            &["stock.upsert"],
        ),
        ("stock.update(name, |s| Stock { ..s, left: s.left - 1 })?\nchecked(text)?", &["stock.update"]),
        (
            "stock.update_all(|s| s.left > 0, |s| Stock { ..s, left: s.left - 1 })?\nchecked(text)?",
            &["stock.update_all"],
        ),
        // The second attempt goes another way, because the row is there or gone.
        (
            "let is_new = stock.insert(Stock { name, left: 1 }).is_ok()\nchecked(text)?\nif is_new { note(text)? } else { 0 }",
            &["stock.insert"],
        ),
        (
            "let new = stock.insert(Stock { name, left: 1 }) else { \"\" }\nchecked(text)?\nif new == name { note(text)? } else { 0 }",
            &["stock.insert"],
        ),
        ("let gone = stock.delete(name)?\nchecked(text)?\nif gone { note(text)? } else { 0 }", &["stock.delete"]),
        // One transaction is there when the other one fails.
        (
            "atomic notes { notes.insert(Note { about: None, text })? }\natomic stock { stock.delete(name)? }\nchecked(text)?",
            &["notes.insert"],
        ),
        // Nobody knows whether a write has taken effect whose connection was lost, and the failure in its place does not say so.
        ("match note(text) {\n  Ok(id) => id\n  Err(why) => fail(\"cannot store: {why}\")\n}", &["notes.insert"]),
        ("match both(text) {\n  Ok(id) => id\n  Err(_) => fail(\"cannot store\")\n}", &["notes.insert"]),
        ("note(text) else { 0 }\nchecked(text)?", &["notes.insert"]),
    ] {
        assert_eq!(repeated(body), statements, "{body}");
    }
}

#[test]
fn a_write_that_is_not_repeated_or_is_harmless_is_not_reported() {
    for body in [
        // What fails is the write itself.
        "notes.insert(Note { about: None, text })?",
        "notes.insert(Note { about: None, text })",
        "note(text)?",
        "note(text)",
        "let added = note(text)\nadded?",
        "checked(text)?\nif name == \"\" { note(text)? } else { notes.insert(Note { about: None, text: \"\" })? }",
        "match note(text) {\n  Ok(id) => id\n  Err(failure) => fail(failure)\n}",
        "match note(text) {\n  Ok(id) => id\n  Err(failure) => fail({\n    let same = failure\n    same\n  })\n}",
        "match recent.insert(Note { about: None, text }) {\n  Ok(id) => id\n  Err(why) => fail(\"full: {why}\")\n}",
        "match stock.insert(Stock { name, left: 1 }) {\n  Ok(_) => name\n  Err(why) => fail(\"cannot store: {why}\")\n}",
        "(note(text) within 1s)?",
        // It takes effect with the rest, or not at all.
        "atomic notes, stock {\n  note(text)?\n  stock.update(name, |s| Stock { ..s, left: s.left - 1 })? else { fail(\"none\") }\n}",
        "(atomic notes {\n  note(text)?\n  note(text)?\n} within 1s)?",
        "atomic notes {\n  note(text)?\n  checked(text)?\n}",
        "checked(text)?\ntwo(text) else { return http.text(\"not added\") }",
        // A failure that is handled, and a flow that ends, is no further attempt.
        "note(text)?\nchecked(text) else { return http.text(\"not checked\") }",
        "note(text)?\nlet ok = checked(text) else { () }",
        // The second one is refused.
        "orders.insert(Order { request: name, text })?\nchecked(text)?",
        "stock.insert(Stock { name, left: 1 })?\nchecked(text)?",
        // The second one stores or deletes the same.
        "stock.upsert(Stock { name, left: 1 })?\nchecked(text)?",
        "seen.upsert(Seen { name, at: time.now() })?\nchecked(text)?",
        "let left = notes.count()\nstock.upsert(Stock { name, left })?\nchecked(text)?",
        "stock.delete(name)?\nchecked(text)?",
        "for n in [1, 2] { stock.upsert(Stock { name: \"{n}\", left: n })? }",
    ] {
        assert_eq!(repeated(body), [""; 0], "{body}");
    }
}

#[test]
fn the_write_of_a_single_attempt_is_not_repeated() {
    let body = "notes.insert(Note { about: None, text })?\nchecked(text)?";
    assert_eq!((repeated_in(1, body), repeated_in(2, body)), (vec![], vec!["notes.insert".to_owned()]));
}
