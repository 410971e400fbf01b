//! `weir run` as a real process over real connections.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

use crate::support::{Answer, Scratch, Served, read_answer, said, weir, weir_run};

const IMAGES: &str = "examples/image_server/main.weir";
const HELLO: &str = "examples/hello/main.weir";
const ENGINES: [&str; 2] = ["event", "pool"];

fn text(answer: &Answer) -> (u16, &str) {
    (answer.status, std::str::from_utf8(&answer.body).expect("a text"))
}

#[test]
fn every_engine_gives_the_same_answers_byte_for_byte() {
    let paths =
        ["/hills", "/hills", "/hills?scale=4", "/moon?scale=1", "/none", "/hills?scale=9", "/hills?scale=x", "/a/b"];
    let answers: Vec<_> = weir_runtime::ENGINES
        .iter()
        .map(|engine| {
            let served = Served::start(IMAGES, &["--engine", engine.name, "--threads", "2"]);
            let answers = paths.map(|path| served.get(path));
            assert_eq!(served.stop().0, Some(0));
            answers
        })
        .collect();
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
    let [first, hit, smaller, ..] = &answers[0];
    assert_eq!((first.status, first.kind.as_str(), &first.body[..3]), (200, "image/jpeg", &[0xFF, 0xD8, 0xFF][..]));
    assert_eq!(first, hit);
    assert!(smaller.body.len() < first.body.len());
}

#[test]
fn the_binary_for_servers_serves_as_the_command_does() {
    let served = Served::spawn(weir_run(&[IMAGES, "--port", "0"]));
    assert_eq!(served.get("/hills").status, 200);
    assert_eq!(served.stop().0, Some(0));
    let said = said(weir_run(&["nowhere.weir"]));
    assert_eq!((said.code, said.output.as_str()), (3, ""), "{}", said.messages);
}

#[test]
fn a_plan_changes_where_the_work_is_done_and_not_the_answers() {
    let text = "engine = \"staged\"\n\n[[section]]\nname = \"codec\"\nnodes = [\"image.*\"]\nthreads = 2\n";
    let plan = Scratch::new("images.plan.toml", text.as_bytes());
    let planned = Served::start(IMAGES, &["--plan", plan.path()]);
    assert!(planned.greeting.contains("engine staged"), "{}", planned.greeting);
    let plain = Served::start(IMAGES, &["--engine", "event"]);
    for path in ["/hills?scale=3", "/moon", "/none"] {
        assert_eq!(planned.get(path), plain.get(path));
    }
    assert_eq!((planned.stop().0, plain.stop().0), (Some(0), Some(0)));
}

/// Counts for all flows, and for each user.
const COUNTS: &[u8] = b"use http\nshared all = 0\nshared own = 0 per session\nservice counts on http(port: 8080) {\n  \
    session = user\n  get \"/{user}\" (user: Text) { http.text(\"{own.add(1)} of {all.add(1)}\") }\n}\n";

#[test]
fn shared_numbers_count_alike_under_every_engine() {
    let program = Scratch::new("counts.weir", COUNTS);
    for engine in weir_runtime::ENGINES {
        let served = Served::start(program.path(), &["--engine", engine.name, "--threads", "2"]);
        let said = ["/ada", "/ada", "/eve"].map(|path| String::from_utf8(served.get(path).body).expect("a text"));
        assert_eq!(said, ["1 of 1", "2 of 2", "1 of 3"], "{}", engine.name);
        assert_eq!(served.stop().0, Some(0));
    }
}

#[test]
fn a_plan_says_of_how_many_sessions_values_are_kept() {
    let program = Scratch::new("kept.weir", COUNTS);
    let plan = Scratch::new("kept.plan.toml", b"sessions_max = 1\nsession_idle_timeout = \"2h\"\n");
    let served = Served::start(program.path(), &["--plan", plan.path()]);
    let said = ["/ada", "/ada", "/eve", "/ada"].map(|path| String::from_utf8(served.get(path).body).expect("a text"));
    assert_eq!(said, ["1 of 1", "2 of 2", "1 of 3", "1 of 4"]);
    served.stop();
}

/// Returns the content of a header.
const HEADERS: &[u8] =
    b"use http\nshared visits = 0 per session\nservice s on http(port: 8080) {\n  session = visitor\n  \
    get \"/\" (header x_count: Int = 1, cookie visitor: Text, header if_match: Option(Text), \
    unprefixed_cookie theme: Text = \"\") {\n    \
    http.text(\"{visitor} {visits.add(x_count)} {if_match else { \"-\" }}{theme}\")\n  }\n}\n";

#[test]
fn parameters_come_from_the_header_and_from_cookies() {
    let program = Scratch::new("headers.weir", HEADERS);
    let served = Served::start(program.path(), &[]);
    let ask = |fields: &str| {
        let mut stream = served.connect();
        write!(stream, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\r\n").expect("it listens");
        let answer = read_answer(stream);
        format!("{} {}", answer.status, String::from_utf8(answer.body).expect("a text"))
    };
    assert_eq!(ask("Cookie: a=b; visitor=mal; __Host-visitor=ada;__Host-visitor=ada\r\n"), "200 ada 1 -");
    let twice = "400 the cookie `__Host-visitor`: given twice";
    assert_eq!(ask("Cookie: __Host-visitor=ada;__Host-visitor=eve\r\n"), twice);
    assert_eq!(ask("X-Count: 5\r\nCookie: __Host-visitor=ada\r\nIf-Match: *\r\n"), "200 ada 6 *");
    assert_eq!(ask("cookie: theme=dark\r\ncookie: __Host-visitor=eve; __Host-theme=light\r\n"), "200 eve 1 -dark");
    let foreign = "Cookie: tracking=\u{e9}; __Host-visitor=ada\r\n";
    assert_eq!(ask(foreign), "200 ada 7 -", "a cookie of another host hides no other one");
    let missing = "400 the cookie `__Host-visitor`: missing, expected a text";
    for fields in ["", "Cookie: visitor=a\r\n", "Cookie: __Host-visitors=a\r\n"] {
        assert_eq!(ask(fields), missing);
    }
    assert_eq!(
        ask("Cookie: __Host-visitor=a\r\nX-Count: few\r\n"),
        "400 `x-count` in the header: expected a whole number, found \"few\""
    );
    let twice = "400 `x-count` in the header: given twice";
    assert_eq!(ask("Cookie: __Host-visitor=a\r\nX-Count: 1\r\nX-Count: 2\r\n"), twice);
    served.stop();
}

#[test]
fn bad_input_is_answered_with_what_is_wrong() {
    let served = Served::start(IMAGES, &[]);
    assert_eq!(text(&served.get("/hills?scale=9")), (400, "scale must be 1 to 8"));
    assert_eq!(
        text(&served.get("/hills?scale=x")),
        (400, "`scale` in the query: expected a whole number, found \"x\"")
    );
    assert_eq!(served.get("/none").status, 404);
    assert_eq!(served.get("/a/b").status, 404);
    served.stop();
}

#[test]
fn parameters_of_the_path_and_the_query_have_their_types_and_defaults() {
    let served = Served::start(HELLO, &[]);
    assert_eq!(text(&served.get("/")), (200, "Hello!"));
    assert_eq!(text(&served.get("/hello/river")), (200, "Hello, river!"));
    assert_eq!(text(&served.get("/hello/river?loud=true")), (200, "HELLO, RIVER!"));
    assert_eq!(served.get("/hello/river?loud=very").status, 400);
    served.stop();
}

#[test]
fn the_greeting_says_what_is_served_and_where() {
    let served = Served::start(HELLO, &["--threads", "1"]);
    let greeting = served.greeting.replace(&served.address, "ADDRESS");
    insta::assert_snapshot!(greeting);
    let (code, rest) = served.stop();
    assert_eq!(code, Some(0));
    insta::assert_snapshot!(rest, @"TIME stopping after the flows in progress have finished");
}

#[test]
fn a_failure_that_nothing_handles_is_answered_500_and_logged_with_its_path() {
    let broken = std::env::temp_dir().join(format!("weir-broken-{}", std::process::id()));
    std::fs::create_dir_all(broken.join("images")).expect("a folder of our own");
    std::fs::write(broken.join("images/short.ppm"), b"P6 10 10 255\nshort").expect("a file of our own");
    let served = Served::start(IMAGES, &["--root", broken.to_str().expect("a path of ASCII")]);
    let answer = served.get("/short");
    assert_eq!(answer.status, 500);
    let (_, log) = served.stop();
    std::fs::remove_dir_all(&broken).expect("the folder is ours");
    insta::assert_snapshot!(log);
}

#[test]
fn what_has_begun_is_answered_before_the_end() {
    for engine in ENGINES {
        let served = Served::start(HELLO, &["--engine", engine]);
        let mut half = served.connect();
        let head = format!("GET /hello/last HTTP/1.1\r\nHost: {}\r\n", served.address);
        half.write_all(head.as_bytes()).expect("half a request is sent");
        // The response on another connection shows that the server works while the first one waits.
        assert_eq!(served.get("/").status, 200);
        half.write_all(b"Connection: close\r\n\r\n").expect("the other half is sent");
        assert_eq!(text(&read_answer(half)), (200, "Hello, last!"));
        assert_eq!(served.stop().0, Some(0));
    }
}

#[test]
fn an_idle_connection_is_closed_when_the_program_stops() {
    let served = Served::start(HELLO, &[]);
    let mut idle = served.connect();
    idle.write_all(format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", served.address).as_bytes())
        .expect("a request is sent");
    let mut first = [0; 12];
    idle.read_exact(&mut first).expect("the connection is answered and kept");
    assert_eq!(&first, b"HTTP/1.1 200");
    served.terminate();
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).expect("the connection is closed in time");
    assert_eq!(served.end().0, Some(0));
}

/// Returns a program whose flows wait at a gate, and the test's side of the gate.
fn gated() -> (Scratch, TcpListener, String) {
    let text = "use http, gate\n\nservice gated on http(port: 80) {\n  get \"/{port}\" (port: Int) { http.text(gate.pass(port)?) }\n}\n";
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let path = format!("/{}", listener.local_addr().expect("an address").port());
    (Scratch::new("gated.weir", text.as_bytes()), listener, path)
}

#[test]
fn over_the_bound_of_flows_the_answer_is_503_and_the_others_are_answered() {
    for engine in ENGINES {
        let (program, gate, path) = gated();
        let more = ["--engine", engine, "--threads", "1", "--flows-max", "1"];
        let served = Served::start_with_gate(program.path(), &more);
        let (answered, answers) = mpsc::channel();
        let ask = || {
            let (stream, answered) = (served.ask(&path), answered.clone());
            thread::spawn(move || answered.send(read_answer(stream).status));
        };
        ask();
        let held = gate.accept().expect("the first flow comes to the gate").0;
        (0..3).for_each(|_| ask());
        // The first flow holds the only thread and one more may wait, so at least two are refused while the gate is
        // closed.
        let next = || answers.recv().expect("every request is answered");
        assert_eq!([next(), next()], [503, 503], "`{engine}`");
        drop(held);
        thread::spawn(move || gate.incoming().for_each(drop));
        let mut rest = [next(), next()];
        rest.sort_unstable();
        assert_eq!(rest[0], 200, "`{engine}`");
        assert_eq!(served.stop().0, Some(0));
    }
}

#[test]
fn a_flow_that_has_begun_is_answered_after_the_first_signal() {
    for engine in ENGINES {
        let (program, gate, path) = gated();
        let served = Served::start_with_gate(program.path(), &["--engine", engine]);
        let asked = served.ask(&path);
        let held = gate.accept().expect("the flow comes to the gate").0;
        served.terminate();
        drop(held);
        assert_eq!(read_answer(asked).status, 200);
        assert_eq!(served.end().0, Some(0));
    }
}

#[test]
fn every_signal_that_asks_for_the_end_lets_flows_finish_and_the_others_do_nothing() {
    for signal in ["-HUP", "-QUIT", "-INT"] {
        let (program, gate, path) = gated();
        let served = Served::start_with_gate(program.path(), &[]);
        let asked = served.ask(&path);
        let held = gate.accept().expect("the flow comes to the gate").0;
        served.signal("-USR1");
        served.signal("-USR2");
        served.signal(signal);
        drop(held);
        assert_eq!(read_answer(asked).status, 200, "{signal}");
        assert_eq!(served.end().0, Some(0), "{signal}");
    }
}

fn failing() -> Scratch {
    let service = "service s on http(port: 80) {\n  get \"/{n}\" (n: Int) { http.text(\"{1 / n}\") }\n}\n";
    Scratch::new("failing.weir", format!("use http\n\n{service}").as_bytes())
}

#[test]
fn failures_of_one_place_are_logged_at_a_limited_rate_and_counted() {
    const REQUESTS: usize = 60;
    let program = failing();
    let served = Served::start(program.path(), &[]);
    (0..REQUESTS).for_each(|_| assert_eq!(served.get("/0").status, 500));
    let (code, rest) = served.stop();
    let is_written = |line: &&str| line.contains("failure in") && !line.contains("left out");
    let written = rest.lines().filter(is_written).count();
    let left_out = rest.lines().filter_map(|line| line.split_once(" more were left out: failure in"));
    let left_out: usize = left_out.map(|(count, _)| count.trim().parse::<usize>().expect("a number")).sum();
    assert_eq!((code, written + left_out), (Some(0), REQUESTS), "{rest}");
}

#[test]
fn a_full_pipe_on_standard_error_does_not_hold_up_the_end() {
    // Each failure has a place of its own, and together they are more than a pipe holds.
    let routes: String =
        (0..300).map(|n| format!("  get \"/{n}/{{x}}\" (x: Int) {{ http.text(\"{{1 / x}}\") }}\n")).collect();
    let program = format!("use http\n\nservice s on http(port: 80) {{\n{routes}}}\n");
    let program = Scratch::new("failing.weir", program.as_bytes());
    let served = Served::start(program.path(), &[]);
    for round in 0..4 {
        (0..300).for_each(|n| assert_eq!(served.get(&format!("/{n}/0")).status, 500, "round {round}"));
    }
    served.terminate();
    assert_eq!(served.exit_code_unread(), Some(0));
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    let (program, gate, path) = gated();
    let mut served = Served::start_with_gate(program.path(), &[]);
    let _asked = served.ask(&path);
    let _held = gate.accept().expect("the flow comes to the gate").0;
    served.terminate();
    served.wait_for("stopping");
    served.terminate();
    assert_eq!(served.end().0, Some(130));
}

#[test]
fn a_session_keeps_its_value_until_the_flows_that_have_used_it_end() {
    let text = "use http, gate\n\nshared seen = 0 per session\n\nservice s on http(port: 80) {\n  \
                get \"/{who}/{port}\" (who: Text, port: Int) {\n    session = who\n    seen.add(1)\n    \
                let passed = gate.pass(port)?\n    seen.add(1)\n    http.text(\"{passed} {seen}\")\n  }\n  \
                get \"/{who}\" (who: Text) {\n    session = who\n    seen.add(1)\n    http.text(\"{seen}\")\n  }\n}\n";
    let program = Scratch::new("sessions.weir", text.as_bytes());
    let plan = Scratch::new("sessions.plan.toml", b"sessions_max = 1\n");
    let gate = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = gate.local_addr().expect("an address").port();
    for engine in ENGINES {
        let served = Served::start_with_gate(program.path(), &["--engine", engine, "--plan", plan.path()]);
        let asked = served.ask(&format!("/ada/{port}"));
        let held = gate.accept().expect("the flow comes to the gate").0;
        assert_eq!(text_of(&served.get("/bert")), "1");
        drop(held);
        let answer = text_of(&read_answer(asked));
        assert!(answer.ends_with(" 2"), "{engine}: {answer}");
        assert_eq!(served.stop().0, Some(0));
    }
}

fn text_of(answer: &Answer) -> String {
    text(answer).1.to_owned()
}

#[test]
fn a_log_that_nobody_reads_any_more_is_no_failure() {
    let text = "use http, log\n\nservice s on http(port: 80) {\n  get \"/\" {\n    log.info(\"asked\")\n    http.text(\"ok\")\n  }\n}\n";
    let program = Scratch::new("unread.weir", text.as_bytes());
    let mut served = Served::start(program.path(), &[]);
    served.close_messages();
    (0..3).for_each(|_| assert_eq!(served.get("/").status, 200));
    served.terminate();
    assert_eq!(served.exit_code_unread(), Some(0));
}

fn saying(words: &str) -> String {
    format!("use http\n\nservice s on http(port: 80) {{\n  get \"/\" {{ http.text(\"{words}\") }}\n}}\n")
}

#[test]
fn a_watched_program_is_run_again_when_it_has_changed_and_is_right() {
    let program = Scratch::new("watched.weir", saying("one").as_bytes());
    let mut served = Served::start(program.path(), &["--watch"]);
    assert_eq!(text(&served.get("/")), (200, "one"));
    program.write(b"service s on");
    served.wait_for("keeps running");
    assert_eq!(text(&served.get("/")), (200, "one"), "a wrong text changes nothing");
    program.write(saying("three").as_bytes());
    served.greet();
    assert_eq!(text(&served.get("/")), (200, "three"));
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn a_watched_program_goes_on_if_its_tables_do_not_allow_the_new_one() {
    let with = |column: &str| {
        format!(
            "use http\n\nrecord Row {{ id: Int, {column} }}\n\ntable rows: Row key id auto\n\n\
             service s on http(port: 80) {{\n  get \"/\" {{ http.text(\"{{rows.count()}}\") }}\n  \
             get \"/more\" {{ http.text(\"{{rows.insert(Row {{ size: 1 }})?}}\") }}\n}}\n"
        )
    };
    let (program, data) = (Scratch::new("watched.weir", with("size: Int").as_bytes()), Scratch::folder("watched"));
    let mut served = Served::start(program.path(), &["--watch", "--data", data.path()]);
    assert_eq!(text(&served.get("/more")), (200, "1"));
    program.write(with("size: Float").replace("size: 1 ", "size: 1.0 ").as_bytes());
    // Like the refusal of a start, with the place of the declaration.
    let why = served.wait_for("the table `rows` cannot be opened");
    assert!(why.starts_with(&format!("error: {}:5:7: the table", program.path())), "{why}");
    served.wait_for("the previous program keeps running");
    assert_eq!(text(&served.get("/")), (200, "1"));
    program.write(with("size: Int, note: Option(Text) = None").as_bytes());
    served.greet();
    assert_eq!(text(&served.get("/")), (200, "1"));
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn a_watched_program_that_cannot_open_its_source_is_reported_and_the_watch_goes_on() {
    let elsewhere = saying("one").replace("port: 80", "port: 80, address: \"203.0.113.1\"");
    let program = Scratch::new("watched.weir", elsewhere.as_bytes());
    let mut served = Served::without_banner(weir(&["run", program.path(), "--port", "0", "--watch"]));
    served.wait_for("the program has ended (exit status: 3); no program is running; waiting for a change");
    program.write(saying("two").as_bytes());
    served.greet();
    assert_eq!(text(&served.get("/")), (200, "two"));
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn who_waits_for_a_notice_is_answered_when_it_comes() {
    for engine in ENGINES {
        let served = Served::start("examples/hooks", &["--engine", engine]);
        assert_eq!(text(&served.get("/hooks?patience=1ms")), (200, "[]"));
        let waits = served.ask("/hooks");
        let mut sends = served.connect();
        let event = r#"{"b":[1,null],"a":"x"}"#;
        let fields = "Connection: close\r\nContent-Type: application/json\r\n";
        let head = format!("POST /hooks/shop HTTP/1.1\r\nHost: {}\r\n{fields}", served.address);
        write!(sends, "{head}Content-Length: {}\r\n\r\n{event}", event.len()).expect("the notice is sent");
        assert_eq!(text(&read_answer(sends)), (202, "notice 1"));
        let answer = read_answer(waits);
        let (status, notices) = text(&answer);
        assert_eq!(status, 200);
        assert!(notices.starts_with(r#"[{"at":"2"#), "{engine}: {notices}");
        assert!(notices.ends_with(r#","from":"shop","event":{"b":[1,null],"a":"x"}}]"#), "{engine}: {notices}");
        assert_eq!(text(&served.get("/hooks?after=1&patience=1ms")), (200, "[]"));
        assert_eq!(served.stop().0, Some(0));
    }
}
