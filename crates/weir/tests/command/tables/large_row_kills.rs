//! Kills of a program that writes large rows to SQLite, whose log grows beyond its least length, and beyond the length that it keeps
//! while another program reads: nothing acknowledged is lost or damaged.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;

use super::kills::kills;
use super::refused_starts::{LockHolder, READS, database_of};
use super::request_with;
use crate::support::{Scratch, Served, say, weir};

const PROGRAM: &str = r#"use http

record Entry { id: Int, by: Int, number: Int, length: Int, text: Text }

table entries: Entry key id auto index (by, number)

service ledger on http(port: 8080) {
  post "/{by}/{number}" (by: Int, number: Int, body text: Text) {
    atomic entries {
      entries.insert(Entry { by, number, length: text.length(), text })?
      entries.insert(Entry { by, number, length: text.length(), text })?
      entries.insert(Entry { by, number, length: text.length(), text })?
      entries.insert(Entry { by, number, length: text.length(), text })?
    }
    http.text("written")
  }
}
"#;

const CLIENTS: usize = 8;
/// Number of rows of a transaction.
const ROWS: usize = 4;
/// Number of lives of a program with one database, so that the database does not become too large itself.
const LIVES: u64 = 4;
/// Length of the log in bytes from which a checkpoint moves it, which is also its least length.
const LOG_LENGTH: u64 = 4_120 * 4_000;
/// Length of the log in bytes that it keeps at most when it begins anew.
const LOG_KEPT_MAX: u64 = 2 * LOG_LENGTH;

#[test]
fn large_rows_survive_a_kill_while_the_log_is_long() {
    let kills = kills().div_ceil(10);
    for first in (0..kills).step_by(LIVES as usize) {
        let ledger = Ledger::new();
        (first..kills.min(first + LIVES)).for_each(|life| ledger.live(life));
        eprintln!("{}", ledger.check());
    }
}

/// A program, its database, and what it has acknowledged.
struct Ledger {
    program: Scratch,
    data: Scratch,
    acknowledged: Mutex<Vec<(usize, u64)>>,
    /// The length of all rows that were acknowledged.
    bytes: AtomicUsize,
    /// The first answer that is a failure.
    failed: OnceLock<String>,
}

/// Returns the text of the row with this number, of 4 to 300 kB.
fn entry_text(number: u64) -> String {
    const LENGTHS: [usize; 5] = [4_000, 30_000, 90_000, 8_000, 300_000];
    format!("{number:08}").repeat(LENGTHS[(number % 5) as usize] / 8)
}

impl Ledger {
    fn new() -> Ledger {
        Ledger {
            program: Scratch::new("large.weir", PROGRAM.as_bytes()),
            data: Scratch::folder("large-rows"),
            acknowledged: Mutex::default(),
            bytes: AtomicUsize::new(0),
            failed: OnceLock::new(),
        }
    }

    /// Starts the program, and kills it after several checkpoints. Every second time, another program keeps them from ending for a
    /// while; every third time, the database is copied meanwhile.
    fn live(&self, life: u64) {
        let run = weir(&["run", self.program.path(), "--port", "0", "--data", self.data.path()]);
        let served = Served::spawn(with_slow_files(run));
        thread::scope(|scope| {
            for by in 0..CLIENTS {
                let served = &served;
                scope.spawn(move || self.write(served, by, life * 10_000));
            }
            // The clients end with the program, also if a check fails.
            let _killed = KillOnDrop(&served);
            self.wait_for(2 * LOG_LENGTH);
            if life.is_multiple_of(2) {
                self.make_log_long();
            }
            if life.is_multiple_of(3) {
                self.copy(life);
            }
            self.wait_for(LOG_LENGTH + life % 7 * 500_000);
        });
        served.kill();
    }

    /// Writes rows until the program is killed.
    fn write(&self, served: &Served, by: usize, first: u64) {
        for number in first.. {
            let text = entry_text(number);
            match request_with(served, "POST", &format!("/{by}/{number}"), &text) {
                Some(answer) if answer.status == 200 => {
                    self.acknowledged.lock().expect("no client fails").push((by, number));
                    self.bytes.fetch_add(ROWS * text.len(), Ordering::Relaxed);
                }
                answer => {
                    answer.map(|answer| self.failed.get_or_init(|| format!("{answer:?}")));
                    return;
                }
            }
        }
    }

    /// Waits until so many bytes more are acknowledged.
    fn wait_for(&self, more: u64) {
        let end = self.bytes.load(Ordering::Relaxed) + more as usize;
        self.wait_until(|| self.bytes.load(Ordering::Relaxed) >= end);
    }

    fn wait_until(&self, is_reached: impl Fn() -> bool) {
        while !is_reached() {
            assert_eq!(self.failed.get(), None);
            thread::yield_now();
        }
    }

    /// Reads the database until its log is longer than it stays otherwise.
    fn make_log_long(&self) {
        let database = database_of(&self.program, &self.data);
        let reader = LockHolder::begin(&database, READS);
        let length = || std::fs::metadata(format!("{database}-wal")).expect("a log").len();
        self.wait_until(|| length() > LOG_KEPT_MAX);
        reader.end();
    }

    fn copy(&self, life: u64) {
        let copy = format!("{}/copy-{life}", self.data.path());
        let said = say(&["tables", self.program.path(), "--data", self.data.path(), "--backup", &copy]);
        assert_eq!(said.code, 0, "{}", said.messages);
        assert_eq!(sql(&copy, &format!("{DAMAGED}; PRAGMA integrity_check")), "0\nok\n");
    }

    /// Looks for all that was acknowledged. Returns the numbers of what was acknowledged and stored.
    fn check(&self) -> String {
        Served::start(self.program.path(), &["--data", self.data.path()]).stop();
        let database = database_of(&self.program, &self.data);
        assert_eq!(sql(&database, &format!("{DAMAGED}; PRAGMA integrity_check")), "0\nok\n");
        let stored = sql(&database, "SELECT \"by\", number, count(*) FROM entries GROUP BY 1, 2 ORDER BY 1, 2");
        let parsed = |line: &str| {
            let numbers: Vec<u64> = line.split('|').map(|number| number.parse().expect("a number")).collect();
            assert_eq!(numbers[2], ROWS as u64, "torn or doubled: {line}");
            (numbers[0] as usize, numbers[1])
        };
        let stored: Vec<(usize, u64)> = stored.lines().map(parsed).collect();
        let acknowledged = self.acknowledged.lock().expect("no client fails");
        let lost: Vec<_> = acknowledged.iter().filter(|row| stored.binary_search(row).is_err()).collect();
        assert!(lost.is_empty(), "acknowledged, and lost: {lost:?}");
        format!("{} acknowledged, {} stored", acknowledged.len(), stored.len())
    }
}

/// The number of rows whose text is not the one that was sent.
const DAMAGED: &str =
    "SELECT count(*) FROM entries WHERE length(text) <> \"length\" OR replace(text, printf('%08d', number), '') <> ''";

fn sql(database: &str, sql: &str) -> String {
    let printed = Command::new("sqlite3").args([database, sql]).output().expect("sqlite3 is installed");
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    String::from_utf8(printed.stdout).expect("a text")
}

/// Has each change of the length of a file, and each sync, take long, as on a disk that is busy: others come before them more often.
fn with_slow_files(program: Command) -> Command {
    const TRACED: [&str; 6] = ["-D", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null"];
    let may_trace = Command::new("strace").args(TRACED).args(["-e", "trace=ftruncate", "true"]).output();
    if !may_trace.is_ok_and(|traced| traced.status.success()) {
        // Not `eprintln!`: the test harness would hide it.
        _ = writeln!(std::io::stderr(), "SKIPPED: slow files, because strace is not installed or may not trace");
        return program;
    }
    let mut traced = Command::new("strace");
    traced.args(TRACED).args(["-e", "trace=ftruncate,fsync,fdatasync"]);
    traced.args(["-e", "inject=ftruncate:delay_enter=50000", "-e", "inject=fsync,fdatasync:delay_enter=5000"]);
    traced.arg(program.get_program()).args(program.get_args());
    traced.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    traced
}

/// Kills a program when it is dropped.
struct KillOnDrop<'s>(&'s Served);

impl Drop for KillOnDrop<'_> {
    fn drop(&mut self) {
        self.0.signal("-KILL");
    }
}
