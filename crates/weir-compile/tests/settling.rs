//! The places of the waits until what a flow has written is durable: its failure is that of a write, and is shown at it.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use weir_compile::ProgramFiles;
use weir_ir::expr::Op;
use weir_syntax::Sources;

const PROGRAM: &str = r#"use http

record Row { id: Int, text: Text }

table rows: Row key id auto

service board on http(port: 1) {
  post "/" (body text: Text) {
    rows.insert(Row { text })? // the statement
    http.text("written")
  }
  put "/" (body text: Text) {
    add(text)?
    http.text("written")
  }
  get "/" {
    let all = for row in rows { row.text } // the statement
    http.json(all)
  }
}

fn add(text: Text) -> Result(()) {
  atomic rows { // the statement
    rows.insert(Row { text })?
    rows.delete(1)?
  }
  Ok(())
}
"#;

const EXISTING: &str = r#"use http

record Row { id: Int, text: Text }

table rows: Row key id auto
table others: Row key id existing(database: "others.db", writable: true)

service board on http(port: 1) {
  post "/insert" (body text: Text) {
    let id = rows.insert(Row { text })?
    others.insert(Row { id, text })?
    http.text("written")
  }
  post "/update" (body text: Text) {
    rows.insert(Row { text })?
    others.update(1, |other| Row { ..other, text })?
    http.text("written")
  }
  post "/atomic" (body text: Text) {
    rows.insert(Row { text })?
    atomic others {
      others.upsert(Row { id: 1, text })?
      others.upsert(Row { id: 2, text })?
    }
    http.text("written")
  }
}
"#;

/// Others see it at once, and a crash behind it would leave it alone.
#[test]
fn a_write_of_an_existing_database_waits_until_what_was_written_before_is_durable() {
    let (mut sources, library) = (Sources::new(), weir_library::library());
    let program = ProgramFiles::in_text("board.weir", EXISTING, &library, &mut sources);
    let file = sources.file(program.source());
    let program = weir_compile::compile_program(program, file, &library).expr.unwrap();
    for flow in &program.entries[0].flows {
        let calls = statements(&flow.body);
        assert_eq!(calls[..2], ["insert", "settle"], "{calls:?}");
        let first_other = &*calls[2];
        assert!(["insert", "begin"].contains(&first_other), "{calls:?}");
        let waits_within = calls[2..].iter().skip_while(|call| *call != "upsert").take_while(|call| *call != "commit");
        assert!(waits_within.into_iter().all(|call| call == "upsert"), "{calls:?}");
    }
}

#[test]
fn a_wait_is_placed_at_the_statement_before_it() {
    let (mut sources, library) = (Sources::new(), weir_library::library());
    let program = ProgramFiles::in_text("board.weir", PROGRAM, &library, &mut sources);
    let file = sources.file(program.source());
    let compiled = weir_compile::compile_program(program, file, &library);
    let program = compiled.expr.unwrap();
    for flow in &program.entries[0].flows {
        let mut places = Vec::new();
        flow.body.each_binding(&mut |binding| {
            if matches!(&binding.op, Op::Call(call) if call.function.as_str() == "tables.settle") {
                places.push(binding.origin.start as usize);
            }
        });
        assert!(!places.is_empty());
        for place in places {
            let line = PROGRAM[..place].lines().count().max(1) - 1;
            assert!(PROGRAM.lines().nth(line).unwrap().contains("// the statement"), "line {}", line + 1);
        }
    }
}

const FIVE: &str = r#"use http

record Row { id: Int, text: Text }

table rows: Row key id

service board on http(port: 1) {
  post "/five" (text: Text) {
    rows.insert(Row { id: 1, text })?
    rows.insert(Row { id: 2, text })?
    rows.insert(Row { id: 3, text })?
    rows.insert(Row { id: 4, text })?
    rows.insert(Row { id: 5, text })?
    http.text("written")
  }
  post "/list" (text: Text) {
    let ids = for id in [1, 2, 3, 4, 5] { rows.insert(Row { id, text })? }
    http.text("{ids}")
  }
}
"#;

/// Returns the statements on tables that a body executes, in the order of the text.
fn statements(body: &weir_ir::expr::Block) -> Vec<String> {
    let mut statements = Vec::new();
    body.each_binding(&mut |binding| {
        if let Op::Call(call) = &binding.op
            && let Some(statement) = call.function.as_str().strip_prefix("tables.")
        {
            statements.push(statement.to_owned());
        }
    });
    statements
}

/// A flow waits before its answer, not behind each insertion; and soft tables are never durable.
#[test]
fn five_insertions_of_a_flow_have_one_wait_and_those_of_soft_tables_none() {
    let soft = FIVE.replace("key id\n", "key id soft\n");
    let found = [FIVE, &soft].map(|text| {
        let (mut sources, library) = (Sources::new(), weir_library::library());
        let program = ProgramFiles::in_text("board.weir", text, &library, &mut sources);
        let file = sources.file(program.source());
        let program = weir_compile::compile_program(program, file, &library).expr.unwrap();
        program.entries[0].flows.iter().map(|flow| statements(&flow.body)).collect::<Vec<_>>()
    });
    let [one_by_one, in_a_list] = &found[0][..] else { panic!("{found:?}") };
    assert_eq!(one_by_one[..], ["insert", "insert", "insert", "insert", "insert", "settle"]);
    assert_eq!(in_a_list[..], ["insert", "settle"]);
    assert!(found[1].iter().flatten().all(|statement| statement == "insert"), "{found:?}");
}
