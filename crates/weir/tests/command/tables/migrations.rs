//! `migrate`: rows of another type are converted when a program starts, and a start that was killed goes on.

use super::{post, text};
use crate::support::{Scratch, Served, TableStore, resident_max, say, weir};

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

/// The message of a start whose `fn` fails for a row.
const FAILED: &str = "the table `users` cannot be opened: the row with the id 1100 cannot be converted: not yet";

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
        assert!(failed.messages.contains(FAILED), "{}", failed.messages);
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
        assert!(
            refused.messages.contains("a newer version of the program has converted the rows"),
            "{}",
            refused.messages
        );
    }
}

/// Otherwise neither the old nor the new program could start.
#[test]
fn a_row_that_one_table_cannot_convert_leaves_those_before_it_to_the_old_program() {
    let old = "use stdio, stream\n\nrecord A { id: Int, x: Int }\nrecord B { id: Int, y: Text }\n\
               table aa: A key id\ntable bb: B key id\n\
               for n in stream.range(1, 2) {\n  aa.upsert(A { id: n, x: 5 })?\n  bb.upsert(B { id: n, y: \"seven\" })?\n\
               stdio.print(\"{aa[1]} {bb[1]}\")?\n}\n";
    let new = "use stdio, stream\n\nrecord OldA { id: Int, x: Int }\nrecord A { id: Int, x2: Int }\n\
               record OldB { id: Int, y: Text }\nrecord B { id: Int, y2: Int }\n\
               table aa: A key id migrate OldA: a\ntable bb: B key id migrate OldB: b\n\
               fn a(old: OldA) -> A { A { id: old.id, x2: old.x } }\n\
               fn b(old: OldB) -> Result(B) { Ok(B { id: old.id, y2: VALUE }) }\n\
               for n in stream.range(1, 2) { stdio.print(\"{aa[1]} {bb[1]}\")? }\n";
    for store in TableStore::each("two-tables") {
        let program = Scratch::new("two.weir", old.as_bytes());
        let run = |text: &str| {
            program.write(text.as_bytes());
            say(&[&["run", program.path()], &store.with(&[])[..]].concat())
        };
        let before = run(old).output;
        assert!(before.contains("seven"), "{before}");
        let failed = run(&new.replace("VALUE", "old.y.parse_int()?")).messages;
        let wanted = "the table `bb` cannot be opened: the row with the id 1 cannot be converted: \"seven\" is not";
        assert!(failed.contains(wanted), "{failed}");
        assert_eq!(run(old).output, before);
        let converted = run(&new.replace("VALUE", "7")).output;
        assert!(converted.contains("x2: 5") && converted.contains("y2: 7"), "{converted}");
    }
}

/// The old program ends before the new one starts, so that nobody writes rows of the old type meanwhile.
#[test]
fn a_watched_program_is_replaced_by_one_that_converts_its_rows() {
    for store in TableStore::each("watched-migration") {
        let program = Scratch::new("users.weir", OLD.as_bytes());
        let mut served = Served::start(program.path(), &[&["--watch"], &store.with(&[])[..]].concat());
        assert_eq!(post(&served, "/fill/40").map(|answer| answer.status), Some(200));
        // A program that the database does not allow leaves the old one running.
        program.write(
            &String::from_utf8(new("", "first", ""))
                .unwrap()
                .replace("old.age", "old.aged")
                .replace("age: Text }", "aged: Text }")
                .into_bytes(),
        );
        let why = served.wait_for("the table `users` cannot be opened");
        assert!(why.starts_with(&format!("error: {}:", program.path())), "{why}");
        assert!(why.contains("`migrate` converts nothing, because its old record has `aged: Text`"), "{why}");
        served.wait_for("the previous program keeps running");
        program.write(&new("", "first", ""));
        served.greet();
        assert_eq!(text(&served.get("/first")), "40 780");
        served.stop();
    }
}

/// Returns a program whose rows have one column beside their key.
fn with_column(column: &str, ty: &str, rest: &str) -> String {
    format!(
        "use http, text\n\nrecord {ty} {{ id: Int, {column}: Text }}\n\ntable users: {ty} key id {rest}\n\n\
         service directory on http(port: 8080) {{\n  post \"/{{id}}/{{name}}\" (id: Int, name: Text) {{ \
         http.text(\"{{users.upsert({ty} {{ id, {column}: name }})?}}\") }}\n  \
         get \"/all\" {{\n    let all = for u in users {{ u.{column} }}\n    http.text(text.join(all, \" \")?) }}\n}}\n"
    )
}

/// It may be the old version.
#[test]
fn a_type_that_changes_once_more_to_the_same_one_is_refused_with_what_to_do() {
    let version = |old: &str, new: &str, clause: &str| {
        let value = if new == "Int" { "1" } else { "\"1\"" };
        format!(
            "use stdio, stream\n\nrecord Old {{ id: Int, value: {old} }}\nrecord New {{ id: Int, value: {new} }}\n\
             table rows: New key id {clause}\n\
             fn changed(old: Old) -> New {{ New {{ id: old.id, value: {value} }} }}\n\
             for n in stream.range(0, 1) {{ stdio.print(\"{{rows.count()}}\")? }}\n"
        )
    };
    for store in TableStore::each("changed-again") {
        let program = Scratch::new("changed.weir", version("Int", "Text", "").as_bytes());
        let run = || say(&[&["run", program.path()], &store.with(&[])[..]].concat());
        for (old, new, wanted) in [
            ("Text", "Int", "0"),
            ("Int", "Text", "0"),
            (
                "Text",
                "Int",
                "this one has old ones and no `value: Text`; start that version, or restore a backup from before. The `migrate`",
            ),
        ] {
            assert_eq!(run().output, "0\n");
            program.write(version(old, new, "migrate Old: changed").as_bytes());
            let said = run();
            assert!(
                said.output.contains(wanted) || said.messages.contains(wanted),
                "{} {}",
                said.output,
                said.messages
            );
        }
    }
}

/// It would not see what the new program writes, and what it writes would not be converted. A program that converts the rows back
/// may start, and so may the new one afterwards only if it converts them once more.
#[test]
fn a_program_whose_rows_a_newer_one_has_converted_is_refused_unless_it_converts_them_back() {
    let converts = |from: &str, ty: &str, to: &str, new: &str| {
        format!(
            "migrate {ty}: converted\nrecord {ty} {{ id: Int, {from}: Text }}\n\
             fn converted(old: {ty}) -> {new} {{ {new} {{ id: old.id, {to}: old.{from} }} }}"
        )
    };
    let old = with_column("place", "User", "");
    let new = with_column("city", "User", &converts("place", "Old", "city", "User"));
    let back = with_column("place", "User", &converts("city", "Newer", "place", "User"));
    let why = "a newer version of the program has converted the rows to other columns (id: Int, city: Text)";
    for store in TableStore::each("newer") {
        let program = Scratch::new("users.weir", old.as_bytes());
        let refused = |text: &str, why: &str| {
            program.write(text.as_bytes());
            let refused = say(&[&["run", program.path(), "--port", "0"], &store.with(&[])[..]].concat());
            assert!(refused.messages.contains(why), "{}", refused.messages);
            let shown = say(&[&["tables", program.path()], &store.with(&[])[..]].concat());
            assert!(shown.output.contains(why), "{}", shown.output);
            assert_eq!(shown.code, 1, "a script learns that a start would fail");
        };
        let started = |text: &str, written: &str, all: &str| {
            program.write(text.as_bytes());
            let served = Served::start(program.path(), &store.with(&[]));
            assert_eq!(post(&served, written).map(|answer| answer.status), Some(200));
            let answer = served.get("/all");
            served.stop();
            assert_eq!(super::text(&answer), all);
        };
        started(&old, "/1/Ulm", "Ulm");
        started(&new, "/1/Bonn", "Bonn");
        refused(&old, why);
        started(&new, "/2/Kiel", "Bonn Kiel");
        refused(&old, why);
        started(&back, "/3/Jena", "Bonn Kiel Jena");
        // What the old one says now, it says of all rows.
        started(&old, "/4/Trier", "Bonn Kiel Jena Trier");
        refused(&with_column("city", "User", ""), "has converted the rows to other columns (id: Int, place: Text)");
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
        // Another migration must not take over, and the defaults of a program without it must not fill the rest of the rows.
        let whole = String::from_utf8(new("", "x", "batched")).unwrap();
        let clause = r#"default(by: "nobody") migrate OldUser: upgraded batched"#;
        let without_clause = whole.replace(clause, r#"default(by: "nobody", city: "Bonn", age: 1)"#);
        for text in [whole.replace("city", "town"), without_clause] {
            program.write(text.as_bytes());
            let refused = say(&[&["run", program.path(), "--port", "0"], &store.with(&[])[..]].concat());
            assert!(refused.messages.contains("has begun and is not done"), "{}", refused.messages);
            let shown = say(&[&["tables", program.path()], &store.with(&[])[..]].concat());
            assert!(shown.output.contains("has begun and is not done"), "{}", shown.output);
            assert_eq!(shown.code, 1, "{}", shown.output);
        }
        // A failure in a later batch, too.
        program.write(&new("if old.id == 3_200 { fail(\"not yet\") }", "second", "batched"));
        let failed = say(&[&["run", program.path(), "--port", "0"], &store.with(&[])[..]].concat());
        let way_on = "3000 rows are converted, so that no other version starts: start this one again, or with a corrected `fn`, which \
                      converts the others; the way back is a backup from before";
        assert!(failed.messages.contains(&format!("not yet; {way_on}")), "{}", failed.messages);
        let shown = tables(&program, &store);
        assert!(shown.contains("a start converts 500 rows") && shown.contains(way_on), "{shown}");
        program.write(&new("", "third", "batched"));
        let served = Served::start(program.path(), &store.with(&[]));
        let counts = ["first", "second", "third", "nobody"].map(|by| text(&served.get(&format!("/{by}"))).to_owned());
        assert_eq!(counts, ["2000 99000", "1000 49500", "500 24750", "0 0"]);
        served.stop();
    }
}

/// One start of a version that cannot start would leave neither version able to start.
#[test]
fn no_row_is_converted_in_batches_if_another_table_keeps_the_program_from_starting() {
    let (record, table) = ("record Note { id: Int, word: Text }", "table notes: Note key id");
    let old = format!("{record}\n{table}\n{OLD}").replace("use http, list\n", "");
    let old = format!("use http, list\n{old}").replace(
        "users.insert(User { id, place: \"Ulm\", age: \"{id % 100}\" })?",
        "users.insert(User { id, place: \"Ulm\", age: \"{id % 100}\" })?\n        notes.insert(Note { id, word: \"same\" })?",
    );
    let old = old.replace("atomic users {", "atomic users, notes {");
    let new = String::from_utf8(new("", "new", "batched")).unwrap().replace("use http\n", "");
    let new = format!("use http\n{record}\n{new}\n{table} unique word\n");
    for store in TableStore::each("batches-behind-checks") {
        let program = Scratch::new("users.weir", old.as_bytes());
        let served = Served::start(program.path(), &store.with(&[]));
        assert_eq!(post(&served, "/fill/2300").map(|answer| answer.status), Some(200));
        served.stop();
        program.write(new.as_bytes());
        let shown = tables(&program, &store);
        assert!(shown.contains("a start converts 2300 rows"), "{shown}");
        let failed = say(&[&["run", program.path(), "--port", "0"], &store.with(&[])[..]].concat()).messages;
        assert!(failed.contains("the table `notes` cannot be opened: `unique (word)` does not hold"), "{failed}");
        assert_eq!(tables(&program, &store), shown, "a start that fails has changed the database");
        program.write(old.as_bytes());
        Served::start(program.path(), &store.with(&[])).stop();
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
        let name = if i % 3 == 0 { "\u{0}Ä" } else { "\u{1}O'Brien {i % 50}" }
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

#[test]
fn a_failure_of_two_tables_is_said_once_and_that_nothing_changes() {
    let version = |references: &str, more: &str| {
        format!(
            "use stdio, stream\n\nrecord User {{ id: Int }}\nrecord Item {{ id: Int, owner: Int }}\n\
             table users: User key id\ntable items: Item key id {references}\n{more}\
             for n in stream.range(0, 1) {{\n  items.upsert(Item {{ id: n, owner: 9 }})?\n  \
             stdio.print(\"{{users.count()}} {{items.count()}}\")?\n}}\n"
        )
    };
    for store in TableStore::each("said-once") {
        let program = Scratch::new("items.weir", version("", "").as_bytes());
        assert_eq!(say(&[&["run", program.path()], &store.with(&[])[..]].concat()).output, "0 1\n");
        program.write(version("references owner: users", "table others: User key id\n").as_bytes());
        let shown = tables(&program, &store);
        assert_eq!(shown.matches("does not hold").count(), 1, "{shown}");
        assert!(shown.contains("  a start fails, as said above\n"), "{shown}");
        assert!(shown.contains("CREATE TABLE \"others\""), "{shown}");
        assert!(shown.ends_with("a start changes no table, because it fails\n"), "{shown}");
        let failed = say(&[&["run", program.path()], &store.with(&[])[..]].concat()).messages;
        assert!(
            failed.contains("the table `items` cannot be opened: `references owner: users` of `items`"),
            "{failed}"
        );
    }
}

/// A service whose table has rows of a megabyte, and the next version of it.
const LARGE: [&str; 2] = [
    r#"use http, list

record Item { id: Int, text: Text }
table items: Item key id

service stock on http(port: 8080) {
  post "/fill/{from}" (from: Int) {
    let text = "0123456789abcdef".repeat(65_536)?
    for id in list.numbers(from, from + 10)? { items.upsert(Item { id, text })? }
    http.text("filled")
  }
}
"#,
    r#"use http

record OldItem { id: Int, text: Text }
record Item { id: Int, text: Text, length: Int }
table items: Item key id migrate OldItem: measured CLAUSE

fn measured(old: OldItem) -> Item { Item { id: old.id, text: old.text, length: old.text.length() } }

service stock on http(port: 8080) {
  get "/" { http.text("{items.count(|item| item.length == 1_048_576)}") }
}
"#,
];

#[test]
fn a_migration_that_does_not_fit_into_memory_says_what_to_do_and_a_batched_one_holds_its_batch() {
    for store in TableStore::each("large-migration") {
        let program = Scratch::new("large.weir", LARGE[0].as_bytes());
        let served = Served::start(program.path(), &store.with(&[]));
        for from in (0..200).step_by(10) {
            assert_eq!(post(&served, &format!("/fill/{from}")).expect("it answers").status, 200);
        }
        served.stop();
        program.write(LARGE[1].replace("CLAUSE", "").as_bytes());
        let limited = store.with(&["--memory", "128mb"]);
        let failed = say(&[&["run", program.path(), "--port", "0"], &limited[..]].concat());
        assert_eq!(failed.code, 3, "{}", failed.messages);
        let why = "the table `items` cannot be opened: its rows do not fit into the memory in which they are converted";
        for part in [why, "give this start more with `--memory`", "`migrate … batched`"] {
            assert!(failed.messages.contains(part), "{}", failed.messages);
        }
        program.write(LARGE[1].replace("CLAUSE", "batched").as_bytes());
        let served = Served::start(program.path(), &limited);
        assert_eq!(text(&served.get("/")), "200");
        assert!(resident_max(&served) < 150 << 20, "{} MiB", resident_max(&served) >> 20);
    }
}
