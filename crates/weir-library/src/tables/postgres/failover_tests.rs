//! Failover to a standby that is promoted, and backups that are restored below a running program.

use std::sync::Arc;
use std::thread;

use test_support::postgres::PostgresServer;

use super::connection::SqlStatement;
use super::{PostgresAddress, PostgresDatabase, wait};
use crate::tables::program_end::ProgramEnd;

/// A primary, its standby, and the database of a program, which uses whichever writes. It has the table `totals`, whose `count` is 0.
struct Replicated {
    primary: PostgresServer,
    standby: PostgresServer,
    database: Arc<PostgresDatabase>,
}

impl Replicated {
    fn start() -> Option<Replicated> {
        // What nobody has synced is lost in a crash, and is not sent to the standby.
        let primary = PostgresServer::start_with(&["wal_writer_delay=10s", "wal_writer_flush_after=1GB"])?;
        primary.schema("replicated");
        primary.execute("replicated", "CREATE TABLE totals (count bigint NOT NULL); INSERT INTO totals VALUES (0)");
        let standby = primary.standby();
        let address = primary.address_with(&standby, "replicated");
        let database =
            PostgresDatabase::open(PostgresAddress::parse(&address, None).unwrap(), None, ProgramEnd::default());
        Some(Replicated { primary, standby, database: database.unwrap() })
    }

    /// Adds to the count; durably, if `is_durable`.
    fn add(&self, number: u32, is_durable: bool) {
        assert_eq!(add(&self.database, number), Ok(1));
        if is_durable {
            settle(&self.database);
        }
    }

    /// Waits until the standby has this count.
    fn await_standby(&self, count: &str) {
        while stored(&self.standby) != count {
            thread::yield_now();
        }
    }

    /// The primary crashes, and the standby is promoted, before the program connects again. `meanwhile` is executed there before.
    fn fail_over(&self, meanwhile: &str) -> Result<(), String> {
        let writer = self.database.lock_writer();
        self.primary.crash();
        if !self.standby.is_running() {
            self.standby.run();
        }
        self.standby.execute("replicated", "SELECT pg_promote()");
        if !meanwhile.is_empty() {
            self.standby.execute("replicated", meanwhile);
        }
        drop(writer);
        self.database.reconnect().map_err(|error| self.database.failure(&error).message.to_string())
    }
}

fn add(database: &PostgresDatabase, number: u32) -> Result<u64, String> {
    let sql = format!("UPDATE totals SET count = count + {number}");
    let written = database.write(0, &[SqlStatement { sql: &sql, parameters: Vec::new() }]);
    written.map(|executed| executed[0].count).map_err(|error| database.failure(&error).message.to_string())
}

fn settle(database: &PostgresDatabase) {
    let group_commit = database.commits().unwrap();
    wait(database.limit(), group_commit.settled()).unwrap().unwrap();
}

fn stored(server: &PostgresServer) -> String {
    server.execute("replicated", "SELECT count FROM totals").trim().to_owned()
}

/// The last checkpoint of a standby is older than what the program has written.
#[test]
fn commits_that_a_promoted_standby_does_not_have_and_that_were_not_durable_are_executed_once_more() {
    let Some(replicated) = Replicated::start() else { return };
    replicated.add(1, true);
    replicated.await_standby("1");
    replicated.add(4, false);
    assert_eq!(replicated.fail_over(""), Ok(()));
    assert_eq!(stored(&replicated.standby), "5");
    replicated.add(2, true);
    assert_eq!(stored(&replicated.standby), "7");
}

#[test]
fn commits_are_not_executed_once_more_over_what_another_program_has_written_on_a_promoted_standby() {
    let Some(replicated) = Replicated::start() else { return };
    replicated.add(1, true);
    replicated.await_standby("1");
    replicated.add(4, false);
    let failed = replicated.fail_over("UPDATE totals SET count = count + 100").unwrap_err();
    assert!(failed.contains("a standby was promoted, and `totals` may have been written since"), "{failed}");
    assert_eq!(stored(&replicated.standby), "101");
}

/// It would go on with numbers, shared values and soft rows that do not agree with the tables.
#[test]
fn a_program_ends_if_a_promoted_standby_lacks_commits_that_were_durable() {
    let Some(replicated) = Replicated::start() else { return };
    replicated.add(1, true);
    replicated.await_standby("1");
    replicated.standby.stop();
    replicated.add(2, true);
    let failed = replicated.fail_over("").unwrap_err();
    assert!(failed.contains("has lost commits that were durable: a standby that was behind"), "{failed}");
    let refused = add(&replicated.database, 1).unwrap_err();
    assert!(refused.contains("has lost commits that were durable"), "{refused}");
    assert_eq!(stored(&replicated.standby), "1");
}

/// No connection is lost then.
#[test]
fn a_program_ends_if_a_backup_is_restored_below_it() {
    let Some(server) = PostgresServer::start() else { return };
    let address = server.schema("replicated");
    server.execute("replicated", "CREATE TABLE totals (count bigint NOT NULL); INSERT INTO totals VALUES (0)");
    for is_before_start in [true, false] {
        let backup = "DROP TABLE IF EXISTS backup; CREATE TABLE backup AS TABLE weir_numbers";
        if is_before_start {
            let address = PostgresAddress::parse(&address, None).unwrap();
            let earlier = PostgresDatabase::open(address, None, ProgramEnd::default()).unwrap();
            assert_eq!(add(&earlier, 1), Ok(1));
            server.execute("replicated", backup);
        }
        let address = PostgresAddress::parse(&address, None).unwrap();
        let database = PostgresDatabase::open(address, None, ProgramEnd::default()).unwrap();
        if !is_before_start {
            assert_eq!(add(&database, 1), Ok(1));
            server.execute("replicated", backup);
        }
        (0..3).for_each(|_| assert_eq!(add(&database, 1), Ok(1)));
        settle(&database);
        server.execute("replicated", "DELETE FROM weir_numbers; INSERT INTO weir_numbers TABLE backup");
        let failed = std::iter::repeat_with(|| add(&database, 1)).find_map(Result::err).unwrap();
        assert!(failed.contains("nobody knows"), "{failed}");
        while database.check().is_ok() {
            thread::yield_now();
        }
        let refused = add(&database, 1).unwrap_err();
        assert!(refused.contains("has lost commits that were durable"), "{refused}");
    }
}
