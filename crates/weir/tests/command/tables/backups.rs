//! Copies of a database, which `weir tables --backup` makes.

use std::process::Command;
use std::thread;

use super::refused_starts::database_of;
use super::{COUNTER, post, text};
use crate::support::{Scratch, Served, said, say, weir};

#[test]
fn a_backup_under_load_is_a_database_of_one_moment() {
    let (program, data) = (Scratch::new("ledger.weir", COUNTER.as_bytes()), Scratch::folder("ledger"));
    let copies = Scratch::folder("copies");
    let backup = |number: usize| {
        let copy = format!("{}/{number}.db", copies.path());
        say(&["tables", program.path(), "--data", data.path(), "--backup", &copy])
    };
    assert!(backup(0).messages.contains("there is no database"), "{}", backup(0).messages);
    let served = Served::start(program.path(), &["--data", data.path()]);
    assert_eq!(post(&served, "/9/9").map(|answer| answer.status), Some(200));
    let ended = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        for by in 0..4 {
            let (served, ended) = (&served, &ended);
            scope.spawn(move || {
                for number in (0..).take_while(|_| !ended.load(std::sync::atomic::Ordering::Relaxed)) {
                    post(served, &format!("/{by}/{number}"));
                }
            });
        }
        let said: Vec<_> = (1..6).map(backup).collect();
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(said.iter().all(|said| said.code == 0 && said.output.contains("bytes copied")), "{}", said[0].messages);
    });
    assert!(backup(1).messages.contains("exists already"), "{}", backup(1).messages);
    let database = std::fs::read_dir(data.path()).unwrap().map(|file| file.unwrap().file_name());
    let database = database.into_iter().find(|name| name.to_string_lossy().ends_with(".db")).unwrap();
    served.stop();
    for number in 1..6 {
        let restored = Scratch::folder("restored");
        let copy = format!("{}/{number}.db", copies.path());
        std::fs::copy(copy, std::path::Path::new(restored.path()).join(&database)).unwrap();
        let served = Served::start(program.path(), &["--data", restored.path()]);
        let total = served.get("/total");
        let (total, rows) = text(&total).trim().split_once(' ').expect("two numbers");
        assert_eq!(total, rows, "a transaction is torn");
        assert_ne!(rows, "0");
        served.stop();
    }
}

#[test]
fn a_backup_says_why_the_copy_cannot_be_written() {
    let (program, data) = (Scratch::new("ledger.weir", COUNTER.as_bytes()), Scratch::folder("no-copy"));
    Served::start(program.path(), &["--data", data.path()]).stop();
    let copy = format!("{}/none/monday.db", data.path());
    let said = say(&["tables", program.path(), "--data", data.path(), "--backup", &copy]);
    assert_eq!(said.code, 3, "{}", said.messages);
    assert!(said.messages.contains(&format!("cannot write the copy {copy}: ")), "{}", said.messages);
    assert!(said.messages.contains("create its folder"), "{}", said.messages);
    assert!(!said.messages.contains("partial"), "{}", said.messages);
}

#[test]
fn a_program_without_stored_tables_has_nothing_to_copy() {
    let program = "record Visit { id: Int }\n\ntable visits: Visit key id soft\n";
    let (program, copies) = (Scratch::new("visits.weir", program.as_bytes()), Scratch::folder("no-rows"));
    let said = say(&["tables", program.path(), "--backup", &format!("{}/copy.db", copies.path())]);
    assert_eq!(said.code, 2, "{}", said.messages);
    assert!(said.messages.contains("the program has no stored tables"), "{}", said.messages);
}

#[test]
fn a_copy_that_cannot_be_written_leaves_no_file() {
    let (program, data) = (Scratch::new("ledger.weir", COUNTER.as_bytes()), Scratch::folder("large-ledger"));
    let copies = Scratch::folder("no-room");
    Served::start(program.path(), &["--data", data.path()]).stop();
    // More than the cache, so that the copy is written before it is complete.
    let rows = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 4000)";
    let fill = format!("create table large as {rows} select zeroblob(3000) as bytes from n");
    let database = database_of(&program, &data);
    assert!(Command::new("sqlite3").args([&database, &fill]).status().expect("sqlite3 is installed").success());
    let copy = format!("{}/monday.db", copies.path());
    let arguments = ["tables", program.path(), "--data", data.path(), "--backup", &copy];
    // Nobody but the command ignores the signal of the limit.
    let limited = weir(&arguments);
    let mut command = Command::new("sh");
    command.args(["-c", r#"ulimit -f 3000; exec "$0" "$@""#]).arg(limited.get_program()).args(limited.get_args());
    let said = said(command);
    assert_eq!(said.code, 3, "{}", said.messages);
    let why = format!("cannot write the copy {copy}: a file has the length that the program may give to files: ");
    assert!(said.messages.contains(&why), "{}", said.messages);
    assert_eq!(std::fs::read_dir(copies.path()).expect("a folder").count(), 0, "{}", said.messages);
}
