//! A process that runs out of file descriptors: an idle connection is closed for a new one; if there is none, accepting
//! pauses without spinning, and continues. Alone in its file,
//! because the limit applies to the whole process.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod support;

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use support::{Client, Running, wait_for};
use weir_library::http::server::Limits;

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

#[test]
fn accepting_closes_idle_connections_or_resumes_when_descriptors_are_free() {
    let server = Running::start(Limits::default());
    let mut idle = server.connect();
    idle.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
    idle.answer();
    // Stays open, so that no descriptor becomes free when the server notices that a client has disconnected.
    let mut staying = server.connect();
    staying.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for(&server.hold.begun);
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(256);
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    // The last descriptor is the client's; none is left for the server's side of the connection.
    drop(taken.pop());
    let mut instead = Client::connect(server.address);
    instead.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for(&server.hold.begun);
    idle.assert_closed();
    drop(taken.pop());
    let mut client = Client::connect(server.address);
    client.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
    client.stream.set_read_timeout(Some(Duration::from_millis(400))).unwrap();
    let before = processor_time();
    assert!(client.stream.read(&mut [0]).is_err(), "accepted without a file");
    assert!(processor_time() - before < Duration::from_millis(200), "spinning");
    drop(taken);
    client.stream.set_read_timeout(Some(support::PATIENCE)).unwrap();
    assert_eq!(client.answer().body, b"hello");
}
