//! `weir run --watch`: which changes restart a program, and what keeps the old one running.

use std::net::TcpListener;

use crate::support::{Scratch, Served, weir};

/// A program with these further items, which says these words.
fn saying(words: &str, items: &str) -> String {
    format!("use http\n\n{items}\nservice s on http(port: 80) {{\n  get \"/\" {{ http.text(\"{words}\") }}\n}}\n")
}

fn words(served: &Served) -> String {
    String::from_utf8(served.get("/").body).expect("a text")
}

/// A folder with a `main.weir`.
struct Program(Scratch);

impl Program {
    fn new(text: &str) -> Program {
        let program = Program(Scratch::folder("watched"));
        program.write("main.weir", text);
        program
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.file(file), text).expect("the folder is ours");
    }

    fn file(&self, file: &str) -> String {
        format!("{}/{file}", self.0.path())
    }

    fn watch(&self, more: &[&str]) -> Served {
        Served::start(self.0.path(), &[&["--watch"], more].concat())
    }

    /// Runs the command, whose program does not start yet.
    fn watch_without_banner(&self, more: &[&str]) -> Served {
        Served::without_banner(weir(&[&["run", self.0.path(), "--port", "0", "--watch"], more].concat()))
    }
}

#[test]
fn a_plan_that_is_created_changed_or_deleted_restarts_the_program() {
    let program = Program::new(&saying("one", ""));
    let mut served = program.watch(&[]);
    assert!(!served.greeting.contains("main.plan.toml"), "{}", served.greeting);
    program.write("main.plan.toml", "threads = 0\n");
    served.wait_for("`threads` must be");
    served.wait_for("the previous program keeps running; waiting for a change");
    assert_eq!(words(&served), "one");
    program.write("main.plan.toml", "threads = 3\n");
    served.greet();
    assert!(served.greeting.contains("3 threads, plan"), "{}", served.greeting);
    std::fs::remove_file(program.file("main.plan.toml")).expect("the plan is there");
    served.greet();
    assert!(!served.greeting.contains("main.plan.toml"), "{}", served.greeting);
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn a_program_that_waits_for_its_plan_or_configuration_starts_when_they_are_corrected() {
    let program = Program::new(&saying("{need}", "config need: Int\n"));
    program.write("main.plan.toml", "threads = 0\n");
    program.write("values.toml", "");
    let mut served = program.watch_without_banner(&["--config", &program.file("values.toml")]);
    served.wait_for("`config need: Int` is not set");
    served.wait_for("no program is running; waiting for a change");
    program.write("values.toml", "need = 7\n");
    served.wait_for("`threads` must be");
    served.wait_for("no program is running; waiting for a change");
    program.write("main.plan.toml", "threads = 1\n");
    served.greet();
    assert_eq!(words(&served), "7");
    program.write("values.toml", "need = 8\n");
    served.greet();
    assert_eq!(words(&served), "8");
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn the_old_program_runs_on_if_the_start_of_the_new_one_would_fail() {
    let first = saying("one {need}", "config need: Int\n");
    let program = Program::new(&first);
    let mut served = program.watch(&["--set", "need=1"]);
    let tls = first.replace("port: 80", "port: 80, certificate: \"none.pem\", key: \"none.key\"");
    let refused = [
        ("", "the program has no `config need`"),
        ("config need: Int\n", "has nothing to run"),
        (&saying("two", "config need: Int\nconfig more: Int\n"), "`config more: Int` is not set"),
        (&saying("two", ""), "the program has no `config need`"),
        (&tls, "none.pem` for TLS"),
    ];
    for (text, why) in refused {
        program.write("main.weir", text);
        served.wait_for(why);
        served.wait_for("the previous program keeps running; waiting for a change");
        assert_eq!(words(&served), "one 1", "{text}");
    }
    program.write("main.weir", &first.replace("one", "two"));
    served.greet();
    assert_eq!(words(&served), "two 1");
    assert_eq!(served.stop().0, Some(0));
}

/// A program whose route `/PORT` ends when the connection to that port is closed.
fn gated(words: &str) -> String {
    let text = saying(words, "").replace("use http", "use http, gate");
    text.replace("  get \"/\" ", "  get \"/{port}\" (port: Int) { http.text(gate.pass(port)?) }\n  get \"/\" ")
}

/// A watched program that finishes a flow, because it is about to be replaced by one that says `two`.
struct Draining {
    program: Program,
    served: Served,
    /// The flow ends when this is dropped.
    held: Vec<std::net::TcpStream>,
}

fn draining() -> Draining {
    let gate = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let program = Program::new(&gated("one"));
    let mut served = Served::start_with_gate(program.0.path(), &["--watch"]);
    let asked = served.ask(&format!("/{}", gate.local_addr().expect("an address").port()));
    let held = gate.accept().expect("the flow comes to the gate").0;
    program.write("main.weir", &gated("two"));
    served.wait_for("stopping after the flows in progress have finished");
    Draining { program, served, held: vec![held, asked] }
}

#[test]
fn an_error_that_is_saved_while_flows_finish_leaves_the_version_before_it() {
    let Draining { program, mut served, held } = draining();
    program.write("main.weir", "service s on");
    served.wait_for("the version before this one starts when the running one has ended; waiting for a change");
    drop(held);
    served.greet();
    assert_eq!(words(&served), "two");
    program.write("main.weir", &gated("three"));
    served.greet();
    assert_eq!(words(&served), "three");
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn a_version_that_is_saved_while_flows_finish_replaces_the_one_before() {
    let Draining { program, mut served, held } = draining();
    program.write("main.weir", "service s on");
    served.wait_for("waiting for a change");
    program.write("main.weir", &gated("three"));
    // The next error comes when the version that says `three` has been accepted.
    program.write("main.plan.toml", "threads = 1\n");
    drop(held);
    while words_of_next(&mut served) != "three" {}
    // The plan may have begun one more version.
    assert_eq!(served.stop().0, Some(0));
}

/// Returns what the version says that starts next.
fn words_of_next(served: &mut Served) -> String {
    served.greet();
    words(served)
}

#[test]
fn a_signal_while_flows_finish_ends_the_watch_after_them() {
    let Draining { program: _program, served, held } = draining();
    served.terminate();
    drop(held);
    let (code, said) = served.end();
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_second_signal_while_flows_finish_ends_the_watch_at_once() {
    let Draining { program: _program, served, held: _held } = draining();
    assert_eq!(served.terminate_until_it_ends(), Some(130));
}

#[test]
fn the_program_ends_when_its_watcher_is_killed() {
    let program = Program::new(&saying("one", ""));
    let served = program.watch(&[]);
    assert_eq!(words(&served), "one");
    served.signal("-KILL");
    // The program holds standard error open until it has ended.
    let (code, said) = served.end();
    assert_eq!((code, said.contains("stopping after")), (None, true), "{said}");
}

#[test]
fn every_line_of_a_watched_program_is_an_object_if_the_log_is() {
    for option in ["--log-format", "--error-format"] {
        let program = Program::new(&saying("one", "config need: Int\n"));
        let mut served = program.watch_without_banner(&[option, "json"]);
        let mut lines = vec![served.wait_for("is not set"), served.wait_for("waiting for a change")];
        program.write("main.weir", "service s on");
        lines.extend([served.wait_for("\"code\":\"E"), served.wait_for("waiting for a change")]);
        program.write("main.weir", &saying("one", ""));
        program.write("main.plan.toml", "threads = 0\n");
        lines.extend([served.wait_for("must be"), served.wait_for("waiting for a change")]);
        let (code, rest) = served.stop();
        lines.extend(rest.lines().map(str::to_owned));
        for line in &lines {
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok_and(|line| line.is_object()), "{line}");
        }
        assert_eq!(code, Some(0));
    }
}

#[test]
fn lines_of_the_standard_input_cannot_be_watched() {
    let program = Program::new("use stdio\n\nfor line in stdio.lines() { stdio.print(line)? }\n");
    let mut served = Served::without_banner(weir(&["run", program.0.path(), "--watch"]));
    served.wait_for("`stdio.lines` cannot be used with `--watch`");
    served.wait_for("no program is running; waiting for a change");
    assert_eq!(served.stop().0, Some(0));
}
