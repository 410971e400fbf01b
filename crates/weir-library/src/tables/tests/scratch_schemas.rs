//! Scratch schemas of a run of tests whose connection is lost.

use test_support::postgres::PostgresServer;

use crate::tables::postgres::{PostgresAddress, ScratchSchemas};

const SCHEMAS: &str = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'weir\\_test%'";
const LOCKS: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted";

#[test]
fn a_run_of_tests_goes_on_behind_a_lost_connection() {
    let Some(server) = PostgresServer::start() else { return };
    let address = PostgresAddress::parse(&server.address("public"), None).unwrap();
    let schemas = ScratchSchemas::begin(address).unwrap();
    let (first, second) = (schemas.schema(), schemas.schema());
    first.create().unwrap();
    server.cut();
    second.create().unwrap();
    let found = |query| server.execute("public", query).trim().to_owned();
    // Another run does not take them for those of a run that was killed.
    assert_eq!((found(SCHEMAS), found(LOCKS)), ("2".to_owned(), "1".to_owned()));
    server.cut();
    drop(first);
    assert_eq!(found(SCHEMAS), "1");
    server.cut();
    schemas.end().unwrap();
    assert_eq!(found(SCHEMAS), "0");
}
