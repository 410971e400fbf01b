//! Tables in SQLite whose writes triggers and rules of other programs refuse: such a write leaves nothing, whatever the refusal takes back.

use std::sync::Arc;

use rusqlite::Connection;
use weir::{Failure, FailureKind, SeenCommits, StepEnd, Value};

use super::statement_groups::wait;
use super::test_database::TestDatabase;
use super::{column, declared, everything, reference};
use crate::tables::open_table::OpenTable;
use crate::tables::row::fields;
use crate::tables::schema::{ExistingTable, Schema, TableCondition, TableQuery, TableSearch};
use crate::tables::storage::TableStorage;

/// The rows of the table before each statement.
const ROWS: [(i64, i64); 4] = [(1, 1), (2, 2), (3, 3), (4, 4)];

/// A statement, of which the triggers refuse a row.
struct Statement {
    name: &'static str,
    run: fn(&Seats, i64) -> Result<String, Failure>,
    /// The answer and the rows that are left if the trigger keeps that row by `RAISE(IGNORE)`; `None` if the statement fails.
    if_ignored: Option<(&'static str, &'static [(i64, i64)])>,
}

const STATEMENTS: [Statement; 11] = [
    Statement { name: "insert", run: |seats, at| answer(seats.table.rows.insert(at, seat(9, 99))), if_ignored: None },
    Statement {
        name: "upsert of a new row",
        run: |seats, at| answer(seats.table.rows.upsert(at, seat(8, 99))),
        if_ignored: None,
    },
    Statement { name: "upsert", run: |seats, at| answer(seats.table.rows.upsert(at, seat(1, 99))), if_ignored: None },
    Statement {
        name: "update",
        run: |seats, at| answer(seats.table.rows.replace(at, &Value::Int(2), seat(2, 99))),
        if_ignored: None,
    },
    Statement { name: "update_all", run: |seats, at| seats.update_all(at, [11, 12, 99]), if_ignored: None },
    Statement {
        name: "update_all that moves values",
        run: |seats, at| seats.update_all(at, [2, 1, 99]),
        if_ignored: None,
    },
    Statement {
        name: "delete",
        run: |seats, at| answer(seats.table.delete(&seats.storage, at, &Value::Int(3))),
        if_ignored: Some(("Ok(false)", &ROWS)),
    },
    Statement {
        name: "delete_all",
        run: |seats, at| answer(seats.table.delete_all(&seats.storage, at, &below(4))),
        if_ignored: Some(("Ok(2)", &[(3, 3), (4, 4)])),
    },
    Statement {
        name: "delete_all with a function",
        run: |seats, at| answer(seats.table.delete_rows(&seats.storage, at, vec![seat(1, 1), seat(3, 3)])),
        if_ignored: Some(("Ok(1)", &[(2, 2), (3, 3), (4, 4)])),
    },
    Statement {
        name: "delete with cascade",
        run: |seats, at| answer(seats.table.delete(&seats.storage, at, &Value::Int(4))),
        if_ignored: None,
    },
    Statement {
        name: "delete_all with cascade",
        run: |seats, at| answer(seats.table.delete_rows(&seats.storage, at, vec![seat(2, 2), seat(4, 4)])),
        if_ignored: None,
    },
];

/// The place of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Alone,
    /// In a transaction of the program, which handles the failure and goes on.
    Handled,
    /// In a transaction of the program, which the failure ends.
    PassedOn,
}

/// A table of seats, which tickets reference.
struct Seats {
    storage: TableStorage,
    table: Arc<OpenTable>,
    database: TestDatabase,
}

fn answer<T: std::fmt::Debug>(answer: Result<T, Failure>) -> Result<String, Failure> {
    answer.map(|value| format!("Ok({value:?})"))
}

fn seat(id: i64, place: i64) -> Value {
    Value::Record([Value::Int(id), Value::Int(place)].into())
}

fn below(place: i64) -> TableSearch {
    let conditions = vec![TableCondition { column: 1, comparison: "<".to_owned() }];
    let arguments = [Value::Int(i64::MAX), Value::Unit, Value::Int(place)];
    TableSearch::new(TableQuery { conditions, order: Vec::new() }, Value::Record(arguments.into()))
}

impl Seats {
    /// Opens the tables of the program, or those of another one that `create` creates.
    fn open(name: &str, create: Option<&str>) -> Seats {
        let database = TestDatabase::sqlite(name);
        create.iter().for_each(|sql| database.execute(sql));
        let existing = create.map(|_| ExistingTable {
            database: database.file().display().to_string(),
            writable: true,
            constraint: "tables.seats".to_owned(),
        });
        let by_seat = reference("tickets", &[(1, "seat", false)], ("seats", "id"), true);
        let references = if create.is_some() { Vec::new() } else { vec![by_seat] };
        let columns = |second| vec![column("id", "Int", false), column(second, "Int", false)];
        let unique = crate::tables::schema::IndexSchema { columns: vec![1], unique: true };
        let indexes = if create.is_some() { Vec::new() } else { vec![unique] };
        let by_ticket = crate::tables::schema::IndexSchema { columns: vec![1], unique: false };
        let tickets = Schema {
            references: references.clone(),
            indexes: if create.is_some() { Vec::new() } else { vec![by_ticket] },
            existing: existing.clone(),
            ..declared("tickets", columns("seat"))
        };
        let seats = Schema { referenced_by: references, indexes, existing, ..declared("seats", columns("place")) };
        let storage = database.storage();
        let table = storage.open(seats).unwrap();
        storage.open(tickets).unwrap();
        database.execute("CREATE TABLE notes (note)");
        Seats { storage, table, database }
    }

    fn existing(name: &str) -> Seats {
        let sql = "CREATE TABLE seats (id INTEGER PRIMARY KEY, place INTEGER NOT NULL UNIQUE);
                   CREATE TABLE tickets (id INTEGER PRIMARY KEY, seat INTEGER NOT NULL REFERENCES seats ON DELETE CASCADE)";
        Seats::open(name, Some(sql))
    }

    /// Puts the rows as they are before a statement. Another program adds the triggers, while this one runs.
    fn prepare(&self, when: &str, kind: &str) {
        let why = if kind == "IGNORE" { "" } else { ", 'no'" };
        let trigger = |event: &str, table: &str, condition: &str| {
            let name = format!("refused_{table}_{event}");
            format!(
                "DROP TRIGGER IF EXISTS {name};
                 CREATE TRIGGER {name} {when} {event} ON {table} WHEN {condition}
                 BEGIN INSERT INTO notes VALUES (1); SELECT RAISE({kind}{why}); END;"
            )
        };
        let rows: String =
            ROWS.iter().map(|(id, place)| format!("INSERT INTO seats VALUES ({id}, {place});")).collect();
        self.database.execute(&format!(
            "PRAGMA synchronous = OFF; DROP TRIGGER IF EXISTS refused_seats_DELETE; DROP TRIGGER IF EXISTS refused_tickets_DELETE;
             DELETE FROM tickets; DELETE FROM seats; DELETE FROM notes; {rows} INSERT INTO tickets VALUES (7, 4); {}{}{}{}",
            trigger("INSERT", "seats", "new.place = 99"),
            trigger("UPDATE", "Seats", "new.place = 99"),
            trigger("DELETE", "seats", "old.id = 3"),
            trigger("DELETE", "tickets", "old.id = 7"),
        ));
    }

    fn update_all(&self, transaction: i64, places: [i64; 3]) -> Result<String, Failure> {
        let old = self.table.rows.select(transaction, &below(4)).unwrap();
        let new = (1..).zip(places).map(|(id, place)| seat(id, place)).collect();
        answer(self.table.rows.replace_rows(transaction, &old, new))
    }

    fn rows(&self) -> Vec<(i64, i64)> {
        let number = |value: &Value| if let Value::Int(number) = value { *number } else { panic!("{value}") };
        let rows = self.table.rows.select(0, &everything()).unwrap();
        rows.iter().map(|row| (number(&fields(row)[0]), number(&fields(row)[1]))).collect()
    }

    fn count(&self, table: &str) -> i64 {
        let connection = Connection::open(self.database.file()).unwrap();
        connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }

    /// Runs a statement at a place. Returns its answer, and whether a refusal has taken back the transaction around it.
    fn run(
        &self,
        statement: impl Fn(&Seats, i64) -> Result<String, Failure>,
        place: Place,
    ) -> (Result<String, Failure>, bool) {
        if place == Place::Alone {
            return (statement(self, 0), false);
        }
        let rows = &self.table.rows;
        let transaction = self.storage.next_transaction();
        rows.insert(transaction, seat(20, 20)).unwrap();
        let answer = statement(self, transaction);
        if answer.is_err() && place == Place::PassedOn {
            rows.roll_back(transaction);
            return (answer, false);
        }
        let next = rows.insert(transaction, seat(21, 21)).map(|_| ());
        let read = rows.count(transaction, &everything()).map(|_| ());
        let committed = rows.commit(transaction, true);
        let outcomes = [next, read, committed];
        let is_lost = outcomes.iter().all(Result::is_err);
        assert!(is_lost || outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        for failure in outcomes.into_iter().filter_map(Result::err) {
            assert_eq!(failure.kind, FailureKind::Constraint, "{failure}");
            let rule = "a trigger (`RAISE(ROLLBACK)`) or a rule (`ON CONFLICT ROLLBACK`) has rolled back the whole transaction: ";
            assert!(failure.message.contains(rule), "{failure}");
        }
        (answer, is_lost)
    }
}

/// Returns these rows, and those that a transaction has inserted around a statement, if it has committed.
fn with_others(rows: &[(i64, i64)], commits: bool) -> Vec<(i64, i64)> {
    let others: &[(i64, i64)] = if commits { &[(20, 20), (21, 21)] } else { &[] };
    [rows, others].concat()
}

/// Runs each statement at each place, with triggers that refuse one of its rows.
fn refuse(seats: &Seats, when: &str, kind: &str) {
    // In a table of another program, `update_all` replaces one row after the other.
    let moves = seats.table.schema.existing.is_none();
    for statement in STATEMENTS.iter().filter(|statement| moves || !statement.name.contains("moves")) {
        for place in [Place::Alone, Place::Handled, Place::PassedOn] {
            let case = format!(
                "{when} {kind} {} {place:?}, existing: {}",
                statement.name,
                seats.table.schema.existing.is_some()
            );
            seats.prepare(when, kind);
            let mut flow = SeenCommits::default();
            let entered = flow.enter();
            let (answer, is_lost) = seats.run(statement.run, place);
            seats.table.steps.take_back_unfinished();
            wait(seats.storage.settled(true)).unwrap();
            drop(entered);
            assert_eq!(is_lost, kind == "ROLLBACK" && place == Place::Handled, "{case}");
            let is_stored = match (place, &answer) {
                (Place::Alone, _) | (Place::PassedOn, Err(_)) => false,
                _ => !is_lost,
            };
            match (&answer, statement.if_ignored) {
                (Ok(answer), Some((expected, left))) if kind == "IGNORE" => {
                    assert_eq!((&**answer, seats.rows()), (expected, with_others(left, is_stored)), "{case}");
                }
                (Err(failure), _) => {
                    assert_eq!(failure.kind, FailureKind::Constraint, "{case}: {failure}");
                    // A cascade that fails half done breaks the foreign key, too, which SQLite names then.
                    let said = ["seats`: no", "tickets`: no", "seats`: FOREIGN KEY constraint failed"];
                    let breaks_key = statement.name.contains("cascade") && kind == "FAIL";
                    let message = failure.message.strip_prefix("the database refuses the write of `");
                    let is_said = said[..if breaks_key { 3 } else { 2 }].iter().any(|said| message == Some(said));
                    assert!(kind == "IGNORE" || is_said, "{case}: {failure}");
                    assert_eq!(seats.rows(), with_others(&ROWS, is_stored), "{case}");
                    assert!(
                        kind == "IGNORE" || seats.count("notes") == 0,
                        "{case}: what the trigger has written stays"
                    );
                }
                _ => panic!("{case}: {answer:?}"),
            }
            assert_eq!(seats.count("tickets"), 1, "{case}");
        }
    }
}

#[test]
fn a_statement_that_a_trigger_refuses_leaves_nothing_and_a_transaction_that_it_takes_back_does_not_commit() {
    for seats in [Seats::open("own-refused", None), Seats::existing("existing-refused")] {
        for kind in ["FAIL", "ROLLBACK"] {
            refuse(&seats, "BEFORE", kind);
            refuse(&seats, "AFTER", kind);
        }
        refuse(&seats, "AFTER", "ABORT");
        refuse(&seats, "BEFORE", "IGNORE");
    }
}

/// A statement whose row has the place of another one, and the rows that are left if that one goes.
type Taking = (fn(&Seats, i64) -> Result<String, Failure>, &'static [(i64, i64)]);

const TAKING: [Taking; 3] = [
    (|seats, at| answer(seats.table.rows.insert(at, seat(9, 4))), &[(1, 1), (2, 2), (3, 3), (9, 4)]),
    (|seats, at| answer(seats.table.rows.replace(at, &Value::Int(2), seat(2, 4))), &[(1, 1), (2, 4), (3, 3)]),
    (|seats, at| seats.update_all(at, [11, 12, 4]), &[(1, 11), (2, 12), (3, 4)]),
];

#[test]
fn a_rule_of_another_program_that_says_what_happens_to_a_row_is_told_as_it_is() {
    for action in ["ABORT", "FAIL", "ROLLBACK", "IGNORE", "REPLACE"] {
        let sql = format!(
            "CREATE TABLE seats (id INTEGER PRIMARY KEY, place INTEGER NOT NULL UNIQUE ON CONFLICT {action});
             CREATE TABLE tickets (id INTEGER PRIMARY KEY, seat INTEGER NOT NULL)"
        );
        let seats = Seats::open(&format!("on-conflict-{action}"), Some(&sql));
        for (statement, left) in TAKING {
            for place in [Place::Alone, Place::Handled, Place::PassedOn] {
                seats.prepare("AFTER", "ABORT");
                let (answer, is_lost) = seats.run(statement, place);
                assert_eq!(is_lost, action == "ROLLBACK" && place == Place::Handled, "{action} {place:?}: {answer:?}");
                let left = if action == "REPLACE" { left } else { &ROWS };
                let commits = !is_lost && (place == Place::Handled || place == Place::PassedOn && answer.is_ok());
                assert_eq!(seats.rows(), with_others(left, commits), "{action} {place:?}: {answer:?}");
                let message = match action {
                    "REPLACE" => answer.map_or_else(|failure| failure.message.to_string(), |_| String::new()),
                    _ => answer.unwrap_err().message.to_string(),
                };
                let expected = match action {
                    "REPLACE" => "",
                    "IGNORE" => "a policy, trigger or rule of the database has kept it",
                    _ => "a row of `seats` with the place 4 exists already",
                };
                let is_kept_out = message.ends_with("a trigger or rule of the database has kept it out");
                assert!(
                    message.ends_with(expected) || action == "IGNORE" && is_kept_out,
                    "{action} {place:?}: {message}"
                );
            }
        }
    }
}

#[test]
fn a_unique_value_that_a_trigger_writes_in_another_table_is_named() {
    for seats in [Seats::open("own-other-table", None), Seats::existing("existing-other-table")] {
        seats.prepare("AFTER", "ABORT");
        seats.database.execute("CREATE UNIQUE INDEX noted ON notes (note); INSERT INTO notes VALUES (1)");
        for action in ["ABORT", "FAIL", "ROLLBACK"] {
            let trigger = "TRIGGER noted AFTER INSERT ON seats BEGIN INSERT OR";
            seats.database.execute(&format!(
                "DROP TRIGGER IF EXISTS noted; CREATE {trigger} {action} INTO notes VALUES (1); END"
            ));
            let insert = |seats: &Seats, at| answer(seats.table.rows.insert(at, seat(9, 9)));
            let (answer, _) = seats.run(insert, Place::Alone);
            wait(seats.storage.settled(true)).unwrap();
            let expected = "the database refuses the write of `seats`: UNIQUE constraint failed: notes.note";
            assert_eq!(answer.unwrap_err().message.as_str(), expected, "{action}");
            assert_eq!((seats.rows(), seats.count("notes")), (ROWS.to_vec(), 1), "{action}");
        }
    }
}
