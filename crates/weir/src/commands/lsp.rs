//! `weir lsp`: a language server (Language Server Protocol 3.17) on standard input and output.
//!
//! Messages are handled one at a time, in order. An edit only replaces the text. The text is checked when a request
//! needs it, or when no message is waiting, so that fast typing is checked once.
//!
//! Only this module knows the JSON of the protocol: [`requests`] translates requests into calls of `weir-ide`, and
//! [`protocol`] the results into JSON.

mod open_files;
mod protocol;
mod requests;
mod transport;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use serde_json::{Value, json};
use weir_host::Library;
use weir_ide::Document;

use self::transport::Transport;
use crate::Exit;
use crate::terminal::Terminal;

/// Serves an editor until it shuts the server down.
pub(crate) fn lsp(library: Library, terminal: &mut Terminal) -> Exit {
    let (connection, transport) = match Transport::start() {
        Ok(started) => started,
        Err(error) => return terminal.fail(Exit::Environment, &format!("the connection failed: {error}"), &[]),
    };
    let editor = match connection.initialize(requests::capabilities()) {
        Ok(editor) => editor,
        Err(error) => {
            drop(connection);
            // If a message could not be read, that is the reason.
            let reason = transport.join().err().map_or_else(|| error.to_string(), |unread| unread.to_string());
            return terminal.fail(Exit::Environment, &format!("the editor does not speak the protocol: {reason}"), &[]);
        }
    };
    let mut server = LanguageServer {
        library: Arc::new(library),
        connection,
        open: BTreeMap::new(),
        replaced: Vec::new(),
        caches: Default::default(),
    };
    if editor["capabilities"]["workspace"]["didChangeWatchedFiles"]["dynamicRegistration"] == true {
        server.send(requests::watch_of_files().into());
    }
    let exit = server.serve();
    // The threads end when both ends of the connection are dropped.
    drop(server);
    match transport.join() {
        Ok(()) => exit,
        Err(error) => terminal.fail(Exit::Environment, &format!("the connection failed: {error}"), &[]),
    }
}

struct LanguageServer {
    library: Arc<Library>,
    connection: Connection,
    /// Open files, by URI.
    open: BTreeMap<String, OpenDocument>,
    /// Documents that an edit has replaced. They are dropped when no message is waiting, because dropping takes time.
    replaced: Vec<Document>,
    caches: open_files::ProgramCaches,
}

/// An open file.
struct OpenDocument {
    text: String,
    version: Value,
    /// The checked document; `None` after an edit.
    checked: Option<Document>,
    /// True if the program of the file may have other files.
    has_other_files: bool,
    /// True if the diagnostics of this text have been published.
    published: bool,
}

impl LanguageServer {
    fn serve(&mut self) -> Exit {
        let mut waiting = VecDeque::new();
        loop {
            waiting.extend(self.connection.receiver.try_iter());
            let Some(message) = waiting.pop_front() else {
                self.publish_pending();
                self.replaced.clear();
                match self.connection.receiver.recv() {
                    Ok(message) => waiting.push_back(message),
                    // The editor disconnected without a shutdown.
                    Err(_) => return Exit::Environment,
                }
                continue;
            };
            match message {
                Message::Request(request) => match self.connection.handle_shutdown(&request) {
                    Ok(true) => return Exit::Success,
                    Ok(false) => self.handle_request(request),
                    Err(_) => return Exit::Environment,
                },
                Message::Notification(notification) if notification.method == "exit" => return Exit::Environment,
                Message::Notification(notification) => self.handle_notification(&notification),
                Message::Response(_) => {}
            }
        }
    }

    fn handle_notification(&mut self, notification: &Notification) {
        if notification.method == "workspace/didChangeWatchedFiles" {
            return self.check_all_again();
        }
        let document = &notification.params["textDocument"];
        let Some(address) = document["uri"].as_str() else { return };
        let text = match notification.method.as_str() {
            "textDocument/didOpen" => document["text"].as_str(),
            // The server asks for whole texts; the last one counts.
            "textDocument/didChange" => {
                let changes = notification.params["contentChanges"].as_array();
                changes.and_then(|changes| changes.last()?["text"].as_str())
            }
            "textDocument/didClose" => {
                self.open.remove(address);
                self.publish(address, &Value::Null, &json!([]));
                return;
            }
            _ => return,
        };
        if let Some(text) = text {
            let version = document["version"].clone();
            self.replace_text(address, text.to_owned(), version);
        }
    }

    /// Checks the open files again that may use other files, because one of these has changed.
    fn check_all_again(&mut self) {
        for open in self.open.values_mut().filter(|open| open.has_other_files) {
            self.replaced.extend(open.checked.take());
            open.published = false;
        }
    }

    /// Stores the new text of a file. The other open files may use it, or be used by it, so they are checked again.
    fn replace_text(&mut self, address: &str, text: String, version: Value) {
        self.check_all_again();
        let before = self.open.remove(address);
        self.replaced.extend(before.and_then(|before| before.checked));
        let has_other_files = true;
        let open = OpenDocument { text, version, checked: None, has_other_files, published: false };
        self.open.insert(address.to_owned(), open);
    }

    fn handle_request(&mut self, request: Request) {
        let address = request.params["textDocument"]["uri"].as_str().unwrap_or_default().to_owned();
        let response = match (requests::handler(&request.method), self.document(&address)) {
            (Some(answer), Some(document)) => match answer(document, &address, &request.params) {
                Ok(result) => Response::new_ok(request.id, result),
                Err(refusal) => Response::new_err(request.id, ErrorCode::RequestFailed as i32, refusal),
            },
            (Some(_), None) => {
                Response::new_err(request.id, ErrorCode::InvalidParams as i32, format!("`{address}` is not open"))
            }
            (None, _) => {
                let message = format!("unsupported request `{}`", request.method);
                Response::new_err(request.id, ErrorCode::MethodNotFound as i32, message)
            }
        };
        self.send(response.into());
    }

    /// Returns the checked document of an open file.
    fn document(&mut self, address: &str) -> Option<&Document> {
        if self.open.get(address)?.checked.is_none() {
            let texts =
                open_files::texts(self.open.iter().map(|(address, open)| (address.as_str(), open.text.as_str())));
            let open = self.open.get_mut(address)?;
            let document = open_files::document((address, &open.text), texts, &self.library, &mut self.caches);
            open.has_other_files = document.has_other_files();
            open.checked = Some(document);
        }
        self.open.get(address)?.checked.as_ref()
    }

    /// Publishes the diagnostics of every file that has changed.
    fn publish_pending(&mut self) {
        let changed: Vec<String> =
            self.open.iter().filter(|(_, open)| !open.published).map(|(address, _)| address.clone()).collect();
        for address in changed {
            let found = self.document(&address).map(|document| protocol::diagnostics(document, &address));
            let Some(open) = self.open.get_mut(&address) else { continue };
            open.published = true;
            let version = open.version.clone();
            self.publish(&address, &version, &found.unwrap_or_default());
        }
    }

    fn publish(&self, address: &str, version: &Value, diagnostics: &Value) {
        let mut params = json!({ "uri": address, "diagnostics": diagnostics });
        if !version.is_null() {
            params["version"] = version.clone();
        }
        self.send(Notification::new("textDocument/publishDiagnostics".into(), params).into());
    }

    fn send(&self, message: Message) {
        // A disconnected editor is noticed at the next receive.
        let _ = self.connection.sender.send(message);
    }
}
