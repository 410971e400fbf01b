//! Probes of a service over TLS in the manner of testssl.sh: versions of the protocol, cipher suites, extensions and malformed
//! handshakes, as raw bytes; and what `openssl` negotiates.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::streams::Folder;
use crate::support::Served;
use crate::tls::start;

/// Types of records.
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const HEARTBEAT: u8 = 24;
/// Descriptions of fatal alerts.
const HANDSHAKE_FAILURE: u8 = 40;
const PROTOCOL_VERSION: u8 = 70;
const NO_APPLICATION_PROTOCOL: u8 = 120;
/// Versions.
const SSL_3: u16 = 0x0300;
const TLS_1_0: u16 = 0x0301;
const TLS_1_1: u16 = 0x0302;
const TLS_1_2: u16 = 0x0303;
/// ECDHE-ECDSA-AES128-GCM-SHA256, and the signal of secure renegotiation.
const MODERN: u16 = 0xc02b;
const SECURE_RENEGOTIATION: u16 = 0x00ff;
/// Numbers of extensions.
const ALPN: u16 = 16;
const HEARTBEAT_EXTENSION: u16 = 15;
const RENEGOTIATION_INFO: u16 = 0xff01;

/// A `ClientHello` of a version before 1.3.
struct Hello<'a> {
    version: u16,
    suites: &'a [u16],
    compressions: &'a [u8],
    further: Vec<(u16, Vec<u8>)>,
}

impl Hello<'_> {
    const MODERN: Hello<'static> =
        Hello { version: TLS_1_2, suites: &[MODERN], compressions: &[0], further: Vec::new() };

    /// Returns the record.
    fn record(&self) -> Vec<u8> {
        let mut extensions = vec![
            // x25519 and secp256r1; uncompressed points; ECDSA and RSA with SHA-256.
            (10, vec![0, 4, 0, 29, 0, 23]),
            (11, vec![1, 0]),
            (13, vec![0, 4, 4, 3, 4, 1]),
        ];
        extensions.extend(self.further.iter().cloned());
        let extensions: Vec<u8> =
            extensions.iter().flat_map(|(kind, data)| [&be(*kind)[..], &with_length(data)].concat()).collect();
        let suites: Vec<u8> = self.suites.iter().flat_map(|suite| be(*suite)).collect();
        let compressions = [&[short(self.compressions.len())], self.compressions].concat();
        let random = [7; 32];
        let body =
            [&be(self.version)[..], &random, &[0], &with_length(&suites), &compressions, &with_length(&extensions)];
        let body = body.concat();
        record(HANDSHAKE, self.version, &[&[1, 0], &with_length(&body)[..]].concat())
    }
}

fn be(number: u16) -> [u8; 2] {
    number.to_be_bytes()
}

fn short(length: usize) -> u8 {
    u8::try_from(length).expect("it is short")
}

fn with_length(data: &[u8]) -> Vec<u8> {
    [&be(u16::try_from(data.len()).expect("it is short"))[..], data].concat()
}

fn record(kind: u8, version: u16, payload: &[u8]) -> Vec<u8> {
    [&[kind][..], &be(version), &with_length(payload)].concat()
}

/// The answer of a server to the first record of a client.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// A `ServerHello`: its version, suite, compression and the numbers of its extensions.
    Hello(u16, u16, u8, Vec<u16>),
    /// A fatal alert.
    Refused(u8),
    /// Nothing, and the connection is closed.
    Closed,
}

/// Sends bytes and returns the first record of the answer.
fn answer(served: &Served, bytes: &[u8]) -> Answer {
    let mut stream = served.connect();
    stream.write_all(bytes).expect("the server reads");
    let mut head = [0; 5];
    if stream.read_exact(&mut head).is_err() {
        return Answer::Closed;
    }
    let mut payload = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
    stream.read_exact(&mut payload).expect("a whole record");
    match (head[0], &payload[..]) {
        (ALERT, [2, description]) => Answer::Refused(*description),
        (HANDSHAKE, hello) => server_hello(hello),
        other => panic!("{other:?}"),
    }
}

fn server_hello(hello: &[u8]) -> Answer {
    let number = |at: usize| u16::from_be_bytes([hello[at], hello[at + 1]]);
    assert_eq!(hello[0], 2, "a `ServerHello` comes first");
    // Behind the type, the length, the version and 32 random bytes.
    let suite = 4 + 2 + 32 + 1 + usize::from(hello[38]);
    let (mut at, end) = (suite + 5, suite + 5 + usize::from(number(suite + 3)));
    let mut extensions = Vec::new();
    while at < end {
        extensions.push(number(at));
        at += 4 + usize::from(number(at + 2));
    }
    Answer::Hello(number(4), number(suite), hello[suite + 2], extensions)
}

fn probe(served: &Served, hello: &Hello<'_>) -> Answer {
    answer(served, &hello.record())
}

#[test]
fn old_versions_and_weak_cipher_suites_are_refused() {
    let Some((_folder, served)) = start("probe-versions", "") else { return };
    for version in [SSL_3, TLS_1_0, TLS_1_1] {
        let hello = Hello { version, suites: &[MODERN, 0xc009, 0x002f, 0x000a], ..Hello::MODERN };
        assert_eq!(probe(&served, &hello), Answer::Refused(PROTOCOL_VERSION), "{version:x}");
    }
    for (name, suite) in [
        ("no encryption", 0x0001),
        ("no encryption, ECDHE", 0xc006),
        ("export", 0x0003),
        ("RC4", 0x0005),
        ("DES", 0x0009),
        ("3DES", 0x000a),
        ("anonymous", 0x0034),
        ("AES-CBC without forward secrecy", 0x002f),
        ("AES-GCM without forward secrecy", 0x009c),
        ("AES-CBC", 0xc009),
        ("AES-CBC-SHA384", 0xc024),
        ("RC4, ECDHE", 0xc007),
        ("3DES, ECDHE", 0xc008),
        ("finite-field Diffie-Hellman", 0x009e),
        ("a certificate with RSA", 0xc02f),
    ] {
        let refused = probe(&served, &Hello { suites: &[suite], ..Hello::MODERN });
        assert_eq!(refused, Answer::Refused(HANDSHAKE_FAILURE), "{name}");
    }
    for suite in [MODERN, 0xc02c, 0xcca9] {
        let Answer::Hello(version, chosen, ..) = probe(&served, &Hello { suites: &[suite], ..Hello::MODERN }) else {
            panic!("{suite:x} is refused")
        };
        assert_eq!((version, chosen), (TLS_1_2, suite));
    }
}

#[test]
fn dangerous_extensions_are_not_negotiated() {
    let Some((_folder, served)) = start("probe-extensions", "") else { return };
    let offers = vec![(HEARTBEAT_EXTENSION, vec![1]), (35, vec![])];
    let hello =
        Hello { compressions: &[1, 0], suites: &[MODERN, SECURE_RENEGOTIATION], further: offers, ..Hello::MODERN };
    let Answer::Hello(_, _, compression, extensions) = probe(&served, &hello) else { panic!("the hello is refused") };
    assert_eq!(compression, 0, "no compression (CRIME)");
    assert!(!extensions.contains(&HEARTBEAT_EXTENSION), "no heartbeat (Heartbleed): {extensions:?}");
    assert!(extensions.contains(&RENEGOTIATION_INFO), "secure renegotiation only: {extensions:?}");
    let only_compressed = probe(&served, &Hello { compressions: &[1], ..Hello::MODERN });
    assert!(matches!(only_compressed, Answer::Refused(_)), "{only_compressed:?}");
}

#[test]
fn malformed_handshakes_end_without_harm() {
    let Some((folder, served)) = start("probe-malformed", "") else { return };
    let whole = Hello::MODERN.record();
    let heartbeat = [whole.clone(), record(HEARTBEAT, TLS_1_2, &[1, 0x40, 0])].concat();
    assert!(matches!(answer(&served, &heartbeat), Answer::Hello(..)));
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        let mut stream = served.connect();
        stream.write_all(&damaged).expect("the server reads");
        stream.shutdown(std::net::Shutdown::Write).expect("the connection is open");
        let mut rest = Vec::new();
        // It may be reset, because the server does not read on after an alert.
        let _ = stream.read_to_end(&mut rest);
    }
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..],
        &record(HANDSHAKE, TLS_1_2, &[0xff; 600]),
        &record(ALERT, TLS_1_2, &[2, 0]),
        &record(23, TLS_1_2, b"GET / HTTP/1.1\r\n\r\n"),
        // Longer than a record may be.
        &[&[HANDSHAKE, 3, 3, 0xff, 0xff][..], &[1; 0xffff]].concat(),
    ] {
        let mut stream = served.connect();
        // The server may have closed the connection before it has read all.
        let _ = stream.write_all(bytes);
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(!rest.starts_with(b"HTTP"), "{rest:?}");
    }
    let fine = openssl(&folder, &served, &["-tls1_3"], "");
    assert!(fine.is_none_or(|said| said.contains("New, TLSv1.3")));
}

/// Connects by `openssl s_client` with these further arguments, and returns its output; `None` if it is not installed.
#[allow(clippy::print_stderr, reason = "a test says that it was skipped")]
fn openssl(folder: &Folder, served: &Served, arguments: &[&str], input: &str) -> Option<String> {
    let path = folder.program();
    let common = ["s_client", "-connect", &served.address, "-CAfile", "certificate.pem"];
    let mut command = Command::new("openssl");
    command.args(common).args(arguments).current_dir(path.trim_end_matches("main.weir"));
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut process) = spawned else {
        eprintln!("skipped: openssl is not installed");
        return None;
    };
    let mut stdin = process.stdin.take().expect("it is piped");
    // It may have ended already.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = process.wait_with_output().expect("it ends");
    Some(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn the_application_protocol_is_negotiated() {
    let Some((folder, served)) = start("probe-alpn", "") else { return };
    for (offered, chosen) in
        [("h2,http/1.1", "h2"), ("http/1.1,h2", "h2"), ("http/1.1", "http/1.1"), ("acme,http/1.1", "http/1.1")]
    {
        for version in ["-tls1_2", "-tls1_3"] {
            let Some(said) = openssl(&folder, &served, &[version, "-alpn", offered], "") else { return };
            assert!(said.contains(&format!("ALPN protocol: {chosen}\n")), "{offered} {version}: {said}");
        }
    }
    let Some(said) = openssl(&folder, &served, &[], "") else { return };
    assert!(said.contains("No ALPN negotiated") && said.contains("Verify return code: 0 (ok)"), "{said}");
    let acme = (ALPN, vec![0, 5, 4, b'a', b'c', b'm', b'e']);
    let refused = probe(&served, &Hello { further: vec![acme], ..Hello::MODERN });
    assert_eq!(refused, Answer::Refused(NO_APPLICATION_PROTOCOL));
}

/// The client decides whether the certificate is that of the host.
#[test]
fn a_client_that_names_another_host_gets_the_certificate_of_the_service() {
    let Some((folder, served)) = start("probe-names", "") else { return };
    for name in ["localhost", "other.example", "a.b.c.d.e"] {
        let arguments = ["-servername", name, "-verify_hostname", name];
        let Some(said) = openssl(&folder, &served, &arguments, "") else { return };
        let verified = if name == "localhost" { "Verify return code: 0 (ok)" } else { "hostname mismatch" };
        assert!(said.contains("CN = localhost") && said.contains(verified), "{name}: {said}");
    }
}

/// The server ignores the client's second handshake, and the connection ends when it has been idle for too long.
#[test]
fn a_client_cannot_renegotiate() {
    let Some((folder, served)) = start("probe-renegotiation", "idle_timeout: 2s") else { return };
    // `R` at the beginning of a line renegotiates.
    let Some(said) = openssl(&folder, &served, &["-tls1_2"], "R\n") else { return };
    assert_eq!(said.matches("verify return:1").count(), 1, "{said}");
}
