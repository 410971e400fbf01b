//! Reads of tables that no flow changes: they need no lock, and those that do not need one another are under way together.

use std::time::{Duration, Instant};

use test_support::postgres::PostgresServer;
use test_support::postgres_proxy::PostgresProxy;

use super::text;
use crate::support::{PATIENCE, Scratch, Served, read_answer};

const PROGRAM: &str = r#"use http

record Rate { id: Int, fee: Int }

table rates: Rate key id
table limits: Rate key id
table places: Rate key id

service shop on http(port: 8080) {
  get "/different" { http.text("{rates[1]} {limits[1]} {places.count()}") }
  get "/same" { http.text("{rates[1]} {rates[2]} {rates.count()}") }
  get "/next" { http.text("{rates[1].map(|rate| rate.fee)} {limits[(rates[2].map(|rate| rate.fee)) else { 0 }]}") }
}
"#;

/// The routes, and the number of statements that are sent before the first answer.
const ROUTES: [(&str, usize, &str); 3] = [
    ("/different", 3, "Some(Rate { id: 1, fee: 7 }) None 0"),
    ("/same", 3, "Some(Rate { id: 1, fee: 7 }) Some(Rate { id: 2, fee: 8 }) 2"),
    ("/next", 2, "Some(7) None"),
];

/// The time for which answers are held back, at most: less than that of a slow statement.
const NOT_SLOW: Duration = Duration::from_millis(10);

#[test]
fn reads_of_tables_that_no_flow_changes_do_not_wait_for_one_another() {
    let Some(server) = PostgresServer::shared() else { return };
    server.schema("unchanged");
    let proxy = PostgresProxy::start(server);
    let program = Scratch::new("unchanged.weir", PROGRAM.as_bytes());
    for engine in ["event", "pool", "thread-per-flow", "elastic", "staged"] {
        let address = proxy.address("unchanged");
        let served = Served::start(program.path(), &["--tables", &address, "--engine", engine, "--threads", "1"]);
        server.execute("unchanged", "INSERT INTO rates VALUES (1, 7), (2, 8) ON CONFLICT DO NOTHING");
        for (path, together, answer) in ROUTES {
            sends_together(&proxy, &served, (path, together, answer));
        }
        served.stop();
    }
}

/// Asks for a page until the program has sent so many statements before it has an answer.
pub(super) fn sends_together(proxy: &PostgresProxy, served: &Served, route: (&str, usize, &str)) {
    let begin = Instant::now();
    // The first times, it makes connections and prepares statements.
    while !sends_all(proxy, served, route) {
        assert!(begin.elapsed() < PATIENCE, "{} sends fewer", route.0);
    }
}

/// Asks for a page, and holds back the answers of the database until so many statements are sent. Returns false if the
/// program has prepared some first, or made a connection, or if the first has had no answer for long: then the program takes it for slow,
/// and sends no other one with it.
fn sends_all(proxy: &PostgresProxy, served: &Served, (path, together, answer): (&str, usize, &str)) -> bool {
    proxy.hold();
    let (asked, begin, mut first) = (served.ask(path), Instant::now(), None);
    while proxy.sent().is_some_and(|sent| sent < together) {
        assert!(begin.elapsed() < PATIENCE, "{path} sends nothing");
        if proxy.sent() != Some(0) && first.get_or_insert_with(Instant::now).elapsed() > NOT_SLOW {
            break;
        }
        std::thread::yield_now();
    }
    let sent = proxy.sent();
    proxy.release();
    assert_eq!(text(&read_answer(asked)), answer, "{path}");
    sent == Some(together)
}
