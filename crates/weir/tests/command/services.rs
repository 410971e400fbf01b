//! Services among other services: pages of other origins, proxies, the log, and the hosts that a plan permits.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, RwLock, mpsc};

use crate::support::{PATIENCE, Scratch, Served, read_answer, say};

const LOGGING: &[u8] = b"use http, log

fn checked(text: Text) -> Result(Text) {
  if text != \"\" { fail(\"bad {text}\")? }
  Ok(text)
}

service api on http(port: 1) {
  get \"/fail\" (why: Text) { http.text(checked(why)?) }
  get \"/log\" (text: Text) {
    log.info(text, order: 7, fields: text)
    http.text(\"\")
  }
}
";

const SERVICE: &[u8] = b"use client, http, log, tcp

service api on http(port: 1, allowed_origins: [\"https://app.example\"], trusted_proxies: [\"127.0.0.0/8\"]) {
  get \"/\" (header client_address: Text, header x_forwarded_proto: Text = \"none\") {
    log.debug(\"hidden\")
    log.info(\"asked\", from: client_address, numbers: [1, 2])
    http.text(\"{client_address} {x_forwarded_proto}\")
  }
  put \"/\" { http.text(\"put\") }
  options \"/own\" { http.text(\"own\") }
  get \"/far\" { http.text(\"{client.get(\"http://localhost:1/\", private: true)?.status()}\") }
  get \"/connection\" {
    let connection = tcp.connect(\"127.0.0.1\", 1, private: true)?
    http.text(tcp.peer(connection))
  }
}
";

/// Sends a request with these header fields, and returns the whole answer in lower case.
fn exchange(served: &Served, line: &str, fields: &[&str]) -> String {
    let mut stream = served.connect();
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    let request = format!("{line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).expect("the request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the answer is a text");
    answer.to_ascii_lowercase()
}

#[test]
fn pages_of_permitted_origins_read_answers_and_ask_before() {
    let program = Scratch::new("origins.weir", SERVICE);
    let served = Served::start(program.path(), &[]);
    let ours = "Origin: https://app.example";
    assert!(exchange(&served, "GET /", &[ours]).contains("access-control-allow-origin: https://app.example"));
    let preflight = exchange(&served, "OPTIONS /", &[ours, "Access-Control-Request-Method: PUT"]);
    assert!(preflight.contains("access-control-allow-methods: get, put, head, options\r\n"), "{preflight}");
    let own = exchange(&served, "OPTIONS /own", &[]);
    assert!(own.ends_with("own") && own.starts_with("http/1.1 200"), "{own}");
    let preflight = exchange(&served, "OPTIONS /own", &[ours, "Access-Control-Request-Method: PUT"]);
    assert!(preflight.contains("access-control-allow-methods: options\r\n"), "{preflight}");
    let other = exchange(&served, "PUT /", &["Origin: https://b.example"]);
    assert!(other.starts_with("http/1.1 403") && !other.contains("access-control"), "{other}");
    assert!(exchange(&served, "PUT /", &[ours]).ends_with("put"));
    assert!(exchange(&served, "PUT /", &[ours, "Cookie: a=b"]).starts_with("http/1.1 403"));
}

#[test]
fn proxies_say_who_the_client_is_and_lines_of_the_log_are_json() {
    let program = Scratch::new("proxies.weir", SERVICE);
    let mut served = Served::start(program.path(), &["--log-format", "json"]);
    let said = exchange(&served, "GET /", &["X-Forwarded-For: 203.0.113.9, 198.51.100.7", "X-Forwarded-Proto: https"]);
    assert!(said.ends_with("198.51.100.7 https"), "{said}");
    let line = "\"level\":\"info\",\"message\":\"asked\",\"fields\":{\"from\":\"198.51.100.7\",\"numbers\":[1,2]},\"trace_id\":\"";
    served.wait_for(line);
    let untrusted = String::from_utf8_lossy(SERVICE).replace("127.0.0.0/8", "10.0.0.1");
    let program = Scratch::new("no_proxies.weir", untrusted.as_bytes());
    let mut served = Served::start(program.path(), &["--log-level", "debug"]);
    let said = exchange(&served, "GET /", &["X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: https"]);
    assert!(said.ends_with("127.0.0.1 none"), "{said}");
    served.wait_for("DEBUG hidden");
    served.wait_for("INFO asked from=127.0.0.1 numbers=[1,2]");
}

#[test]
fn a_plan_restricts_the_hosts_that_a_program_reaches() {
    let program = Scratch::new("reach.weir", SERVICE);
    let plan = Scratch::new("reach.plan.toml", b"hosts = [\"api.example\"]\n");
    let mut served = Served::start(program.path(), &["--plan", plan.path()]);
    assert_eq!(served.get("/far").status, 500);
    served.wait_for("client.get: the plan does not permit the host `localhost`; add it to `hosts` in the plan");
    assert_eq!(served.get("/connection").status, 500);
    served.wait_for("tcp.connect: the plan does not permit the host `127.0.0.1`");
}

#[test]
fn clients_cannot_write_lines_of_the_log() {
    let program = Scratch::new("forged.weir", LOGGING);
    let forged = "x%0A%7B%22level%22:%22info%22%7D%1B%5B2J%C2%9B%E2%80%A8";
    let mut served = Served::start(program.path(), &[]);
    assert_eq!(served.get(&format!("/fail?why={forged}")).status, 500);
    served.wait_for("bad x\\n{\"level\":\"info\"}\\u001b[2J\\u009b\\u2028");
    assert_eq!(served.get("/log?text=paid%20order=9").status, 200);
    served.wait_for("INFO \"paid order=9\" order=7 fields=\"paid order=9\"");
    let mut served = Served::start(program.path(), &["--log-format", "json"]);
    assert!(served.greeting.starts_with("{\"time\":\"20"), "{}", served.greeting);
    assert_eq!(served.get(&format!("/fail?why={forged}")).status, 500);
    assert_eq!(served.get(&format!("/log?text={forged}")).status, 200);
    served.wait_for("\"message\":\"x");
    assert_eq!(served.get("/fail?why=last").status, 500);
    let (_, rest) = served.stop();
    let lines: Vec<serde_json::Value> =
        rest.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}"))).collect();
    assert!(lines.iter().all(|line| line["time"].as_str().is_some_and(|time| time.len() == 24)), "{rest}");
    let last = lines.iter().find(|line| line["message"].as_str().is_some_and(|said| said.ends_with("bad last")));
    let last = last.expect("the failure is logged");
    assert_eq!((&last["level"], &last["fields"]["event"]), (&"error".into(), &"failure".into()));
    assert!(last["fields"]["place"].as_str().is_some_and(|place| place.starts_with("get /fail at ")), "{last}");
    assert!(last["fields"]["passed"][0].as_str().is_some_and(|line| line.contains("in `checked`")), "{last}");
    assert!(lines.iter().any(|line| line["message"] == "stopping after the flows in progress have finished"), "{rest}");
}

#[test]
fn a_function_cannot_be_logged() {
    let program = b"use http, log\n\nservice a on http(port: 1) {\n  get \"/\" {\n    log.info(\"x\", field: |a| a + 1)\n    http.text(\"\")\n  }\n}\n";
    let program = Scratch::new("logged_function.weir", program);
    let said = say(&["check", program.path()]);
    assert!(said.messages.contains("E0320"), "{}", said.messages);
}

#[test]
fn a_secret_cannot_be_logged() {
    let program = b"use http, log\n\nsecret key: Text\n\nservice a on http(port: 1) {\n  get \"/\" {\n    log.info(\"key\", key: key)\n    http.text(\"\")\n  }\n}\n";
    let program = Scratch::new("logged_secret.weir", program);
    let said = say(&["check", program.path()]);
    assert!(said.messages.contains("`log.info` cannot take values of the type `crypto.Secret`"), "{}", said.messages);
    let wrong = Scratch::new("log_arguments.weir", b"use log, http\n\nservice a on http(port: 1) {\n  get \"/\" {\n    log.info(\"x\", a: 1, a: 2)\n    log.info(\"x\", 7)\n    http.text(\"\")\n  }\n}\n");
    let said = say(&["check", wrong.path()]);
    assert!(said.messages.contains("the name `a` is given twice"), "{}", said.messages);
    assert!(said.messages.contains("a further argument of `log.info` has a name"), "{}", said.messages);
}

#[test]
fn wrong_origins_and_proxies_are_refused_at_start() {
    for (wrong, expected) in [
        ("allowed_origins: [\"https://app.example/\"]", "is not an origin"),
        ("allowed_origins: [\"*\"], allowed_credentials: true", "needs `allowed_origins` by name"),
        ("allowed_origins: [\"https://*.example\"]", "is not an origin"),
        ("allowed_origins: [\"https://a.example:99999\"]", "is not an origin"),
        ("allowed_credentials: true", "`allowed_credentials` needs `allowed_origins`"),
        ("preflight_max_age: -1s", "`preflight_max_age` must not be negative"),
        ("trusted_proxies: [\"10.1.0.0/8\"]", "the block \"10.1.0.0/8\" begins at 10.0.0.0"),
        ("trusted_proxies: [\"localhost\"]", "is neither an address nor a block"),
    ] {
        let text =
            format!("use http\n\nservice a on http(port: 1, {wrong}) {{\n  get \"/\" {{ http.text(\"\") }}\n}}\n");
        let program = Scratch::new("wrong_policy.weir", text.as_bytes());
        let said = say(&["run", program.path(), "--port", "0"]);
        assert!(said.code != 0 && said.messages.contains(expected), "{wrong}: {}", said.messages);
    }
}

const NAPS: &[u8] = br#"use http, log, time

constraint nap on time.sleep

service naps on http(port: 80) {
  get "/limited" {
    time.sleep(24h) within 10ms else { return http.text("given up") }
    http.text("slept")
  }
  get "/long" {
    log.info("begins")
    time.sleep(24h)
    http.text("slept")
  }
  get "/free" { atomic nap { http.text("free") } }
}
"#;

#[test]
fn a_bound_call_ends_at_its_time_limit_and_when_the_client_leaves() {
    let program = Scratch::new("naps.weir", NAPS);
    for engine in ["event", "pool", "elastic", "thread-per-flow"] {
        let mut served = Served::start(program.path(), &["--engine", engine]);
        assert_eq!(served.get("/limited").body, b"given up", "`{engine}`");
        let left = served.ask("/long");
        served.wait_for("begins");
        drop(left);
        // The step waits until the call has been cancelled and its lock is free.
        assert_eq!(served.get("/free").body, b"free", "`{engine}`");
        assert_eq!(served.stop().0, Some(0), "`{engine}`");
    }
}

const FORWARDING: &[u8] = br#"use client, http

config origin: Text = ""

service front on http(port: 1) {
  get "/own" { http.text("own") }
  get "/forward/{path}" (path: Text) {
    http.text(client.get("{origin}/{path}", private: true)?.text()?)
  }
}
"#;

/// Begins a service that answers `/quick` at once, and `/slow` when it is told so. Returns its address, a receiver of the
/// requests to `/slow`, and the lock that holds their answers back.
fn partly_slow_service() -> (String, mpsc::Receiver<()>, Arc<RwLock<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!("http://{}", listener.local_addr().expect("it listens"));
    let ((sender, slow), gate) = (mpsc::channel(), Arc::new(RwLock::new(())));
    let of_service = Arc::clone(&gate);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (sender, gate) = (sender.clone(), Arc::clone(&of_service));
            std::thread::spawn(move || answer_calls(stream, &sender, &gate));
        }
    });
    (address, slow, gate)
}

fn answer_calls(mut stream: TcpStream, slow: &mpsc::Sender<()>, gate: &RwLock<()>) {
    let requests = BufReader::new(stream.try_clone().expect("a connection can be shared"));
    for line in requests.lines().map_while(Result::ok).filter(|line| line.starts_with("GET ")) {
        if line.starts_with("GET /slow ") && slow.send(()).is_ok() {
            drop(gate.read());
        }
        _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
}

#[test]
fn a_slow_service_behind_a_proxy_holds_up_no_other_client() {
    let program = Scratch::new("forwarding.weir", FORWARDING);
    for engine in weir_runtime::ENGINES {
        let (origin, slow, gate) = partly_slow_service();
        let origin = format!("origin={origin}");
        let served = Served::start(program.path(), &["--engine", engine.name, "--threads", "2", "--set", &origin]);
        let closed = gate.write().expect("no thread panics with the lock");
        let waiting: Vec<_> = (0..12).map(|_| served.ask("/forward/slow")).collect();
        for _ in &waiting {
            slow.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("`{}`: a call has not been made", engine.name));
        }
        assert_eq!(served.get("/own").body, b"own", "`{}`", engine.name);
        assert_eq!(served.get("/forward/quick").body, b"ok", "`{}`", engine.name);
        drop(closed);
        for stream in waiting {
            assert_eq!(read_answer(stream).body, b"ok", "`{}`", engine.name);
        }
    }
}

/// A service that asks itself, beside a wait that does not end while a test runs.
const ASKS_ITSELF: &[u8] = br#"use client, http, time

shared asked = 0

fn quick(host: Text) -> Result(Text) {
  client.get("http://{host}/quick", private: true)?.text()
}

fn hedged(host: Text) -> Text {
  race {
    quick(host) else { "failed" }
    {
      time.sleep(1h)
      "slept"
    }
  }
}

service own on http(port: 1) {
  get "/quick" { http.text("quick") }
  get "/race" (header host: Text) { http.text(hedged(host)) }
  get "/nested" (header host: Text) {
    http.text(race {
      {
        time.sleep(1h)
        "slept"
      }
      hedged(host)
    })
  }
  get "/within" (header host: Text) { http.text(hedged(host) within 1h else { "late" }) }
  get "/retry" (header host: Text) {
    let text = retry(3) {
      let text = hedged(host)
      if text != "quick" { fail("again")? }
      text
    } else { "failed" }
    http.text(text)
  }
  get "/several" (header host: Text) {
    let texts = for _number in [1, 2, 3] { hedged(host) }
    http.text(if texts.all(|text| text == "quick") { "quick" } else { "failed" })
  }
  get "/locked" (header host: Text) {
    let text = atomic asked {
      asked.add(1)
      hedged(host)
    }
    http.text(text)
  }
}
"#;

#[test]
fn flows_that_ask_their_own_service_beside_a_long_sleep_are_answered() {
    const ROUTES: [&str; 6] = ["/race", "/nested", "/within", "/retry", "/several", "/locked"];
    let program = Scratch::new("asks_itself.weir", ASKS_ITSELF);
    for (engine, threads) in weir_runtime::ENGINES.iter().flat_map(|engine| ["1", "2"].map(|threads| (engine, threads)))
    {
        let served = Served::start(program.path(), &["--engine", engine.name, "--threads", threads]);
        let asked = ROUTES.iter().flat_map(|path| [*path; 3]).map(|path| (path, served.ask(path)));
        for (path, stream) in asked.collect::<Vec<_>>() {
            assert_eq!(read_answer(stream).body, b"quick", "`{}`, {threads} threads: {path}", engine.name);
        }
    }
}
