//! `weir lsp`: a conversation over standard input and output.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{example, weir};

const ADDRESS: &str = "file:///hello.weir";
const TEXT: &str = "use http

/// Greets somebody.
fn greeting(name: Text) -> Text {
  \"Hello, {name}!\"
}

service hello on http(port: 8080) {
  get \"/{name}\" (name: Text) {
    http.text(greeting(name))
  }
}
";

/// A client of the language server.
struct Editor {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: i64,
    /// Published diagnostics, one entry for each notification.
    told: Vec<Value>,
}

impl Editor {
    fn start() -> Editor {
        Editor::of(&mut weir(&["lsp"]))
    }

    fn of(command: &mut Command) -> Editor {
        Editor::able(command, json!({}))
    }

    /// Starts a server for an editor with these capabilities.
    fn able(command: &mut Command, capabilities: Value) -> Editor {
        let mut editor = Editor::unintroduced(command);
        let abilities = editor.ask("initialize", json!({ "capabilities": capabilities }));
        assert_eq!(abilities["capabilities"]["hoverProvider"], true);
        editor.tell("initialized", json!({}));
        editor
    }

    fn unintroduced(command: &mut Command) -> Editor {
        let mut server = command.stdin(Stdio::piped()).spawn().expect("the command starts");
        let input = server.stdin.take();
        let output = BufReader::new(server.stdout.take().expect("standard output is piped"));
        Editor { server, input, output, asked: 0, told: Vec::new() }
    }

    fn open(text: &str) -> Editor {
        Editor::start().with(text)
    }

    fn with(mut self, text: &str) -> Editor {
        let editor = &mut self;
        let document = json!({ "uri": ADDRESS, "languageId": "weir", "version": 1, "text": text });
        editor.tell("textDocument/didOpen", json!({ "textDocument": document }));
        self
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let input = self.input.as_mut().expect("the conversation goes on");
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).and_then(|()| input.flush()).expect("it is sent");
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn change(&mut self, text: &str) {
        let params = json!({ "textDocument": { "uri": ADDRESS, "version": 2 }, "contentChanges": [{ "text": text }] });
        self.tell("textDocument/didChange", params);
    }

    /// Returns the next message of the server; diagnostics are kept.
    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).expect("the server speaks"), 0, "the server has gone");
            match line.trim().strip_prefix("Content-Length: ") {
                Some(number) => length = number.parse().expect("a length"),
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut bytes = vec![0; length];
        self.output.read_exact(&mut bytes).expect("a whole message");
        let message: Value = serde_json::from_slice(&bytes).expect("JSON");
        if message["method"] == "textDocument/publishDiagnostics" {
            self.told.push(message["params"]["diagnostics"].clone());
        }
        message
    }

    /// Returns the whole response to a request.
    fn answer(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Sends a request about the first occurrence of `words` in [`TEXT`], at byte `into` of it.
    fn ask_at(&mut self, method: &str, words: &str, into: usize) -> Value {
        self.ask(method, at(words, into))
    }

    /// Returns the next published diagnostics.
    fn diagnostics(&mut self) -> Value {
        while self.told.is_empty() {
            self.receive();
        }
        self.told.remove(0)
    }

    /// Returns the name in a Rust file that the definition of the name at `column` of `line` points to, up to the
    /// parenthesis.
    fn rust_of(&mut self, line: u32, column: u32) -> String {
        let place = json!({ "line": line, "character": column });
        let params = json!({ "textDocument": { "uri": ADDRESS }, "position": place });
        let found = self.ask("textDocument/definition", params);
        let file = found["uri"].as_str().and_then(|uri| uri.strip_prefix("file://")).expect("a file");
        let start = &found["range"]["start"];
        let number = |name: &str| start[name].as_u64().expect("a number") as usize;
        let text = std::fs::read_to_string(file).expect("the file is there");
        let line = text.lines().nth(number("line")).expect("the file has the line");
        let name = line[number("character")..].split('(').next().unwrap_or_default();
        format!("{name} in {}", file.rsplit('/').next().unwrap_or_default())
    }

    fn end(mut self) -> Option<i32> {
        self.ask("shutdown", Value::Null);
        self.tell("exit", Value::Null);
        self.input = None;
        self.server.wait().expect("the server ends").code()
    }
}

fn at(words: &str, into: usize) -> Value {
    let offset = TEXT.find(words).expect("the words stand in the text") + into;
    let line = TEXT[..offset].matches('\n').count();
    let column = offset - TEXT[..offset].rfind('\n').map_or(0, |end| end + 1);
    json!({ "textDocument": { "uri": ADDRESS }, "position": { "line": line, "character": column } })
}

#[test]
fn a_program_without_faults_has_no_diagnostics_and_an_edit_brings_them() {
    let mut editor = Editor::open(TEXT);
    assert_eq!(editor.diagnostics(), json!([]));
    editor.change(&TEXT.replace("greeting(name))", "greetin(name))"));
    let found = editor.diagnostics();
    assert_eq!(found[0]["code"], "E0202", "{found}");
    assert_eq!(found[0]["range"]["start"], json!({ "line": 9, "character": 14 }));
    editor.change(TEXT);
    assert_eq!(editor.diagnostics(), json!([]));
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn a_hint_is_a_code_action_that_mends_the_text() {
    let mut editor = Editor::open(&TEXT.replace("greeting(name))", "greetin(name))"));
    let place = json!({ "line": 9, "character": 16 });
    let params = json!({
        "textDocument": { "uri": ADDRESS },
        "range": { "start": place, "end": place },
        "context": { "diagnostics": [] },
    });
    let actions = editor.ask("textDocument/codeAction", params);
    let edit = &actions[0]["edit"]["changes"][ADDRESS][0];
    assert_eq!(edit["newText"], "greeting", "{actions}");
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn types_are_inlay_hints_and_tests_are_code_lenses() {
    let text = "fn f(a: Int) -> Int {\n  let twice = a * 2\n  twice\n}\n\ntest \"doubles\" {\n  expect f(1) == 2\n}\n";
    let mut editor = Editor::open(text);
    let [start, end] = [0, 9].map(|line| json!({ "line": line, "character": 0 }));
    let document = json!({ "uri": ADDRESS });
    for range in [json!({ "start": start, "end": end }), json!({ "start": end, "end": start })] {
        let hints = editor.ask("textDocument/inlayHint", json!({ "textDocument": document, "range": range }));
        assert_eq!((&hints[0]["label"], &hints[0]["position"]["line"]), (&json!(": Int"), &json!(1)), "{hints}");
        assert_eq!(hints[0]["textEdits"][0]["newText"], ": Int", "{hints}");
    }
    let lenses = editor.ask("textDocument/codeLens", json!({ "textDocument": document }));
    assert_eq!(lenses[0]["command"]["arguments"], json!([ADDRESS, "doubles"]), "{lenses}");
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn hovers_say_signature_documentation_and_effects() {
    let mut editor = Editor::open(TEXT);
    let hover = editor.ask_at("textDocument/hover", "greeting(name))", 2);
    let shown = hover["contents"]["value"].as_str().expect("a text");
    assert!(shown.contains("fn greeting(name: Text) -> Text") && shown.contains("Greets somebody."), "{shown}");
    let hover = editor.ask_at("textDocument/hover", "http.text", 6);
    assert!(hover["contents"]["value"].as_str().expect("a text").contains("http.text("), "{hover}");
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn names_lead_to_their_definition_and_their_uses() {
    let mut editor = Editor::open(TEXT);
    let definition = editor.ask_at("textDocument/definition", "greeting(name))", 2);
    assert_eq!(definition["range"]["start"], json!({ "line": 3, "character": 3 }));
    let uses = editor.ask_at("textDocument/references", "greeting(name: Text)", 2);
    assert_eq!(uses.as_array().map(Vec::len), Some(2), "{uses}");
    let renamed = editor.ask("textDocument/rename", {
        let mut params = at("greeting(name: Text)", 2);
        params["newName"] = json!("welcome");
        params
    });
    assert_eq!(renamed["changes"][ADDRESS].as_array().map(Vec::len), Some(2), "{renamed}");
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn functions_of_the_library_lead_to_their_rust() {
    let mut editor = Editor::open(TEXT);
    assert_eq!(editor.rust_of(9, 10), "text in response.rs");
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn functions_of_the_own_project_lead_to_their_rust() {
    // `weir new --rust` creates the same program.
    let text = "use words\n\nfn twice(text: Text) -> Int {\n  2 * words.count(text, \"la\")\n}\n";
    let mut editor = Editor::of(&mut example("words", &["lsp"])).with(text);
    assert_eq!(editor.rust_of(3, 14), "count in words.rs");
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn completion_knows_the_library_and_formatting_the_style() {
    let mut editor = Editor::open(TEXT);
    let found = editor.ask_at("textDocument/completion", "http.text", 5);
    let labels: Vec<&str> =
        found["items"].as_array().expect("items").iter().filter_map(|item| item["label"].as_str()).collect();
    assert!(labels.contains(&"bad_request") && labels.contains(&"text"), "{labels:?}");
    let params = json!({ "textDocument": { "uri": ADDRESS }, "options": { "tabSize": 2, "insertSpaces": true } });
    assert_eq!(editor.ask("textDocument/formatting", params.clone()), json!([]));
    editor.change(&TEXT.replace("  get", "get"));
    assert_ne!(editor.ask("textDocument/formatting", params), json!([]));
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn what_cannot_be_answered_is_refused_and_the_server_goes_on() {
    let mut editor = Editor::open(TEXT);
    assert_eq!(editor.answer("textDocument/moonPhase", json!({}))["error"]["code"], -32601);
    assert_eq!(
        editor.answer("textDocument/hover", json!({ "textDocument": { "uri": "file:///other" } }))["error"]["code"],
        -32602
    );
    assert!(editor.answer("textDocument/hover", json!({ "textDocument": { "uri": ADDRESS } }))["error"].is_object());
    let mut params = at("http.text", 6);
    params["newName"] = json!("other");
    assert!(
        editor.answer("textDocument/rename", params)["error"]["message"].as_str().expect("why").contains("library")
    );
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn a_message_that_announces_too_many_bytes_is_refused() {
    for before_initialize in [true, false] {
        let mut command = weir(&["lsp"]);
        let mut editor = match before_initialize {
            true => Editor::unintroduced(command.stderr(Stdio::piped())),
            false => Editor::of(command.stderr(Stdio::piped())),
        };
        let mut input = editor.input.take().expect("the conversation goes on");
        write!(input, "Content-Length: 99999999999\r\n\r\n").and_then(|()| input.flush()).expect("it is sent");
        let ended = editor.server.wait_with_output().expect("the server ends");
        assert_eq!(ended.status.code(), Some(3), "{ended:?}");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(said.contains("a message of 99999999999 bytes was announced"), "{said}");
    }
}

/// Returns the URI of a file.
fn uri(path: &std::path::Path) -> String {
    format!("file://{}", path.display())
}

#[test]
fn definitions_references_and_renamings_go_across_the_files_of_a_program() {
    let folder = crate::support::Scratch::folder("program");
    let (main, module) = (
        std::path::Path::new(folder.path()).join("main.weir"),
        std::path::Path::new(folder.path()).join("prices.weir"),
    );
    let main_text = "use prices\n\nfn shown() -> Text { \"{prices.price(3)}\" }\n";
    std::fs::write(&main, main_text).expect("the folder is ours");
    std::fs::write(&module, "pub fn price(n: Int) -> Int { n }\n").expect("the folder is ours");
    let mut editor = Editor::start();
    for (path, text) in
        [(&main, main_text), (&module, "/// The price.\npub fn price(count: Int) -> Int { count * 2 }\n")]
    {
        let document = json!({ "uri": uri(path), "languageId": "weir", "version": 1, "text": text });
        editor.tell("textDocument/didOpen", json!({ "textDocument": document }));
    }
    let at = |path, line: u32, character: u32| json!({ "textDocument": { "uri": uri(path) }, "position": { "line": line, "character": character } });
    let definition = editor.ask("textDocument/definition", at(&main, 2, 33));
    assert_eq!(definition["uri"], uri(&module));
    assert_eq!(
        definition["range"]["start"],
        json!({ "line": 1, "character": 7 }),
        "the open text counts, not that on disk"
    );
    let hover = editor.ask("textDocument/hover", at(&main, 2, 33));
    assert!(hover["contents"]["value"].as_str().is_some_and(|text| text.contains("The price.")), "{hover}");
    let references = editor.ask("textDocument/references", at(&module, 1, 9));
    assert_eq!(references.as_array().map(Vec::len), Some(2), "{references}");
    let mut rename = at(&module, 1, 9);
    rename["newName"] = json!("cost");
    let changes = editor.ask("textDocument/rename", rename);
    assert_eq!(changes["changes"][uri(&main)][0]["newText"], "cost", "{changes}");
    assert_eq!(changes["changes"][uri(&module)][0]["range"]["start"]["line"], 1, "{changes}");
    let mut text = json!({ "uri": uri(&module), "version": 2 });
    text["languageId"] = json!("weir");
    let params = json!({ "textDocument": text, "contentChanges": [{ "text": "fn price(n: Int) -> Int { n }\n" }] });
    editor.tell("textDocument/didChange", params);
    editor.ask("textDocument/documentSymbol", at(&main, 0, 0));
    let told = |told: &Value| told[0]["code"] == "E0213";
    while !editor.told.iter().any(told) {
        editor.ask("textDocument/documentSymbol", at(&main, 0, 0));
    }
}

/// Opens a file in the editor.
fn open(editor: &mut Editor, path: &std::path::Path, text: &str) {
    let document = json!({ "uri": uri(path), "languageId": "weir", "version": 1, "text": text });
    editor.tell("textDocument/didOpen", json!({ "textDocument": document }));
}

#[test]
fn a_closed_file_that_changes_on_disk_is_read_again() {
    let folder = crate::support::Scratch::folder("watched");
    let (main, module) = (
        std::path::Path::new(folder.path()).join("main.weir"),
        std::path::Path::new(folder.path()).join("prices.weir"),
    );
    std::fs::write(&module, "pub fn price(n: Int) -> Int { n }\n").expect("the folder is ours");
    let watches = json!({ "workspace": { "didChangeWatchedFiles": { "dynamicRegistration": true } } });
    let mut editor = Editor::able(&mut weir(&["lsp"]), watches);
    let asked = editor.receive();
    assert_eq!(asked["method"], "client/registerCapability", "{asked}");
    assert_eq!(asked["params"]["registrations"][0]["method"], "workspace/didChangeWatchedFiles");
    open(&mut editor, &main, "use prices\n\ntest \"a price\" { expect prices.price(3) == 3 }\n");
    assert_eq!(editor.diagnostics(), json!([]));
    std::fs::write(&module, "fn price(n: Int) -> Int { n }\n").expect("the folder is ours");
    let change = json!({ "changes": [{ "uri": uri(&module), "type": 2 }] });
    editor.tell("workspace/didChangeWatchedFiles", change);
    assert_eq!(editor.diagnostics()[0]["code"], "E0213");
    std::fs::remove_file(&module).expect("the folder is ours");
    editor.tell("workspace/didChangeWatchedFiles", json!({ "changes": [{ "uri": uri(&module), "type": 3 }] }));
    assert_eq!(editor.diagnostics()[0]["code"], "E0201");
}

#[test]
fn a_new_file_is_a_module_before_it_is_saved() {
    let folder = crate::support::Scratch::folder("unsaved");
    let (main, module) = (
        std::path::Path::new(folder.path()).join("main.weir"),
        std::path::Path::new(folder.path()).join("billing/prices.weir"),
    );
    let mut editor = Editor::start();
    open(&mut editor, &main, "use billing.prices\n\ntest \"a price\" { expect prices.price(3) == 3 }\n");
    assert_eq!(editor.diagnostics()[0]["code"], "E0201");
    open(&mut editor, &module, "pub fn price(n: Int) -> Int { n }\n");
    let mut told = [editor.diagnostics(), editor.diagnostics()];
    told.sort_by_key(|told| told.to_string());
    assert_eq!(told[0], json!([]), "{told:?}");
    assert_eq!(told[1], json!([]), "{told:?}");
}
