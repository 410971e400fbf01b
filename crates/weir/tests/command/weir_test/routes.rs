//! `weir test` on the routes of services, which tests call without a socket.

use crate::support::{Scratch, say};

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
  delete "/todos/99" (cookie visitor: Text = "") { http.text("gone") }
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
  expect api.delete("/todos/99").text()? == "gone"
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
fn only_tests_call_services() {
    let text = "use http\n\nservice api on http(port: 1) {\n  get \"/\" {\n    api.get(\"/\")\n    http.text(\"\")\n  }\n}\n\n\
                test \"a\" { expect api.fetch(\"/\") == 1 }\n";
    let program = Scratch::new("outside.weir", text.as_bytes());
    let said = say(&["check", program.path()]);
    assert_eq!(said.code, 1);
    assert!(said.messages.contains("only a test can call a service of the program"), "{}", said.messages);
    assert!(said.messages.contains("a service has no function `fetch`"), "{}", said.messages);
}
