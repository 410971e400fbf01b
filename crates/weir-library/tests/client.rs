//! The HTTP client, against servers that behave and servers that do not.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod peer;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use indexmap::IndexMap;
use peer::{CLOSE, Peer, response};
use weir::{Bytes, Failure, FailureKind, Secret, Size, Text};
use weir_library::client::{self, CallOptions, Client, ClientResponse};
use weir_library::network::Network;

/// Longest time that a call may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Arguments of a call.
struct Get {
    url: String,
    headers: IndexMap<Text, Text>,
    bearer: Option<Secret>,
    timeout: Duration,
    bytes_max: u64,
    redirects_max: u8,
    private: bool,
}

fn get(url: impl Into<String>) -> Get {
    Get {
        url: url.into(),
        headers: IndexMap::new(),
        bearer: None,
        timeout: PATIENCE,
        bytes_max: 1_000_000,
        redirects_max: 5,
        private: false,
    }
}

impl Get {
    async fn by(self, client: &Client) -> Result<ClientResponse, Failure> {
        let url = Text::from(self.url.as_str());
        client::get(client, url, self.options()).await
    }

    fn options(self) -> CallOptions {
        let Get { headers, bearer, timeout, bytes_max, redirects_max, private, .. } = self;
        CallOptions { headers, bearer, timeout, bytes_max: Size(bytes_max), redirects_max, private }
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Returns a client that knows these hosts.
fn knowing<const COUNT: usize>(hosts: [(&str, SocketAddr); COUNT]) -> Client {
    Client::new(Network::default().with_hosts(hosts.map(|(name, address)| (name.to_owned(), address))))
}

fn text(result: Result<ClientResponse, Failure>) -> String {
    client::text(&result.unwrap()).unwrap()
}

#[test]
fn a_response_has_status_header_and_body() {
    let peer = Peer::start(|_| response(200, "Content-Type: application/json\r\nETag: \"1\"", b"{\"name\": \"Ada\"}"));
    let found = block_on(Get { private: true, ..get(peer.url("/users/7?all=1")) }.by(&Client::default())).unwrap();
    assert_eq!((client::status(&found), client::header(&found, "etag")), (200, Some("\"1\"".into())));
    let json = client::json(&found).unwrap();
    assert_eq!(weir_library::json::write(&json), "{\"name\":\"Ada\"}");
    let request = peer.requests().remove(0);
    assert!(request.starts_with("GET /users/7?all=1 HTTP/1.1\r\n"), "{request}");
    assert!(
        request.contains("user-agent: weir/") && request.contains(&format!("host: {}\r\n", peer.address)),
        "{request}"
    );
}

#[test]
fn an_answer_that_is_no_success_has_a_body_but_no_text() {
    let peer = Peer::start(|_| response(404, "", b"nothing"));
    let found = block_on(Get { private: true, ..get(peer.url("/")) }.by(&Client::default())).unwrap();
    assert_eq!((client::status(&found), client::body(&found)), (404, Bytes::from_static(b"nothing")));
    for failure in [client::text(&found).unwrap_err(), client::json(&found).map(|_| ()).unwrap_err()] {
        assert_eq!(failure.message.as_str(), "127.0.0.1 answered 404 Not Found");
    }
}

#[test]
fn private_addresses_are_refused_before_a_connection_is_made() {
    let peer = Peer::start(|_| response(200, "", b"inner"));
    let port = peer.address.port();
    let client = Client::default();
    for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"] {
        let refused = block_on(get(format!("http://{host}:{port}/")).by(&client)).unwrap_err();
        assert!(refused.message.contains("has the private address"), "{host}: {refused}");
    }
    assert_eq!(
        (peer.connections(), text(block_on(Get { private: true, ..get(peer.url("/")) }.by(&client)))),
        (0, "inner".into())
    );
    // The connection that the call above left in the pool is not for calls that may not make it.
    assert!(block_on(get(peer.url("/")).by(&client)).is_err());
    assert_eq!(peer.requests().len(), 1);
}

#[test]
fn a_redirect_to_a_private_address_is_refused() {
    let inner = Peer::start(|_| response(200, "", b"inner"));
    let target = inner.url("/");
    let outer = Peer::start(move |_| response(302, &format!("Location: {target}"), b""));
    let public = knowing([("a.example", outer.address)]);
    let refused = block_on(get("http://a.example/").by(&public)).unwrap_err();
    assert!(refused.message.contains("has the private address 127.0.0.1"), "{refused}");
    // `private: true` is said of the URL, not of where it leads.
    let refused = block_on(Get { private: true, ..get(outer.url("/")) }.by(&Client::default())).unwrap_err();
    assert!(refused.message.contains("has the private address 127.0.0.1"), "{refused}");
    assert_eq!((inner.connections(), outer.connections()), (0, 2));
}

#[test]
fn credentials_stay_with_their_origin() {
    let last = Peer::start(|_| response(200, "", b"done"));
    let first = Peer::start(|request| match request.split(' ').nth(1) {
        Some("/") => response(302, "Location: /again", b""),
        _ => response(307, "Location: http://b.example/last", b""),
    });
    let client = knowing([("a.example", first.address), ("b.example", last.address)]);
    let headers = [("Cookie".into(), "session=1".into()), ("X-Api-Key".into(), "key".into())].into();
    let bearer = Some(Secret::new(b"token".to_vec()));
    let found = block_on(Get { headers, bearer, ..get("http://a.example/") }.by(&client)).unwrap();
    assert_eq!((client::text(&found).unwrap(), client::url(&found)), ("done".into(), "http://b.example/last".into()));
    for request in first.requests() {
        for field in ["authorization: Bearer token", "cookie: session=1", "x-api-key: key"] {
            assert!(request.contains(field), "{request}");
        }
    }
    let request = last.requests().remove(0);
    assert_eq!(first.requests().len(), 2);
    assert!(!request.contains("token") && !request.contains("session=1") && !request.contains("key"), "{request}");
}

#[test]
fn redirects_are_bounded() {
    let peer = Peer::start(|_| response(302, "Location: /again", b""));
    let client = Client::default();
    let refused = block_on(Get { private: true, ..get(peer.url("/")) }.by(&client)).unwrap_err();
    assert_eq!((refused.kind, peer.requests().len()), (FailureKind::Limit, 6));
    let found = block_on(Get { private: true, redirects_max: 0, ..get(peer.url("/")) }.by(&client)).unwrap();
    assert_eq!((client::status(&found), peer.requests().len()), (302, 7));
}

#[test]
fn a_connection_is_used_again() {
    let peer = Peer::start(|_| response(200, "", b"x"));
    let client = Client::default();
    block_on(async {
        for _ in 0..10 {
            Get { private: true, ..get(peer.url("/")) }.by(&client).await.unwrap();
        }
    });
    assert_eq!((peer.requests().len(), peer.connections()), (10, 1));
    // In another program of the process, whose event loop is another one, the pool opens a new connection.
    assert_eq!(text(block_on(Get { private: true, ..get(peer.url("/")) }.by(&client))), "x");
    assert_eq!(peer.connections(), 2);
}

#[test]
fn a_server_that_does_not_answer_costs_the_time_limit_only() {
    let silent = Peer::start(|_| Vec::new());
    let limit = Duration::from_millis(200);
    let late =
        block_on(Get { private: true, timeout: limit, ..get(silent.url("/")) }.by(&Client::default())).unwrap_err();
    assert_eq!((late.kind, late.message.as_str()), (FailureKind::Timeout, "127.0.0.1 did not answer within 200ms"));
    silent.wait_until_closed();
}

#[test]
fn a_call_that_is_given_up_closes_its_connection() {
    let silent = Peer::start(|_| Vec::new());
    let client = Client::default();
    block_on(async {
        let call = Get { private: true, ..get(silent.url("/")) }.by(&client);
        tokio::select! {
            _ = call => panic!("nobody answers"),
            () = silent.wait_for_request() => {}
        }
        // The connection's task sees that nobody waits.
        tokio::task::yield_now().await;
    });
    silent.wait_until_closed();
}

#[test]
fn long_and_broken_bodies_are_failures() {
    let peer = Peer::start(|request| match request.split(' ').nth(1) {
        Some("/long") => response(200, "", &[b'x'; 1_001]),
        Some("/short") => b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nabc".to_vec(),
        _ => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_vec(),
    });
    let run = |path| block_on(Get { private: true, bytes_max: 1_000, ..get(peer.url(path)) }.by(&Client::default()));
    let refused = run("/long").unwrap_err();
    assert_eq!((refused.kind, refused.message.contains("1000 bytes (`bytes_max`)")), (FailureKind::Limit, true));
    for path in ["/short", "/chunks"] {
        assert!(run(path).unwrap_err().message.starts_with("the response ended early"), "{path}");
    }
}

#[test]
fn compressed_answers_are_decompressed_within_the_limit() {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&[b'x'; 50_000]).unwrap();
    let packed = encoder.finish().unwrap();
    let peer = Peer::start(move |_| response(200, "Content-Encoding: gzip", &packed));
    let run = |bytes_max| block_on(Get { private: true, bytes_max, ..get(peer.url("/")) }.by(&Client::default()));
    let found = run(50_000).unwrap();
    assert_eq!((client::body(&found).len(), client::header(&found, "content-encoding")), (50_000, None));
    assert_eq!(run(49_999).unwrap_err().kind, FailureKind::Limit);
    assert!(peer.requests()[0].contains("accept-encoding: gzip"));
}

#[test]
fn requests_that_would_break_the_protocol_are_refused() {
    let peer = Peer::start(|_| response(200, "", b""));
    let with = |name: &str, value: &str| {
        let headers = [(name.into(), value.into())].into();
        block_on(Get { private: true, headers, ..get(peer.url("/")) }.by(&Client::default()))
            .unwrap_err()
            .message
            .to_string()
    };
    for (name, value) in [
        ("a b", "x"),
        ("A", "x\r\nB: injected"),
        ("A", "é"),
        ("Host", "b"),
        ("Content-Length", "5"),
        ("Transfer-Encoding", "chunked"),
    ] {
        let said = with(name, value);
        assert!(said.contains(name) && !said.contains("injected"), "{said}");
    }
    assert!(with("Password", "hunter2\n").contains("`Password`") && !with("Password", "hunter2\n").contains("hunter2"));
    let secret = Some(Secret::new(b"hunter2\n".to_vec()));
    let said =
        block_on(Get { private: true, bearer: secret, ..get(peer.url("/")) }.by(&Client::default())).unwrap_err();
    assert!(!said.message.contains("hunter2"), "{said}");
    assert_eq!(peer.connections(), 0);
}

#[test]
fn a_service_that_is_not_there_is_named() {
    let client = Client::default();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = listener.local_addr().unwrap();
    drop(listener);
    let refused =
        block_on(Get { private: true, ..get(format!("http://{closed}/?token=secret")) }.by(&client)).unwrap_err();
    assert!(refused.message.contains(&format!("cannot connect to {closed}")), "{refused}");
    // A label has at most 63 characters, so that no name server is asked.
    let name = format!("{}.example", "a".repeat(64));
    let refused = block_on(get(format!("http://{name}/?token=secret")).by(&client)).unwrap_err();
    assert!(refused.message.contains("has no address") && !refused.message.contains("secret"), "{refused}");
}

/// Answers the first request on each of the first two connections, and closes them at the next one.
fn forgetful() -> Peer {
    let requests = AtomicUsize::new(0);
    Peer::start(move |_| match requests.fetch_add(1, Ordering::Relaxed) {
        0 | 2 => response(200, "", b"done"),
        _ => CLOSE.to_vec(),
    })
}

#[test]
fn a_read_is_sent_again_when_the_server_has_closed_a_kept_connection() {
    let peer = forgetful();
    let answers = block_on(async {
        let client = Client::default();
        let get = || Get { private: true, ..get(peer.url("/")) }.by(&client);
        [get().await, get().await, get().await]
    });
    let [first, second, third] = answers;
    assert_eq!((text(first), text(second)), ("done".into(), "done".into()));
    // The fourth request ends its connection, and so does the fifth: it is sent again once, not for ever.
    assert!(third.unwrap_err().message.starts_with("no response from 127.0.0.1"));
    assert_eq!(peer.requests().len(), 5);
}

#[test]
fn a_write_is_not_sent_again_and_says_that_it_has_no_body() {
    let peer = forgetful();
    block_on(async {
        let client = Client::default();
        let (url, octets) = (Text::from(peer.url("/")), Text::from("application/octet-stream"));
        let options = || Get { private: true, ..get("") }.options();
        let send = || client::send(&client, "POST".into(), url.clone(), Bytes::new(), octets.clone(), options());
        assert_eq!(text(send().await), "done");
        assert!(send().await.is_err());
        // The second connection: `send` may have effects with every method.
        assert_eq!(text(send().await), "done");
        assert!(
            client::send(&client, "GET".into(), url.clone(), Bytes::new(), octets.clone(), options()).await.is_err()
        );
    });
    let requests = peer.requests();
    assert_eq!(requests.len(), 4);
    assert!(requests[0].contains("content-length: 0\r\n"), "{}", requests[0]);
}

#[test]
fn a_call_that_gets_no_permit_says_so() {
    let peer = Peer::start(|_| Vec::new());
    let url = peer.url("/");
    let ask = move |timeout| Get { timeout, private: true, ..get(&url) };
    let refused = block_on(async {
        let client = Arc::new(Client::default());
        for _ in 0..256 {
            let (client, call) = (Arc::clone(&client), ask(PATIENCE));
            tokio::spawn(async move { call.by(&client).await });
        }
        while peer.requests().len() < 256 {
            peer.wait_for_request().await;
        }
        ask(Duration::from_millis(10)).by(&client).await.unwrap_err()
    });
    assert_eq!(refused.message.as_str(), "127.0.0.1 was not called within 10ms: too many calls are under way");
}
