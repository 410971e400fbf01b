//! Rules that somebody has added to the tables of the program, and that the database checks only at the commit; and commits that it refuses
//! as if other programs had hindered them.

use test_support::postgres::PostgresServer;

use super::{post, text};
use crate::support::{Scratch, Served, say};

const PROGRAM: &str = r#"use http

record Part { id: Int, whole: Int }

table parts: Part key id
table seen: Part key id soft(at_most: 100)
shared counted = 0

service store on http(port: 8080) {
  post "/alone/{whole}" (whole: Int) {
    let id = parts.insert(Part { id: 1, whole }) else as failure { return refused(failure) }
    http.text("{id}")
  }
  post "/fn/{whole}" (whole: Int) {
    let count = added(whole) else as failure { return refused(failure) }
    http.text("{count}")
  }
  post "/return/{whole}" (whole: Int) {
    let id = returned(whole) else as failure { return refused(failure) }
    http.text("{id}")
  }
  post "/value/{whole}" (whole: Int) {
    let id = atomic parts {
      parts.upsert(Part { id: 1, whole })?
      parts.upsert(Part { id: 2, whole })
    } else as failure { return refused(failure) }
    http.text("{id}")
  }
  post "/both/{whole}" (whole: Int) {
    let id = either(whole) else as failure { return refused(failure) }
    http.text("{id}")
  }
  post "/retry/{whole}" (whole: Int) {
    let id = retry(2) {
      let id = atomic parts {
        parts.upsert(Part { id: 1, whole })?
        1
      }
      id
    } else as failure { return refused(failure) }
    http.text("{id}")
  }
  post "/soft/{whole}" (whole: Int) {
    let id = kept(whole) else as failure { return refused(failure) }
    http.text("{id}")
  }
  post "/update/{whole}" (whole: Int) {
    parts.upsert(Part { id: 1, whole: 0 })?
    let part = parts.update(1, |part| Part { ..part, whole }) else as failure { return refused(failure) }
    http.text("{part == None}")
  }
  post "/end/{whole}" (whole: Int) {
    atomic parts { parts.upsert(Part { id: 1, whole })? }
    http.text("added")
  }
  get "/" { http.text("{parts.count(|part| part.whole > 0)} {seen.count()} {counted}") }
}

fn refused(failure: Failure) -> http.Response {
  http.status(409, "{failure.kind()}: {failure}") else { http.text("none") }
}

fn added(whole: Int) -> Result(Int) {
  let id = atomic parts {
    parts.upsert(Part { id: 1, whole })?
    parts.upsert(Part { id: 2, whole: 1 })?
  }
  Ok(id)
}

fn returned(whole: Int) -> Result(Int) {
  atomic parts {
    if parts.upsert(Part { id: 1, whole })? == 1 { return Ok(1) }
  }
  Ok(0)
}

/// A refused commit of the `return` leaves the `fn`, that of the value does not.
fn either(whole: Int) -> Result(Int) {
  let id = atomic parts {
    parts.upsert(Part { id: 1, whole })?
    if whole == 8 { return Ok(8) }
    parts.upsert(Part { id: 2, whole })
  } else as failure { return fail("{failure.kind()} of the value") }
  Ok(id)
}

fn kept(whole: Int) -> Result(Int) {
  let count = atomic parts, seen, counted {
    seen.upsert(Part { id: 1, whole })?
    counted.add(1)
    parts.upsert(Part { id: 1, whole })?
  }
  Ok(count)
}
"#;

const RULE: &str = "CREATE FUNCTION small() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       IF new.whole = 6 THEN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END IF;
       IF new.whole > 7 THEN RAISE EXCEPTION 'too large' USING ERRCODE = '23514'; END IF;
       RETURN new;
     END $$;
     CREATE CONSTRAINT TRIGGER small AFTER INSERT OR UPDATE ON parts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION small()";

#[test]
fn a_commit_that_the_database_refuses_is_a_failure_that_the_program_handles() {
    let Some(server) = PostgresServer::shared() else { return };
    let program = Scratch::new("store.weir", PROGRAM.as_bytes());
    server.schema("deferred_rules");
    let served = Served::start(program.path(), &["--tables", &server.address("deferred_rules")]);
    server.execute("deferred_rules", RULE);
    served.stop();
    for engine in ["event", "pool", "elastic"] {
        server.execute("deferred_rules", "DELETE FROM parts");
        let address = server.address("deferred_rules");
        let served = Served::start(program.path(), &["--tables", &address, "--engine", engine]);
        let asked = |path: &str| {
            let answer = post(&served, path).expect("the program answers");
            (answer.status, text(&answer).trim().to_owned())
        };
        let is_refused = |way: &str, whole: i64, why: &str| {
            let (status, said) = asked(&format!("/{way}/{whole}"));
            assert_eq!(status, 409, "{way} under `{engine}`: {said}");
            assert!(said.starts_with(why), "{way}: {said}");
        };
        for way in ["alone", "fn", "return", "value", "retry", "soft", "update"] {
            is_refused(way, 9, "constraint: the database refuses the write: too large");
        }
        // Each is tried eight times.
        for way in ["fn", "return", "value", "soft"] {
            is_refused(way, 6, "conflict: ");
        }
        let (of_value, of_return) = (asked("/both/9"), asked("/both/8"));
        assert_eq!(of_value, (409, "program: constraint of the value".to_owned()), "under `{engine}`");
        assert_eq!(asked("/both/6"), (409, "program: conflict of the value".to_owned()), "under `{engine}`");
        assert_eq!(of_return.0, 409, "under `{engine}`: {}", of_return.1);
        assert!(of_return.1.starts_with("constraint: the database refuses the write: too large"), "{}", of_return.1);
        assert_eq!((asked("/end/9").0, asked("/end/6").0), (500, 500));
        assert_eq!(text(&served.get("/")).trim(), "0 0 0", "under `{engine}`");
        assert_eq!((asked("/fn/1"), asked("/soft/2")), ((200, "2".to_owned()), (200, "1".to_owned())));
        assert_eq!(text(&served.get("/")).trim(), "2 1 1", "under `{engine}`");
        let (code, said) = served.stop();
        assert_eq!(code, Some(0), "{said}");
    }
}

/// The locks of such a step are free when its commit is sent.
#[test]
fn a_commit_whose_broken_rule_the_program_handles_is_placed() {
    let program = Scratch::new("store.weir", PROGRAM.as_bytes());
    let shown = say(&["graph", program.path(), "--ir", "expr"]).output;
    for (path, is_placed) in [
        ("fn", true),
        ("return", true),
        ("value", true),
        ("retry", true),
        ("end", true),
        ("soft", false),
        ("both", false),
        ("update", false),
    ] {
        let flow = shown.split(&format!("flow \"post /{path}/{{whole}}\"")).nth(1).expect("the route");
        let flow = flow.split("  flow \"").next().expect("a part");
        assert_eq!(flow.contains("call tables.place_commit "), is_placed, "{path}: {flow}");
        assert_eq!(flow.contains("call tables.committed "), is_placed, "{path}: {flow}");
    }
}
