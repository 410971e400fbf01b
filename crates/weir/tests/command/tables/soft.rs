//! Soft tables beside stored ones: a statement that looks at both keeps no thread that the stored table needs.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

use test_support::postgres::PostgresServer;

use super::{post, request, text};
use crate::support::{ENGINES, Scratch, Served, TableStore, read_answer, weir};

/// Each route but `/places` looks at both kinds of tables.
const VISITS: &str = r#"use failure, http

record Place { id: Int, name: Text }
record Shop { id: Int, name: Text }
record Visit { id: Int, place: Int }
record Remark { id: Int, visit: Int }

config shop: Text

table places: Place key id
table shops: Shop key id existing(database: shop)
table visits: Visit key id references place: places soft
table remarks: Remark key id references visit: visits cascade soft

fn kept(id: Int) -> Result(Int) {
  atomic visits, remarks {
    visits.upsert(Visit { id, place: 0 })?
    remarks.upsert(Remark { id, visit: id })?
    if id % 3 == 0 { return Err(failure.of("no more")) }
    Ok(id)
  }
}

fn both(id: Int) -> Result(Int) {
  atomic places, visits {
    places.upsert(Place { id, name: "both" })?
    visits.upsert(Visit { id, place: id })?
    Ok(id)
  }
}

fn nothing(id: Int) -> Result(Int) {
  atomic places {
    if id >= 0 { return Err(failure.of("nothing")) }
    places.upsert(Place { id, name: "nothing" })?
    Ok(id)
  }
}

service front on http(port: 8080) {
  post "/places/{id}" (id: Int) { http.text("{places.upsert(Place { id: 0, name: "p{id}" })?}") }
  post "/visits/{id}" (id: Int) { http.text("{visits.upsert(Visit { id, place: 0 })?}") }
  post "/moves/{id}" (id: Int) {
    http.text(
      "{visits.update_all(|visit| visit.id >= 0, |visit| Visit { ..visit, place: 0 })? >= 0}",
    )
  }
  post "/kept/{id}" (id: Int) { http.text("{kept(id) else { -1 }}") }
  post "/both/{id}" (id: Int) { http.text("{both(id)?}") }
  post "/nothing/{id}" (id: Int) { http.text("{nothing(id) else { -1 }}") }
  post "/gone/{id}" (id: Int) {
    remarks.upsert(Remark { id, visit: id }) else { 0 }
    http.text("{visits.delete(id)?}")
  }
  get "/named/{id}" (id: Int) {
    http.json((for visit in visits { places[visit.place] }).length() >= 0)
  }
  get "/missing/{id}" (id: Int) {
    http.json((for visit in visits if places[visit.place] == None { visit.id }).length())
  }
  get "/shops/{id}" (id: Int) {
    http.json((for visit in visits { shops[visit.place] }).length() >= 0)
  }
  get "/counted/{id}" (id: Int) {
    http.json((for visit in visits { places.count(|place| place.id == visit.place) }).sum() >= 0)
  }
  get "/grouped/{id}" (id: Int) {
    http.json(
      (
        for (place, theirs) in (for visit in visits { visit }).group_by(|visit| visit.place) {
          (places[place], theirs.length())
        }
      ).length()
        >= 0,
    )
  }
}
"#;

const ROUTES: [&str; 12] = [
    "POST /places",
    "POST /visits",
    "POST /moves",
    "POST /kept",
    "POST /both",
    "POST /nothing",
    "POST /gone",
    "GET /named",
    "GET /missing",
    "GET /shops",
    "GET /counted",
    "GET /grouped",
];
/// Number of requests of each client.
const REQUESTS: usize = 15;

/// Returns the status of a request, and the answer. An answer that does not come fails the test.
fn ask(served: &Served, route: &str, number: usize) -> (u16, String) {
    let mut stream = served.connect();
    let request = format!(
        "{route}/{number} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        served.address
    );
    stream.write_all(request.as_bytes()).expect("the request is sent");
    let answer = read_answer(stream);
    (answer.status, String::from_utf8_lossy(&answer.body).into_owned())
}

#[test]
fn statements_on_soft_and_stored_tables_never_wait_for_each_other_for_ever() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("soft_shops");
    server.execute("soft_shops", "CREATE TABLE shops (id bigint PRIMARY KEY, name text NOT NULL)");
    let shop = format!("shop={}", server.address("soft_shops"));
    let program = Scratch::new("visits.weir", VISITS.as_bytes());
    for store in TableStore::each("soft-beside-stored") {
        for engine in ENGINES {
            let options = store.with(&["--set", &shop, "--engine", engine, "--threads", "1"]);
            let served = Served::start(program.path(), &options);
            assert_eq!(ask(&served, "POST /places", 0).0, 200, "{engine}");
            thread::scope(|scope| {
                for route in ROUTES {
                    let (served, options) = (&served, &options);
                    scope.spawn(move || {
                        for number in 0..REQUESTS {
                            // A debug build may be overloaded: what is refused is sent again.
                            let asked = || ask(served, route, number);
                            let answer = std::iter::repeat_with(asked).find(|(status, _)| *status != 503);
                            assert_eq!(answer.map(|of| of.0), Some(200), "{route}/{number} with {options:?}");
                        }
                    });
                }
            });
            served.stop();
        }
    }
}

const LARGE: &str = r#"use http

record Note { id: Int, text: Text }

table stored: Note key id
table kept: Note key id soft

fn both(id: Int) -> Result(Int) {
  atomic stored, kept {
    stored.insert(Note { id, text: "x".repeat(4_000_000)? })?
    kept.insert(Note { id, text: "" })?
    Ok(id)
  }
}

fn changed(id: Int) -> Result(Option(Note)) {
  kept.update(1, |note| {
    stored.insert(Note { id, text: "x".repeat(4_000_000)? })?
    Note { ..note, text: "changed" }
  })
}

service notes on http(port: 8080) {
  post "/{id}" (id: Int) { http.text("{both(id)?}") }
  put "/{id}" (id: Int) { http.text(if changed(id).is_ok() { "changed" } else { "as before" }) }
  get "/" { http.text("{stored.count()} {kept.count()} {kept[1]}") }
}
"#;

/// Runs a program whose files have a limit, beyond which a write fails as one on a full disk does.
pub(super) fn with_short_files(program: &Scratch, folder: &Scratch) -> Served {
    Served::spawn(with_file_limit(18_432_000, &["run", program.path(), "--port", "0", "--data", folder.path()]))
}

/// Returns the command with these arguments, which cannot write files of more bytes.
pub(super) fn with_file_limit(bytes: usize, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    // The unit is 512 bytes.
    let limit = format!(r#"trap '' XFSZ; ulimit -f {}; exec "$0" "$@""#, bytes / 512);
    let limited = weir(arguments);
    command.args(["-c", &limit]).arg(limited.get_program()).args(limited.get_args());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_commit_that_fails_takes_back_the_rows_of_soft_tables_too() {
    let (program, folder) = (Scratch::new("large.weir", LARGE.as_bytes()), Scratch::folder("soft-full"));
    let served = with_short_files(&program, &folder);
    let status = |id: usize| post(&served, &format!("/{id}")).map_or(0, |answer| answer.status);
    let refused = (1..100).find(|id| status(*id) != 200).expect("the limit is reached");
    assert_eq!(status(refused), 500, "once more, and not because a row exists already");
    let rows = refused - 1;
    let found = || text(&served.get("/")).to_owned();
    let expected = format!("{rows} {rows} Some(Note {{ id: 1, text: \"\" }})");
    assert_eq!(found(), expected);
    let changed = request(&served, "PUT", &format!("/{refused}")).expect("an answer");
    assert_eq!(text(&changed), "as before");
    assert_eq!(found(), expected);
    served.stop();
}
