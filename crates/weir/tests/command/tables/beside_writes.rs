//! Reads of a table while others write it: each sees the last write that was finished, and waits for none that is not.

use std::net::TcpStream;

use test_support::postgres::PostgresServer;

use super::gate::{GATE, GATE_ROUTES, send, while_held};
use super::several_databases::OpenTransaction;
use super::text;
use crate::support::{ENGINES, Scratch, Served, TableStore, read_answer};

const PROGRAM: &str = r#"use client, http, list, random, time

record Row { id: Int, n: Int }
record Mark { id: Int, of: Int }

table rows: Row key id index n
table marks: Mark key id references of: rows
table others: Row key id

service front on http(port: 8080) {
  put "/begin" {
    for id in list.numbers(0, 3)? { rows.upsert(Row { id, n: 0 })? }
    marks.delete_all(|mark| mark.id > 0)?
    marks.upsert(Mark { id: 0, of: 0 })?
    others.upsert(Row { id: 0, n: 0 })?
    http.text("begun")
  }
  post "/held/transaction" {
    let came = atomic rows, marks {
      rows.upsert(Row { id: 0, n: 1 })?
      let came = passes()?
      marks.upsert(Mark { id: 1, of: 0 })?
      rows.upsert(Row { id: 1, n: 1 })?
      came
    }
    http.text("{came} {rows[0].map(|row| row.n) else { 0 }} {rows[1].map(|row| row.n) else { 0 }} {marks.count()}")
  }
  post "/held/update" {
    let new = rows.update(0, |row| Row { ..row, n: passes()? })?
    http.text("{new.map(|row| row.n) else { 0 }} {new != None && rows[0] == new}")
  }
  post "/held/update_all" {
    let count = rows.update_all(|row| row.id < 2, |row| Row { ..row, n: if row.id == 1 { passes()? } else { 1 } })?
    http.text("{rows[1].map(|row| row.n) else { 0 }} {count} {rows[0].map(|row| row.n) else { 0 }}")
  }
  post "/update" { http.json(rows.update(0, |row| Row { ..row, n: row.n + 1 })?) }
  post "/update-others" { http.json(others.update(0, |row| Row { ..row, n: row.n + 1 })?) }
  post "/delete_all" { http.text("{marks.delete_all(|mark| mark.of == 0)?}") }

  // The gate.

  get "/row" { http.json(rows[0].map(|row| row.n)) }
  get "/rows" { http.json(for id in list.numbers(0, 3)? { rows[id].map(|row| row.n) }) }
  get "/query" { http.json(for row in rows { row.n }) }
  get "/count" { http.text("{rows.count(|row| row.n == 0)}") }
  get "/sum" { http.text("{(for row in rows { row.n }).sum()}") }
  get "/groups" { http.text("{for (n, of) in (for row in rows { row }).group_by(|row| row.n) { (n, of.length()) }}") }
  get "/page" { http.json((for row in rows order by row.id limit 2 { row.n })) }
  get "/join" { http.json(for mark in marks { (mark.id, rows[mark.of].map(|row| row.n)) }) }
}
"#;

/// The reads, and their answers before the write.
const READS: [(&str, &str); 8] = [
    ("/row", "0"),
    ("/rows", "[0,0,0]"),
    ("/query", "[0,0,0]"),
    ("/count", "3"),
    ("/sum", "0"),
    ("/groups", "[(0, 3)]"),
    ("/page", "[0,0]"),
    ("/join", "[[0,0]]"),
];

/// Has all reads answered, which see the table as it was before the write.
fn all_read(served: &Served, engine: &str) {
    for (path, expected) in READS {
        let answer = read_answer(send(served, "GET", path));
        assert_eq!((answer.status, text(&answer).trim()), (200, expected), "{path} under {engine}");
    }
}

fn answers(request: TcpStream, expected: &str) {
    let answer = read_answer(request);
    assert_eq!((answer.status, text(&answer).trim()), (200, expected));
}

/// Returns the program with its gate.
fn program(name: &str) -> Scratch {
    let routes = PROGRAM.replace("// The gate.", GATE_ROUTES);
    Scratch::new(name, format!("{routes}{GATE}").as_bytes())
}

/// Under each engine, in each of these turns of the stores, the test reads while a flow that writes waits in the middle of this request; then
/// the flow ends with this answer.
fn reads_beside(name: &str, turns: &[usize], path: &str, expected: &str) {
    let (program, stores) = (program("beside.weir"), TableStore::each(name));
    for (engine, store) in turns.iter().flat_map(|turn| TableStore::in_turns(&stores, *turn)) {
        let served = Served::start(program.path(), &store.with(&["--engine", engine]));
        let begin = || answers(send(&served, "PUT", "/begin"), "begun");
        assert_eq!(while_held(&served, path, begin, || all_read(&served, engine)), expected, "under {engine}");
        assert_eq!(served.stop().0, Some(0));
    }
}

#[test]
fn reads_are_answered_while_a_transaction_on_their_table_is_open() {
    reads_beside("beside_atomic", &[0, 1], "/held/transaction", "1 1 2");
}

#[test]
fn reads_are_answered_while_a_row_of_their_table_is_updated() {
    reads_beside("beside_update", &[0, 1], "/held/update", "true");
}

#[test]
fn reads_are_answered_while_many_rows_of_their_table_are_updated() {
    reads_beside("beside_update_all", &[0, 1], "/held/update_all", "2 1");
}

/// Reads wait for no write that a lock of another program holds up. Under `staged`, a call that waits for the database blocks the thread of its
/// section, where the reads queue.
#[test]
fn reads_are_answered_while_a_write_of_their_table_waits_for_another_program() {
    let Some(server) = PostgresServer::shared() else { return };
    let program = program("beside-psql.weir");
    for (at, engine) in ENGINES.iter().filter(|engine| **engine != "staged").enumerate() {
        for (kind, lock, path, expected) in [
            ("update", "SELECT n FROM rows WHERE id = 0 FOR UPDATE", "/update", "{\"id\":0,\"n\":1}"),
            ("delete_all", "SELECT of FROM marks WHERE id = 0 FOR UPDATE", "/delete_all", "1"),
            ("others", "SELECT n FROM others WHERE id = 0 FOR UPDATE", "/update-others", "{\"id\":0,\"n\":1}"),
        ] {
            let schema = format!("beside_psql_{kind}_{at}");
            let address = server.schema(&schema);
            // The first change of its kind, which is not prepared yet, does not block the only event loop.
            let one_loop: &[&str] = if *engine == "event" { &["--threads", "1"] } else { &[] };
            let arguments = [&["--tables", &*address, "--engine", engine], one_loop].concat();
            let served = Served::start(program.path(), &arguments);
            answers(send(&served, "PUT", "/begin"), "begun");
            let lock = OpenTransaction::begin(server, &schema, lock);
            let write = send(&served, "POST", path);
            lock.blocks();
            all_read(&served, engine);
            lock.end();
            answers(write, expected);
            assert_eq!(served.stop().0, Some(0));
        }
    }
}

const CASCADE: &str = r#"use http

record User { id: Int }
record Post { id: Int, author: Int }

table users: User key id
table posts: Post key id references author: users cascade

service front on http(port: 8080) {
  put "/begin" {
    users.upsert(User { id: 1 })?
    posts.upsert(Post { id: 1, author: 1 })?
    http.text("begun")
  }
  post "/delete" {
    users.delete(1)?
    http.json((posts[1] == None, posts.count(|post| post.author == 1)))
  }
}
"#;

/// A flow reads a table behind its own deletion of rows of another one, which deletes rows of that table. Only the step around the
/// deletion tells that it does.
#[test]
fn a_flow_sees_what_its_deletion_before_has_deleted_in_other_tables() {
    let Some(server) = PostgresServer::shared() else { return };
    let program = Scratch::new("beside-cascade.weir", CASCADE.as_bytes());
    for engine in ENGINES {
        let schema = format!("beside_cascade_{}", engine.replace('-', "_"));
        let address = server.schema(&schema);
        let served = Served::start(program.path(), &["--tables", &address, "--engine", engine]);
        answers(send(&served, "PUT", "/begin"), "begun");
        let lock = OpenTransaction::begin(server, &schema, "SELECT id FROM posts WHERE id = 1 FOR UPDATE");
        let request = send(&served, "POST", "/delete");
        lock.blocks();
        lock.end();
        answers(request, "[true,0]");
        assert_eq!(served.stop().0, Some(0));
    }
}
