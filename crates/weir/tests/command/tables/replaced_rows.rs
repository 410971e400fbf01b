//! Rows that are updated, where others have a say in it: rules that somebody has added to the database, and the function of the update.

use test_support::postgres::PostgresServer;

use super::existing::Other;
use super::statements::tested_and_served;
use super::{post, request, text};
use crate::support::{Scratch, Served};

const USERS: &str = r#"use http

record User { id: Int, name: Text, rank: Int }
record Post { id: Int, author: Int }

table users: User key id unique rank
table posts: Post key id

service forum on http(port: 8080) {
  post "/fill" {
    for id in [1, 2, 3] {
      users.upsert(User { id, name: "Ada {id}", rank: id })?
      posts.upsert(Post { id, author: id })?
    }
    http.text("filled")
  }
  post "/shift" { http.text("{users.update_all(|user| user.id > 0, |user| User { ..user, name: user.name + "!", rank: user.rank + 10 })?}") }
  post "/turn" {
    let turned = users.update_all(|user| user.id > 0, |user| User { ..user, rank: 24 - user.rank }) else as failure {
      return http.status(409, "{failure}")?
    }
    http.text("{turned}")
  }
  get "/" { http.json((for user in users { (user.id, user.name, user.rank) }, posts.count())) }
}
"#;

/// A deletion would delete the posts as well in PostgreSQL, and fail in SQLite.
#[test]
fn rows_are_updated_in_their_place_unless_a_unique_value_moves() {
    let program = Scratch::new("users.weir", USERS.as_bytes());
    let answer = |served: &Served, path: &str| post(served, path).map(|answer| text(&answer).trim().to_owned());
    let data = Scratch::folder("replaced");
    let served = Served::start(program.path(), &["--data", data.path()]);
    assert_eq!(answer(&served, "/fill").as_deref(), Some("filled"));
    served.stop();
    sqlite_execute(
        &data,
        "CREATE TRIGGER kept BEFORE DELETE ON users BEGIN SELECT RAISE(ABORT, 'users are kept'); END",
    );
    let served = Served::start(program.path(), &["--data", data.path()]);
    shifted(&served);
    let moved = request(&served, "POST", "/turn").unwrap();
    assert_eq!((moved.status, text(&moved).contains("users are kept")), (409, true), "{}", text(&moved));
    served.stop();

    let Some(server) = PostgresServer::shared() else { return };
    server.schema("replaced_rows");
    let address = server.address("replaced_rows");
    let served = Served::start(program.path(), &["--tables", &address]);
    assert_eq!(answer(&served, "/fill").as_deref(), Some("filled"));
    server.execute(
        "replaced_rows",
        "ALTER TABLE posts ADD FOREIGN KEY (author) REFERENCES users (id) ON DELETE CASCADE;
         ALTER TABLE users ADD COLUMN low TEXT GENERATED ALWAYS AS (lower(name)) STORED;
         ALTER TABLE users ADD COLUMN number INTEGER GENERATED ALWAYS AS IDENTITY",
    );
    shifted(&served);
    assert_eq!(server.execute("replaced_rows", "SELECT low FROM users WHERE id = 2").trim(), "ada 2!");
    // The first value is that of the last row, and the last one that of the first.
    assert_eq!(answer(&served, "/turn").as_deref(), Some("3"));
    assert_eq!(text(&served.get("/")).trim(), r#"[[[1,"Ada 1!",13],[2,"Ada 2!",12],[3,"Ada 3!",11]],0]"#);
    assert_eq!(server.execute("replaced_rows", "SELECT number FROM users WHERE id = 2").trim(), "2");
    served.stop();
}

fn shifted(served: &Served) {
    assert_eq!(post(served, "/shift").map(|answer| text(&answer).trim().to_owned()).as_deref(), Some("3"));
    assert_eq!(text(&served.get("/")).trim(), r#"[[[1,"Ada 1!",11],[2,"Ada 2!",12],[3,"Ada 3!",13]],3]"#);
}

/// Executes SQL in the database of a folder.
pub(super) fn sqlite_execute(folder: &Scratch, sql: &str) {
    let mut files = std::fs::read_dir(folder.path()).expect("the folder").map(|file| file.expect("a file").path());
    let file = files.find(|path| path.extension().is_some_and(|extension| extension == "db")).expect("a database");
    let mut sqlite = std::process::Command::new("sqlite3");
    let executed = sqlite.arg(file).arg(sql).output().expect("sqlite3 is installed");
    assert!(executed.status.success(), "{}", String::from_utf8_lossy(&executed.stderr));
}

const DELETING: &str = r#"use http

record Count { id: Int, number: Int }

table stored: Count key id
table kept: Count key id soft

fn results() -> Result(List(Text)) {
  for id in [1, 2] {
    stored.upsert(Count { id, number: 0 })?
    kept.upsert(Count { id, number: 0 })?
  }
  let one = stored.update(1, |count| {
    stored.delete(1)?
    Count { ..count, number: 5 }
  })
  let soft = kept.update(1, |count| {
    kept.delete(1)?
    Count { ..count, number: 5 }
  })
  let all = stored.update_all(|_| true, |count| {
    stored.delete(count.id)?
    Count { ..count, number: 5 }
  })
  let all_soft = kept.update_all(|_| true, |count| {
    kept.delete(count.id)?
    Count { ..count, number: 5 }
  })
  Ok([said(one.map(|_| 0)), said(soft.map(|_| 0)), said(all), said(all_soft), "{stored.count()} {kept.count()}"])
}

fn said(result: Result(Int)) -> Text {
  match result {
    Ok(_) => "updated",
    Err(failure) => "{failure.kind()}: {failure}"
  }
}

fn expected() -> List(Text) {
  let gone = "cannot be updated: what writes the new row has deleted it before"
  let or_database = "or a foreign key of the database has. Or a policy, trigger or rule of the database has kept it"
  [
    "constraint: the row of `stored` with the id 1 {gone}, {or_database}",
    "constraint: the row of `kept` with the id 1 {gone}",
    "constraint: the row of `stored` with the id 1 {gone}, {or_database}",
    "constraint: the row of `kept` with the id 1 {gone}",
    "2 2"
  ]
}

service counts on http(port: 8080) {
  post "/" {
    let (first, second) = (results()?, results()?)
    http.text("{first == expected() && second == expected()} {first} {second}")
  }
}

test "an update fails whose function deletes its row" {
  expect results()? == expected()
}
"#;

#[test]
fn an_update_fails_whose_function_deletes_its_row() {
    tested_and_served("deleting", DELETING, |served| {
        let answer = post(served, "/").map(|answer| text(&answer).trim().to_owned()).unwrap_or_default();
        assert!(answer.starts_with("true"), "{answer}");
    });
}

const DOCUMENTS: &str = r#"use http

record Document { id: Int, owner: Text, size: Float }

config shop: Text

table documents: Document key id existing(database: shop, writable: true)

service archive on http(port: 8080) {
  post "/insert/{id}" (id: Int) {
    documents.insert(Document { id, owner: "eve", size: 0.0 }) else as failure { return http.status(409, "{failure.kind()}: {failure}")? }
    http.text("written")
  }
  post "/update/{id}" (id: Int) {
    let document = documents.update(id, |document| Document { ..document, size: 0.3 }) else as failure {
      return http.status(409, "{failure.kind()}: {failure}")?
    }
    http.json(document)
  }
  post "/together/{id}" (id: Int) {
    let size = atomic documents {
      let document = documents.update(id, |document| Document { ..document, size: 0.5 })?
      documents.update(3, |document| Document { ..document, size: 7.0 })?
      match document { Some(new) => new.size, None => 0.0 }
    }
    http.text("{size}")
  }
  post "/all" {
    let all = documents.update_all(|document| document.id > 0, |document| Document { ..document, size: 9.0 }) else as failure {
      return http.status(409, "{failure.kind()}: {failure}")?
    }
    http.text("{all}")
  }
}
"#;

#[test]
fn the_rules_of_an_existing_database_decide_about_rows_that_are_written() {
    let program = Scratch::new("archive.weir", DOCUMENTS.as_bytes());
    let rows = "CREATE TABLE documents (id integer PRIMARY KEY NOT NULL, owner text NOT NULL, size real NOT NULL);
        INSERT INTO documents VALUES (1, 'ada', 1), (2, 'bob', 2), (3, 'ada', 3);";
    for other in Other::each("existing_rules", |_| String::new()) {
        other.execute(rows);
        other.execute(if other.is_sqlite() {
            "CREATE TRIGGER bobs BEFORE UPDATE ON documents WHEN old.owner = 'bob' BEGIN SELECT RAISE(IGNORE); END;
             CREATE TRIGGER rounded AFTER UPDATE ON documents WHEN new.size < 1 BEGIN UPDATE documents SET size = 1 WHERE id = new.id; END;
             CREATE TRIGGER eves BEFORE INSERT ON documents WHEN new.owner = 'eve' BEGIN SELECT RAISE(IGNORE); END"
        } else {
            "CREATE FUNCTION rules() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
               IF new.owner <> 'ada' THEN RETURN NULL; END IF;
               IF new.size < 1 THEN new.size = 1; END IF;
               RETURN new;
             END $$;
             CREATE TRIGGER rules BEFORE INSERT OR UPDATE ON documents FOR EACH ROW EXECUTE FUNCTION rules()"
        });
        let served = Served::start(program.path(), &["--set", &other.option()]);
        let send = |path: &str| {
            let answer = post(&served, path).expect("an answer");
            format!("{} {}", answer.status, text(&answer).trim())
        };
        let stored = |other: &Other| other.execute("SELECT id, size FROM documents ORDER BY id").replace('\n', " ");
        assert_eq!(send("/update/1"), r#"200 {"id":1,"owner":"ada","size":1.0}"#);
        assert_eq!(send("/together/1"), "200 1.0");
        let kept = "it is gone, or a policy, trigger or rule of the database has kept it";
        assert_eq!(
            send("/update/2"),
            format!("409 constraint: the database has not updated the row of `documents` with the id 2: {kept}")
        );
        assert_eq!(
            send("/all"),
            format!("409 constraint: the database has not updated the row of `documents` with the id 2: {kept}")
        );
        let out = "a trigger or rule of the database has kept it out";
        assert_eq!(
            send("/insert/4"),
            format!("409 constraint: the database has not written the row of `documents` with the id 4: {out}")
        );
        let sizes = stored(&other);
        assert!(sizes.contains("2|2") && sizes.contains("3|7") && !sizes.contains("4|"), "{sizes}");
        served.stop();
    }
}

const SEATS: &str = r#"use http

record Seat { id: Int, place: Int }

table seats: Seat key id unique place

service hall on http(port: 8080) {
  post "/fill" {
    for id in [1, 2, 3] { seats.upsert(Seat { id, place: id })? }
    http.text("filled")
  }
  post "/update/{id}" (id: Int) {
    let seat = seats.update(id, |seat| Seat { ..seat, place: seat.place + 10 }) else as failure {
      return http.status(409, "{failure.kind()}")?
    }
    http.json(seat)
  }
  post "/together/{id}" (id: Int) {
    let place = atomic seats {
      seats.upsert(Seat { id: 3, place: 3 })?
      seats.update(id, |seat| Seat { ..seat, place: seat.place + 10 })?
      match seats.update(1, |seat| Seat { ..seat, place: seat.place + 1 })? { Some(new) => new.place, None => 0 }
    }
    http.text("{place}")
  }
  post "/turn" {
    let turned = seats.update_all(|seat| seat.id > 0, |seat| Seat { ..seat, place: 4 - seat.place }) else as failure {
      return http.status(409, "{failure.kind()}")?
    }
    http.text("{turned}")
  }
  post "/leave/{id}" (id: Int) { http.text("{seats.delete(id)?}") }
}
"#;

/// Nothing is answered before the database has executed it, also in a transaction.
#[test]
fn the_triggers_of_a_table_decide_about_its_rows_from_the_next_start_on() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("row_triggers");
    let address = server.address("row_triggers");
    let program = Scratch::new("seats.weir", SEATS.as_bytes());
    let start = || Served::start(program.path(), &["--tables", &address]);
    let served = start();
    let send = |served: &Served, path: &str| {
        let answer = request(served, "POST", path).expect("an answer");
        format!("{} {}", answer.status, text(&answer).trim())
    };
    let stored = || server.execute("row_triggers", "SELECT id, place FROM seats ORDER BY id").trim().replace('\n', " ");
    assert_eq!(send(&served, "/fill"), "200 filled");
    server.execute(
        "row_triggers",
        "CREATE FUNCTION kept() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF old.id = 2 OR tg_op = 'INSERT' AND new.id = 2 THEN RETURN NULL; END IF;
           IF tg_op = 'DELETE' THEN RETURN old; END IF;
           IF tg_op = 'UPDATE' AND new.id = 1 THEN new.place = new.place + 100; END IF;
           RETURN new;
         END $$;
         CREATE TRIGGER kept BEFORE INSERT OR UPDATE ON seats FOR EACH ROW EXECUTE FUNCTION kept()",
    );
    // It is not noticed yet, and no row is lost.
    assert_eq!(send(&served, "/turn"), "409 constraint");
    assert_eq!(stored(), "1|1 2|2 3|3");
    served.stop();
    server.execute("row_triggers", "CREATE TRIGGER stays BEFORE DELETE ON seats FOR EACH ROW EXECUTE FUNCTION kept()");
    let served = start();
    assert_eq!(send(&served, "/update/1"), r#"200 {"id":1,"place":111}"#);
    assert_eq!(send(&served, "/update/2"), "409 constraint");
    assert_eq!(send(&served, "/together/3"), "200 212");
    assert_eq!(stored(), "1|212 2|2 3|13");
    assert!(send(&served, "/together/2").starts_with("500"));
    assert_eq!(send(&served, "/leave/2"), "200 false");
    assert_eq!(stored(), "1|212 2|2 3|13");
    served.stop();
}
