//! Messages and exit codes of the command.

use std::net::TcpListener;

use crate::support::{Scratch, say, weir};

/// Returns exit code, standard output and standard error as one text.
pub(super) fn all(arguments: &[&str]) -> String {
    let said = say(arguments);
    format!("exit code {}\n--- output\n{}--- messages\n{}", said.code, said.output, said.messages)
}

#[test]
fn a_file_that_is_not_there() {
    insta::assert_snapshot!(all(&["run", "examples/hello/man.weir"]));
}

#[test]
fn a_folder_without_a_main_program() {
    insta::assert_snapshot!(all(&["graph", "crates/weir/tests/command"]));
}

#[test]
fn a_root_that_cannot_be_read() {
    insta::assert_snapshot!(all(&["run", "examples/hello/main.weir", "--root", "examples/nowhere"]));
}

#[test]
fn a_port_that_is_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    insta::assert_snapshot!(all(&["run", "examples/hello/main.weir", "--port", &port]).replace(&port, "PORT"));
}

#[test]
fn an_engine_that_is_not_there() {
    let said = say(&["run", "examples/hello/main.weir", "--engine", "steam"]);
    assert_eq!(said.code, 2);
    assert!(said.messages.contains("event") && said.messages.contains("pool"), "{}", said.messages);
}

#[test]
fn a_program_with_errors() {
    let wrong = Scratch::new(
        "wrong.weir",
        b"use http\n\nservice s on http(port: 80) {\n  get \"/\" () { http.tex(1 + \"a\") }\n}\n",
    );
    insta::assert_snapshot!(all(&["run", wrong.path()]).replace(wrong.path(), "wrong.weir"));
}

#[test]
fn errors_of_several_files_as_json() {
    let wrong = Scratch::new("json.weir", b"let = 1\n");
    let said =
        say(&["check", "--error-format", "json", "examples/hello/main.weir", wrong.path(), "examples/none.weir"]);
    assert_eq!(said.code, 3);
    let objects = said.messages.lines().filter(|line| line.starts_with("{\"code\":\"E0")).count();
    assert!(objects >= 1, "{}", said.messages);
}

#[test]
fn a_file_that_is_not_utf_8() {
    let wrong = Scratch::new("bytes.weir", b"use http\n\xFF\n");
    insta::assert_snapshot!(all(&["check", wrong.path()]).replace(wrong.path(), "bytes.weir"));
}

#[test]
fn a_program_without_an_entry_point() {
    let empty = Scratch::new("empty.weir", b"fn double(x: Int) -> Int { x * 2 }\n");
    insta::assert_snapshot!(all(&["run", empty.path()]).replace(empty.path(), "empty.weir"));
}

#[test]
fn a_code_that_does_not_exist() {
    insta::assert_snapshot!(all(&["explain", "E9999"]));
}

#[test]
fn the_page_of_a_code() {
    insta::assert_snapshot!(all(&["explain", "e0102"]));
}

#[test]
fn the_examples_check_and_are_formatted() {
    for name in [
        "cached_proxy",
        "communication",
        "communication/driver.weir",
        "failed_logins",
        "guests",
        "hello",
        "hooks",
        "image_server",
        "login",
        "todo",
        "torrent",
        "uploads",
        "web_server",
        "webhook",
    ] {
        let example = &format!("examples/{name}");
        let checked = say(&["check", example]);
        assert_eq!((checked.code, checked.messages.as_str()), (0, ""));
        let formatted = say(&["fmt", "--check", example]);
        assert_eq!(formatted.code, 0, "{}", formatted.messages);
    }
}

#[test]
fn the_tests_of_the_examples_pass() {
    for (example, passed) in [
        ("guests", "5 passed"),
        ("orders", "2 passed"),
        ("hooks", "2 passed"),
        ("login", "1 passed"),
        ("cached_proxy", "1 passed"),
        ("communication", "9 passed"),
        ("todo", "2 passed"),
        ("torrent", "3 passed"),
        ("uploads", "1 passed"),
        ("webhook", "2 passed"),
    ] {
        let said = say(&["test", &format!("examples/{example}")]);
        assert!(said.code == 0 && said.output.contains(passed), "{}{}", said.output, said.messages);
    }
}

#[test]
fn a_file_that_is_not_formatted_is_formatted() {
    let untidy = Scratch::new("untidy.weir", b"fn   double( x:Int )->Int{x*2}\n");
    assert_eq!(say(&["fmt", "--check", untidy.path()]).code, 1);
    assert_eq!(say(&["fmt", untidy.path()]).code, 0);
    assert_eq!(say(&["fmt", "--check", untidy.path()]).code, 0);
}

const WRONG_ARGUMENTS: &str = r#"use http

const health = "/status"
config origins: Text = "https://a.example"

service shop on http(port: 8080, health: health, header_bytes_max: 10b) {
  get "/status" { http.text("open") }
}

service api on http(
  port: 8081,
  allowed_origins: ["https://a.example/"],
  trusted_proxies: ["10.0.0.1/8"],
  headers: ["Connection": "close"],
) {
  get "/" { http.text("open") }
}

service other on http(port: 8082, allowed_origins: [origins], allowed_credentials: true, health: "status") {
  get "/{path..}" (path: Text) { http.text(path) }
}
"#;

#[test]
fn arguments_with_which_a_service_would_not_start() {
    let wrong = Scratch::new("arguments.weir", WRONG_ARGUMENTS.as_bytes());
    insta::assert_snapshot!(all(&["check", wrong.path()]).replace(wrong.path(), "arguments.weir"));
}

#[test]
fn a_service_that_encrypts_a_cookie_needs_a_key() {
    let text = "use http\n\nservice accounts on http(port: 8080) {\n  post \"/login\" { logged_in()? }\n}\n\n\
                fn logged_in() -> Result(http.Response) {\n  http.redirect(\"/\") |> http.with_encrypted_cookie(\"user\", \"ada\")\n}\n";
    let program = Scratch::new("cookies.weir", text.as_bytes());
    let checked = all(&["check", program.path()]);
    assert!(
        checked.contains("error[E0606]: `accounts` has no `cookie_keys`") && checked.contains("cookies.weir:8:"),
        "{checked}"
    );
}

const CACHES: &str = r#"use http

record Page { path: Text, body: Text }
record Hits { path: Text, count: Int }

table pages: Page key path soft(ttl: 1m)
table kept: Page key path soft
table hits: Hits key path soft(at_most: 100)

service cache on http(port: 8080) {
  // A row that is missing could have been lost in any order of the flows.
  get "/a/{path}" (path: Text) {
    let page = pages[path] else {
      let made = Page { path, body: "page {path}" }
      pages.upsert(made)?
      made
    }
    http.text(page.body)
  }
  // No row of this table is ever lost.
  get "/b/{path}" (path: Text) {
    let page = kept[path] else {
      let made = Page { path, body: "page {path}" }
      kept.upsert(made)?
      made
    }
    http.text(page.body)
  }
  // The new row depends on the old one.
  get "/c/{path}" (path: Text) {
    let before = match hits[path] {
      Some(row) => row.count
      None => 0
    }
    hits.upsert(Hits { path, count: before + 1 })?
    http.text("{before}")
  }
  // This write depends on a row that is there.
  delete "/c/{path}" (path: Text) {
    let row = hits[path] else { return http.not_found() }
    hits.upsert(Hits { path, count: 0 })?
    http.text("{row.count}")
  }
}
"#;

#[test]
fn a_row_that_a_soft_table_may_have_lost_is_no_lost_update() {
    let caches = Scratch::new("caches.weir", CACHES.as_bytes());
    insta::assert_snapshot!(all(&["check", caches.path()]).replace(caches.path(), "caches.weir"));
}

const TRANSACTIONS: &str = r#"use http

record User { name: Text, friend: Text }
table users: User key name

service s on http(port: 8080) {
  // Both transactions only read.
  get "/friend/{name}" (name: Text) {
    let user = atomic users { users[name] } else { return http.not_found() }
    let friend = atomic users { users[user.friend] } else { return http.not_found() }
    http.text(friend.name)
  }
  // This write depends on what another transaction has read.
  put "/friend/{name}" (name: Text, friend: Text) {
    let user = atomic users { users[name] } else { return http.not_found() }
    atomic users { users.upsert(User { ..user, friend })? }
    http.text("ok")
  }
}
"#;

#[test]
fn a_transaction_that_only_reads_writes_nothing() {
    let program = Scratch::new("friends.weir", TRANSACTIONS.as_bytes());
    insta::assert_snapshot!(all(&["check", program.path()]).replace(program.path(), "friends.weir"));
}

#[test]
fn standard_input_is_a_program_too() {
    let mut child = weir(&["graph", "-"]).stdin(std::process::Stdio::piped()).spawn().expect("the command starts");
    let text = std::fs::read(crate::support::repository().join("examples/hello/main.weir")).expect("the example");
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), &text).expect("the program is sent");
    let said = child.wait_with_output().expect("the command ends");
    assert!(said.status.success());
    insta::assert_snapshot!(String::from_utf8(said.stdout).expect("UTF-8"));
}

#[test]
fn the_picture_of_the_image_server_shows_all_its_calls() {
    let said = say(&["graph", "examples/image_server/main.weir", "--format", "svg"]);
    assert_eq!(said.code, 0);
    assert_eq!(said.output.matches("class=\"card\"").count(), 9);
    assert!(said.output.trim_end().ends_with("</svg>"));
}

#[test]
fn an_output_that_nobody_reads_is_no_failure() {
    let mut child = weir(&["graph", "examples/image_server/main.weir", "--format", "svg"]).spawn().expect("it starts");
    drop(child.stdout.take());
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_new_service_is_right_formatted_and_made_once() {
    let folder = Scratch::folder("new");
    let path = &format!("{}/hello", folder.path());
    let made = say(&["new", path]);
    assert_eq!((made.code, made.messages.as_str()), (0, ""));
    let program = format!("{path}/main.weir");
    assert_eq!(say(&["check", &program]).messages, "");
    assert_eq!(say(&["fmt", "--check", &program]).code, 0);
    assert_eq!(say(&["test", &program]).code, 0);
    assert_eq!(say(&["new", path]).code, 3);
}

const TESTED: &[u8] = b"fn twice(n: Int) -> Int { n * 2 }\n\ntest \"two are four\" { expect twice(2) == 4 }\n\ntest \"three are six\" { expect twice(3) == 7 }\n";

#[test]
fn a_file_that_windows_wrote_is_said_to_be_so() {
    let file = Scratch::new("wide.weir", b"\xff\xfeu\0s\0e\0");
    let said = say(&["check", file.path()]);
    assert!(said.messages.contains("begins with a UTF-16 byte order mark"), "{}", said.messages);
}

/// Returns a text without durations.
fn timeless(text: &str) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let end = match words.as_slice() {
            [.., number, "us" | "ms" | "s"] => {
                line.len() - number.len() - words.last().map_or(0, |unit| unit.len()) - 2
            }
            _ => line.len(),
        };
        lines.push_str(line[..end].trim_end_matches(" in"));
        lines.push('\n');
    }
    lines
}

#[test]
fn tests_of_a_program_show_what_differs() {
    let program = Scratch::new("tested.weir", TESTED);
    insta::assert_snapshot!(timeless(&all(&["test", program.path()])).replace(program.path(), "tested.weir"));
}

#[test]
fn a_filter_leaves_other_tests_out() {
    let program = Scratch::new("filtered.weir", TESTED);
    let said = say(&["test", "--filter", "four", program.path()]);
    assert_eq!(said.code, 0, "{}", said.output);
    assert!(said.output.contains("1 passed, 1 skipped"), "{}", said.output);
    let none = say(&["test", "--filter", "four", "--exact", program.path()]);
    assert!(none.code == 2 && none.output.is_empty(), "{}", none.output);
    assert!(none.messages.contains("no test is named \"four\", so none was run"), "{}", none.messages);
    assert!(none.messages.contains("the tests are: \"two are four\", \"three are six\""), "{}", none.messages);
    let none = say(&["test", "--filter", "nothing", program.path()]);
    assert!(none.code == 2 && none.messages.contains("no test has a name with \"nothing\""), "{}", none.messages);
    let exact = say(&["test", "--filter", "two are four", "--exact", program.path()]);
    assert!(exact.output.contains("1 passed, 1 skipped"), "{}", exact.output);
}

#[test]
fn the_picture_in_the_readme_is_what_the_program_is() {
    let path = crate::support::repository().join("docs/image_server.svg");
    let drawn = say(&["graph", "examples/image_server/main.weir", "--format", "svg"]).output;
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == drawn,
        "draw it again: weir graph examples/image_server/main.weir --format svg -o docs/image_server.svg"
    );
}

#[test]
fn a_new_cargo_project_has_a_program_that_fits_its_functions() {
    let folder = Scratch::folder("new-rust");
    let path = &format!("{}/hello", folder.path());
    assert_eq!(say(&["new", "--rust", path]).code, 0);
    // The project's `src/main.rs` is `examples/words.rs`.
    let program = format!("{path}/main.weir");
    let checked = crate::support::example("words", &["check", &program]).output().expect("it runs");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let written = std::fs::read_to_string(format!("{path}/src/main.rs")).expect("the project has functions");
    assert!(written.contains("weir::library!"), "{written}");
}

#[test]
fn absurd_programs_are_refused_and_nothing_breaks() {
    let deep = "fn f() -> Int { ".to_owned() + &"(".repeat(100_000) + "1" + &")".repeat(100_000) + " }\n";
    let braces = "service s on http(port: 1) ".to_owned() + &"{".repeat(100_000);
    let long = "// ".to_owned() + &"x".repeat(10 << 20) + "\nlet\n";
    let name = "fn f() -> Int { ".to_owned() + &"a".repeat(10 << 20) + " }\n";
    let slashes = "fn f() -> Text { \"{".to_owned() + &"1 // ".repeat(2 << 20) + "\" }\n";
    for (name, text) in [("deep", deep), ("braces", braces), ("long", long), ("name", name), ("slashes", slashes)] {
        let program = Scratch::new(&format!("{name}.weir"), text.as_bytes());
        let said = say(&["check", program.path()]);
        assert_eq!(said.code, 1, "{name}");
        assert!(said.messages.len() < 200_000, "{name}: {} bytes of messages", said.messages.len());
    }
}

/// Returns what `weir check` reports about a program.
fn reported(text: &str) -> String {
    let program = Scratch::new("reported.weir", text.as_bytes());
    say(&["check", program.path()]).messages
}

#[test]
fn a_pattern_with_an_error_is_reported_before_the_program_runs() {
    let program = |pattern: &str| {
        let route = format!("get \"/\" (t: Text) {{ http.json(regex.find_all(t, pattern: \"{pattern}\")) }}");
        format!("use http, regex\n\nservice s on http(port: 8080) {{\n  {route}\n}}\n")
    };
    let refused = reported(&program("[0-9+"));
    assert!(refused.contains("E0315") && refused.contains(":4:") && refused.contains("unclosed"), "{refused}");
    let large = reported(&program("(a\\{1000\\}){1000}").replace("{1000}", "\\{1000\\}"));
    assert!(large.contains("E0315") && large.contains("size limit"), "{large}");
    assert_eq!(reported(&program("[0-9]+")), "");
}

#[test]
fn only_numbers_are_added_to_shared_values() {
    let program = |ty: &str, value: &str, by: &str| {
        let shared = format!("shared x: {ty} = {value}\nshared all: Map(Text, {ty}) = [:]\n");
        let body =
            format!("x.add({by})\n    all.add_at(\"a\", {by})\n    http.text(\"{{x.read()}} {{all.length()}}\")");
        format!("use http\n\n{shared}\nservice s on http(port: 8080) {{\n  get \"/\" {{\n    {body}\n  }}\n}}\n")
    };
    for (ty, value, by) in [("Int", "0", "1"), ("Float", "0.0", "0.5"), ("Duration", "0s", "1s"), ("Size", "0b", "1kb")]
    {
        assert_eq!(reported(&program(ty, value, by)), "", "{ty}");
    }
    let refused = reported(&program("Text", "\"\"", "\"a\""));
    assert_eq!(refused.matches("E0323").count(), 2, "{refused}");
    let other = reported(&program("Float", "0.0", "1s"));
    assert!(other.contains("E0301"), "{other}");
}
