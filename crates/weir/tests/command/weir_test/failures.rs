//! `weir test` on failures: their places, and the calls around them.

use crate::support::{Scratch, Served, say};

const NESTED: &str = r#"use http

fn inner(n: Int) -> Int {
  100 / n
}

fn outer(n: Int) -> Int {
  let once = inner(n)
  once + 1
}

shared first = outer(1)

service web on http(port: 8080) {
  get "/{n}" (n: Int) { http.text("{outer(n) + first}") }
}

test "nested" {
  expect outer(0) == 2
}
"#;

#[test]
fn a_failure_of_arithmetic_shows_the_calls_around_it() {
    let program = Scratch::new("nested.weir", NESTED.as_bytes());
    let path = program.path();
    let said = say(&["test", path]);
    assert_eq!(said.code, 1, "{}", said.messages);
    let wanted = format!(
        "       at {path}:19:10\n       100 divided by zero\n         failed at {path}:4:3, in `inner`\n         \
         inner at {path}:8:14, in `outer`\n"
    );
    assert!(said.output.contains(&wanted), "{}", said.output);

    let served = Served::start(path, &[]);
    assert_eq!(served.get("/0").status, 500);
    let (_, log) = served.stop();
    let wanted = format!(
        "failure in get /{{n}} at {path}:15:37, outer (arithmetic): 100 divided by zero\n    \
         failed at {path}:4:3, in `inner`\n    inner at {path}:8:14, in `outer`\n"
    );
    assert!(log.contains(&wanted), "{log}");
}

/// The dividend comes from an arm of a value that a call has given; the place is nevertheless the division's.
#[test]
fn a_failure_of_arithmetic_behind_a_call_is_at_its_own_place() {
    let text = r#"use http

record Row {
  id: Int
  n: Int
}

table rows: Row key id soft

service web on http(port: 8080) {
  get "/put" { http.text("{rows.upsert(Row { id: 0, n: 4 })?}") }

  get "/{n}" (n: Int) {
    http.text(match rows[n % 3] {
      Some(row) => "{row.n / n}"
      None => "none"
    })
  }
}
"#;
    let program = Scratch::new("behind.weir", text.as_bytes());
    let served = Served::start(program.path(), &[]);
    assert_eq!((served.get("/put").status, served.get("/0").status), (200, 500));
    let (_, log) = served.stop();
    let wanted = format!("failure in get /{{n}} at {}:15:22 (arithmetic): 4 divided by zero\n", program.path());
    assert!(log.contains(&wanted), "{log}");
}

/// The test goes on after a route whose flow has failed, and its report shows the calls around the operation.
#[test]
fn a_failure_of_arithmetic_in_a_route_is_an_answer() {
    let tests = "test \"answered\" {\n  expect web.get(\"/0\").status() == 500\n  \
                 expect web.get(\"/1\").text()? == \"202\"\n}\n\n\
                 test \"expected otherwise\" { expect web.get(\"/0\").status() == 200 }\n";
    let program = Scratch::new("answered.weir", (NESTED.to_owned() + tests).as_bytes());
    let path = program.path();
    let said = say(&["test", path]);
    assert!(said.output.contains("1 passed, 2 failed"), "{}{}", said.output, said.messages);
    let wanted = format!(
        "       failure in web get /{{n}} at {path}:15:37: 100 divided by zero\n         \
         failed at {path}:4:3, in `inner`\n         inner at {path}:8:14, in `outer`\n"
    );
    assert!(said.output.contains(&wanted), "{}", said.output);
}

#[test]
fn a_failure_of_an_initial_value_has_a_place() {
    let program = Scratch::new("initial.weir", NESTED.replace("outer(1)", "outer(0)").as_bytes());
    let path = program.path();
    let calls = format!("\n    failed at {path}:4:3, in `inner`\n    inner at {path}:8:14, in `outer`\n");
    let tested = say(&["test", path]);
    assert_eq!(tested.messages, format!("error: {path}:12:16: 100 divided by zero{calls}"));
    let run = say(&["run", path]);
    let wanted =
        format!("error: {path}:12:16, outer: the shared value `first` cannot be created: 100 divided by zero{calls}");
    assert_eq!(run.messages, wanted);
}

#[test]
fn an_initial_value_that_cannot_be_created_shows_the_way_of_its_failure() {
    let text = "use stdio, text\n\nfn inner(word: Text) -> Result(Int) { Ok(text.parse_int(word)?) }\n\n\
                fn outer(word: Text) -> Result(Int) { Ok(inner(word)? + 1) }\n\nshared first = outer(\"x\")?\n\n\
                for line in stdio.lines() { stdio.print(\"{first}{line}\")? }\n";
    let program = Scratch::new("initial.weir", text.as_bytes());
    let (said, path) = (say(&["run", program.path()]), program.path());
    let way = format!("text.parse_int at {path}:3:42, in `inner`\n    inner at {path}:5:42, in `outer`");
    assert!(said.messages.contains(&way), "{}", said.messages);
}
