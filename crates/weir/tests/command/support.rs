//! The real command as a process, and HTTP by hand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use test_support::postgres::PostgresServer;

/// Time limit for a response, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The names of all engines.
pub(crate) const ENGINES: [&str; 7] = ["event", "pool", "staged", "elastic", "dedicated", "thread-per-flow", "manual"];

/// Returns the root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A temporary file or folder, removed when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str, text: &[u8]) -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("weir-{}-{number}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("a file of our own");
        Scratch(path)
    }

    /// Creates a temporary folder.
    pub(crate) fn folder(name: &str) -> Scratch {
        let scratch = Scratch::new(name, b"");
        std::fs::remove_file(&scratch.0).expect("the file is ours");
        std::fs::create_dir(&scratch.0).expect("the name is free");
        scratch
    }

    pub(crate) fn write(&self, text: &[u8]) {
        std::fs::write(&self.0, text).expect("the file is ours");
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("a path of ASCII")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = if self.0.is_dir() { std::fs::remove_dir_all(&self.0) } else { std::fs::remove_file(&self.0) };
    }
}

/// A database for the tables of a program: empty at first, and removed at the end.
pub(crate) struct TableStore {
    /// The option that names it, and its value.
    option: [String; 2],
    _folder: Option<Scratch>,
}

impl TableStore {
    /// Returns a database of each kind that is installed.
    pub(crate) fn each(name: &str) -> Vec<TableStore> {
        let folder = Scratch::folder(name);
        let sqlite = TableStore { option: ["--data".to_owned(), folder.path().to_owned()], _folder: Some(folder) };
        let postgres = PostgresServer::shared().map(|server| {
            let address = server.schema(&name.replace('-', "_"));
            TableStore { option: ["--tables".to_owned(), address], _folder: None }
        });
        std::iter::once(sqlite).chain(postgres).collect()
    }

    /// Returns each engine with one of the databases, in turns. The turn says which one is the first.
    pub(crate) fn in_turns(stores: &[TableStore], turn: usize) -> impl Iterator<Item = (&'static str, &TableStore)> {
        ENGINES.into_iter().zip(stores.iter().cycle().skip(turn))
    }

    /// Returns the arguments of a program that uses it.
    pub(crate) fn with<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        self.option.iter().map(String::as_str).chain(more.iter().copied()).collect()
    }

    /// Returns true if several programs may use it at a time.
    pub(crate) fn is_shared(&self) -> bool {
        self.option[0] == "--tables"
    }
}

/// Returns the largest resident size that the process ever had, without the pages of its binary, which the system can drop.
pub(crate) fn resident_max(served: &Served) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.pid())).expect("the process runs");
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("Linux tells");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    };
    bytes("VmHWM:") - bytes("RssFile:")
}

/// Returns the command, run in the repository without colours.
pub(crate) fn weir(arguments: &[&str]) -> Command {
    command(Path::new(env!("CARGO_BIN_EXE_weir")), arguments)
}

/// Returns `weir-run` with these arguments.
pub(crate) fn weir_run(arguments: &[&str]) -> Command {
    command(Path::new(env!("CARGO_BIN_EXE_weir-run")), arguments)
}

/// Returns a command of `examples/`, with host functions. Cargo builds it together with the tests, unless only one of
/// them is built.
pub(crate) fn example(name: &str, arguments: &[&str]) -> Command {
    let test = std::env::current_exe().expect("a test knows its file");
    let folder = test.ancestors().nth(2).expect("tests lie in target/…/deps");
    let program = folder.join("examples").join(name);
    if !program.exists() {
        let built = Command::new(env!("CARGO")).args(["build", "--package", "weir", "--example", name]).status();
        assert!(built.expect("cargo is there").success());
    }
    command(&program, arguments)
}

fn command(program: &Path, arguments: &[&str]) -> Command {
    let mut command = if ignores_hangup() {
        let mut command = Command::new("env");
        command.arg("--default-signal=HUP").arg(program);
        command
    } else {
        Command::new(program)
    };
    command
        .args(arguments)
        .current_dir(repository())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Returns true if this process ignores SIGHUP, as under `nohup`, so that the processes that it starts would, too.
fn ignores_hangup() -> bool {
    const SIGHUP: u32 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & (1 << (SIGHUP - 1)) != 0)
}

/// Output and exit code of a command that has ended.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) output: String,
    pub(crate) messages: String,
}

/// Runs a command to its end.
pub(crate) fn say(arguments: &[&str]) -> Said {
    said(weir(arguments))
}

/// Returns what `weir check --explain io` says about a program.
pub(crate) fn explained_io(name: &str, program: &str) -> String {
    let program = Scratch::new(name, program.as_bytes());
    let said = say(&["check", program.path(), "--explain", "io"]);
    assert_eq!(said.code, 0, "{}", said.messages);
    said.output
}

/// Runs this command to its end.
pub(crate) fn said(mut command: Command) -> Said {
    let ended = command.output().expect("the command starts");
    Said {
        code: ended.status.code().expect("the command ends by itself"),
        output: String::from_utf8(ended.stdout).expect("the output is UTF-8"),
        messages: String::from_utf8(ended.stderr).expect("the messages are UTF-8"),
    }
}

/// A running program.
pub(crate) struct Served {
    process: Child,
    messages: BufReader<Box<dyn Read + Send + Sync>>,
    pub(crate) greeting: String,
    pub(crate) address: String,
}

/// An HTTP response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) kind: String,
    pub(crate) body: Vec<u8>,
}

impl Served {
    /// Runs a program on a free port, and waits for its banner.
    pub(crate) fn start(file: &str, more: &[&str]) -> Served {
        Served::spawn(weir(&[&["run", file, "--port", "0"], more].concat()))
    }

    /// Runs a program with the functions of `examples/gate.rs`.
    pub(crate) fn start_with_gate(file: &str, more: &[&str]) -> Served {
        Served::spawn(example("gate", &[&["run", file, "--port", "0"], more].concat()))
    }

    /// Runs a command that prints a banner.
    pub(crate) fn spawn(command: Command) -> Served {
        let mut served = Served::without_banner(command);
        served.greet();
        served
    }

    /// Runs a command that does not print a banner yet.
    pub(crate) fn without_banner(mut command: Command) -> Served {
        let mut process = command.spawn().expect("the command starts");
        let messages = BufReader::new(
            Box::new(process.stderr.take().expect("standard error is piped")) as Box<dyn Read + Send + Sync>
        );
        Served { process, messages, greeting: String::new(), address: String::new() }
    }

    /// Waits for the banner.
    pub(crate) fn greet(&mut self) {
        let mut greeting = String::new();
        while !greeting.contains("Ctrl-C") && !greeting.contains("\"message\":\"started\"") {
            let read = self.messages.read_line(&mut greeting).expect("standard error can be read");
            assert_ne!(read, 0, "the program ended instead of running: {greeting}");
        }
        let address = greeting.split("://").nth(1).and_then(|rest| rest.split([' ', '\n', '"']).next());
        self.address = address.expect("the greeting says where it listens").to_owned();
        self.greeting = greeting;
    }

    /// Opens a connection.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("the program accepts connections");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit can be set");
        stream
    }

    /// Gets a page on a new connection.
    pub(crate) fn get(&self, path: &str) -> Answer {
        read_answer(self.ask(path))
    }

    /// Sends a request for a page on a new connection.
    pub(crate) fn ask(&self, path: &str) -> TcpStream {
        let mut stream = self.connect();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).expect("the request is sent");
        stream
    }

    /// Returns the process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Kills the program.
    pub(crate) fn kill(mut self) {
        self.process.kill().expect("the process runs");
        self.process.wait().expect("the process ends");
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        self.signal("-TERM");
    }

    /// Sends a signal, such as `-HUP`.
    pub(crate) fn signal(&self, signal: &str) {
        let killed = Command::new("kill").args([signal, &self.process.id().to_string()]).status();
        assert!(killed.expect("`kill` is there").success());
    }

    /// Waits until this text is printed, and returns its line.
    pub(crate) fn wait_for(&mut self, words: &str) -> String {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            let read = self.messages.read_line(&mut line).expect("standard error can be read");
            assert_ne!(read, 0, "the program ended without saying {words:?}");
        }
        line
    }

    /// Waits for the end; returns the exit code, and the output after the banner without times of day.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.messages.read_to_string(&mut rest).expect("standard error can be read");
        let status = self.process.wait().expect("the process ends");
        (status.code(), rest.lines().map(|line| without_time(line) + "\n").collect())
    }

    /// Waits for the end without reading what the program says.
    pub(crate) fn exit_code_unread(mut self) -> Option<i32> {
        self.process.wait().expect("the process ends").code()
    }

    /// Closes the reading end of standard error.
    pub(crate) fn close_messages(&mut self) {
        self.messages = BufReader::new(Box::new(std::io::empty()));
    }

    /// Sends SIGTERM until the process has ended; returns the exit code.
    pub(crate) fn terminate_until_it_ends(mut self) -> Option<i32> {
        loop {
            if let Some(status) = self.process.try_wait().expect("the process is ours") {
                return status.code();
            }
            self.terminate();
        }
    }

    /// Stops the program and waits for its end.
    pub(crate) fn stop(self) -> (Option<i32>, String) {
        self.terminate();
        self.end()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // After `end` there is nothing left to kill.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads a response up to the end of its connection.
pub(crate) fn read_answer(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("the answer comes in time");
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("the answer has a head");
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let status = head.split_whitespace().nth(1).and_then(|status| status.parse().ok());
    let kind = head.lines().find_map(|line| line.strip_prefix("content-type: ")).unwrap_or_default();
    Answer { status: status.expect("the answer has a status"), kind: kind.to_owned(), body: bytes[end + 4..].to_vec() }
}

fn without_time(line: &str) -> String {
    match line.split_once("Z ") {
        Some((time, rest)) if time.len() == "2026-11-23T00:00:00.000".len() => format!("TIME {rest}"),
        _ => line.to_owned(),
    }
}

/// Sets a flag when it is dropped, also if a test fails.
pub(crate) struct SetOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
