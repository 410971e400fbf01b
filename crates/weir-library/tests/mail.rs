//! Mail, against a small SMTP server.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]
#![allow(clippy::print_stderr, reason = "a test says that it was skipped")]

mod certificates;

use std::time::Duration;

use certificates::Certificate;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use weir::{Failure, FailureKind, Secret};
use weir_library::mail::{self, MailOptions};
use weir_library::network::Network;

/// Longer than any of these exchanges takes.
const PATIENCE: Duration = Duration::from_secs(20);

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn options(port: u16) -> MailOptions {
    MailOptions {
        html: None,
        reply_to: "".into(),
        user: "".into(),
        password: None,
        port: port.into(),
        tls: false,
        starttls: false,
        timeout: PATIENCE,
        private: true,
    }
}

/// Serves one connection, and returns all that the client has said.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) -> String {
    stream.write_all(b"220 ready\r\n").await.unwrap();
    serve_greeted(stream).await
}

/// Serves the connection of a client that has been greeted. Recipients at `no.example` are refused.
async fn serve_greeted<S: AsyncRead + AsyncWrite + Unpin>(stream: S) -> String {
    let mut stream = BufReader::new(stream);
    let (mut said, mut in_data) = (String::new(), false);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return said;
        }
        said += &line;
        let answer = match line.trim_end() {
            "." if in_data => {
                in_data = false;
                "250 taken"
            }
            _ if in_data => continue,
            "DATA" => {
                in_data = true;
                "354 go on"
            }
            "QUIT" => "221 bye",
            line if line.starts_with("EHLO") => "250-a.example\r\n250 AUTH PLAIN",
            line if line.starts_with("AUTH") => "235 welcome",
            line if line.contains("no.example") => "550 nobody of this name",
            _ => "250 well",
        };
        stream.write_all(format!("{answer}\r\n").as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
    }
}

/// Sends a message to these recipients through a server without TLS; returns the result and what the server has heard.
fn sent(to: &[&str], subject: &str, change: impl FnOnce(&mut MailOptions)) -> (Result<(), Failure>, String) {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut options = options(listener.local_addr().unwrap().port());
        change(&mut options);
        let server = tokio::spawn(async move { serve(listener.accept().await.unwrap().0).await });
        let network = Network::default();
        let to = to.iter().map(|to| (*to).into()).collect();
        let text = "Hello.\n.\nQUIT".into();
        let from = "Shop <shop@a.example>".into();
        let sent = mail::send(&network, "127.0.0.1".into(), from, to, subject.into(), text, options).await;
        if sent.is_err() && !server.is_finished() {
            server.abort();
        }
        (sent, server.await.unwrap_or_default())
    })
}

#[test]
fn a_message_reaches_its_recipients() {
    let (outcome, heard) = sent(&["Ada <ada@b.example>", "bob@c.example"], "Grüße", |_| ());
    outcome.unwrap();
    for line in ["EHLO a.example", "MAIL FROM:<shop@a.example>", "RCPT TO:<ada@b.example>", "RCPT TO:<bob@c.example>"] {
        assert!(heard.contains(line), "{line}: {heard}");
    }
    assert!(heard.contains("From: Shop <shop@a.example>\r\n") && heard.contains("Subject: =?utf-8?"), "{heard}");
    assert!(heard.contains("@a.example>\r\n") && heard.contains("Message-ID: <"), "{heard}");
    // A line with a single dot does not end the message.
    assert!(heard.contains("Hello.\r\n..\r\nQUIT\r\n.\r\nQUIT\r\n"), "{heard}");
}

#[test]
fn a_refused_recipient_and_a_silent_server_are_failures() {
    let (outcome, heard) = sent(&["ada@b.example", "eve@no.example"], "Hello", |_| ());
    let said = outcome.unwrap_err().message.to_string();
    assert!(said.starts_with("`127.0.0.1` has not taken the message: ") && said.contains("550"), "{said}");
    assert!(!heard.contains("DATA"), "{heard}");
    block_on(async {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = silent.local_addr().unwrap().port();
        let options = MailOptions { timeout: Duration::from_millis(20), ..options(port) };
        let (network, to) = (Network::default(), vec!["a@b.example".into()]);
        let from = "shop@a.example".into();
        let late =
            mail::send(&network, "127.0.0.1".into(), from, to, "x".into(), "x".into(), options).await.unwrap_err();
        assert_eq!(late.kind, FailureKind::Timeout);
        assert_eq!(late.message.as_str(), "`127.0.0.1` did not take the message within 20ms");
    });
}

#[test]
fn nothing_can_be_injected_and_a_password_stays_secret() {
    let refused = |to: &[&str], subject: &str, change: fn(&mut MailOptions)| {
        let (outcome, heard) = sent(to, subject, change);
        assert_eq!(heard, "");
        outcome.unwrap_err().message.to_string()
    };
    assert_eq!(refused(&["a@b.example"], "x\r\nBcc: eve@c.example", |_| ()), "a subject is one line");
    assert!(refused(&["a@b.example\r\nRCPT TO:<eve@c.example>"], "x", |_| ()).contains("not one line"));
    assert!(refused(&["nobody"], "x", |_| ()).contains("is not an address"));
    assert!(refused(&[], "x", |_| ()).contains("1 to 100 recipients"));
    let said = refused(&["a@b.example"], "x", |options| options.password = Some(Secret::new("secret".into())));
    assert_eq!(said, "a password is sent over TLS only");
    let said = refused(&["a@b.example"], "x", |options| options.starttls = true);
    assert_eq!(said, "`starttls: true` begins TLS, which `tls: false` excludes");
    let said = refused(&["a@b.example"], "x", |options| options.private = false);
    assert!(said.contains("has the private address"), "{said}");
}

#[test]
fn a_password_is_sent_over_tls() {
    let Some(certificate) = Certificate::new("mail") else { return };
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = certificate.acceptor(&[]);
        let server = tokio::spawn(async move {
            let stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
            serve(stream).await
        });
        let network =
            Network::default().with_hosts([("a.example".to_owned(), address)]).with_roots(certificate.roots());
        let password = Some(Secret::new("secret".into()));
        let options = MailOptions { tls: true, user: "shop".into(), password, ..options(address.port()) };
        let (from, to) = ("shop@a.example".into(), vec!["ada@b.example".into()]);
        mail::send(&network, "a.example".into(), from, to, "x".into(), "x".into(), options).await.unwrap();
        // The text of `\0shop\0secret` in base64.
        assert!(server.await.unwrap().contains("AUTH PLAIN AHNob3AAc2VjcmV0"));
    });
}

/// Behaviour of a server that is asked to begin TLS.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Upgrade {
    Works,
    /// Somebody has removed the offer.
    NotOffered,
    Refused,
    /// Somebody has put an answer behind that to `STARTTLS`, without TLS.
    Injected,
    /// The line never ends.
    Endless,
}

/// Sends a message to a server with `STARTTLS`. Returns the outcome, what the server has heard before TLS, and over TLS.
fn upgraded(certificate: &Certificate, upgrade: Upgrade) -> (Result<(), Failure>, String, String) {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = certificate.acceptor(&[]);
        let server = tokio::spawn(async move {
            let mut stream = listener.accept().await.unwrap().0;
            let before = before_tls(&mut stream, upgrade).await;
            match acceptor.accept(stream).await {
                Ok(stream) => (before, serve_greeted(stream).await),
                Err(_) => (before, String::new()),
            }
        });
        let network =
            Network::default().with_hosts([("a.example".to_owned(), address)]).with_roots(certificate.roots());
        let password = Some(Secret::new("secret".into()));
        let options =
            MailOptions { tls: true, starttls: true, user: "shop".into(), password, ..options(address.port()) };
        let (from, to) = ("shop@a.example".into(), vec!["ada@b.example".into()]);
        let sent = mail::send(&network, "a.example".into(), from, to, "x".into(), "x".into(), options).await;
        let (before, over) = server.await.unwrap();
        (sent, before, over)
    })
}

/// Serves a connection up to TLS, and returns what the client has said.
async fn before_tls(stream: &mut tokio::net::TcpStream, upgrade: Upgrade) -> String {
    let mut stream = BufReader::new(stream);
    stream.write_all(b"220-a.example\r\n220 ready\r\n").await.unwrap();
    let mut said = String::new();
    while stream.read_line(&mut said).await.unwrap_or(0) > 0 {
        let is_last = said.ends_with("STARTTLS\r\n");
        let answer = match (is_last, upgrade) {
            (false, Upgrade::NotOffered) => "250-a.example\r\n250 XSTARTTLS\r\n".to_owned(),
            (false, _) => "250-a.example\r\n250-starttls\r\n250 AUTH PLAIN\r\n".to_owned(),
            (true, Upgrade::Refused) => "454 no key\r\n".to_owned(),
            (true, Upgrade::Injected) => "220 go on\r\n250-a.example\r\n250 AUTH PLAIN\r\n".to_owned(),
            (true, Upgrade::Endless) => "2".repeat(100_000),
            (true, _) => "220 go on\r\n".to_owned(),
        };
        if stream.write_all(answer.as_bytes()).await.is_err() || is_last {
            break;
        }
    }
    said
}

#[test]
fn starttls_protects_everything_behind_it() {
    let Some(certificate) = Certificate::new("starttls") else { return };
    let (outcome, before, over) = upgraded(&certificate, Upgrade::Works);
    outcome.unwrap();
    assert_eq!(before, "EHLO a.example\r\nSTARTTLS\r\n");
    for line in ["EHLO a.example", "AUTH PLAIN AHNob3AAc2VjcmV0", "RCPT TO:<ada@b.example>", "Subject: x", "QUIT"] {
        assert!(over.contains(line), "{line}: {over}");
    }
}

#[test]
fn a_server_that_does_not_begin_tls_gets_no_mail() {
    let Some(certificate) = Certificate::new("no-starttls") else { return };
    for (upgrade, expected) in [
        (Upgrade::NotOffered, "`a.example` has not begun TLS: it does not offer STARTTLS"),
        (Upgrade::Refused, "`a.example` has not begun TLS: it said \"454 no key\""),
        (Upgrade::Injected, "no TLS with `a.example`"),
        (Upgrade::Endless, "`a.example` has not begun TLS: its answer has more than 65536 bytes"),
    ] {
        let (outcome, before, over) = upgraded(&certificate, upgrade);
        let said = outcome.unwrap_err().message.to_string();
        assert!(said.starts_with(expected), "{said}");
        assert!(!before.contains("AUTH") && !before.contains("MAIL") && over.is_empty(), "{before}{over}");
    }
}
