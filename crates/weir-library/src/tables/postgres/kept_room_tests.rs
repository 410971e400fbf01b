//! Connections that have received or sent large rows, and are given up behind them.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use test_support::postgres::PostgresServer;
use weir::memory::MemoryLimits;

use super::connection::SqlStatement;
use super::{PostgresAddress, PostgresDatabase, kept_room, wait};
use crate::tables::program_end::ProgramEnd;

/// The memory of the program, of which connections may keep 8 MiB.
const PROGRAM_BYTES: u64 = 64 << 20;
/// A row of which one connection keeps 3 MB, and waits until another row is there, so that all are read at the same time.
const HELD: &str = "SELECT repeat('x', 1500000) FROM slow";
/// A row of which a connection keeps 10 MB.
const LARGE: &str = "SELECT repeat('x', 5000000)";
const WAITING: &str = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'slow'::regclass";
const LOCK: &str = "DO $$ BEGIN LOCK TABLE slow IN ACCESS EXCLUSIVE MODE; WHILE NOT EXISTS (SELECT FROM released) LOOP
    PERFORM pg_sleep(0.005); END LOOP; END $$";
const IS_LOCKED: &str =
    "SELECT count(*) FROM pg_locks WHERE granted AND relation = 'slow'::regclass AND mode = 'AccessExclusiveLock'";

fn opened() -> Option<(PostgresServer, Arc<PostgresDatabase>)> {
    let server = PostgresServer::start()?;
    let address = PostgresAddress::parse(&server.schema("kept"), None).unwrap();
    server.execute(
        "kept",
        "CREATE TABLE slow (id bigint); CREATE TABLE released (id bigint); INSERT INTO slow VALUES (1)",
    );
    let database = PostgresDatabase::open(address, None, ProgramEnd::default()).unwrap();
    MemoryLimits { program: PROGRAM_BYTES, ..MemoryLimits::default() }.apply();
    Some((server, database))
}

fn read(database: &PostgresDatabase, sql: &str) -> usize {
    let read = database.read(0, &[SqlStatement { sql, parameters: Vec::new() }]);
    read.map_err(|error| database.failure(&error)).unwrap()[0].rows().unwrap().len()
}

/// The limits are those of the process: one test has all steps.
#[test]
fn idle_connections_keep_at_most_an_eighth_of_the_memory_of_the_program() {
    let Some((server, database)) = opened() else { return };
    let number = |sql: &str| server.execute("kept", sql).trim().parse::<usize>().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| server.execute("kept", LOCK));
        while number(IS_LOCKED) != 1 {}
        let readers = [0; 6].map(|_| scope.spawn(|| read(&database, HELD)));
        while number(WAITING) != 6 {}
        server.execute("kept", "INSERT INTO released VALUES (1)");
        readers.into_iter().for_each(|reader| assert_eq!(reader.join().unwrap(), 1));
    });
    // Two have 6 MB; the third one would leave less than it has itself.
    let kept = kept_room::of_all();
    assert!((3_000_000..=6_100_000).contains(&kept), "{kept}");
    // Those that are left go on, until one of them reads what is more than all may keep.
    assert_eq!((read(&database, LARGE), read(&database, "SELECT")), (1, 1));
    assert!(kept_room::of_all() < 6_100_000);
    // The connection of an event loop, too.
    let before = kept_room::of_all();
    let large = || database.read_later(&[SqlStatement { sql: LARGE, parameters: Vec::new() }]);
    let sent = loop {
        match large() {
            Some((_, sent)) => break sent,
            None => thread::yield_now(),
        }
    };
    let executed = wait(Duration::from_secs(10), sent).unwrap().map_err(|error| database.failure(&error)).unwrap();
    assert_eq!(executed[0].rows().unwrap().len(), 1);
    assert_eq!(kept_room::of_all(), before);
    assert!(large().is_none(), "the next one waits for a new connection");
    // The one that writes, as soon as no transaction uses it.
    let sql = "INSERT INTO released VALUES (2) RETURNING repeat('x', 5000000)";
    let written = database.write(1, &[SqlStatement { sql, parameters: Vec::new() }]);
    assert_eq!(written.map_err(|error| database.failure(&error)).unwrap()[0].count, 1);
    assert!(!database.give_back_writer() && kept_room::of_all() > before);
    database.commit(1).unwrap();
    assert!(database.give_back_writer());
    assert_eq!(kept_room::of_all(), before);
    assert_eq!(read(&database, "SELECT FROM released"), 2);
}
