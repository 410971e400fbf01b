//! Statements that the database refuses in a transaction which goes on without them: nothing of them stays.

use test_support::postgres::PostgresServer;

use super::existing::Other;
use super::replaced_rows::sqlite_execute;
use super::{post, text};
use crate::support::{Scratch, Served};

const CASCADE: &str = r#"use http

record User { name: Text }
record Post { id: Int, author: Text }
record Like { id: Int, post: Int }

table users: User key name
table posts: Post key id references author: users cascade
table likes: Like key id references post: posts cascade
table seen: Like key id soft references post: posts cascade

service forum on http(port: 8080) {
  post "/fill" {
    users.upsert(User { name: "ada" })?
    for id in [1, 2, 3] {
      posts.upsert(Post { id, author: "ada" })?
      likes.upsert(Like { id, post: id })?
      seen.upsert(Like { id, post: id })?
    }
    http.text("filled")
  }
  post "/delete/{from}" (from: Int) {
    let said = atomic users, posts, likes, seen {
      users.upsert(User { name: "bob" })?
      let deleted = if from == 0 { users.delete("ada").map(|_| 1) } else { posts.delete_all(|post| post.id >= from) }
      users.upsert(User { name: "eve" })?
      match deleted { Ok(count) => "{count} deleted", Err(failure) => "{failure}" }
    }
    http.text(said)
  }
  get "/" { http.json((for user in users { user.name }, posts.count(), likes.count(), seen.count())) }
}
"#;

/// A rule that somebody has added refuses the deletion of the second post, when the likes are deleted.
#[test]
fn a_deletion_of_several_tables_that_is_refused_in_a_transaction_deletes_nothing() {
    let (program, data) = (Scratch::new("likes.weir", CASCADE.as_bytes()), Scratch::folder("refused-deletion"));
    let served = Served::start(program.path(), &["--data", data.path()]);
    let rule = "CREATE TRIGGER kept BEFORE DELETE ON posts WHEN old.id = 2 BEGIN SELECT RAISE(ABORT, 'this post is kept'); END";
    nothing_is_deleted(served, || sqlite_execute(&data, rule));

    let Some(server) = PostgresServer::shared() else { return };
    server.schema("refused_deletion");
    let served = Served::start(program.path(), &["--tables", &server.address("refused_deletion")]);
    let rule = "CREATE FUNCTION kept() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF old.id = 2 THEN RAISE EXCEPTION 'this post is kept'; END IF;
           RETURN old;
         END $$;
         CREATE TRIGGER kept BEFORE DELETE ON posts FOR EACH ROW EXECUTE FUNCTION kept()";
    nothing_is_deleted(served, || {
        server.execute("refused_deletion", rule);
    });
}

fn nothing_is_deleted(served: Served, add_rule: impl FnOnce()) {
    let answer = |path: &str| post(&served, path).map(|answer| text(&answer).trim().to_owned()).unwrap_or_default();
    assert_eq!(answer("/fill"), "filled");
    add_rule();
    for path in ["/delete/0", "/delete/2"] {
        assert!(answer(path).contains("this post is kept"), "{}", answer(path));
        assert_eq!(text(&served.get("/")).trim(), r#"[["ada","bob","eve"],3,3,3]"#);
    }
    assert_eq!(answer("/delete/3"), "1 deleted");
    assert_eq!(text(&served.get("/")).trim(), r#"[["ada","bob","eve"],2,2,2]"#);
    served.stop();
}

const TASKS: &str = r#"use http

enum State { Open, Closed }
record Task { id: Int, state: State }

config shop: Text

table tasks: Task key id existing(database: shop, writable: true)

service work on http(port: 8080) {
  post "/close/{id}" (id: Int) {
    let said = atomic tasks {
      tasks.upsert(Task { id: id + 10, state: Open })?
      match tasks.update(id, |task| Task { ..task, state: Closed }) {
        Ok(_) => "closed"
        Err(failure) => "{failure}"
      }
    }
    http.text(said)
  }
}
"#;

/// A rule of the database stores a state that the program does not know, so that the row cannot be read.
#[test]
fn an_update_whose_row_cannot_be_read_is_taken_back_in_a_transaction() {
    let program = Scratch::new("work.weir", TASKS.as_bytes());
    for other in Other::each("refused_update", |_| String::new()) {
        other.execute("CREATE TABLE tasks (id integer PRIMARY KEY NOT NULL, state text NOT NULL); INSERT INTO tasks VALUES (1, 'Open'), (2, 'Open')");
        other.execute(if other.is_sqlite() {
            "CREATE TRIGGER late AFTER UPDATE ON tasks WHEN new.id = 2 BEGIN UPDATE tasks SET state = 'Late' WHERE id = new.id; END"
        } else {
            "CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
               IF new.id = 2 THEN new.state = 'Late'; END IF;
               RETURN new;
             END $$;
             CREATE TRIGGER late BEFORE UPDATE ON tasks FOR EACH ROW EXECUTE FUNCTION late()"
        });
        let served = Served::start(program.path(), &["--set", &other.option()]);
        let answer = |path: &str| post(&served, path).map(|answer| text(&answer).trim().to_owned()).unwrap_or_default();
        assert_eq!(answer("/close/1"), "closed");
        assert!(answer("/close/2").contains("is no `Open | Closed`"), "{}", answer("/close/2"));
        let stored = other.execute("SELECT id, state FROM tasks ORDER BY id");
        assert_eq!(stored.split_whitespace().collect::<Vec<_>>(), ["1|Closed", "2|Open", "11|Open", "12|Open"]);
        served.stop();
    }
}

const SEATS: &str = r#"use http

record Seat { id: Int, place: Int }

table seats: Seat key id
table seen: Seat key id soft

service theatre on http(port: 8080) {
  post "/{id}/{place}" (id: Int, place: Int) {
    let said = atomic seats, seen {
      seats.upsert(Seat { id: 1, place: id })?
      seen.upsert(Seat { id, place })?
      match seats.insert(Seat { id, place }) {
        Ok(_) => "inserted"
        Err(failure) => "{failure.kind()}: {failure}"
      }
    }
    http.text(said)
  }
  get "/" { http.json((for seat in seats { (seat.id, seat.place) }, seen.count())) }
}
"#;

/// The program handles the failure of a statement, and goes on.
#[test]
fn a_transaction_that_a_trigger_takes_back_leaves_nothing_and_one_of_which_it_refuses_a_statement_leaves_the_others() {
    let (program, data) = (Scratch::new("theatre.weir", SEATS.as_bytes()), Scratch::folder("taken-back"));
    let served = Served::start(program.path(), &["--data", data.path()]);
    let answer = |path: &str| post(&served, path).map(|answer| text(&answer).trim().to_owned()).unwrap_or_default();
    let rows = || text(&served.get("/")).trim().to_owned();
    assert_eq!(answer("/2/2"), "inserted");
    for (kind, place) in [("FAIL", 98), ("ROLLBACK", 99)] {
        let event = format!("AFTER INSERT ON seats WHEN new.place = {place}");
        sqlite_execute(&data, &format!("CREATE TRIGGER {kind}s {event} BEGIN SELECT RAISE({kind}, 'no'); END"));
    }
    assert_eq!(answer("/3/98"), "constraint: the database refuses the write of `seats`: no");
    assert_eq!(rows(), "[[[1,3],[2,2]],2]");
    assert_eq!(post(&served, "/4/99").map(|answer| answer.status), Some(500), "its commit fails");
    assert_eq!(rows(), "[[[1,3],[2,2]],2]");
    served.stop();
}
