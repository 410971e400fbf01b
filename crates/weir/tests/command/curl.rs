//! Cookies, forms, files, compression and errors over TLS, as curl sends and reads them.

use crate::streams::Folder;
use crate::support::{Served, weir};
use crate::tls::{certify, curl};

const PROGRAM: &str = r#"use html, http

record Credentials { name: Text, password: Text }
record Upload { title: Text, picture: html.Part }

secret cookie_key: Bytes

service site on http(
  port: 8443,
  certificate: "certificate.pem",
  key: "key.pem",
  cookie_keys: [cookie_key],
  allowed_origins: ["https://app.example"],
  body_bytes_max: 64kb,
) {
  get "/" (encrypted_cookie user: Option(Text), cookie theme: Text = "light") {
    let name = user else { return http.status(401, "log in first")? }
    http.text("{name} {theme}")
  }
  post "/login" (form sent: Credentials) {
    if sent.password != "secret" { return http.status(401, "wrong password")? }
    http.redirect("/") |> http.with_encrypted_cookie("user", sent.name)? |> http.with_cookie("theme", "dark")?
  }
  post "/logout" { http.redirect("/") |> http.without_cookie("user")? }
  post "/upload" (form sent: Upload) {
    let name = sent.picture.file_name else { "none" }
    http.text("{sent.title} {name} {sent.picture.media_type else { "" }} {sent.picture.content.length()}")
  }
  get "/search" (tag: List(Text)) { http.json(tag) }
  get "/files/{path..}" (path: Text) { http.file("files/{path}", max_age: 1h) else { http.not_found() } }
}
"#;
/// 32 bytes in base64.
const KEY: (&str, &str) = ("WEIR_COOKIE_KEY", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");

/// Returns a folder with the program, its certificate and its files, and the running program; `None` if `openssl` is not
/// installed.
fn start(name: &str) -> Option<(Folder, Served)> {
    let folder = Folder::new(name, PROGRAM);
    certify(&folder, "certificate.pem", "key.pem")?;
    folder.create("files");
    folder.write("files/numbers.txt", &"0123456789".repeat(1_000));
    let mut command = weir(&["run", &folder.program(), "--port", "0"]);
    command.envs([KEY]);
    Some((folder, Served::spawn(command)))
}

/// Sends each request, whose arguments are separated by `|`, and compares what curl prints.
fn expect(folder: &Folder, served: &Served, requests: &[(&str, &str)]) -> Option<()> {
    for (arguments, expected) in requests {
        let found = curl(folder, served, &arguments.split('|').collect::<Vec<_>>())?;
        assert_eq!(found, (true, (*expected).to_owned()), "curl {arguments}");
    }
    Some(())
}

/// The cookies of a session travel through the file in which curl keeps them.
#[test]
fn curl_keeps_a_session_from_login_to_logout() {
    let Some((folder, served)) = start("curl-session") else { return };
    let requests = [
        ("-b|jar|-c|jar|/", "log in first"),
        ("-b|jar|-c|jar|-d|name=ada&password=wrong|/login", "wrong password"),
        ("-b|jar|-c|jar|/", "log in first"),
        // The redirect is followed with `GET`, and with the cookies that the answer has set.
        ("-b|jar|-c|jar|-L|-d|name=ada&password=secret|/login", "ada dark"),
        ("-b|jar|-c|jar|/", "ada dark"),
        ("-b|jar|-c|jar|--http1.1|/", "ada dark"),
        ("-b|jar|-H|Origin: https://b.example|-o|ignored|-w|%{http_code}|-X|POST|/logout", "403"),
        ("-b|jar|-c|jar|-o|ignored|-w|%{http_code}|-d||/logout", "303"),
        ("-b|jar|-c|jar|/", "log in first"),
    ];
    if expect(&folder, &served, &requests).is_none() {
        return;
    }
    let kept = folder.read("jar");
    assert!(kept.contains("__Host-theme\tdark") && !kept.contains("__Host-user"), "{kept}");
}

#[test]
fn curl_sends_forms_and_reads_files_and_errors() {
    let Some((folder, served)) = start("curl-forms") else { return };
    folder.write("big", &"x".repeat(100_000));
    folder.write("huge", &"x".repeat(10_000_000));
    let problem = r#"{"title":"Unauthorized","status":401,"detail":"log in first"} application/problem+json"#;
    let requests = [
        ("-F|title=Dawn|-F|picture=@files/numbers.txt;type=text/plain|/upload", "Dawn numbers.txt text/plain 10000"),
        // Answers that come before the end of what curl sends.
        ("--http1.1|-F|title=Dawn|-F|picture=@big|-o|ignored|-w|%{http_code}|/upload", "413"),
        ("-F|title=Dawn|-F|picture=@big|-o|ignored|-w|%{http_code}|/upload", "413"),
        ("-F|title=Dawn|-F|picture=@huge|-o|ignored|-w|%{http_code}|/upload", "413"),
        ("-H|Origin: https://b.example|-F|title=Dawn|-F|picture=@big|-o|ignored|-w|%{http_code}|/upload", "403"),
        ("-H|Origin: https://b.example|-d|a=b|-o|ignored|-w|%{http_code}|/logout", "403"),
        ("-d|a=b|-o|ignored|-w|%{http_code}|/nowhere", "404"),
        ("-d|a=b|-o|ignored|-w|%{http_code}|/search", "405"),
        ("-F|title=Dawn|-o|ignored|-w|%{http_code}|/upload", "400"),
        ("-d|title=Dawn|-o|ignored|-w|%{http_code}|/upload", "400"),
        ("-H|Content-Type: text/csv|-d|a|-o|ignored|-w|%{http_code}|/upload", "415"),
        ("-G|-d|tag=a|--data-urlencode|tag=b & c|/search", r#"["a","b & c"]"#),
        ("-r|10-14|-w| %{http_code}|/files/numbers.txt", "01234 206"),
        ("-r|20000-|-o|ignored|-w|%{http_code}|/files/numbers.txt", "416"),
        ("--etag-save|tag|-o|ignored|-w|%{http_code}|/files/numbers.txt", "200"),
        ("--etag-compare|tag|-o|ignored|-w|%{http_code}|/files/numbers.txt", "304"),
        ("--path-as-is|-o|ignored|-w|%{http_code}|/files/../key.pem", "404"),
        ("--path-as-is|-o|ignored|-w|%{http_code}|/files/%2e%2e/key.pem", "404"),
        ("-H|Accept: application/json|-w| %{content_type}|/", problem),
        ("-X|OPTIONS|-H|Origin: https://app.example|-H|Access-Control-Request-Method: PUT|-w|%{http_code}|/", "204"),
        ("-X|DELETE|-o|ignored|-w|%{http_code}|/", "405"),
        ("-I|-o|ignored|-w|%{http_code} %header{content-length}|/files/numbers.txt", "200 10000"),
    ];
    if expect(&folder, &served, &requests).is_none() {
        return;
    }
    let arguments = ["--compressed", "-w", " %{size_download}", "/files/numbers.txt"];
    let (_, read) = curl(&folder, &served, &arguments).expect("curl is installed");
    let (text, sent) = read.rsplit_once(' ').expect("a text and a number");
    assert!(text == "0123456789".repeat(1_000) && sent.parse().is_ok_and(|sent: u64| sent < 500), "{sent}");
}
