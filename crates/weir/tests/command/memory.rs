//! Requests that need more and more memory, in a real process under every engine: each fails alone.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::support::{Answer, PATIENCE, Scratch, Served, SetOnDrop, read_answer, resident_max, say};

/// The engines by which the limits are tested; `dedicated` and `thread-per-flow` run flows by the same code.
const ENGINES: [&str; 5] = ["event", "pool", "staged", "elastic", "manual"];

const PROGRAM: &str = r#"use http, json, list, map, text

shared pile = [""]
shared grown = [0: ""]

service bombs on http(port: 80, body_bytes_max: 1gb) {
  get "/small" { http.text("small") }
  get "/texts-joined" { http.text(fold s = "0123456789abcdef" for _i in list.numbers(0, 40)? { s + s }) }
  get "/lists-of-numbers-joined" {
    let all = fold xs = [1, 2, 3, 4] for _i in list.numbers(0, 40)? { xs + xs }
    http.text("{list.contains(all, 7)}")
  }
  get "/lists-of-texts-joined" {
    let all = fold xs = ["a", "b"] for _i in list.numbers(0, 40)? { xs + xs }
    http.text("{list.contains(all, "c")}")
  }
  get "/lists-concatenated" {
    let all = fold xs = ["a", "b"] for _i in list.numbers(0, 40)? { list.concat([xs, xs])? }
    http.text("{list.contains(all, "c")}")
  }
  get "/list-literals" {
    let all = fold xs = [[[1, 2, 3]]] for _i in list.numbers(0, 26)? { [list.concat([list.concat(xs)?, list.concat(xs)?])?] }
    http.text("{list.contains(all, [])}")
  }
  get "/ranges" {
    let all = for i in list.numbers(0, 1_000)? { list.numbers(i, 1_000_000)? }
    http.text("{list.contains(all, [])}")
  }
  get "/nested-fors" {
    let numbers = list.numbers(0, 100_000)?
    let all = for i in numbers { for j in numbers { for k in numbers { i + j + k } } }
    http.text("{list.contains(all, [])}")
  }
  get "/maps-in-a-for" {
    let numbers = list.numbers(0, 1_000_000)?
    let all = for i in numbers { fold m = [0: "a"] for j in numbers { map.with(m, j, text.repeat("{i} and {j} ", 200)?) } }
    http.text("{list.contains(all, [0: "a"])}")
  }
  get "/independent-folds" {
    let numbers = list.numbers(0, 300)?
    let few = list.numbers(0, 60)?
    let first = fold n = 0 for i in numbers { fold m = n for j in numbers { (m + i * j) % 1_000 } }
    let second = fold s = "ab" for _i in few { "{s}-{s}" }
    http.text("{first} {second}")
  }
  get "/interpolations" { http.text(fold s = "ab" for _i in list.numbers(0, 60)? { "{s}-{s}" }) }
  get "/shown-values" {
    let nested = fold l = [[[1]]] for _i in list.numbers(0, 25)? { [list.concat([l[0], l[0]])?] }
    http.text("{nested}{nested}{nested}{nested}{nested}{nested}")
  }
  get "/repeated-texts" {
    let all = for _i in list.numbers(0, 1_000)? { text.repeat("abc", 10_000_000)? }
    http.text("{list.contains(all, "")}")
  }
  get "/split-texts" {
    let long = text.repeat("a,", 10_000_000)?
    http.text("{list.contains(text.split(long, ","), "b")}")
  }
  get "/json" {
    let items = list.numbers(0, 1_000_000)?
    http.text(json.encode([items, items, items, items, items, items, items, items, items, items, items]))
  }
  get "/pushes" {
    let last = loop i = 0 { pile.push("a text of some length, number {i}", keep: 1_000_000_000); i + 1 } until i < 0 at most 1_000_000_000
    http.text("{last}")
  }
  get "/puts" {
    let last = loop i = 0 { grown.put(i, "a text of some length, number {i}", keep: 1_000_000_000); i + 1 } until i < 0 at most 1_000_000_000
    http.text("{last}")
  }
  post "/lists" (body all: List(List(Int))) { http.text("{list.contains(all, [7])}") }
  post "/bytes" (body all: Bytes) { http.text("{all == all}") }
}
"#;

/// A program each of whose routes has one operation that takes all memory, behind others of the same region.
const PLACES: &str = r#"use http, list, map, text, time

service places on http(port: 80) {
  get "/call" {
    let third = list.sort(list.numbers(0, 30)?)[3]
    let numbers = list.numbers(0, 100_000)?
    let all = for i in numbers { fold m = [0: 0] for j in numbers { map.with(m, i + j, j) } }
    http.text("{third} {list.contains(all, [0: 0])}")
  }
  get "/rounds" {
    let third = list.sort(list.numbers(0, 30)?)[3]
    let numbers = list.numbers(0, 10_000)?
    let all = for i in numbers { for j in numbers { for k in numbers { i + j + k } } }
    http.text("{third} {list.contains(all, [])}")
  }
  get "/loop" {
    let third = list.sort(list.numbers(0, 30)?)[3]
    let all = loop all = [third] { all + [all.length()] } until all.length() < 0 at most 1_000_000_000
    http.text("{list.contains(all, 8)}")
  }
  get "/joined" {
    let third = list.sort(list.numbers(0, 30)?)[3]
    let long = fold s = "0123456789abcdef" for _i in list.numbers(0, 40)? { s + s }
    http.text("{third} {long}")
  }
  get "/limited" {
    let third = list.sort(list.numbers(0, 30)?)[3]
    let numbers = list.numbers(0, 10_000)?
    let all = { for i in numbers { for j in numbers { for k in numbers { i + j + k } } } } within 100s else { [] }
    http.text("{third} {list.contains(all, [])}")
  }
  get "/waits" {
    let third = list.sort(list.numbers(0, 30)?)[3]
    let numbers = list.numbers(0, 10_000)?
    let all = for i in list.numbers(0, 3)? {
      time.sleep(1ms)
      for j in numbers { for k in numbers { for l in numbers { i + j + k + l } } }
    }
    http.text("{third} {list.contains(all, [])}")
  }
}
"#;

/// The operations of [`PLACES`] that take all memory, by their routes. A call is noticed behind it or at the end of the round.
const FAULTS: [(&str, [&str; 2]); 6] = [
    ("/call", ["map.with(", "fold m"]),
    ("/rounds", ["for k in"; 2]),
    ("/loop", ["loop all", "all + [all"]),
    ("/joined", ["s + s"; 2]),
    ("/limited", ["for k in"; 2]),
    ("/waits", ["for l in"; 2]),
];

/// Returns the text of a program from the place of a failure on, which a log names.
fn text_at<'p>(program: &'p str, path: &str, line: &str) -> &'p str {
    let (_, place) = line.split_once(&format!(" at {path}:")).expect("the place");
    let mut numbers = place.split([':', ',', ' ']).map(|number| number.parse::<usize>().expect("a number"));
    let (line, column) = (numbers.next().expect("a line"), numbers.next().expect("a column"));
    &program.lines().nth(line - 1).expect("the line")[column - 1..]
}

#[test]
fn a_failure_by_the_limit_of_a_flow_names_the_operation_that_took_the_memory() {
    let program = Scratch::new("places.weir", PLACES.as_bytes());
    for engine in ENGINES {
        let served = Served::start(program.path(), &["--engine", engine, "--threads", "2", "--memory", "64mb"]);
        let statuses = FAULTS.map(|(route, _)| served.get(route).status);
        assert_eq!(statuses, [500; 6], "{engine}");
        let (_, log) = served.stop();
        for (route, operations) in FAULTS {
            let line = log.lines().find(|line| line.contains(&format!("get {route} at"))).expect("the failure");
            let text = text_at(PLACES, program.path(), line);
            assert!(operations.iter().any(|operation| text.starts_with(operation)), "{engine}: {line}");
        }
    }
}

/// A program whose steps allocate between two changes of shared values.
const STEPS: &str = r#"use http, list, text

shared before = 0
shared after = 0

service steps on http(port: 80) {
  get "/" (pieces: Int) {
    let held = for _i in list.numbers(0, pieces)? { text.repeat("0123456789abcdef", 4 * 1024)? }
    atomic before, after {
      before.set(before + 1)
      let more = text.repeat("0123456789abcdef", 16 * 1024)?
      after.set(after + more.length() / (256 * 1024))
    }
    http.text("{held.length()}")
  }
  get "/counts" { http.text("{before} {after}") }
}
"#;

/// The paths of [`PROGRAM`] that take as much memory as they get.
fn bombs() -> Vec<&'static str> {
    let paths = PROGRAM.lines().filter_map(|line| line.trim_start().strip_prefix("get \"")?.split('"').next());
    paths.filter(|path| *path != "/small").collect()
}

const MEGABYTE: u64 = 1 << 20;
/// The memory of the program.
const MEMORY: u64 = 128 * MEGABYTE;

fn start(engine: &str, more: &[&str]) -> (Scratch, Served) {
    let program = Scratch::new("bombs.weir", PROGRAM.as_bytes());
    let arguments = [&["--engine", engine, "--threads", "2", "--memory", "128mb"], more].concat();
    let served = Served::start(program.path(), &arguments);
    (program, served)
}

/// Asks for `/small` on a connection, which stays open, and returns the answer.
fn ask_small(connection: &mut TcpStream) -> String {
    connection.write_all(b"GET /small HTTP/1.1\r\nHost: a\r\n\r\n").expect("the connection is open");
    let (mut answer, mut part) = (Vec::new(), [0; 1024]);
    let is_whole = |answer: &[u8]| answer.ends_with(b"\r\n\r\nsmall") || answer.starts_with(b"HTTP/1.1 503");
    while !is_whole(&answer) {
        match connection.read(&mut part).expect("the connection is open") {
            0 => break,
            read => answer.extend_from_slice(&part[..read]),
        }
    }
    String::from_utf8(answer).expect("the answer is a text")
}

#[test]
fn a_request_that_takes_all_memory_fails_alone_under_every_engine() {
    for engine in ENGINES {
        let (_program, served) = start(engine, &[]);
        let done = AtomicBool::new(false);
        let statuses = std::thread::scope(|scope| {
            let client = || {
                let mut connection = served.connect();
                while !done.load(Ordering::Relaxed) {
                    let answer = ask_small(&mut connection);
                    // Other tests use the processors too, so that the program may be overloaded.
                    let is_right = answer.starts_with("HTTP/1.1 200") || answer.starts_with("HTTP/1.1 503");
                    assert!(is_right, "{engine}: {answer}");
                }
            };
            (0..64).for_each(|_| _ = scope.spawn(client));
            let ended = |path| {
                let began = Instant::now();
                let mut statuses = std::iter::repeat_with(|| served.get(path).status);
                statuses.find(|status| *status != 503 || began.elapsed() > PATIENCE)
            };
            // The clients end also if an answer does not come.
            let _done = SetOnDrop(&done);
            bombs().into_iter().map(|path| (path, ended(path))).collect::<Vec<_>>()
        });
        let resident = resident_max(&served);
        let (code, log) = served.stop();
        assert_eq!(code, Some(0), "{engine}: {log}");
        assert!(!log.contains("the memory of the program is full"), "{engine}: {log}");
        for (path, status) in statuses {
            assert_eq!(status, Some(500), "{engine} {path}: {log}");
        }
        assert!(resident <= MEMORY / 10 * 12, "{engine}: {} MiB", resident / MEGABYTE);
        assert!(log.contains("(memory): the flow needs more than 32.0 MiB of memory (`memory_per_flow`)"), "{log}");
    }
}

#[test]
fn requests_that_take_all_memory_together_leave_room_for_others() {
    let plan = Scratch::new("bombs.plan.toml", b"memory_per_flow = \"1gb\"\n");
    for engine in ENGINES {
        let (_program, served) = start(engine, &["--plan", plan.path()]);
        let paths = ["/nested-fors", "/maps-in-a-for", "/lists-of-texts-joined", "/ranges"];
        let bombs: Vec<_> = paths.iter().map(|path| served.ask(path)).collect();
        for _ in 0..10 {
            assert_eq!(served.get("/small").status, 200, "{engine}");
        }
        for bomb in bombs {
            assert_eq!(read_answer(bomb).status, 500, "{engine}");
        }
        let resident = resident_max(&served);
        assert!(resident <= MEMORY / 10 * 12, "{engine}: {} MiB", resident / MEGABYTE);
        let (_, log) = served.stop();
        assert!(log.contains("(memory): the program holds"), "{engine}: {log}");
    }
}

fn post(served: &Served, path: &str, length: usize, body: &[u8]) -> Answer {
    let mut stream = served.connect();
    let address = &served.address;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\
         Content-Type: application/json\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("the head is sent");
    // A body that is refused is not read to its end.
    let _ = stream.write_all(body);
    read_answer(stream)
}

#[test]
fn a_body_that_takes_more_memory_than_a_flow_has_is_too_large() {
    let (_program, mut served) = start("event", &[]);
    let empty = "[],".repeat(1_000_000);
    let lists = format!("[{empty}[]]");
    let nested = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    assert_eq!(post(&served, "/lists", 2, b"[]").status, 200);
    assert_eq!(post(&served, "/lists", lists.len(), lists.as_bytes()).status, 413);
    assert_eq!(post(&served, "/lists", nested.len(), nested.as_bytes()).status, 400);
    assert_eq!(served.get("/small").status, 200);
    // It was released.
    assert_eq!(post(&served, "/lists", lists.len(), lists.as_bytes()).status, 413);
    assert!(resident_max(&served) <= MEMORY / 10 * 12);
    // Whoever runs the service sees the limit that a client has met.
    served.wait_for("(`memory_per_flow`)");
}

/// A service that keeps the bodies of its requests.
const KEEPS: &str = "use http\n\nshared kept: List(Bytes) = []\n\n\
                     service keeps on http(port: 80, body_bytes_max: 50mb) {\n  \
                     post \"/\" (body sent: Bytes) {\n    kept.push(sent)\n    http.text(\"{kept.length()}\")\n  }\n}\n";

#[test]
fn a_body_for_which_the_program_has_no_memory_left_is_refused_for_now() {
    let program = Scratch::new("keeps.weir", KEEPS.as_bytes());
    let served = Served::start(program.path(), &["--memory", "100mb"]);
    let body = vec![b'x'; 9 << 20];
    let answers = std::iter::repeat_with(|| post(&served, "/", body.len(), &body));
    let refused = answers.take(20).find(|answer| answer.status != 200).expect("the memory is full");
    assert_eq!(refused.status, 503);
    let (_, log) = served.stop();
    assert!(log.contains("there is no memory for a body of 9437184 bytes: the program holds"), "{log}");
    assert!(!log.contains("memory_per_flow"), "{log}");
}

#[test]
fn bodies_for_which_there_is_no_memory_are_refused_before_they_are_read() {
    let (_program, served) = start("event", &[]);
    // More than the program has, and more than the route takes.
    let statuses = [1 << 29, 2 << 30].map(|length| post(&served, "/bytes", length, b"").status);
    assert_eq!(statuses, [503, 413]);
    // Bodies that were announced take the room of another one.
    let announced: Vec<_> = (0..3)
        .map(|_| {
            let mut stream = served.connect();
            let head =
                format!("POST /bytes HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n", served.address, 30 << 20);
            stream.write_all(head.as_bytes()).expect("the head is sent");
            stream
        })
        .collect();
    assert_eq!(served.get("/small").status, 200);
    let mut refused = served.connect();
    let head = format!("POST /bytes HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n", served.address, 1 << 28);
    refused.write_all(head.as_bytes()).expect("the head is sent");
    let mut answer = String::new();
    refused.read_to_string(&mut answer).expect("the connection is closed after the answer");
    let answer = answer.to_ascii_lowercase();
    assert!(answer.starts_with("http/1.1 503 ") && answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
    drop(announced);
}

#[test]
fn limits_of_memory_are_read_or_refused_with_what_was_expected() {
    let program = Scratch::new("bombs.weir", PROGRAM.as_bytes());
    for size in ["15mb", "1", "many", "", "-1gb", "0.5gb"] {
        let said = say(&["run", program.path(), "--port", "0", &format!("--memory={size}")]);
        assert_eq!(said.code, 2, "{size}: {}", said.messages);
        assert!(
            said.messages.contains("expected a size of at least 16mb, such as `512mb` or `2gb`"),
            "{}",
            said.messages
        );
    }
    for size in ["0mb", "many", ""] {
        let plan = Scratch::new("bombs.plan.toml", format!("memory_per_flow = \"{size}\"\n").as_bytes());
        let said = say(&["run", program.path(), "--port", "0", "--plan", plan.path()]);
        assert_eq!(said.code, 1, "{size}: {}", said.messages);
        assert!(said.messages.contains("memory_per_flow"), "{}", said.messages);
    }
    let plan = Scratch::new("bombs.plan.toml", b"memory_per_flow = \"2mb\"\n");
    let served = Served::start(program.path(), &["--plan", plan.path(), "--memory=512mb"]);
    assert_eq!([served.get("/small").status, served.get("/texts-joined").status], [200, 500]);
    let (_, log) = served.stop();
    assert!(log.contains("the flow needs more than 2.0 MiB of memory (`memory_per_flow`)"), "{log}");
}

#[test]
fn an_initial_value_that_takes_all_memory_ends_the_start() {
    let value = "fold s = \"0123456789abcdef\" for _i in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25] { s + s }";
    let text = format!(
        "use http\nshared large = {value}\nservice s on http(port: 80) {{ get \"/\" {{ http.text(large.read()) }} }}\n"
    );
    let program = Scratch::new("large.weir", text.as_bytes());
    let said = say(&["run", program.path(), "--port", "0", "--memory", "64mb"]);
    assert_eq!(said.code, 3, "{}", said.messages);
    let expected = "shared value `large` cannot be created: the program holds";
    assert!(said.messages.contains(expected), "{}", said.messages);
}

/// A service whose answers and bodies are long.
const HOLDS: &str = "use bytes, http, list\n\nservice holds on http(port: 80) {\n  \
                     get \"/small\" { http.text(\"small\") }\n  \
                     get \"/large\" { http.text(fold s = \"0123456789abcdef\" for _i in list.numbers(0, 19)? { s + s }) }\n  \
                     post \"/\" (body sent: Bytes) { http.text(\"{bytes.length(sent)}\") }\n}\n";

#[test]
fn clients_that_do_not_read_their_answers_hold_a_quarter_of_the_memory_at_most() {
    for engine in ["event", "pool"] {
        let program = Scratch::new("holds.weir", HOLDS.as_bytes());
        let mut served = Served::start(program.path(), &["--engine", engine, "--threads", "2", "--memory", "100mb"]);
        let ask = |_| {
            let mut stream = served.connect();
            stream.write_all(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n").expect("it listens");
            stream
        };
        let slow: Vec<_> = (0..6).map(ask).collect();
        served.wait_for("closed because of the memory that they held for their clients");
        assert_eq!(served.get("/small").status, 200, "{engine}");
        assert_eq!(served.get("/large").body.len(), 16 << 19, "{engine}");
        drop(slow);
        served.stop();
    }
}

#[test]
fn half_sent_bodies_hold_a_quarter_of_the_memory_at_most() {
    let program = Scratch::new("holds.weir", HOLDS.as_bytes());
    let mut served = Served::start(program.path(), &["--memory", "160mb"]);
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1900000\r\n\r\n";
    let send = |_| {
        let mut stream = served.connect();
        // Closed by the server while it is sent, perhaps.
        let _ = stream.write_all(head).and_then(|()| stream.write_all(&[b'x'; 1_899_999]));
        stream
    };
    let half: Vec<_> = (0..60).map(send).collect();
    served.wait_for("closed because of the memory that they held for their clients");
    let mut stream = served.connect();
    stream.write_all(head).and_then(|()| stream.write_all(&[b'x'; 1_900_000])).expect("it takes a body");
    assert_eq!(read_answer(stream).body, b"1900000");
    drop(half);
    served.stop();
}

/// A program whose sessions keep a text each.
const SESSIONS: &str = r#"use crypto, http, text

shared own = [""] per session

service sessions on http(port: 80) {
  session = id

  get "/token" (id: Text = "") { http.text(crypto.token()) }
  get "/keep" (id: Text, length: Int = 0) {
    if length > 0 { own.push(text.repeat("a", times: length)?) }
    http.text("{own.length()}")
  }
}
"#;

#[test]
fn the_values_of_sessions_take_a_quarter_of_the_memory_and_those_with_tokens_are_kept() {
    let program = Scratch::new("sessions.weir", SESSIONS.as_bytes());
    let served = Served::start(program.path(), &["--memory", "128mb"]);
    let text = |path: &str| String::from_utf8(served.get(path).body).expect("a text");
    let keep = |id: &str, bytes: u64| text(&format!("/keep?id={id}&length={bytes}"));
    let token = text("/token");
    assert_eq!(keep(&token, 1_000_000), "2");
    for made_up in 0..100 {
        let id = format!("made-up-{made_up}");
        assert_eq!([keep(&id, 1_000_000), keep(&id, 0)], ["2", "2"]);
    }
    assert_eq!([keep(&token, 0), keep("made-up-99", 0), keep("made-up-0", 0)], ["2", "2", "1"]);
}

#[test]
fn an_atomic_step_is_not_torn_for_want_of_memory() {
    let program = Scratch::new("steps.weir", STEPS.as_bytes());
    // A flow may hold 16 MiB.
    let served = Served::start(program.path(), &["--engine", "event", "--threads", "1", "--memory", "64mb"]);
    let answers: Vec<u16> = (200..280).map(|pieces| served.get(&format!("/?pieces={pieces}")).status).collect();
    let answered = answers.iter().filter(|status| **status == 200).count();
    assert!(answers.contains(&500) && answered > 0, "{answers:?}");
    assert_eq!(served.get("/counts").body, format!("{answered} {answered}").into_bytes());
}
