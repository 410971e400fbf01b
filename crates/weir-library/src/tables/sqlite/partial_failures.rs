//! Statements of SQLite that may fail and leave what they have done before.
//!
//! SQLite takes back a statement that fails, unless a trigger has refused it by `RAISE(FAIL)`, or a rule with `ON CONFLICT FAIL` has. So a
//! statement on a table which has such triggers or rules is executed behind a savepoint. The others need none: SQLite copies every page
//! that is written behind one.
//!
//! Other programs can add a trigger at any time, but not while this one has a transaction that writes. So the program looks for them
//! when it has begun one, if the version of the schema is another one than before.

use rusqlite::Connection;

/// The tables with triggers, and those with clauses of rules that say what happens to a row which breaks them.
const PARTIAL: &str = "SELECT tbl_name, max(type = 'trigger') FROM sqlite_schema WHERE type = 'trigger' OR sql LIKE '%conflict%' \
    GROUP BY tbl_name";

/// The tables on which a statement that fails may leave a part of what it has done.
#[derive(Debug, Default)]
pub(super) struct PartialFailures {
    /// The version of the schema in which they were found.
    version: Option<i64>,
    tables: Vec<String>,
    has_triggers: bool,
    /// True if a statement may change rows of other tables by their foreign keys.
    has_foreign_keys: bool,
}

impl PartialFailures {
    /// Looks for the tables if the schema has changed, and returns whether it has.
    pub(super) fn look(&mut self, connection: &Connection) -> rusqlite::Result<bool> {
        let number = |pragma| connection.prepare_cached(pragma)?.query_row([], |row| row.get::<_, i64>(0));
        let version = Some(number("PRAGMA schema_version")?);
        if self.version == version {
            return Ok(false);
        }
        let mut statement = connection.prepare(PARTIAL)?;
        let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let found = found.collect::<rusqlite::Result<Vec<(String, bool)>>>()?;
        self.has_triggers = found.iter().any(|(_, has_triggers)| *has_triggers);
        self.tables = found.into_iter().map(|(table, _)| table).collect();
        self.has_foreign_keys = number("PRAGMA foreign_keys")? != 0;
        self.version = version;
        Ok(true)
    }

    /// Returns whether there are such tables.
    pub(super) fn are_possible(&self) -> bool {
        !self.tables.is_empty()
    }

    /// Returns whether the database has triggers.
    pub(super) fn has_triggers(&self) -> bool {
        self.has_triggers
    }

    /// Returns whether a statement on a table may leave a part of what it has done.
    pub(super) fn may_occur(&self, table: &str) -> bool {
        match self.has_foreign_keys {
            true => !self.tables.is_empty(),
            false => self.tables.iter().any(|other| other.eq_ignore_ascii_case(table)),
        }
    }
}

/// Runs statements that take effect together or not at all: in the open transaction, or as one of their own if none is open.
pub(in crate::tables) fn whole<T>(
    connection: &Connection,
    statements: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let (begin, end, take_back) = match connection.is_autocommit() {
        true => ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"),
        false => ("SAVEPOINT rows", "RELEASE rows", "ROLLBACK TO rows; RELEASE rows"),
    };
    let execute = |sql| connection.prepare_cached(sql)?.execute([]).map(|_| ());
    execute(begin)?;
    let result = statements().and_then(|value| execute(end).map(|()| value));
    // The database may have taken back the whole transaction, such as by `RAISE(ROLLBACK)`.
    if result.is_err() && !connection.is_autocommit() && connection.execute_batch(take_back).is_err() {
        _ = connection.execute_batch("ROLLBACK");
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_on_tables_with_triggers_and_clauses_for_conflicts_may_leave_a_part_and_others_may_not() {
        let connection = Connection::open_in_memory().unwrap();
        let mut failures = PartialFailures::default();
        let mut found = |sql: &str| {
            connection.execute_batch(sql).unwrap();
            failures.look(&connection).unwrap();
            assert_eq!(failures.has_triggers(), failures.may_occur("seats"));
            ["plain", "seats", "rules"].map(|table| failures.may_occur(table))
        };
        let tables =
            "PRAGMA foreign_keys = OFF; CREATE TABLE plain (a UNIQUE); CREATE TABLE Seats (a); CREATE TABLE rules (a)";
        assert_eq!(found(tables), [false; 3]);
        let trigger = "CREATE TRIGGER t AFTER INSERT ON seats BEGIN SELECT 1; END";
        assert_eq!(found(trigger), [false, true, false]);
        assert_eq!(found("DROP TABLE rules; CREATE TABLE rules (a NOT NULL ON CONFLICT FAIL)"), [false, true, true]);
        assert_eq!(found("DROP TRIGGER t; DROP TABLE rules"), [false; 3]);
        // A deletion may delete rows of any other table by its foreign key.
        assert_eq!(found(&format!("PRAGMA foreign_keys = ON; {trigger}")), [true; 3]);
    }

    #[test]
    fn a_rule_that_only_the_commit_checks_takes_back_statements_that_are_alone() {
        let connection = Connection::open_in_memory().unwrap();
        let tables = "PRAGMA foreign_keys = ON; CREATE TABLE users (id INTEGER PRIMARY KEY);
             CREATE TABLE posts (author REFERENCES users DEFERRABLE INITIALLY DEFERRED)";
        connection.execute_batch(tables).unwrap();
        let refused = whole(&connection, || connection.execute("INSERT INTO posts VALUES (1)", [])).unwrap_err();
        assert_eq!(refused.to_string(), "FOREIGN KEY constraint failed");
        assert!(connection.is_autocommit());
        whole(&connection, || connection.execute("INSERT INTO users VALUES (1)", [])).unwrap();
        whole(&connection, || connection.execute("INSERT INTO posts VALUES (1)", [])).unwrap();
        let count = |table| connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0));
        assert_eq!((count("users"), count("posts")), (Ok(1), Ok(1)));
    }
}
