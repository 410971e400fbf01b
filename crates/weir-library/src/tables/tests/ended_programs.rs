//! Starts in PostgreSQL beside a program that has ended, which the database notices while the start waits.

use test_support::postgres::PostgresServer;

use super::test_database::wait_for;
use super::{TestDatabase, column, declared};

/// The locks of a program that declares the table `leavers` otherwise.
const DECLARED: &str = "1466263924, hashtext(current_schema() || ' leavers')";

/// A program that ends when a start has found it, and looks again: a connection outside of transactions has the query, and is not that
/// of the test, which looks for the same locks. It gives up after a minute.
fn ending() -> String {
    format!(
        "DO $$ BEGIN
             PERFORM pg_advisory_xact_lock_shared({DECLARED});
             FOR look IN 1..6000 LOOP
                 PERFORM pg_stat_clear_snapshot();
                 EXIT WHEN EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state = 'idle'
                                   AND application_name <> 'psql' AND query LIKE '%pg_locks%leavers%');
                 PERFORM pg_sleep(0.01);
             END LOOP;
         END $$"
    )
}

#[test]
fn a_start_waits_until_the_database_has_noticed_the_end_of_a_program() {
    let Some(server) = PostgresServer::shared() else { return };
    let name = "ended_programs";
    server.schema(name);
    let database = TestDatabase::Postgres(name.to_owned());
    std::thread::scope(|scope| {
        scope.spawn(|| server.execute(name, &ending()));
        let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 1466263924 AND granted \
                     AND objid = (hashtext(current_schema() || ' leavers')::bigint & 4294967295)::oid";
        wait_for(server, name, locks, "1");
        let table = declared("leavers", vec![column("id", "Int", false)]);
        database.storage().open(table).unwrap();
    });
}
