//! Starts that fail because of the files of an SQLite database, and `weir tables`, which says so before.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::soft::with_file_limit;
use super::{COUNTER, post};
use crate::support::{Scratch, Served, said, say};

/// A transaction that reads, and shows no rows.
pub(super) const READS: &str = "begin; select name from sqlite_schema where name = ''";

/// Another program that holds a lock of a database.
pub(super) struct LockHolder(Child);

impl LockHolder {
    pub(super) fn begin(database: &str, transaction: &str) -> LockHolder {
        let mut shell = Command::new("sqlite3");
        let shell = shell.arg(database).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut shell = shell.expect("sqlite3 is installed");
        let input = shell.stdin.as_mut().expect("its input");
        // The shell keeps its own output until it ends.
        writeln!(input, "{transaction};\n.system echo begun").expect("it reads");
        let mut line = String::new();
        BufReader::new(shell.stdout.as_mut().expect("its output")).read_line(&mut line).expect("it writes");
        assert_eq!(line, "begun\n");
        LockHolder(shell)
    }

    pub(super) fn end(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().expect("it ends").success());
    }
}

/// Returns the path of the database of a program.
pub(super) fn database_of(program: &Scratch, data: &Scratch) -> String {
    let name = Path::new(program.path()).file_stem().expect("the name of a program");
    format!("{}/{}.db", data.path(), name.to_string_lossy())
}

#[test]
fn a_lock_of_another_program_is_shown_before_the_start() {
    let (program, data) = (Scratch::new("ledger.weir", COUNTER.as_bytes()), Scratch::folder("locked"));
    let database = database_of(&program, &data);
    let shown = || say(&["tables", program.path(), "--data", data.path()]);
    assert_eq!(shown().code, 0, "there is no database yet");
    Served::start(program.path(), &["--data", data.path()]).stop();
    for transaction in ["begin immediate", "begin exclusive"] {
        let holder = LockHolder::begin(&database, transaction);
        let started = say(&["run", program.path(), "--port", "0", "--data", data.path()]);
        assert!(started.messages.contains("database is locked"), "{}", started.messages);
        let locked = shown();
        assert_eq!(locked.code, 1, "{transaction}: {}", locked.output);
        let line = "a start fails: the database ";
        assert!(locked.output.contains(line) && locked.output.contains("database is locked"), "{}", locked.output);
        holder.end();
        assert_eq!(shown().code, 0, "{transaction}");
    }
    let served = Served::start(program.path(), &["--data", data.path()]);
    let holder = LockHolder::begin(&database, "begin immediate");
    assert_eq!(shown().code, 0, "a start comes after the end of the program, which waits for the lock itself");
    holder.end();
    served.stop();
}

#[test]
fn a_reader_of_a_restored_backup_is_shown_before_the_start() {
    let (program, data) = (Scratch::new("ledger.weir", COUNTER.as_bytes()), Scratch::folder("read-backup"));
    let restored = Scratch::folder("restored-backup");
    let copy = database_of(&program, &restored);
    let shown = || say(&["tables", program.path(), "--data", restored.path()]);
    Served::start(program.path(), &["--data", data.path()]).stop();
    assert_eq!(say(&["tables", program.path(), "--data", data.path(), "--backup", &copy]).code, 0);
    let before = std::fs::read(&copy).expect("the backup");
    let reader = LockHolder::begin(&copy, READS);
    let started = say(&["run", program.path(), "--port", "0", "--data", restored.path()]);
    let locked = shown();
    for said in [&started.messages, &locked.output] {
        assert!(said.contains("database is locked; another program reads or writes it: end that one"), "{said}");
    }
    assert_eq!((started.code, locked.code), (3, 1), "{}", locked.output);
    reader.end();
    assert_eq!(shown().code, 0);
    assert!(std::fs::read(&copy).expect("the backup") == before, "the backup is as it was");
    let served = Served::start(program.path(), &["--data", restored.path()]);
    let reader = LockHolder::begin(&copy, READS);
    served.stop();
    assert_eq!(shown().code, 0, "once a program has started, readers do not hinder a start");
    Served::start(program.path(), &["--data", restored.path()]).stop();
    reader.end();
}

#[test]
fn a_limit_of_file_sizes_is_named_with_the_log() {
    let (program, data) = (Scratch::new("ledger.weir", COUNTER.as_bytes()), Scratch::folder("short-log"));
    let started = said(with_file_limit(10_000_000, &["run", program.path(), "--port", "0", "--data", data.path()]));
    assert_eq!(started.code, 3, "{}", started.messages);
    let log = format!("cannot write the log {}-wal of the database", database_of(&program, &data));
    assert!(started.messages.contains(&log) && started.messages.contains("`ulimit -f`"), "{}", started.messages);
    assert!(!started.messages.contains(".db-note"), "{}", started.messages);
}

#[test]
fn the_log_of_a_program_that_was_killed_stays_for_the_start() {
    let (program, data) = (Scratch::new("ledger.weir", COUNTER.as_bytes()), Scratch::folder("killed-ledger"));
    let served = Served::start(program.path(), &["--data", data.path()]);
    assert_eq!(post(&served, "/1/1").map(|answer| answer.status), Some(200));
    served.kill();
    let log = || std::fs::read(format!("{}-wal", database_of(&program, &data))).expect("there is a log");
    let before = log();
    let shown = say(&["tables", program.path(), "--data", data.path()]);
    assert_eq!(shown.code, 0, "{}", shown.messages);
    assert!(log() == before, "the log is as the program has left it");
}
