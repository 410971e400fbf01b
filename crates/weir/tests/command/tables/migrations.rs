//! `migrate`: rows of another type are converted when a program starts, and a start that was killed goes on.

use super::{post, text};
use crate::support::{Scratch, Served, TableStore, say, weir};

const OLD: &str = r#"use http, list

record User { id: Int, place: Text, age: Text }

table users: User key id index age

service directory on http(port: 8080) {
  post "/fill/{count}" (count: Int) {
    atomic users {
      for id in list.numbers(0, count)? { users.insert(User { id, place: "Ulm", age: "{id % 100}" })? }
    }
    http.text("filled")
  }
}
"#;

/// The new program. `BODY` converts the age, `CLAUSE` is the end of the clause.
const NEW: &str = r#"use http

record OldUser { id: Int, place: Text, age: Text }
record User { id: Int, city: Text, age: Int, by: Text, note: Option(Text) }

table users: User key id index age unique (id, city) default(by: "nobody") migrate OldUser: upgraded CLAUSE

fn upgraded(old: OldUser) -> Result(User) {
  let age = old.age.parse_int() else { return fail("{old.id}: {old.age} is no age") }
  BODY
  Ok(User { id: old.id, city: old.place, age, by: "BY", note: None })
}

service directory on http(port: 8080) {
  get "/{by}" (by: Text) {
    let sum = (for u in users if u.by == by { u.age }).sum()
    let known = users.count(|u| u.city == "Ulm" && u.by == by)
    http.text("{known} {sum}")
  }
}
"#;

fn new(body: &str, by: &str, clause: &str) -> Vec<u8> {
    NEW.replace("BODY", body).replace("BY", by).replace("CLAUSE", clause).into_bytes()
}

/// Returns a database of each kind with this number of rows of the old program.
fn filled(name: &str, count: u64) -> Vec<(Scratch, TableStore)> {
    let stores = TableStore::each(name).into_iter();
    let filled = stores.map(|store| {
        let program = Scratch::new("users.weir", OLD.as_bytes());
        let served = Served::start(program.path(), &store.with(&[]));
        assert_eq!(post(&served, &format!("/fill/{count}")).map(|answer| answer.status), Some(200));
        served.stop();
        (program, store)
    });
    filled.collect()
}

fn tables(program: &Scratch, store: &TableStore) -> String {
    say(&[&["tables", program.path()], &store.with(&[])[..]].concat()).output
}

fn answer(program: &Scratch, store: &TableStore, by: &str) -> String {
    let served = Served::start(program.path(), &store.with(&[]));
    let answer = served.get(&format!("/{by}"));
    served.stop();
    text(&answer).to_owned()
}

#[test]
fn rows_are_converted_once_and_a_failure_leaves_them_as_they_are() {
    for (program, store) in filled("migrations", 1_200) {
        program.write(&new("if old.id == 1_100 { fail(\"not yet\") }", "first", ""));
        let shown = tables(&program, &store);
        assert!(
            shown.contains("a start runs: ALTER TABLE \"users\" RENAME COLUMN \"age\" TO \"age as Text\""),
            "{shown}"
        );
        assert!(
            shown.contains("a start converts 1200 rows by the function of `migrate`, in one transaction"),
            "{shown}"
        );
        let failed = say(&[&["run", program.path(), "--port", "0"], &store.with(&[])[..]].concat());
        assert!(failed.messages.contains("the table `users` cannot be opened: not yet"), "{}", failed.messages);
        assert_eq!(tables(&program, &store), shown, "a failed start has changed the database");
        program.write(OLD.as_bytes());
        Served::start(program.path(), &store.with(&[])).stop();
        program.write(&new("", "second", ""));
        assert_eq!(answer(&program, &store, "second"), "1200 59400");
        assert!(tables(&program, &store).contains("the database has it like this"));
        // A later program that has the clause still, and another new column, converts nothing.
        let later = String::from_utf8(new("", "third", "")).unwrap();
        let later = later.replace("note: Option(Text) }", "note: Option(Text), words: Option(Int) }");
        program.write(later.replace("note: None })", "note: None, words: None })").as_bytes());
        assert_eq!(answer(&program, &store, "second"), "1200 59400");
        // The old program would read other columns than those that are there.
        program.write(OLD.as_bytes());
        let refused = say(&[&["run", program.path(), "--port", "0"], &store.with(&[])[..]].concat());
        assert!(refused.messages.contains("the column `age` is `Int` in the database"), "{}", refused.messages);
    }
}

/// A row that the new program has written has no value for a column of the old one, which is told why.
#[test]
fn an_old_program_is_told_that_a_newer_one_has_converted_the_rows() {
    let named = |program: &str, column: &str, ty: &str, clause: &str| {
        format!(
            "use http\n\n{program}record User {{ id: Int, {column}: Text }}\n\ntable users: {ty} key id {clause}\n\n\
             service directory on http(port: 8080) {{\n  post \"/{{id}}\" (id: Int) {{ \
             http.text(\"{{users.insert({ty} {{ id, {column}: \"Ulm\" }})?}}\") }}\n}}\n"
        )
    };
    let old = named("", "place", "User", "");
    let new = "record OldUser { id: Int, place: Text }\n\nfn upgraded(old: OldUser) -> User { User { id: old.id, city: old.place } }\n\n";
    let new = named(new, "city", "User", "migrate OldUser: upgraded");
    for store in TableStore::each("newer") {
        let program = Scratch::new("users.weir", old.as_bytes());
        for (text, id) in [(&old, 1), (&new, 2)] {
            program.write(text.as_bytes());
            let served = Served::start(program.path(), &store.with(&[]));
            assert_eq!(post(&served, &format!("/{id}")).map(|answer| answer.status), Some(200));
            served.stop();
        }
        program.write(old.as_bytes());
        let why = "1 row has no value for the column `place`: a newer version of the program has converted the rows to other \
                   columns (id: Int, city: Text); start that version, or restore a backup from before";
        let refused = say(&[&["run", program.path(), "--port", "0"], &store.with(&[])[..]].concat());
        assert!(refused.messages.contains(why), "{}", refused.messages);
        assert!(tables(&program, &store).contains(why));
    }
}

#[test]
fn a_batched_migration_that_is_killed_goes_on_behind_the_last_batch() {
    for (program, store) in filled("batched", 3_500) {
        let endless =
            "loop n = 0 { if n > 9 { 0 } else { n + 1 } } until old.id != 2_100 || n < 0 at most 1_000_000_000";
        program.write(&new(endless, "first", "batched"));
        let mut killed =
            weir(&[&["run", program.path(), "--port", "0"], &store.with(&[])[..]].concat()).spawn().unwrap();
        while !tables(&program, &store).contains("a start converts 1500 rows") {
            assert!(killed.try_wait().unwrap().is_none(), "the program has ended");
        }
        killed.kill().unwrap();
        killed.wait().unwrap();
        // Another migration must not take over.
        program.write(&String::from_utf8(new("", "x", "batched")).unwrap().replace("city", "town").into_bytes());
        let refused = say(&[&["run", program.path(), "--port", "0"], &store.with(&[])[..]].concat());
        assert!(refused.messages.contains("has begun and is not done"), "{}", refused.messages);
        // A failure in a later batch, too.
        program.write(&new("if old.id == 3_200 { fail(\"not yet\") }", "second", "batched"));
        let failed = say(&[&["run", program.path(), "--port", "0"], &store.with(&[])[..]].concat());
        assert!(failed.messages.contains("not yet"), "{}", failed.messages);
        assert!(tables(&program, &store).contains("a start converts 500 rows"));
        program.write(&new("", "third", "batched"));
        let served = Served::start(program.path(), &store.with(&[]));
        let counts = ["first", "second", "third", "nobody"].map(|by| text(&served.get(&format!("/{by}"))).to_owned());
        assert_eq!(counts, ["2000 99000", "1000 49500", "500 24750", "0 0"]);
        served.stop();
    }
}

/// Each kind of key: the next batch begins behind the last row of the one before.
#[test]
fn batches_follow_keys_of_every_type() {
    let program = r#"use http, list, text, time

enum Kind { Zebra, Ape }
record Old { kind: Kind, name: Text, on: Bool, at: Time, code: Bytes, lasts: Duration, old: Int }
record New { kind: Kind, name: Text, on: Bool, at: Time, code: Bytes, lasts: Duration, new: Text }

table rows: ROW key (kind, name, on, at, code, lasts) CLAUSE

fn upgraded(old: Old) -> New {
  New { kind: old.kind, name: old.name, on: old.on, at: old.at, code: old.code, lasts: old.lasts, new: "{old.old}" }
}

service s on http(port: 8080) {
  post "/fill" {
    atomic rows {
      for i in list.numbers(0, 2_300)? {
        let kind = if i % 2 == 0 { Kind.Zebra } else { Kind.Ape }
        let name = if i % 3 == 0 { "O'Brien \u{0}\u{1}" } else { "Ä" }
        let at = time.from_unix(i % 5 - 2)?
        let lasts = (i - 1_000) * 1ms
        rows.insert(ROW { kind, name, on: i % 7 == 0, at, code: "{i % 11}".to_bytes(), lasts, COLUMN })?
      }
    }
    http.text("filled")
  }
  get "/" { http.text("{for row in rows { row.new.parse_int()? }.sum()} {rows.count()}") }
}
"#;
    let old = program.replace("ROW", "Old").replace("CLAUSE", "").replace("COLUMN", "old: i");
    let old = old.replace("{for row in rows { row.new.parse_int()? }.sum()} ", "");
    let new =
        program.replace("ROW", "New").replace("CLAUSE", "migrate Old: upgraded batched").replace("COLUMN", "new: \"\"");
    let new = new.replace(
        "{for row in rows { row.new.parse_int()? }.sum()}",
        "{(for row in rows { row.new.parse_int()? }).sum()}",
    );
    for store in TableStore::each("batched-keys") {
        let file = Scratch::new("keys.weir", old.as_bytes());
        let served = Served::start(file.path(), &store.with(&[]));
        assert_eq!(post(&served, "/fill").map(|answer| answer.status), Some(200));
        served.stop();
        file.write(new.as_bytes());
        let served = Served::start(file.path(), &store.with(&[]));
        assert_eq!(text(&served.get("/")), "2643850 2300");
        served.stop();
    }
}
