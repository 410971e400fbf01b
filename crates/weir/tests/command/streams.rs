//! Stream jobs and servers on raw sockets as real processes, under each engine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::{Served, repository, said, say, weir};

const LOGINS: &str = "examples/failed_logins/main.weir";

/// Returns the names of the engines.
pub(crate) fn engines() -> impl Iterator<Item = &'static str> {
    weir_runtime::ENGINES.iter().map(|engine| engine.name)
}

/// A temporary folder with a program in it, removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str, program: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("weir-command-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder of our own");
        let folder = Folder(path);
        folder.write("main.weir", program);
        folder
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).expect("a file of our own");
    }

    pub(crate) fn create(&self, name: &str) {
        std::fs::create_dir(self.0.join(name)).expect("a folder of our own");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).expect("the program has written it")
    }

    pub(crate) fn program(&self) -> String {
        self.0.join("main.weir").to_str().expect("a path of ASCII").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the rows that the example must print, computed independently.
fn failed_logins() -> String {
    let log = std::fs::read_to_string(repository().join("examples/failed_logins/messages")).expect("the log is there");
    let failed = log.lines().filter(|line| line.contains(" sshd[") && line.contains("authentication failure"));
    let row = |line: &str| {
        let field = |name: &str| {
            let found = line.split_once(&format!(" {name}=")).map_or("", |(_, rest)| rest);
            found.split(' ').next().unwrap_or_default().to_owned()
        };
        let time: Vec<&str> = line.split_whitespace().take(3).collect();
        let fields = ["uid", "euid", "tty", "rhost", "user"].map(field);
        format!("{},{}\n", time.join(" "), fields.join(","))
    };
    failed.map(row).collect()
}

#[test]
fn failed_logins_are_printed_in_the_order_of_the_log() {
    let expected = failed_logins();
    assert!(expected.lines().count() > 10, "the log has some");
    for engine in engines() {
        let said = say(&["run", LOGINS, "--engine", engine, "--threads", "2"]);
        assert_eq!((said.code, said.output.as_str()), (0, expected.as_str()), "{engine}: {}", said.messages);
    }
}

#[test]
fn all_that_was_written_is_there_in_order_when_the_input_ends() {
    let program = "use files, stream\n\nfor number in stream.range(0, 20_000) {\n  \
                   files.append(\"numbers\", \"{number}\")?\n}\n";
    for engine in engines() {
        let folder = Folder::new(&format!("numbers-{engine}"), program);
        let said = say(&["run", &folder.program(), "--engine", engine, "--threads", "4"]);
        assert_eq!(said.code, 0, "{}", said.messages);
        let expected: String = (0..20_000).map(|number| format!("{number}\n")).collect();
        assert!(folder.read("numbers") == expected, "{engine}");
    }
}

/// A limit of the file's size stands for a full disk: the system takes the beginning of a line and refuses its rest.
#[test]
fn a_line_that_the_system_does_not_take_fails_its_own_call() {
    let program = "use files, stdio, stream\n\nshared taken = 0\nshared refused = 0\n\n\
                   for number in stream.range(0, 4000) {\n  \
                   files.append(\"lines\", \"line number {number}\") else { refused.add(1); return }\n  taken.add(1)\n} \
                   at end {\n  stdio.print(\"{taken} {refused}\")?\n  files.append(\"lines\", \"this fails as well\")?\n}\n";
    for engine in engines() {
        let folder = Folder::new(&format!("refused-{engine}"), program);
        let mut command = Command::new("sh");
        let run = "ulimit -f 60; exec \"$0\" run \"$1\" --engine $2";
        command.args(["-c", run, env!("CARGO_BIN_EXE_weir"), &folder.program(), engine]);
        let said = said(command);
        let counted: Vec<usize> = said.output.split_whitespace().filter_map(|count| count.parse().ok()).collect();
        let stored = folder.read("lines");
        assert_eq!(counted, [stored.lines().count(), 4000 - stored.lines().count()], "{engine}: {}", said.messages);
        assert!(stored.ends_with('\n') && !stored.contains("fails as well"), "{engine}: a line is torn");
        assert!(stored.lines().all(|line| line.starts_with("line number ")), "{engine}");
        assert!(said.messages.contains("`lines` cannot be written: the file would become larger"), "{}", said.messages);
    }
}

#[test]
fn malformed_lines_are_logged_at_a_limited_rate_and_counted() {
    let program = "use csv, stdio\n\nfor row in csv.rows(\"rows\") {\n  stdio.print(\"{row}\")?\n}\n";
    let folder = Folder::new("malformed", program);
    folder.write("rows", &format!("a,b\n{}1,2\n", "3\n".repeat(30)));
    let said = say(&["run", &folder.program()]);
    assert_eq!((said.code, said.output.as_str()), (0, "[\"a\": \"1\", \"b\": \"2\"]\n"), "{}", said.messages);
    let first = "element skipped in csv.rows: rows: line 2: 1 field, but there are 2 columns (1 so far)";
    assert!(said.messages.contains(first), "{}", said.messages);
    assert_eq!(said.messages.matches("element skipped in csv.rows: ").count(), 10, "{}", said.messages);
    assert!(said.messages.contains("20 more were left out: element skipped in csv.rows"), "{}", said.messages);
}

#[test]
fn connections_leave_descriptors_to_files_and_the_limit_is_logged() {
    let program = "use http\n\nservice s on http(port: 0) {\n  get \"/\" { http.text(\"ok\") }\n}\n";
    let folder = Folder::new("descriptors", program);
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -n 40; exec \"$0\" run \"$1\" --threads 1",
        env!("CARGO_BIN_EXE_weir"),
        &folder.program(),
    ]);
    command.stderr(Stdio::piped());
    let mut served = Served::spawn(command);
    let connections: Vec<_> = (0..40).map(|_| served.connect()).collect();
    served.wait_for("too many connections in http: 20 closed and 0 refused at the limit of 20");
    assert_eq!(served.get("/").status, 200, "the service goes on");
    drop(connections);
}

#[test]
fn an_event_loop_without_descriptors_ends_the_start_with_advice() {
    let program = "use http\n\nservice s on http(port: 0) {\n  get \"/\" { http.text(\"ok\") }\n}\n";
    let folder = Folder::new("no-descriptors", program);
    for limit in [20, 24, 30, 40, 50, 60] {
        let mut command = Command::new("sh");
        let run = format!("ulimit -n {limit}; exec \"$0\" run \"$1\" --threads 32");
        command.args(["-c", &run, env!("CARGO_BIN_EXE_weir"), &folder.program()]);
        let said = said(command);
        assert_eq!(said.code, 3, "{}", said.messages);
        let advice = "raise the limit of open files (`ulimit -n`), or use fewer threads (`--threads`)";
        assert!(said.messages.contains(advice), "{limit}: {}", said.messages);
    }
}

/// Answers a line of text over raw connections.
const LINES: &str = "use tcp\n\nfor connection in tcp.listen(port: 0) {\n  \
                     let line = tcp.read_line(connection)? else { return }\n  \
                     tcp.write_text(connection, \"{line}!\\n\")?\n}\n";

#[test]
fn half_sent_requests_stop_no_engine() {
    for engine in engines().filter(|engine| *engine != "thread-per-flow") {
        let folder = Folder::new(&format!("half-{engine}"), LINES);
        let served = Served::start(&folder.program(), &["--engine", engine, "--threads", "2"]);
        let half: Vec<_> = (0..50)
            .map(|_| {
                let mut client = served.connect();
                client.write_all(b"hal").expect("it listens");
                client
            })
            .collect();
        let mut client = served.connect();
        client.write_all(b"whole\n").expect("it listens");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it answers");
        assert_eq!(answer, "whole!\n", "{engine}");
        drop(half);
        served.stop();
    }
}

#[test]
fn the_default_root_does_not_contain_the_program() {
    let program = "use files, stdio, stream\n\nfor name in stream.range(0, 1) {\n  \
                   let found = files.read(\"main.weir\") else as why { stdio.print(\"{why} {name}\")?; return }\n  \
                   stdio.print(\"{found.length() > 0}\")?\n}\n";
    let folder = Folder::new("own-source", program);
    let path = folder.program();
    assert_eq!(say(&["run", &path]).output, "`main.weir` does not exist 0\n");
    let root = path.trim_end_matches("main.weir");
    assert_eq!(say(&["run", &path, "--root", root]).output, "true\n");
}

#[test]
fn more_sections_than_threads_are_possible_are_refused_before_the_start() {
    let calls: String = (0..4_200).map(|number| format!("  let _t{number} = time.now()\n")).collect();
    let folder = Folder::new("sections", &format!("use stream, time\n\nfor _ in stream.range(0, 1) {{\n{calls}}}\n"));
    let said = say(&["run", &folder.program(), "--engine", "dedicated"]);
    let refusal = "sections with threads of their own, and at most 4096 are possible";
    assert!(said.code == 3 && said.messages.contains(refusal), "{}", said.messages);
}

#[test]
fn lines_go_from_the_standard_input_to_the_standard_output() {
    let folder =
        Folder::new("upper", "use stdio, text\n\nfor line in stdio.lines() {\n  stdio.print(text.upper(line))?\n}\n");
    let mut process = weir(&["run", &folder.program()]).stdin(Stdio::piped()).spawn().expect("the command starts");
    let mut input = process.stdin.take().expect("standard input is piped");
    input.write_all("one\ntwo\nthr\u{e9}e".as_bytes()).expect("it reads");
    drop(input);
    let ended = process.wait_with_output().expect("it ends");
    assert_eq!(
        (ended.status.code(), String::from_utf8_lossy(&ended.stdout).as_ref()),
        (Some(0), "ONE\nTWO\nTHR\u{c9}E\n")
    );
}

/// As with `| head -1`: the reader takes a line and exits, and the source would continue for hours.
#[test]
fn a_program_whose_output_nobody_reads_any_more_ends_quietly() {
    let endless = "use stdio, stream\n\nfor n in stream.range(1, 1_000_000_000_000) {\n  stdio.print(\"{n}\")?\n}\n";
    let folder = Folder::new("unread", endless);
    let mut process = weir(&["run", &folder.program()]).spawn().expect("the command starts");
    let mut first = String::new();
    let output = process.stdout.take().expect("standard output is piped");
    BufReader::new(output).read_line(&mut first).expect("it writes");
    let ended = process.wait_with_output().expect("it ends");
    let messages = String::from_utf8_lossy(&ended.stderr);
    assert_eq!((first.as_str(), ended.status.code()), ("1\n", Some(0)), "{messages}");
    assert!(!messages.contains("failure"), "{messages}");
}

#[test]
fn lists_maps_and_failures_have_methods() {
    let folder = Folder::new(
        "methods",
        r#"use failure, list, map, stdio, stream, text

fn small(number: Int) -> Result(Int, Failure) {
  if number > 1 { return Err(failure.of("too large")) }
  Ok(number)
}

for number in stream.range(1, 3) {
  let words = text.words("c b a").sort().take(number)
  let held = ["a": 1].with("b", number)
  stdio.print("{words} {held.values()} {list.numbers(0, number)?.contains(1)}")?
  let checked = small(number) else as why { stdio.print("{why.kind()}: {why.message()}")?; return }
  stdio.print("{checked}")?
}
"#,
    );
    let said = say(&["run", &folder.program()]);
    assert_eq!(said.code, 0, "{}", said.messages);
    // Each `print` keeps the order of the elements; lines of different ones may come in either order.
    let mut lines: Vec<&str> = said.output.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["1", "[\"a\", \"b\"] [1, 2] true", "[\"a\"] [1, 1] false", "program: too large"]);
}

#[test]
fn a_source_that_fails_in_the_middle_fails_the_program_and_keeps_what_was_written() {
    let folder = Folder::new(
        "damaged",
        "use csv, files\n\nfor row in csv.rows(\"in\", strict: true) {\n  files.append(\"out\", \"{row}\")?\n}\n",
    );
    folder.write("in", "a,b\n1,2\n3\n");
    let said = say(&["run", &folder.program()]);
    assert_eq!(said.code, 3, "{}", said.messages);
    assert!(said.messages.contains("in: line 3: 1 field, but there are 2 columns"), "{}", said.messages);
    assert_eq!(folder.read("out").lines().count(), 1);
}

/// Sends a request on a persistent connection, and returns status line and body of the response.
fn ask(stream: &mut TcpStream, request: &str) -> (String, String) {
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut read = Vec::new();
    let mut byte = [0];
    while !read.ends_with(b"\r\n\r\n") {
        assert_eq!(stream.read(&mut byte).expect("it answers"), 1, "it answers before it closes");
        read.push(byte[0]);
    }
    let head = String::from_utf8(read).expect("a head is a text");
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.expect("it says the length")];
    stream.read_exact(&mut body).expect("the body comes");
    (head.lines().next().unwrap_or_default().to_owned(), String::from_utf8(body).expect("a text"))
}

fn get(path: &str) -> String {
    format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

fn ok(body: &str) -> (String, String) {
    ("HTTP/1.1 200 OK".to_owned(), body.to_owned())
}

fn not_found() -> (String, String) {
    ("HTTP/1.1 404 Not Found".to_owned(), String::new())
}

fn page() -> String {
    std::fs::read_to_string(repository().join("examples/web_server/pages/index.html")).expect("the page is there")
}

#[test]
fn the_web_server_answers_and_keeps_its_connections() {
    let under_engine = |program| engines().map(move |engine| (program, vec!["--engine".to_owned(), engine.to_owned()]));
    let under_mapping = mappings().into_iter().map(|plan| ("main", vec!["--plan".to_owned(), plan]));
    for (program, arguments) in under_engine("main").chain(under_engine("zero_copy")).chain(under_mapping) {
        let more: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let served = Served::start(&format!("examples/web_server/{program}.weir"), &more);
        let mut streams = [served.connect(), served.connect()];
        for turn in 0..4 {
            let stream = &mut streams[turn % 2];
            assert_eq!(ask(stream, &get("index.html")), ok(&page()), "{program} {arguments:?}");
            assert_eq!(ask(stream, &get("none.html")), not_found());
            assert_eq!(ask(stream, &get("../main.weir")), not_found());
        }
        let last = get("index.html").replace("Host: a", "Connection: close");
        let heads = get("index.html").replace("GET", "HEAD").repeat(2);
        streams[1].write_all(format!("{heads}{last}").as_bytes()).expect("it reads");
        let mut answers = String::new();
        streams[1].read_to_string(&mut answers).expect("it answers and closes");
        assert_eq!(answers.matches("HTTP/1.1 200 OK\r\n").count(), 3, "{program} {arguments:?}: {answers}");
        assert_eq!(answers.matches(&page()).count(), 1, "an answer to HEAD has no body: {answers}");
        assert_eq!(ask(&mut streams[0], &last), ok(&page()));
        assert_eq!(streams[0].read(&mut [0]).expect("it closes"), 0);
        assert_eq!(served.stop().0, Some(0), "an idle connection holds nothing up");
    }
}

/// Plans with the section mappings of the thesis.
fn mappings() -> Vec<String> {
    let files = std::fs::read_dir(repository().join("examples/web_server/mappings")).expect("the folder is there");
    let paths = files.map(|file| file.expect("a file").path().to_str().expect("a path of ASCII").to_owned());
    paths.collect()
}

#[test]
fn every_section_mapping_and_engine_gives_the_same_answers() {
    let by_plan: Vec<Vec<String>> = mappings().into_iter().map(|plan| vec!["--plan".to_owned(), plan]).collect();
    assert_eq!(by_plan.len(), 6, "Figures 2.16, 2.17 and 2.20");
    // A flow of `pool` holds its thread while it waits for its client.
    let by_engine = engines().map(|engine| ["--engine", engine, "--threads", "20"].map(str::to_owned).to_vec());
    for arguments in by_plan.into_iter().chain(by_engine) {
        let more: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let served = Served::start("examples/web_server/pipeline.weir", &more);
        // All connections are open before the first request, and the last one to open sends last.
        let mut streams: Vec<_> = (0..20).map(|_| served.connect()).collect();
        for (index, stream) in streams.iter_mut().enumerate().rev() {
            let (path, answer) = if index % 3 == 0 { ("none.html", not_found()) } else { ("index.html", ok(&page())) };
            assert_eq!(ask(stream, &get(path)), answer, "{arguments:?}");
            assert_eq!(stream.read(&mut [0]).expect("it closes"), 0, "one request a connection");
        }
        assert_eq!(served.stop().0, Some(0), "{arguments:?}");
    }
}

#[test]
fn a_head_may_come_in_pieces() {
    let served = Served::start("examples/web_server/pieces.weir", &[]);
    let mut stream = served.connect();
    stream.set_nodelay(true).expect("small packets may be sent");
    let request = get("index.html");
    let (last, first) = request.as_bytes().split_last().expect("it has bytes");
    first.iter().for_each(|byte| stream.write_all(&[*byte]).expect("it reads"));
    assert_eq!(ask(&mut stream, std::str::from_utf8(&[*last]).expect("a text")), ok(&page()));
    let mut gone = served.connect();
    gone.write_all(first).expect("it reads");
    gone.shutdown(Shutdown::Write).expect("it can be ended");
    assert_eq!(gone.read(&mut [0]).expect("it closes"), 0, "half a request is not answered");
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn what_is_posted_is_what_the_path_gives_to_all() {
    for engine in engines() {
        let served = Served::start("examples/web_server/registry.weir", &["--engine", engine]);
        let (mut one, mut other) = (served.connect(), served.connect());
        let post = |body: &str| format!("POST /weir HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        assert_eq!(ask(&mut one, &get("weir")), not_found());
        for body in ["a small dam", "a larger one", ""] {
            assert_eq!(ask(&mut one, &post(body)).0, "HTTP/1.1 201 Created");
            assert_eq!(ask(&mut other, &get("weir")), ok(body));
        }
        assert_eq!(ask(&mut one, "PUT / HTTP/1.1\r\n\r\n").0, "HTTP/1.1 405 Method Not Allowed");
        assert_eq!(served.stop().0, Some(0));
    }
}

#[test]
fn packets_are_answered_and_lines_of_connections_printed() {
    let packets = "use udp\n\nfor packet in udp.packets(port: 0) {\n  \
                   packet.socket.send(packet.sender, packet.bytes)?\n}\n";
    let folder = Folder::new("packets", packets);
    let served = Served::start(&folder.program(), &[]);
    let client = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    client.set_read_timeout(Some(std::time::Duration::from_secs(30))).expect("a time limit can be set");
    // A connected socket receives only from the address that it sends to.
    client.connect(&served.address).expect("it is an address");
    client.send(b"hello").expect("it is sent");
    let mut answer = [0; 10];
    assert_eq!(client.recv(&mut answer).expect("it comes back"), 5);
    assert_eq!(served.stop().0, Some(0));

    let lines = "use files, tcp\n\nfor line in tcp.lines(port: 0) {\n  files.append(\"lines\", line)?\n}\n";
    let folder = Folder::new("connection-lines", lines);
    let served = Served::start(&folder.program(), &[]);
    let mut stream = served.connect();
    stream.write_all(b"one\n\xff\ntwo\n").expect("it reads");
    stream.shutdown(std::net::Shutdown::Write).expect("the connection is open");
    assert_eq!(stream.read(&mut [0]).expect("it closes"), 0, "after the last line");
    let (code, log) = served.stop();
    assert_eq!((code, log.contains("element skipped")), (Some(0), true), "{log}");
    assert_eq!(folder.read("lines"), "one\ntwo\n");
}

#[test]
fn the_same_over_the_http_module() {
    let served = Served::start("examples/web_server/over_http.weir", &[]);
    let mut stream = served.connect();
    assert_eq!(ask(&mut stream, &get("index.html")), ok(&page()));
    assert_eq!(ask(&mut stream, &get("none.html")).0, not_found().0);
    drop(stream);
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn what_is_no_request_ends_its_connection_and_nothing_else() {
    let served = Served::start("examples/web_server/main.weir", &[]);
    let mut bad = served.connect();
    bad.write_all(b"no request\r\n\r\n").expect("it reads");
    assert_eq!(bad.read(&mut [0]).expect("it closes"), 0);
    assert_eq!(ask(&mut served.connect(), &get("index.html")), ok(&page()));
    let (code, log) = served.stop();
    assert_eq!(code, Some(0));
    assert!(log.contains("not a request: invalid token"), "{log}");
}

#[test]
fn lines_that_are_printed_in_a_step_keep_the_order_of_their_source() {
    let program = "use stdio, files\n\nshared count = 0\n\nfor line in stdio.lines() {\n  atomic count {\n    \
                   let number = count.add(1)\n    if number % 3 != 0 {\n      stdio.print(\"{number} {line}\")?\n    }\n    \
                   files.append(\"all\", \"{line},\")?\n  }\n}\n";
    for engine in engines() {
        let folder = Folder::new("print-in-step", program);
        let root = folder.0.to_str().expect("a path of ASCII").to_owned();
        let mut command = weir(&["run", &folder.program(), "--engine", engine, "--threads", "3", "--root", &root]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the command starts");
        let lines: String = (1..=300).map(|number| format!("line {number}\n")).collect();
        process.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("the program reads");
        let said = process.wait_with_output().expect("the program ends");
        let printed = (1..=300).filter(|number| number % 3 != 0);
        let printed: String = printed.map(|number| format!("{number} line {number}\n")).collect();
        assert_eq!(String::from_utf8_lossy(&said.stdout), printed, "{engine}");
        let all: String = (1..=300).map(|number| format!("line {number},")).collect();
        assert_eq!(folder.read("all").replace('\n', ""), all, "{engine}");
    }
}
