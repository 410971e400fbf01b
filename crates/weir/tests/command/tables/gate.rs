//! A gate in the middle of a transaction, at which a flow is held while the test sends other requests.
//!
//! A transaction waits for nothing outside of the program, but for locks. So the gate is a constraint, `turnstile`, which a flow of the test
//! holds while it asks a server of the test. Its name is behind those of the databases, so that a transaction takes it in its middle, and not at
//! its beginning.
//!
//! Nothing tells that a flow waits at the gate. It notes the time at which it comes there, and says it in its answer: a flow that came too late
//! is sent once more, so that what the test finds does not depend on timing.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{SystemTime, UNIX_EPOCH};

use super::text;
use crate::support::{PATIENCE, Served, read_answer};

/// The declarations of a program with the gate, behind `use client, http, random, time`.
pub(super) const GATE: &str = r#"
constraint turnstile

/// Waits at the gate. Returns the time at which the flow came there, in nanoseconds. Whoever writes behind it waits, too, because it could fail.
fn passes() -> Result(Int) {
  let came = (time.now() - time.from_unix(0)?) / 1ns
  atomic turnstile { if random.int(0, 1) > 1 { fail("closed for ever") } }
  Ok(came)
}

/// Keeps the gate closed until a server has answered.
fn close(port: Int) -> Result(Int) {
  atomic turnstile { Ok(client.get("http://127.0.0.1:{port}/", private: true)?.status()) }
}
"#;

/// The routes of such a program.
pub(super) const GATE_ROUTES: &str = r#"
  post "/close/{port}" (port: Int) { http.text("{close(port)?}") }
  get "/open" { http.text("open") }
"#;

/// The maximum number of times that a flow is sent to the gate, each with twice as much time to come there. It nearly always comes in time the
/// first or second time.
const ATTEMPTS_MAX: u32 = 16;

/// Calls `meanwhile` while the flow of a request waits at the gate, in a program that `prepare` has prepared. Returns the answer of the flow,
/// whose first word is the time at which it came to the gate, without that word.
pub(super) fn while_held(served: &Served, path: &str, prepare: impl Fn(), meanwhile: impl Fn()) -> String {
    for attempt in 0..ATTEMPTS_MAX {
        prepare();
        let gate = Gate::close(served);
        let held = send(served, "POST", path);
        // The flow comes to the gate while others are answered.
        (0..1 << attempt).for_each(|_| assert_eq!(text(&served.get("/open")), "open"));
        let begun = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970").as_nanos();
        meanwhile();
        assert!(!is_answered(&held), "{path} does not wait at the gate");
        gate.open();
        let answer = read_answer(held);
        assert_eq!(answer.status, 200, "{path}: {}", text(&answer));
        let (came, rest) = text(&answer).trim().split_once(' ').expect("the time and the answer");
        if came.parse::<u128>().expect("a time") <= begun {
            return rest.to_owned();
        }
    }
    panic!("{path} never came to the gate in time")
}

/// A flow that keeps the gate closed.
struct Gate {
    closing: TcpStream,
    /// The connection by which the flow asks the test.
    asking: TcpStream,
}

impl Gate {
    /// Closes the gate, and waits until it is closed.
    fn close(served: &Served) -> Gate {
        let server = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = server.local_addr().expect("it listens").port();
        let closing = send(served, "POST", &format!("/close/{port}"));
        let (mut asking, _) = server.accept().expect("a connection");
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            asking.read_exact(&mut byte).expect("the flow asks");
            request.extend(byte);
        }
        Gate { closing, asking }
    }

    fn open(mut self) {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        self.asking.write_all(answer).expect("the flow waits");
        assert_eq!(text(&read_answer(self.closing)), "200");
    }
}

/// Returns whether the answer of a request has begun.
fn is_answered(request: &TcpStream) -> bool {
    request.set_nonblocking(true).expect("it is a socket");
    let found = request.peek(&mut [0]);
    request.set_nonblocking(false).expect("it is a socket");
    !matches!(found, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

/// Sends a request whose answer is read later.
pub(super) fn send(served: &Served, method: &str, path: &str) -> TcpStream {
    let mut stream = served.connect();
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit can be set");
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        served.address
    );
    stream.write_all(head.as_bytes()).expect("the request is sent");
    stream
}
