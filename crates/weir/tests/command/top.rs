//! `weir top` against running programs.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::support::{Said, Scratch, Served, said, weir};

const HELLO: &str = "examples/hello/main.weir";

/// A program that reads a table by the keys of a list.
const READS: &str = "use http, list

record User { id: Int, next: Int }
table users: User key id

service s on http(port: 1) {
  get \"/users\" {
    let found = for id in list.numbers(0, 1500)? {
      let user = users[id] else { User { id, next: 0 - id } }
      users[user.next]
    }
    http.text(\"{found.length()}\")
  }
}
";

/// A private socket folder, in which programs run and are watched.
struct Sockets(Scratch);

impl Sockets {
    fn new() -> Sockets {
        Sockets(Scratch::folder("sockets"))
    }

    fn run(&self, file: &str, more: &[&str]) -> Served {
        let mut command = weir(&[&["run", file, "--port", "0"], more].concat());
        command.env("XDG_RUNTIME_DIR", self.0.path());
        Served::spawn(command)
    }

    fn top(&self, arguments: &[&str]) -> Said {
        let mut command = weir(&[&["top"], arguments].concat());
        command.env("XDG_RUNTIME_DIR", self.0.path());
        said(command)
    }

    fn files(&self) -> Vec<PathBuf> {
        let folder = PathBuf::from(self.0.path()).join("weir");
        std::fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("a file").path()).collect()
    }
}

#[test]
fn a_table_of_a_program_that_runs() {
    let sockets = Sockets::new();
    let program = sockets.run(HELLO, &["--engine", "elastic", "--threads", "3"]);
    assert_eq!(program.get("/hello/weir").status, 200);
    let table = sockets.top(&["--once"]);
    assert_eq!((table.code, table.messages.as_str()), (0, ""));
    let heading = format!("hello (process {}, engine elastic), up ", program.pid());
    assert!(table.output.starts_with(&heading), "{}", table.output);
    for row in ["route ", "get /hello/{name} ", "section ", " 3  0 of 10,000"] {
        assert!(table.output.contains(row), "no {row:?} in {}", table.output);
    }
    assert_eq!(program.stop().0, Some(0));
}

#[test]
fn json_counts_what_was_answered() {
    let sockets = Sockets::new();
    let program = sockets.run(HELLO, &["--engine", "pool", "--threads", "2"]);
    (0..3).for_each(|_| assert_eq!(program.get("/hello/weir").status, 200));
    // The output is not a terminal, so the view is a table.
    let object = sockets.top(&["hello", "--format", "json"]).output;
    let object: serde_json::Value = serde_json::from_str(&object).expect("one JSON object");
    assert_eq!(object["program"]["pid"], program.pid());
    let routes = object["routes"].as_array().expect("a list of routes");
    let route = routes.iter().find(|route| route["route"] == "get /hello/{name}").expect("the route is there");
    assert_eq!((&route["ended"], &route["running"]), (&3.into(), &0.into()), "{object}");
    let section = &object["sections"][0];
    assert_eq!((&section["engine"], &section["threads"]), (&"pool".into(), &2.into()), "{object}");
}

#[test]
fn the_batches_of_reads_of_a_table_are_shown_with_the_name_that_the_plan_has() {
    let (sockets, data) = (Sockets::new(), Scratch::folder("reads_of_top"));
    let program = Scratch::new("reads_of_top.weir", READS.as_bytes());
    let plan = said(weir(&["plan", program.path()])).output;
    assert!(plan.contains("  users[key], at most 1000 calls in a batch"), "{plan}");
    let served = sockets.run(program.path(), &["--data", data.path()]);
    assert_eq!(served.get("/users").body, b"1500");
    let object = sockets.top(&["--once", "--format", "json"]).output;
    let object: serde_json::Value = serde_json::from_str(&object).expect("one JSON object");
    let batches = &object["batches"][0];
    assert_eq!((&batches["function"], &batches["calls"]), (&"users[key]".into(), &3_000.into()), "{object}");
    let reasons = batches["sent_because"].as_object().expect("the reasons");
    let sent: u64 = reasons.values().filter_map(serde_json::Value::as_u64).sum();
    assert!(sent >= 3 && batches["batches"] == sent, "{object}");
    let table = sockets.top(&["--once"]).output;
    let row = table.lines().skip_while(|line| !line.starts_with("batches of ")).nth(1);
    assert!(row.is_some_and(|row| row.starts_with("users[key] ")), "{table}");
}

#[test]
fn the_socket_is_its_owners_and_goes_with_the_program() {
    let sockets = Sockets::new();
    let program = sockets.run(HELLO, &[]);
    let mode = |path: &PathBuf| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    let files = sockets.files();
    assert_eq!(files.iter().map(mode).collect::<Vec<_>>(), [0o600]);
    assert_eq!(mode(&files[0].parent().expect("the folder").to_owned()), 0o700);
    program.stop();
    assert!(sockets.files().is_empty());
}

#[test]
fn what_is_meant_is_asked_where_several_run() {
    let sockets = Sockets::new();
    let none = sockets.top(&[]);
    assert_eq!(none.code, 3);
    assert!(
        none.messages.contains("no program is running") && none.messages.contains("`weir run FILE`"),
        "{}",
        none.messages
    );
    let first = sockets.run(HELLO, &[]);
    let second = sockets.run(HELLO, &[]);
    let several = sockets.top(&[]);
    assert_eq!(several.code, 2);
    for words in
        ["2 programs are running", &format!("weir top {}", first.pid().min(second.pid())), &second.pid().to_string()]
    {
        assert!(several.messages.contains(words), "no {words:?} in {}", several.messages);
    }
    let table = sockets.top(&[&second.pid().to_string()]);
    assert!(table.output.contains(&format!("process {}", second.pid())), "{}", table.output);
    let unknown = sockets.top(&["shop"]);
    assert_eq!(unknown.code, 3);
    assert!(unknown.messages.contains("no program `shop` is running") && unknown.messages.contains("hello"));
}

#[test]
fn what_a_killed_program_left_is_cleared_away() {
    let sockets = Sockets::new();
    sockets.run(HELLO, &[]).kill();
    assert_eq!(sockets.files().len(), 1);
    assert_eq!(sockets.top(&[]).code, 3);
    assert!(sockets.files().is_empty());
}
