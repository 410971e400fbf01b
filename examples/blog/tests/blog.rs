//! Runs the blog as a process, with the same responses under every engine.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longest time to wait for a response, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
const ENGINES: [&str; 2] = ["event", "pool"];

/// A running blog and its address.
struct Blog {
    process: Child,
    address: String,
}

impl Blog {
    fn start(engine: &str) -> Blog {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("main.weir");
        let mut process = Command::new(env!("CARGO_BIN_EXE_blog"))
            .arg("run")
            .arg(program)
            .args(["--port", "0", "--engine", engine, "--threads", "2"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut messages = BufReader::new(process.stderr.take().unwrap());
        let mut greeting = String::new();
        while !greeting.contains("Ctrl-C") {
            assert_ne!(messages.read_line(&mut greeting).unwrap(), 0, "it ended: {greeting}");
        }
        let address = greeting.split("http://").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
        Blog { process, address: address.to_owned() }
    }

    /// Sends a request; returns the status and the body of the response.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (address, length) = (&self.address, body.len());
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
        write!(stream, "{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.ask("GET", path, "")
    }
}

impl Drop for Blog {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn both_panes_show_the_posts() {
    for engine in ENGINES {
        let (status, page) = Blog::start(engine).get("/");
        assert_eq!(status, 200);
        let (nav, main) = page.split_once("</nav>").unwrap();
        assert!(nav.contains("<li>programs (1)</li><li>water (2)</li>"), "{nav}");
        let order = ["Flows", "Rivers &amp; lakes", "Dams"].map(|title| nav.find(title).unwrap());
        assert!(order.is_sorted(), "what was read most comes first: {nav}");
        let order = ["Rivers &amp; lakes", "Flows", "Dams"].map(|title| main.find(title).unwrap());
        assert!(order.is_sorted(), "the newest comes first: {main}");
    }
}

#[test]
fn reading_a_post_counts_and_moves_it_up() {
    for engine in ENGINES {
        let blog = Blog::start(engine);
        for _ in 0..10 {
            assert_eq!(
                blog.get("/posts/0").1,
                "<h1>Dams</h1><p>A weir is a small dam that measures and steers a river.</p>\n"
            );
        }
        let page = blog.get("/").1;
        assert!(page.find("Dams").unwrap() < page.find("Flows").unwrap(), "{page}");
    }
}

#[test]
fn an_added_post_is_shown_as_escaped_text() {
    for engine in ENGINES {
        let blog = Blog::start(engine);
        let draft = r#"{"title": "a < b", "topic": "sums", "content": "\"x\" & y"}"#;
        assert_eq!(blog.ask("POST", "/posts", draft), (201, "/posts/3".to_owned()));
        assert_eq!(blog.get("/posts/3").1, "<h1>a &lt; b</h1><p>&quot;x&quot; &amp; y</p>\n");
        assert!(blog.get("/").1.contains("<li>sums (1)</li>"));
    }
}

#[test]
fn missing_and_incomplete_posts_are_refused() {
    let blog = Blog::start("event");
    assert_eq!(blog.get("/posts/9").0, 404);
    assert_eq!(blog.get("/posts/x").0, 400);
    assert_eq!(blog.ask("POST", "/posts", r#"{"title": "", "topic": "", "content": ""}"#).0, 400);
    let (status, reason) = blog.ask("POST", "/posts", r#"{"title": "t"}"#);
    assert_eq!(status, 400);
    assert!(reason.starts_with("body.topic: missing"), "{reason}");
}
