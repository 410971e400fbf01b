//! Contenders: languages that are installed, and processes that run a row in them.
//!
//! The protocol is the same for all languages. The process prints `begin`, reads a line, makes its data and prints
//! `ready`. For each further line that it reads, it runs the row once and prints the nanoseconds and the result.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use bench_harness::results;

use crate::BenchResult;
use crate::rows::{Quantity, Row};

/// The folder with the programs in other languages.
const PEERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers");

/// A language that takes part.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// The command to which the name of the row and the size are added.
    command: Vec<String>,
}

/// A process that runs a row.
pub(crate) struct Runner {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Bytes of resident memory that making the data added.
    pub(crate) data_bytes: u64,
}

/// One round of a contender.
pub(crate) struct Round {
    pub(crate) nanos: f64,
    pub(crate) result: String,
}

impl Contender {
    /// Returns the contenders whose languages are installed, Weir first, and why others do not take part.
    pub(crate) fn installed() -> BenchResult<(Vec<Contender>, Vec<String>)> {
        let own = std::env::current_exe()?.display().to_string();
        let child = |language: &str| vec![own.clone(), "--child".to_owned(), language.to_owned()];
        let peer = |program: &str, file: &str| vec![program.to_owned(), format!("{PEERS}/{file}")];
        let mut all = vec![Contender { name: "weir", command: child("weir") }];
        let mut missing = Vec::new();
        let mut add = |name, program: &str, command: BenchResult<Vec<String>>| match command {
            Ok(command) if answers(program) => all.push(Contender { name, command }),
            Ok(_) => missing.push(format!("{name} does not take part: `{program}` is not installed")),
            Err(error) => missing.push(format!("{name} does not take part: {error}")),
        };
        add("cpython", "python3", Ok(peer("python3", "rows.py")));
        // The interpreter alone, as Weir has no compiler to machine code either.
        let luajit = vec!["luajit".to_owned(), "-joff".to_owned(), format!("{PEERS}/rows.lua")];
        add("luajit", "luajit", Ok(luajit));
        let node = ["node", "--expose-gc", "--max-old-space-size=4096"].map(str::to_owned);
        add("node", "node", Ok(node.into_iter().chain([format!("{PEERS}/rows.js")]).collect()));
        let go = if answers("go") { built_go() } else { Ok(Vec::new()) };
        add("go", "go", go);
        all.push(Contender { name: "rust", command: child("rust") });
        Ok((all, missing))
    }

    /// Returns `true` if the language has this row: Rust has only those that measure memory, and Lua has no library for JSON
    /// and CSV.
    pub(crate) fn has(&self, row: &Row) -> bool {
        match self.name {
            "rust" => row.quantity == Quantity::Memory,
            "luajit" => !["json", "csv"].contains(&row.name),
            _ => true,
        }
    }

    /// Starts a process that runs the row.
    pub(crate) fn start(&self, row: &Row, size: i64) -> BenchResult<Runner> {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).args([row.name, &size.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else { return Err("no pipes".into()) };
        let mut runner = Runner { child, input, output: BufReader::new(output), data_bytes: 0 };
        runner.expect("begin")?;
        let before = runner.resident_bytes()?;
        runner.say("setup")?;
        runner.expect("ready")?;
        runner.data_bytes = runner.resident_bytes()?.saturating_sub(before);
        Ok(runner)
    }
}

/// Returns `true` if the program prints its version.
fn answers(program: &str) -> bool {
    let version = match program {
        "go" => "version",
        "luajit" => "-v",
        _ => "--version",
    };
    Command::new(program).arg(version).output().is_ok_and(|output| output.status.success())
}

/// Builds the program in Go and returns its command.
fn built_go() -> BenchResult<Vec<String>> {
    let binary = results::file("bench-language-go")?;
    let built =
        Command::new("go").args(["build", "-o"]).arg(&binary).arg(".").current_dir(Path::new(PEERS)).output()?;
    if built.status.success() {
        return Ok(vec![binary.display().to_string()]);
    }
    Err(String::from_utf8_lossy(&built.stderr).into_owned().into())
}

impl Runner {
    /// Runs the row once.
    pub(crate) fn round(&mut self) -> BenchResult<Round> {
        self.say("round")?;
        let line = self.line()?;
        let (nanos, result) = line.split_once(' ').ok_or_else(|| format!("the process printed {line:?}"))?;
        Ok(Round { nanos: nanos.parse()?, result: result.to_owned() })
    }

    fn say(&mut self, line: &str) -> BenchResult<()> {
        writeln!(self.input, "{line}")?;
        Ok(self.input.flush()?)
    }

    fn expect(&mut self, wanted: &str) -> BenchResult<()> {
        let line = self.line()?;
        if line == wanted { Ok(()) } else { Err(format!("the process printed {line:?}, not {wanted:?}").into()) }
    }

    fn line(&mut self) -> BenchResult<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err(format!("the process ended: {}", self.child.wait()?).into());
        }
        Ok(line.trim_end().to_owned())
    }

    fn resident_bytes(&self) -> BenchResult<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next());
        Ok(kilobytes.ok_or("no VmRSS in the status of the process")?.parse::<u64>()? * 1024)
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
