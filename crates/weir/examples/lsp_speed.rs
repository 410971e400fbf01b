//! Latency of the language server: edits a program of 10,000 lines over the Language Server Protocol, and measures the
//! time from each edit to its diagnostics, to a hover and to a completion, including pipes, JSON and the check.
//!
//! Run it with `cargo run --release -p weir --example lsp_speed`. Without an argument it starts itself as the server.
#![allow(clippy::print_stdout, reason = "an example says what it measured")]

use std::io::{BufRead, BufReader, Error, Read, Result, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::long_program;

/// Number of measurements of each kind.
const ROUNDS: usize = 200;

/// The lines of the program.
const LINES: usize = 10_000;

const ADDRESS: &str = "file:///made.weir";

/// The text that the edits replace, in the middle of the program.
const EDITED: &str = "half - 10";

/// An editor, and the server that it started.
struct Editor {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    asked: i64,
    version: i64,
    /// The version of the text whose diagnostics the server has published.
    told: i64,
    text: String,
}

impl Editor {
    fn start(text: String) -> Result<Editor> {
        let mut server =
            Command::new(std::env::current_exe()?).arg("lsp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = server.stdin.take().ok_or_else(|| Error::other("standard input is piped"))?;
        let output = server.stdout.take().ok_or_else(|| Error::other("standard output is piped"))?;
        let mut editor = Editor { server, input, output: BufReader::new(output), asked: 0, version: 1, told: 0, text };
        editor.answer("initialize", json!({ "capabilities": {} }))?;
        editor.send(&json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }))?;
        let document = json!({ "uri": ADDRESS, "languageId": "weir", "version": 1, "text": editor.text });
        let params = json!({ "textDocument": document });
        editor.send(&json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": params }))?;
        editor.told()?;
        Ok(editor)
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len())?;
        self.input.flush()
    }

    fn receive(&mut self) -> Result<Value> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err(Error::other("the server has gone"));
            }
            match line.trim().strip_prefix("Content-Length: ") {
                Some(number) => length = number.parse().map_err(Error::other)?,
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut bytes = vec![0; length];
        self.output.read_exact(&mut bytes)?;
        let message: Value = serde_json::from_slice(&bytes).map_err(Error::other)?;
        if message["method"] == "textDocument/publishDiagnostics" {
            self.told = message["params"]["version"].as_i64().unwrap_or_default();
        }
        Ok(message)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<()> {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }

    /// Waits for the answer to what was asked last.
    fn answered(&mut self) -> Result<Value> {
        loop {
            let message = self.receive()?;
            if message["id"] == self.asked {
                return Ok(message["result"].clone());
            }
        }
    }

    fn answer(&mut self, method: &str, params: Value) -> Result<Value> {
        self.ask(method, &params)?;
        self.answered()
    }

    /// Waits until the server says what is wrong with the text as it is.
    fn told(&mut self) -> Result<()> {
        while self.told < self.version {
            self.receive()?;
        }
        Ok(())
    }

    /// Types another number in the middle, and gives the place behind it.
    fn edit(&mut self, round: usize) -> Result<Value> {
        let middle = self.text.len() / 2;
        let at = self.text[middle..].find("half - ").map_or(middle, |found| middle + found);
        let end = self.text[at..].find(" }").map_or(at, |found| at + found);
        self.text.replace_range(at..end, &format!("{EDITED}{}", round % 10));
        self.version += 1;
        let line_start = self.text[..at].rfind('\n').map_or(0, |found| found + 1);
        let line = self.text[..at].matches('\n').count();
        let params = json!({
            "textDocument": { "uri": ADDRESS, "version": self.version },
            "contentChanges": [{ "text": self.text }],
        });
        self.send(&json!({ "jsonrpc": "2.0", "method": "textDocument/didChange", "params": params }))?;
        let position = json!({ "line": line, "character": at - line_start + 2 });
        Ok(json!({ "textDocument": { "uri": ADDRESS }, "position": position }))
    }

    /// Sorted times from an edit to the answer to a question, or where there is none, to what is wrong.
    fn measure(&mut self, question: Option<&str>) -> Result<Vec<Duration>> {
        let mut times = Vec::with_capacity(ROUNDS);
        for round in 0..ROUNDS {
            let begin = Instant::now();
            let place = self.edit(round)?;
            if let Some(method) = question {
                let answer = self.answer(method, place)?;
                times.push(begin.elapsed());
                assert!(!answer.is_null(), "there is an answer to {method}");
                self.told()?;
            } else {
                self.told()?;
                times.push(begin.elapsed());
            }
        }
        times.sort();
        Ok(times)
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn measured() -> Result<()> {
    let mut editor = Editor::start(long_program::with_lines(LINES))?;
    println!("{} lines, {} KiB", editor.text.lines().count(), editor.text.len() / 1024);
    let ways = [
        ("what is wrong", None),
        ("hover", Some("textDocument/hover")),
        ("completion", Some("textDocument/completion")),
    ];
    for (name, question) in ways {
        let times = editor.measure(question)?;
        let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
        println!("an edit, then {name}: median {:.1} ms, 99 of 100 within {:.1} ms", at(50), at(99));
    }
    Ok(())
}

fn main() -> weir::Exit {
    if std::env::args().len() > 1 {
        return weir::cli().run();
    }
    measured().map_or(weir::Exit::Environment, |()| weir::Exit::Success)
}
