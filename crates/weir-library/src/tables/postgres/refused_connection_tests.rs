//! Databases of servers that have no further connection: the program executes everything on those that it has.

use std::sync::Arc;
use std::thread;

use test_support::postgres::PostgresServer;

use super::connection::SqlStatement;
use super::{PostgresAddress, PostgresDatabase};
use crate::tables::program_end::ProgramEnd;

/// The number of connections of the role `clerk`.
const OPEN: &str = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'clerk'";
/// The number of those that wait for the end of [`HELD`].
const WAITING: &str = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'slow'::regclass";
/// Keeps others from reading a table until another one has a row.
const HELD: &str = "DO $$ BEGIN LOCK TABLE slow IN ACCESS EXCLUSIVE MODE; WHILE NOT EXISTS (SELECT FROM released) LOOP
    PERFORM pg_sleep(0.005); END LOOP; END $$";
const IS_HELD: &str =
    "SELECT count(*) FROM pg_locks WHERE granted AND relation = 'slow'::regclass AND mode = 'AccessExclusiveLock'";

/// Returns a server, and the address of a schema on it for the role `clerk`, which may have so many connections.
fn limited(connections: u32) -> Option<(PostgresServer, PostgresAddress)> {
    let server = PostgresServer::start()?;
    let address = server.schema("limited").replacen("weir@", "clerk@", 1);
    server.execute("limited", "CREATE ROLE clerk LOGIN; GRANT ALL ON SCHEMA limited TO clerk");
    server.execute(
        "limited",
        "CREATE TABLE slow (id bigint); CREATE TABLE released (id bigint); CREATE TABLE totals (count bigint);
        INSERT INTO totals VALUES (1); GRANT ALL ON ALL TABLES IN SCHEMA limited TO clerk",
    );
    limit(&server, connections);
    Some((server, PostgresAddress::parse(&address, None).unwrap()))
}

fn limit(server: &PostgresServer, connections: u32) {
    server.execute("limited", &format!("ALTER ROLE clerk CONNECTION LIMIT {connections}"));
}

fn opened(address: &PostgresAddress) -> Arc<PostgresDatabase> {
    let database = PostgresDatabase::open(address.clone(), None, ProgramEnd::default()).unwrap();
    // The end of a start.
    database.begin_reading();
    database
}

fn number(server: &PostgresServer, sql: &str) -> usize {
    server.execute("limited", sql).trim().parse().unwrap()
}

fn read(database: &PostgresDatabase, sql: &str) -> Result<usize, String> {
    let read = database.read(0, &[SqlStatement { sql, parameters: Vec::new() }]);
    let read = read.map_err(|error| database.failure(&error)).and_then(|executed| Ok(executed[0].rows()?.len()));
    read.map_err(|failure| failure.message.to_string())
}

fn write(database: &PostgresDatabase) -> Result<u64, String> {
    let sql = "UPDATE totals SET count = count + 1";
    let written = database.write(0, &[SqlStatement { sql, parameters: Vec::new() }]);
    written.map(|executed| executed[0].count).map_err(|error| database.failure(&error).message.to_string())
}

/// It has one that writes, and one that waits for the disk.
#[test]
fn a_program_that_has_no_connection_to_read_reads_on_another_one_of_its_own() {
    let Some((server, address)) = limited(2) else { return };
    let database = opened(&address);
    thread::scope(|scope| {
        let both =
            |_| scope.spawn(|| (0..8).map(|_| (read(&database, "SELECT FROM totals"), write(&database))).collect());
        let done: Vec<Vec<_>> = [0; 4].map(both).map(|thread| thread.join().unwrap()).into();
        assert!(done.concat().iter().all(|both| *both == (Ok(1), Ok(1))), "{done:?}");
    });
    assert_eq!(number(&server, OPEN), 2);
    // The program uses more as soon as it asks again.
    limit(&server, 8);
    while database.connector.spare.refused_until().is_some() {
        thread::yield_now();
    }
    assert_eq!(read(&database, "SELECT FROM totals"), Ok(1));
    assert_eq!(number(&server, OPEN), 3);
}

#[test]
fn connections_that_were_cut_and_are_made_anew_serve_statements_that_read_although_nothing_is_written() {
    let Some((server, address)) = limited(2) else { return };
    let database = opened(&address);
    server.cut();
    assert_eq!(read(&database, "SELECT FROM totals"), Ok(1));
}

#[test]
fn one_connection_to_an_existing_database_reads_and_writes() {
    let Some((server, address)) = limited(1) else { return };
    let database = PostgresDatabase::open_existing(address, None).unwrap();
    assert_eq!((read(&database, "SELECT FROM totals"), write(&database)), (Ok(1), Ok(1)));
    assert_eq!(number(&server, OPEN), 1);
}

#[test]
fn the_connection_that_writes_gets_that_of_an_idle_reader() {
    let Some((server, address)) = limited(3) else { return };
    let database = opened(&address);
    assert_eq!((read(&database, "SELECT FROM totals"), write(&database)), (Ok(1), Ok(1)));
    limit(&server, 2);
    // Nobody else connects the writer.
    let writer = database.lock_writer();
    let process = writer.connection.as_ref().map(|connection| {
        let found = database.texts(connection, "SELECT pg_backend_pid()").unwrap();
        found[0][0].clone().unwrap()
    });
    // A statement that is sent before the end may have no answer.
    let ends = format!("SELECT pg_terminate_backend({}, 10000)", process.unwrap());
    assert_eq!(server.execute("limited", &ends).trim(), "t");
    drop(writer);
    assert_eq!((write(&database), read(&database, "SELECT FROM totals")), (Ok(1), Ok(1)));
}

#[test]
fn slow_reads_of_another_database_give_their_connections_back_when_they_are_idle() {
    let Some((server, address)) = limited(6) else { return };
    let other = PostgresDatabase::open_existing(address.clone(), None).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| server.execute("limited", HELD));
        while number(&server, IS_HELD) != 1 {}
        let slow = [0; 5].map(|_| scope.spawn(|| read(&other, "SELECT FROM slow")));
        while number(&server, WAITING) != 5 {}
        server.execute("limited", "INSERT INTO released VALUES (1)");
        slow.into_iter().for_each(|slow| assert_eq!(slow.join().unwrap(), Ok(0)));
    });
    assert_eq!(number(&server, OPEN), 6);
    let database = opened(&address);
    assert_eq!((read(&database, "SELECT FROM totals"), write(&database)), (Ok(1), Ok(1)));
    assert_eq!(read(&other, "SELECT FROM slow"), Ok(0));
}
