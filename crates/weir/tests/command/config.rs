//! Configuration and secrets, from everywhere that they may come from.

use std::io::Write;

use crate::support::{Said, Scratch, Served, read_answer, said, weir};

const PROGRAM: &[u8] = br#"use crypto, hex, http

/// Name in the greeting.
config name: Text = "world"
config times: Int
secret key: Text

service greeter on http(port: 8080) {
  get "/" {
    http.text("{name} {times} {hex.encode(crypto.hmac_sha256("".to_bytes(), key: key))}")
  }
}

test "a test has the default and a known secret" {
  expect name == "world" && name.length() == 5
  expect crypto.hmac_sha256("".to_bytes(), key: key).length() == 32
}
"#;

/// Runs a program with these variables, which does not start.
fn refused(program: &Scratch, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = weir(&[&["run", program.path(), "--port", "0"], arguments].concat());
    command.envs(variables.iter().copied());
    let Said { code, messages, .. } = said(command);
    assert_eq!(code, 3, "{messages}");
    messages
}

/// Returns the answer of a program with these variables.
fn answer(program: &Scratch, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = weir(&[&["run", program.path(), "--port", "0"], arguments].concat());
    command.envs(variables.iter().copied());
    let served = Served::spawn(command);
    let answer = served.get("/");
    assert_eq!(served.stop().0, Some(0));
    String::from_utf8(answer.body).expect("a text")
}

/// The HMAC of nothing with the key `hunter2`: `printf '' | openssl dgst -sha256 -hmac hunter2`.
const HMAC: &str = "a9ee5d331179aed5d1fba6cd59acb1461a65410fa9cb709781d1d9b2a32fd5c1";

#[test]
fn values_come_from_the_nearest_place() {
    let program = Scratch::new("config.weir", PROGRAM);
    let file = Scratch::new("config.toml", b"name = \"file\"\ntimes = 1\nkey = \"hunter2\"\n");
    let secret = Scratch::new("key", b"hunter2\n");
    let from_file = ["--config", file.path()];
    assert_eq!(answer(&program, &from_file, &[]), format!("file 1 {HMAC}"));
    assert_eq!(answer(&program, &from_file, &[("WEIR_TIMES", "2")]), format!("file 2 {HMAC}"));
    let set = ["--config", file.path(), "--set", "times=3", "--set", "name=a=b"];
    assert_eq!(answer(&program, &set, &[("WEIR_TIMES", "2")]), format!("a=b 3 {HMAC}"));
    let variables = [("WEIR_TIMES", "-4"), ("WEIR_KEY_FILE", secret.path())];
    assert_eq!(answer(&program, &[], &variables), format!("world -4 {HMAC}"));
}

#[test]
fn everything_that_is_missing_or_wrong_is_said_at_once_and_secrets_are_not_shown() {
    let program = Scratch::new("config.weir", PROGRAM);
    let said = refused(&program, &[], &[]);
    assert!(said.contains("`config times: Int` is not set: set the environment variable `WEIR_TIMES`"), "{said}");
    assert!(said.contains("`secret key` is not set: set the environment variable `WEIR_KEY`"), "{said}");
    let said = refused(&program, &["--set", "tmies=1", "--set", "key=hunter2"], &[("WEIR_TIMES", "often")]);
    assert!(said.contains("the program has no `config tmies`; it has `name`, `times`, `key`"), "{said}");
    assert!(said.contains("the secret `key` must not be set with `--set`"), "{said}");
    assert!(
        said.contains("`times` in the environment variable `WEIR_TIMES`: expected a whole number, found \"often\""),
        "{said}"
    );
    assert!(!said.contains("hunter2"), "{said}");
    let said = refused(&program, &["--config", "nowhere.toml"], &[("WEIR_TIMES", "1"), ("WEIR_KEY", "x")]);
    assert!(said.contains("the file `nowhere.toml` of `--config` cannot be read"), "{said}");
    let wrong = Scratch::new("wrong.toml", b"name = [1]\nother = 1\n");
    let said = refused(&program, &["--config", wrong.path()], &[("WEIR_TIMES", "1"), ("WEIR_KEY", "")]);
    for part in
        ["`name` in `", "no `config other`", "`key` in the environment variable `WEIR_KEY`: a secret is not empty"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn secrets_are_known_to_tests_only() {
    let program = Scratch::new("config.weir", PROGRAM);
    let tested = said(weir(&["test", program.path(), "--set", "times=1"]));
    assert!(tested.code == 0 && tested.output.contains("1 passed"), "{}{}", tested.output, tested.messages);
    let tested = said(weir(&["test", program.path()]));
    assert!(tested.code == 3 && tested.messages.contains("`config times: Int` is not set"), "{}", tested.messages);
}

#[test]
fn a_configured_value_may_be_an_argument_of_a_source() {
    let text = b"use http\nconfig port: Int = 1\nconfig longest: Size = 1kb\nservice s on http(port: port, body_bytes_max: longest) {\n  \
        post \"/\" (body text: Text) { http.text(\"{text.length()}\") }\n}\n";
    let program = Scratch::new("port.weir", text);
    let served = Served::spawn(weir(&["run", program.path(), "--set", "port=0", "--set", "longest=4b"]));
    assert_eq!([post(&served, "four"), post(&served, "five!")], [200, 413]);
    assert_eq!(served.stop().0, Some(0));
}

/// Sends a body, and returns the status of the answer.
fn post(served: &Served, body: &str) -> u16 {
    let mut stream = served.connect();
    let request =
        format!("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).expect("the program listens");
    read_answer(stream).status
}

#[test]
fn the_file_of_the_configuration_is_no_file_of_the_program() {
    let text = b"use http\nconfig greeting: Text\nservice s on http(port: 1) {\n  \
        get \"/{path..}\" (path: Text) { http.file(path) else { http.not_found() } }\n}\n";
    let program = Scratch::new("files.weir", text);
    let file = Scratch::new("prod.toml", b"greeting = \"hello\"\n");
    let other = Scratch::new("other.toml", b"other");
    let name_of = |file: &Scratch| file.path().rsplit('/').next().expect("a path has a name").to_owned();
    let root = file.path().strip_suffix(&name_of(&file)).expect("the name is its end");
    let arguments = ["run", program.path(), "--port", "0", "--root", root, "--config", file.path()];
    let served = Served::spawn(weir(&arguments));
    let status = |file: &Scratch| served.get(&format!("/{}", name_of(file))).status;
    assert_eq!([status(&file), status(&other)], [404, 200]);
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn the_documentation_lists_the_configuration() {
    let program = Scratch::new("config.weir", PROGRAM);
    let page = said(weir(&["doc", program.path()])).output;
    for part in ["Configuration", "config name: <span", "Name in the greeting.", "secret key: <span"] {
        assert!(page.contains(part), "{part}");
    }
}
