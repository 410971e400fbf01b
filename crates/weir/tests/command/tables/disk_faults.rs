//! Faults of the disk of an SQLite database: a damaged page, files that are read-only, and a disk that is full for a while.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use super::refused_starts::database_of;
use super::{post, request, text};
use crate::support::{Said, Scratch, Served, said, weir};

const PROGRAM: &str = r#"use http

record Note { id: Int, text: Text }

table notes: Note key id

service board on http(port: 8080) {
  post "/{id}" (id: Int) {
    notes.insert(Note { id, text: "{id}:".pad_end(1_000) })?
    http.text("written")
  }
  post "/large/{id}" (id: Int) {
    notes.insert(Note { id, text: "x".repeat(1_000_000)? })?
    http.text("written")
  }
  put "/{id}" (id: Int) {
    let note = notes.update(id, |note| Note { ..note, text: "changed" })? else { return http.not_found() }
    http.text(note.text)
  }
  get "/{id}" (id: Int) {
    let note = notes[id] else { return http.not_found() }
    http.text("{note.text.length()}")
  }
  get "/all" { http.text("{(for note in notes if note.text.length() > 0 { note.id }).length()}") }
  get "/count" { http.text("{notes.count()}") }
  get "/alive" { http.text("alive") }
}
"#;

fn put(served: &Served, path: &str) -> u16 {
    request(served, "PUT", path).expect("an answer").status
}

/// Only what needs the page fails: statements of its rows, and queries that come to them.
#[test]
fn a_damaged_page_fails_the_statements_that_need_it_and_no_others() {
    const ROWS: usize = 60;
    const DAMAGED: usize = 30;
    let (program, data) = (Scratch::new("damaged.weir", PROGRAM.as_bytes()), Scratch::folder("damaged"));
    let served = Served::start(program.path(), &["--data", data.path()]);
    for id in 0..ROWS {
        assert_eq!(post(&served, &format!("/{id}")).map(|answer| answer.status), Some(200));
    }
    served.stop();
    damage_page(&database_of(&program, &data), format!("{DAMAGED}: ").as_bytes());
    let mut served = Served::start(program.path(), &["--data", data.path()]);
    let found: Vec<u16> = (0..ROWS).map(|id| served.get(&format!("/{id}")).status).collect();
    assert_eq!(found[DAMAGED], 500);
    let damaged = served.wait_for("malformed");
    let advice = "it is damaged: restore a backup, or rescue rows with `sqlite3 FILE .recover`";
    assert!(damaged.contains(&database_of(&program, &data)) && damaged.contains(advice), "{damaged}");
    let lost = found.iter().filter(|status| **status == 500).count();
    assert!(lost < 8 && found.iter().all(|status| [200, 500].contains(status)), "a page has few rows: {found:?}");
    assert_eq!((served.get("/all").status, put(&served, &format!("/{DAMAGED}"))), (500, 500));
    // Everything else goes on, also behind a write that has failed.
    assert_eq!((put(&served, "/0"), put(&served, &format!("/{}", ROWS - 1))), (200, 200));
    assert_eq!(post(&served, &format!("/{ROWS}")).map(|answer| answer.status), Some(200));
    assert_eq!((text(&served.get("/0")), text(&served.get(&format!("/{ROWS}")))), ("7", "1000"));
    assert_eq!(text(&served.get("/alive")), "alive");
    served.stop();
    let served = Served::start(program.path(), &["--data", data.path()]);
    assert_eq!((text(&served.get("/0")), served.get(&format!("/{DAMAGED}")).status), ("7", 500));
    served.stop();
}

/// Overwrites the page of the database that contains these bytes.
fn damage_page(database: &str, bytes: &[u8]) {
    let mut file = std::fs::read(database).expect("the database");
    let size = usize::from(u16::from_be_bytes([file[16], file[17]]));
    let at = file.windows(bytes.len()).position(|found| found == bytes).expect("the row is in the file");
    let page = at / size * size;
    file[page..page + size].fill(0xff);
    std::fs::write(database, file).expect("the database is ours");
}

/// Runs a command as a user for whom the rights of files count: not as root.
fn without_privileges(arguments: &[&str]) -> Said {
    let command = weir(arguments);
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    if !is_root {
        return said(command);
    }
    let mut other = Command::new("setpriv");
    other
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(command.get_program())
        .args(command.get_args());
    said(other)
}

#[test]
fn a_database_or_a_folder_that_is_read_only_fails_the_start_with_advice() {
    let (program, data) = (Scratch::new("read-only.weir", PROGRAM.as_bytes()), Scratch::folder("read-only"));
    let may = |path: &str, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    let started = || without_privileges(&["run", program.path(), "--port", "0", "--data", data.path()]);
    let shown = || without_privileges(&["tables", program.path(), "--data", data.path()]);
    let refused = |advice: &str| {
        let (started, shown) = (started(), shown());
        assert_eq!((started.code, shown.code), (3, 1), "{}{}", started.messages, shown.output);
        assert!(started.messages.contains(advice), "{}", started.messages);
        assert!(shown.output.contains(advice), "{}", shown.output);
    };
    may(data.path(), 0o555);
    refused("give the program the right to ");
    may(data.path(), 0o777);
    let served = Served::start(program.path(), &["--data", data.path()]);
    assert_eq!(post(&served, "/1").map(|answer| answer.status), Some(200));
    served.stop();
    let database = database_of(&program, &data);
    may(&database, 0o444);
    refused("give the program the right to ");
    may(&database, 0o666);
    may(data.path(), 0o555);
    refused("give the program the right to ");
    may(data.path(), 0o777);
    let served = Served::start(program.path(), &["--data", data.path()]);
    assert_eq!(text(&served.get("/count")), "1");
    served.stop();
}

/// Mounts a small disk of its own for the command, with a file that takes a part of it.
const SMALL_DISK: &str =
    r#"mount -t tmpfs -o size=96m none "$DISK" && head -c 72000000 /dev/zero > "$DISK/filler" && exec "$0" "$@""#;

/// Returns a command on a small disk in this folder; `None` if the system lets nobody mount one.
fn on_small_disk(command: &Command, folder: &Scratch) -> Option<Command> {
    let shell = |program: &std::ffi::OsStr| {
        let mut shell = Command::new("unshare");
        shell.args(["--user", "--map-root-user", "--mount", "sh", "-c", SMALL_DISK]).arg(program);
        shell.env("DISK", folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        shell
    };
    if !shell("true".as_ref()).status().is_ok_and(|status| status.success()) {
        return None;
    }
    let mut shell = shell(command.get_program());
    shell.args(command.get_args());
    Some(shell)
}

#[test]
fn writes_fail_while_the_disk_is_full_and_succeed_when_it_has_room_again() {
    let (program, data) = (Scratch::new("full.weir", PROGRAM.as_bytes()), Scratch::folder("full-disk"));
    let command = weir(&["run", program.path(), "--port", "0", "--data", data.path()]);
    let Some(command) = on_small_disk(&command, &data) else {
        eprintln!("skipped: the system mounts no disk for a user");
        return;
    };
    let mut served = Served::spawn(command);
    let large = |served: &Served, id: usize| post(served, &format!("/large/{id}")).map_or(0, |answer| answer.status);
    let refused = (0..100).find(|id| large(&served, *id) != 200).expect("the disk is full");
    assert!(refused > 2, "there was room for {refused} rows");
    let said = served.wait_for("disk is full");
    assert!(said.contains("the disk is full: free some space; nothing of the statement was written"), "{said}");
    assert_eq!(large(&served, refused), 500, "once more, and not because the row exists");
    assert_eq!(text(&served.get("/count")), refused.to_string(), "reads go on, and see what was acknowledged");
    std::fs::remove_file(format!("/proc/{}/root{}/filler", served.pid(), data.path())).expect("the file is ours");
    for id in refused..refused + 10 {
        assert_eq!(large(&served, id), 200, "without a restart");
    }
    assert_eq!(text(&served.get("/all")), (refused + 10).to_string());
    let (code, messages) = served.stop();
    assert_eq!(code, Some(0), "{messages}");
}
