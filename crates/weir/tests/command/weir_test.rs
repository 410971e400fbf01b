//! `weir test` on tests that take long, or make values of great depth.

use crate::support::{Scratch, Served, say};

#[test]
fn a_test_that_does_not_end_fails_at_its_time_limit() {
    let endless = "use time\n\ntest \"waiting\" { time.sleep(9m) }\n\ntest \"endless\" {\n  let n = loop n = 0 { if n > 9 { 0 } else { n + 1 } } until n < 0 at most 1_000_000_000\n  \
                   expect n == 0\n}\n\ntest \"short\" { expect 1 + 1 == 2 }\n";
    let program = Scratch::new("endless.weir", endless.as_bytes());
    let said = say(&["test", program.path(), "--time-limit", "1s"]);
    assert_eq!((said.code, said.messages.as_str()), (1, ""), "{}", said.output);
    assert!(said.output.contains("the test takes longer than its limit of 1s"), "{}", said.output);
    assert!(said.output.contains("1 passed, 2 failed"), "{}", said.output);
    let refused = say(&["test", program.path(), "--time-limit", "0"]);
    assert!(refused.code == 2 && refused.messages.contains("a whole number of seconds"), "{}", refused.messages);
}

#[test]
fn a_failed_test_names_the_line_of_what_failed_and_shows_where_values_differ() {
    let tests = "use text\n\nfn number(word: Text) -> Result(Int) { Ok(text.parse_int(word)?) }\n\n\
                 test \"call\" {\n  let one = number(\"1\")?\n  let two = number(\"two\")?\n  expect one == two\n}\n\n\
                 test \"values\" {\n  let texts = for n in [1, 2, 3, 4, 5, 6, 7, 8, 9] { \"a rather long text {n}\" }\n  \
                 expect texts.length() == 9\n  expect texts == []\n}\n";
    let program = Scratch::new("places.weir", tests.as_bytes());
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 1, "{}", said.messages);
    assert!(said.output.contains(&format!("at {}:7:13", program.path())), "{}", said.output);
    let passed = format!("text.parse_int at {}:3:43, in `number`", program.path());
    assert!(said.output.contains(&passed), "{}", said.output);
    assert!(said.output.contains(&format!("at {}:14:10", program.path())), "{}", said.output);
    assert!(said.output.contains("they differ from character 2 on"), "{}", said.output);
}

#[test]
fn a_failed_test_shows_values_in_lists_and_maps_with_their_names() {
    let tests = r#"record Post { id: Int, title: Text }
enum State { Open, Closed(at: Int) }
record Page { posts: List(Post) }

test "records" { expect [Post { id: 1, title: "a" }] == [] }
test "map" { expect ["x": Post { id: 1, title: "a" }] == [:] }
test "variants" { expect [State.Open, State.Closed(at: 3)] == [] }
test "nested" { expect [["x": [(1, Some(2))]]] == [] }
test "field" { expect Page { posts: [Post { id: 1, title: "a" }] } == Page { posts: [] } }
"#;
    let program = Scratch::new("shown.weir", tests.as_bytes());
    let said = say(&["test", program.path()]);
    let shown: Vec<&str> = said.output.lines().filter_map(|line| line.trim().strip_prefix("left: ")).collect();
    let wanted = [
        r#"[Post { id: 1, title: "a" }]"#,
        r#"["x": Post { id: 1, title: "a" }]"#,
        "[Open, Closed(at: 3)]",
        r#"[["x": [(1, Some(2))]]]"#,
        r#"Page { posts: [Post { id: 1, title: "a" }] }"#,
    ];
    assert_eq!(shown, wanted, "{}", said.output);
    assert!(said.output.contains("right: [:]") && said.output.contains("right: []"), "{}", said.output);
}

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

/// Walking through the value at each of its uses would take minutes.
#[test]
fn values_of_great_depth_are_tested_without_walking_through_them() {
    let text = "use list\n\nenum Chain { End, Link(Chain) }\n\ntest \"deep\" {\n  \
                let chain = fold chain = Chain.End for _ in list.numbers(0, 30_000)? { Chain.Link(chain) }\n  \
                let held = loop held = (chain, 0) { (held.0, held.1 + 1) } until held.1 == 30_000 at most 1_000_000\n  \
                expect held.1 == 30_000\n}\n";
    let program = Scratch::new("deep.weir", text.as_bytes());
    let said = say(&["test", program.path(), "--time-limit", "60"]);
    assert_eq!(said.code, 0, "{}{}", said.output, said.messages);
}

/// A handler of the file answers for services: in a test it would hide what fails.
#[test]
fn handlers_of_the_file_do_not_apply_to_tests() {
    let text = "use http, text\n\non failure of text.parse_int(word) { http.bad_request(word) }\n\n\
                service s on http(port: 1) {\n  get \"/{n}\" (n: Text) { http.text(\"{n.parse_int()?}\") }\n}\n\n\
                fn double(n: Text) -> Int { n.parse_int()? * 2 }\n\ntest \"double\" { expect double(\"x\") == 3 }\n";
    let program = Scratch::new("hidden.weir", text.as_bytes());
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 1, "{}", said.output);
    assert!(said.output.contains("\"x\" is not a whole number"), "{}", said.output);
}

const SERVICE: &str = r#"use client, http, text

record Todo { id: Int, title: Text }

shared todos: List(Todo) = []
shared visits = 0 per session

fn found(id: Int) -> Result(Todo) {
  let all = todos
  let matching = for todo in all { if todo.id == id { Some(todo) } else { None } }
  let found = fold f = None for todo in matching { if todo != None { todo } else { f } }
  Ok(found else { fail("no todo {id}") })
}

on failure of found as failure { http.problem(404, "{failure}")? }

service api on http(port: 8080, body_bytes_max: 100b) {
  session = visitor
  get "/todos/{id}" (id: Int, cookie visitor: Text = "") {
    if id == 99 { return http.text("ninety-nine") }
    http.json(found(id)?)
  }
  post "/todos" (body todo: Todo, cookie visitor: Text = "") {
    todos.push(todo)
    http.json(todo, status: 201)
  }
  get "/visits" (cookie visitor: Text = "") { http.text("{visits.add(1)}") }
  get "/login" (cookie visitor: Text = "") { http.redirect("/") |> http.with_cookie("visitor", "me")? }
  put "/raw" (body raw: Bytes, cookie visitor: Text = "") { http.ok(raw) }
  get "/rate" (cookie visitor: Text = "") { http.text(client.get("https://a.example/")?.text()?) }
  get "/boom" (cookie visitor: Text = "") { http.text("{text.parse_int("x")?}") }
  get "/overflow/{n}" (n: Int, cookie visitor: Text = "") { http.text("{100 / n}") }
  get "/sent" (header user_agent: Text = "", unprefixed_cookie theme: Text = "", cookie visitor: Text = "") {
    http.text("{user_agent} {theme} {visitor}")
  }
}

test "a todo is kept" {
  let kept = api.post("/todos", Todo { id: 7, title: "Rest" })
  expect kept.status() == 201
  let todo = api.get("/todos/7")
  expect todo.status() == 200
  expect todo.text()? == "\{\"id\":7,\"title\":\"Rest\"\}"
  expect todo.header("content-type") == Some("application/json")
  expect api.get("/todos/99").text()? == "ninety-nine"
  expect api.head("/todos/99").header("content-length") == Some("11")
}
test "refusals" {
  expect api.get("/todos/x").status() == 400
  expect api.get("/nothing").status() == 404
  expect api.delete("/todos/7").status() == 405
  expect api.post("/todos", [1]).status() == 400
  expect api.post("/todos", "text").status() == 415
  expect api.post("/todos", Todo { id: 1, title: "x".repeat(200)? }).status() == 413
  expect api.post("/todos", Todo { id: 1, title: "" }, headers: ["sec-fetch-site": "cross-site"]).status() == 403
  let missing = api.get("/todos/5", headers: ["accept": "application/json"])
  expect missing.status() == 404
  expect missing.body().to_text()? == "\{\"title\":\"Not Found\",\"status\":404,\"detail\":\"no todo 5\"\}"
}
test "sessions" {
  let visitor = api.get("/login").cookie("visitor") else { "" }
  expect visitor == "me"
  expect api.get("/visits", cookies: ["visitor": visitor]).text()? == "1"
  expect api.get("/visits", cookies: ["visitor": visitor]).text()? == "2"
  expect api.get("/visits").text()? == "1"
  expect api.put("/raw", "abc".to_bytes()).text()? == "abc"
}
test "replaced" {
  with client.get = |_| Ok(client.response(body: "1.25")) {
    expect api.get("/rate").text()? == "1.25"
  }
}
test "boom" {
  expect api.get("/boom").status() == 500
  expect api.get("/boom").body().to_text()? == "Internal Server Error"
}
test "boom fails" { expect api.get("/boom").status() == 200 }
test "overflow" { expect api.get("/overflow/0").status() == 500 }
test "sent" {
  let sent = api.get("/sent", headers: ["user_agent": " weir\t"], cookies: ["theme": "dark", "visitor": "me"])
  expect sent.text()? == "weir dark me"
  expect sent.header("content-length") == Some("12")
  expect api.get("/sent", headers: ["user-agent": "a", "User-Agent": "b"]).status() == 400
}
test "bad path" { expect api.get("x").status() == 400 }
"#;

/// A test sees all that the server does for a request: parsing, refusals, handlers, sessions and cookies.
#[test]
fn routes_are_tested_without_a_socket() {
    let program = Scratch::new("routes.weir", SERVICE.as_bytes());
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 1, "{}{}", said.output, said.messages);
    for name in ["a todo is kept", "refusals", "sessions", "replaced", "boom", "overflow", "sent"] {
        assert!(said.output.contains(&format!("ok   {name} ")), "{}", said.output);
    }
    assert!(said.output.contains("       failure in api get /boom at "), "{}", said.output);
    assert!(said.output.contains(": \"x\" is not a whole number of 64 bits\n"), "{}", said.output);
    assert!(said.output.contains("\"x\" is not the path of a request"), "{}", said.output);
    assert!(said.output.contains("7 passed, 2 failed"), "{}", said.output);
}

#[test]
fn a_request_of_a_test_has_the_fields_and_limits_of_a_real_one() {
    let text = r#"use http, text

fn number(word: Text) -> Result(Int) { Ok(word.parse_int()? + 1) }

service web on http(port: 8080) {
  get "/host" (header host: Text) { http.text(host) }
  post "/length" (header content_length: Int, body body: Text) { http.text("{content_length} {body}") }
  get "/number/{word}" (word: Text) {
    let n = number(word)?
    http.text("{n}")
  }
}

test "host" { expect web.get("/host").text()? == "web.invalid" }
test "other host" { expect web.get("/host", headers: ["host": "example.org"]).text()? == "example.org" }
test "length" { expect web.post("/length", "abc").text()? == "3 abc" }
test "head" { expect web.get("/host", headers: ["x-long": "a".repeat(40_000)?]).status() == 431 }
test "path" { expect web.get("/host?{"a".repeat(40_000)?}").status() == 431 }
test "failure" { expect web.get("/number/x").status() == 200 }
"#;
    let program = Scratch::new("fields.weir", text.as_bytes());
    let said = say(&["test", program.path()]);
    assert!(said.output.contains("5 passed, 1 failed"), "{}{}", said.output, said.messages);
    let path = program.path();
    let shown = format!(
        "       failure in web get /number/{{word}} at {path}:9:13: \"x\" is not a whole number of 64 bits\n         \
         text.parse_int at {path}:3:43, in `number`\n"
    );
    assert!(said.output.contains(&shown), "{}", said.output);
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

#[test]
fn only_tests_call_services() {
    let text = "use http\n\nservice api on http(port: 1) {\n  get \"/\" {\n    api.get(\"/\")\n    http.text(\"\")\n  }\n}\n\n\
                test \"a\" { expect api.fetch(\"/\") == 1 }\n";
    let program = Scratch::new("outside.weir", text.as_bytes());
    let said = say(&["check", program.path()]);
    assert_eq!(said.code, 1);
    assert!(said.messages.contains("only a test can call a service of the program"), "{}", said.messages);
    assert!(said.messages.contains("a service has no function `fetch`"), "{}", said.messages);
}

/// The output of a test belongs to its failure; a test that passes is silent.
#[test]
fn what_a_failing_test_prints_is_shown() {
    let text = "use stdio\n\ntest \"fails\" {\n  stdio.print(\"one\")?\n  stdio.print_error(\"two\")?\n  expect 1 == 2\n}\n\n\
                test \"passes\" { stdio.print(\"three\")? }\n";
    let program = Scratch::new("prints.weir", text.as_bytes());
    let said = say(&["test", program.path()]);
    assert!(said.output.contains("       printed:\n         one\n         two\n"), "{}", said.output);
    assert!(!said.output.contains("three") && said.messages.is_empty(), "{}{}", said.output, said.messages);
}

/// Nothing compares the bytes of secrets: two that are made of the same bytes differ in lists, as keys and in records.
#[test]
fn equal_secrets_are_not_equal_for_a_program() {
    let text = "use crypto\n\nrecord Held { key: crypto.Secret, number: Int }\n\ntest \"apart\" {\n  \
                let one = crypto.secret(\"the same key for both of them\".to_bytes())?\n  \
                let two = crypto.secret(\"the same key for both of them\".to_bytes())?\n  \
                expect ![one].contains(two)\n  expect [one: 1, two: 2].length() == 2\n  expect [one: 1][two] == None\n  \
                expect Held { key: one, number: 1 } != Held { key: two, number: 1 }\n}\n";
    let program = Scratch::new("apart.weir", text.as_bytes());
    let said = say(&["test", program.path()]);
    assert!(said.output.contains("1 passed"), "{}{}", said.output, said.messages);
    let compared = Scratch::new("compared.weir", text.replace("![one].contains(two)", "one != two").as_bytes());
    let said = say(&["check", compared.path()]);
    assert!(said.messages.contains("values of the type `crypto.Secret` cannot be compared"), "{}", said.messages);
}

const TIME_LIMITS: &str = r#"use http, time

shared seen: List(Text) = []

fn waited(word: Text, pause: Duration) -> Text {
  time.sleep(pause)
  seen.push(word)
  word
}

fn news(pause: Duration) -> Int {
  loop found = 0 {
    time.sleep(pause)
    seen.read().length()
  } until found > 0 at most 1_000_000
}

fn moved(word: Text) -> Result(Text) {
  time.sleep(9m)
  fail("{word} comes late")
}

service polls on http(port: 8080) {
  get "/" (wait: Duration) { http.text("{news(1ms) within wait else { -1 }}") }
}

test "a body that waits for too long is given up" {
  expect (waited("late", 9m) within 20ms else { "given up" }) == "given up"
  expect (waited("in time", 1ms) within 9m else { "given up" }) == "in time"
  expect seen.read() == ["in time"]
}

test "a loop is given up" {
  expect polls.get("/?wait=20ms").text()? == "-1"
  seen.push("news")
  expect polls.get("/?wait=9m").text()? == "1"
}

test "of nested limits the first one expires" {
  let inner = { waited("inner", 9m) within 10ms else { "inner" } } within 9m else { "outer" }
  let outer = { waited("outer", 9m) within 9m else { "inner" } } within 10ms else { "outer" }
  expect (inner, outer) == ("inner", "outer")
  expect seen.read().is_empty()
}

test "a step is completed, and nothing behind it begins" {
  let late = {
    atomic seen {
      time.sleep(40ms)
      seen.push("step")
    }
    seen.push("behind")
    1
  } within 10ms else { 2 }
  expect late == 2 && seen.read() == ["step"]
}

test "a negative limit expires at the first wait" {
  expect ({ seen.push("before") ; waited("behind", 9m) } within -1s else { "given up" }) == "given up"
  expect (1 + 1 within -1s else { 0 }) == 2
  expect seen.read() == ["before"]
}

test "a call that is given up leaves its arguments" {
  let words = ["a", "b"]
  let said = for word in words { moved(word) within 10ms else as failure { "{failure}" } }
  expect said == ["the time is up", "the time is up"]
  expect words == ["a", "b"]
  let tried = retry(3, backoff: 9m) { moved("c")? } within 10ms else as failure { "{failure}" }
  expect tried == "the time is up"
}
"#;

/// A limit expires where a call waits, and behind an atomic step in which one has waited.
#[test]
fn time_limits_expire_in_tests() {
    let program = Scratch::new("limits.weir", TIME_LIMITS.as_bytes());
    let said = say(&["test", program.path()]);
    assert!(said.output.contains("6 passed in"), "{}{}", said.output, said.messages);
}

const RACES: &str = r#"use http, time

shared seen: List(Text) = []

fn waited(word: Text, pause: Duration) -> Text {
  seen.push("begun {word}")
  time.sleep(pause)
  seen.push(word)
  word
}

fn news() -> Text {
  loop found = "" {
    time.sleep(1ms)
    if seen.read().contains("news") { "news" } else { "" }
  } until found != "" at most 1_000_000
}

fn primary() -> Text { waited("primary", 1ms) }

fn hedged() -> Text {
  race {
    primary()
    {
      time.sleep(30ms)
      "backup"
    }
  }
}

service polls on http(port: 8080) {
  get "/" (wait: Duration) {
    let found = race {
      news()
      {
        time.sleep(wait)
        "nothing"
      }
    }
    http.text(found)
  }
}

test "the body that waits for less wins, and nothing behind the wait of the other happens" {
  expect race { waited("a", 9m), waited("b", 1ms) } == "b"
  expect seen.read().contains("b") && !seen.read().contains("a")
  expect race { waited("c", 1ms), waited("d", 9m) } == "c"
  expect seen.read().contains("c") && !seen.read().contains("d")
  expect race { waited("e", 9m), waited("f", 9m), waited("g", 1ms) } == "g"
  expect race { waited("h", 9m), waited("i", 1ms), waited("j", 9m) } == "i"
  expect race { waited("k", 1ms), waited("l", 9m), waited("m", 9m) } == "k"
}

test "bodies use the same values while one waits with them" {
  // A literal would be no variable.
  let pause = 2ms + 1ms * seen.read().length()
  let first = race { { time.sleep(pause); "x" }, { time.sleep(pause); "y" } }
  expect (first == "x" || first == "y") && pause == 2ms
}

test "a body that does not wait wins" {
  expect race { "a", waited("b", 1ms) } == "a"
  expect race { waited("c", 9m), "d" } == "d"
  expect race { "e", "f" } == "e"
  expect seen.read() == ["begun c"]
}

test "a loop that waits for news is given up in time" {
  expect polls.get("/?wait=20ms").text()? == "nothing"
  seen.push("news")
  expect polls.get("/?wait=9m").text()? == "news"
}

test "a replacement chooses the winner" {
  expect hedged() == "primary"
  with primary = || "at once" { expect hedged() == "at once" }
  with primary = || waited("late", 9m) { expect hedged() == "backup" }
}

test "a return in a body ends the fn, and a step is completed" {
  let first = || race { { time.sleep(1ms); Ok("done") }, { time.sleep(9m); Err(Failure("late")) } }
  expect first() == Ok("done")
  let stepped = race {
    {
      atomic seen {
        time.sleep(5ms)
        seen.push("step")
      }
      seen.push("behind")
      time.sleep(9m)
      1
    }
    {
      time.sleep(1ms)
      2
    }
  }
  expect stepped == 2 && seen.read().first() == Some("step")
}

test "limits around and in a race" {
  expect (race { waited("a", 9m), waited("b", 9m) } within 10ms else { "given up" }) == "given up"
  let inner = race { waited("c", 9m) within 5ms else { "inner" }, waited("d", 9m) }
  let outer = race { waited("e", 9m), waited("f", 9m) within 5ms else { "outer" } }
  expect (inner, outer) == ("inner", "outer")
  expect (race { race { waited("g", 9m), waited("h", 9m) }, waited("i", 1ms) }) == "i"
  expect (race { waited("j", 9m), race { waited("k", 9m), waited("l", 1ms) } }) == "l"
}
"#;

/// The waits of the bodies decide, and a body that has lost does nothing behind its wait.
#[test]
fn each_body_of_a_race_can_win_in_tests() {
    let program = Scratch::new("races.weir", RACES.as_bytes());
    let said = say(&["test", program.path(), "--time-limit", "20"]);
    assert!(said.output.contains("7 passed in"), "{}{}", said.output, said.messages);
}
