//! Services over TLS, with certificates that `openssl` makes and requests by `curl`.

use std::io::Read;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::streams::Folder;
use crate::support::{Served, say};

const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the program of a service with these further arguments of `http`.
fn program(arguments: &str) -> String {
    format!(
        "use http\n\nservice pages on http(port: 1, certificate: \"certificate.pem\", key: \"key.pem\", {arguments}) {{\n  \
         get \"/\" {{ http.text(\"hello\") }}\n  post \"/echo\" (body sent: Bytes) {{ http.ok(sent) }}\n}}\n"
    )
}

/// Runs a command in the folder, and returns its success and output; `None` if it is not installed.
#[allow(clippy::print_stderr, reason = "a test says that it was skipped")]
fn run(folder: &Folder, command: &str, arguments: &[&str]) -> Option<(bool, Vec<u8>)> {
    let path = folder.program();
    let output = Command::new(command).args(arguments).current_dir(path.trim_end_matches("main.weir")).output();
    let Ok(output) = output else {
        eprintln!("skipped: {command} is not installed");
        return None;
    };
    Some((output.status.success(), output.stdout))
}

/// Makes a certificate for `localhost` that signs itself, and its key, under these names.
pub(crate) fn certify(folder: &Folder, certificate: &str, key: &str) -> Option<()> {
    let common = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
    let names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-out", certificate];
    let rest = ["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key];
    let (made, _) = run(folder, "openssl", &[&common[..], &names, &rest].concat())?;
    assert!(made, "openssl makes a certificate");
    Some(())
}

/// Requests a path; `None` if curl is not installed.
pub(crate) fn curl(folder: &Folder, served: &Served, more: &[&str]) -> Option<(bool, String)> {
    let port = served.address.rsplit(':').next().expect("the address has a port");
    let url = format!("https://localhost:{port}{}", more.last().expect("a path"));
    let common = ["-s", "--max-time", "20", "--cacert", "certificate.pem"];
    let (found, output) = run(folder, "curl", &[&common[..], &more[..more.len() - 1], &[&*url]].concat())?;
    Some((found, String::from_utf8_lossy(&output).into_owned()))
}

/// Returns a folder with a program and its certificate, and the running program; `None` if `openssl` is not installed.
pub(crate) fn start(name: &str, arguments: &str) -> Option<(Folder, Served)> {
    let folder = Folder::new(name, &program(arguments));
    certify(&folder, "certificate.pem", "key.pem")?;
    let served = Served::start(&folder.program(), &[]);
    Some((folder, served))
}

#[test]
fn both_versions_of_http_are_served_over_tls() {
    let Some((folder, served)) = start("tls-versions", "") else { return };
    assert!(served.greeting.contains("https://127.0.0.1"), "{}", served.greeting);
    folder.write("body", &"0123456789".repeat(150_000));
    for (version, seen) in [("--http1.1", "1.1"), ("--http2", "2")] {
        let Some(answer) = curl(&folder, &served, &[version, "-w", " %{http_version}", "/"]) else { return };
        assert_eq!(answer, (true, format!("hello {seen}")));
        let more = [version, "--data-binary", "@body", "-w", " %{http_version}", "/echo"];
        let (_, echoed) = curl(&folder, &served, &more).expect("curl is installed");
        assert!(echoed == format!("{} {seen}", "0123456789".repeat(150_000)), "{version}: {} bytes", echoed.len());
        let twice = [version, "/"].map(str::to_owned);
        assert!(curl(&folder, &served, &[&twice[0], &twice[1]]).is_some());
    }
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn a_connection_without_tls_gets_no_answer() {
    let Some((_folder, served)) = start("tls-plain", "") else { return };
    let mut stream = served.ask("/");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

/// Clients that begin no handshake end at the time limit of a header, and give way to others before.
#[test]
fn slow_handshakes_are_ended_and_give_way() {
    let Some((folder, served)) = start("tls-slow", "header_timeout: 300ms, connections_max: 2") else { return };
    let since = Instant::now();
    let mut silent = served.connect();
    let mut rest = Vec::new();
    let _ = silent.read_to_end(&mut rest);
    assert!(rest.is_empty() && since.elapsed() < PATIENCE);
    drop(served);
    let Some((folder_of_many, served)) = start("tls-shed", "header_timeout: 1h, connections_max: 2") else { return };
    let _silent = [served.connect(), served.connect()];
    if let Some(answer) = curl(&folder_of_many, &served, &["/"]) {
        assert_eq!(answer, (true, "hello".into()));
    }
    drop(folder);
}

/// A new certificate serves new connections without a restart. Files that do not belong together change nothing.
#[test]
fn a_new_certificate_is_used_without_a_restart() {
    let Some((folder, served)) = start("tls-reload", "") else { return };
    let Some(first) = curl(&folder, &served, &["/"]) else { return };
    assert_eq!(first, (true, "hello".into()));
    let key = folder.read("key.pem");
    certify(&folder, "certificate.pem", "key.pem").expect("openssl is installed");
    let new_key = folder.read("key.pem");
    folder.write("key.pem", &key);
    let since = Instant::now();
    // The old certificate is served as long as the files do not belong together, and curl does not trust it any more.
    let refused = || curl(&folder, &served, &["-w", "%{ssl_verify_result}", "/"]).expect("curl is installed");
    let (trusted, _) = refused();
    assert!(!trusted, "the certificate and the key do not belong together");
    folder.write("key.pem", &new_key);
    while !refused().0 {
        assert!(since.elapsed() < PATIENCE, "the new certificate is never used");
        std::thread::yield_now();
    }
    drop(served);
}

#[test]
fn clients_present_a_certificate_if_authorities_are_named() {
    let folder = Folder::new("tls-clients", &program("client_authorities: \"certificate.pem\""));
    if certify(&folder, "certificate.pem", "key.pem").is_none() {
        return;
    }
    let served = Served::start(&folder.program(), &[]);
    let Some((answered, _)) = curl(&folder, &served, &["/"]) else { return };
    assert!(!answered, "a client without a certificate");
    let with = curl(&folder, &served, &["--cert", "certificate.pem", "--key", "key.pem", "/"]);
    assert_eq!(with, Some((true, "hello".into())));
}

#[test]
fn files_that_are_no_certificate_and_key_stop_the_start() {
    let folder = Folder::new("tls-files", &program(""));
    if certify(&folder, "certificate.pem", "other.pem").is_none() {
        return;
    }
    let start = || say(&["run", &folder.program(), "--port", "0"]);
    let said = start();
    assert_eq!(said.code, 3);
    assert!(said.messages.contains("key.pem` for TLS: "), "{}", said.messages);
    certify(&folder, "unused.pem", "key.pem").expect("openssl is installed");
    let said = start();
    assert!(said.messages.contains("key.pem` is not the key of the certificate"), "{}", said.messages);
    folder.write("certificate.pem", "nothing");
    let said = start();
    assert!(said.messages.contains("it contains no certificate in PEM"), "{}", said.messages);
    folder.write("main.weir", &program("").replace("key: \"key.pem\", ", ""));
    let said = start();
    assert!(said.messages.contains("TLS needs both a `certificate` and its `key`"), "{}", said.messages);
}
