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
        let mut calls = Vec::new();
        flow.body.each_binding(&mut |binding| {
            if let Op::Call(call) = &binding.op
                && let Some(statement) = call.function.as_str().strip_prefix("tables.")
            {
                calls.push(statement.to_owned());
            }
        });
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
