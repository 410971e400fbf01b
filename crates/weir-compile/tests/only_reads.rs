//! Transactions that only read tables: the database is told, so that they keep no other program from writing.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use weir_compile::ProgramFiles;
use weir_host::Value;
use weir_ir::expr::{Atom, Op};
use weir_syntax::Sources;

/// Returns whether the transaction of a flow with this body is one that only reads.
fn only_reads(body: &str) -> bool {
    let source = format!(
        "use http\n
         record Row {{ id: Int, text: Text }}\n
         table rows: Row key id\n
         fn add(id: Int) -> Result(Int) {{ rows.insert(Row {{ id, text: \"\" }}) }}\n
         service board on http(port: 1) {{\n  post \"/\" {{\n{body}\n  }}\n}}\n"
    );
    let (mut sources, library) = (Sources::new(), weir_library::library());
    let program = ProgramFiles::in_text("board.weir", &source, &library, &mut sources);
    let file = sources.file(program.source());
    let compiled = weir_compile::compile_program(program, file, &library);
    let program = compiled.expr.unwrap();
    let mut found = Vec::new();
    program.entries[0].flows[0].body.each_binding(&mut |binding| {
        if let Op::Call(call) = &binding.op
            && call.function.as_str() == "tables.begin"
        {
            found.push(call.arguments[2] == Atom::Value(Value::Bool(true)));
        }
    });
    assert_eq!(found.len(), 1, "{body}");
    found[0]
}

#[test]
fn a_transaction_only_reads_if_nothing_in_it_writes_a_table() {
    assert!(only_reads(
        "let n = atomic rows { rows.count() + (if rows[1] == None { 0 } else { 1 }) }\nhttp.text(\"{n}\")"
    ));
    let writes = [
        "let n = atomic rows { if rows.count() < 9 { add(1)? }\nrows.count() }\nhttp.text(\"{n}\")",
        "atomic rows { for id in [1, 2] { if rows[id] != None { rows.delete(id)? } } }\nhttp.text(\"\")",
        "let row = rows.update(1, |row| row)?\nhttp.json(row)",
        "let count = rows.update_all(|row| row.id > 1, |row| row)?\nhttp.text(\"{count}\")",
    ];
    writes.iter().for_each(|body| assert!(!only_reads(body), "{body}"));
}
