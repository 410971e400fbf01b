//! Go's channels, in the same cases: a small Go program in `go/`, run where `go` is installed.
//!
//! The program waits beside this one and runs a round when it is told to, so that its rounds are paired with the others'.

use crate::report::{Contender, Report, Round};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Error, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The Go program with this many processors for its goroutines.
pub(crate) struct Go {
    child: Child,
    pipes: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Go {
    /// Nothing where there is no `go`, which is said.
    pub(crate) fn start(report: &Report, processors: usize) -> Option<Self> {
        let started = Go::begin(processors);
        if let Err(error) = &started {
            report.note(&format!("(Go's channels are left out: {error})"));
        }
        started.ok()
    }

    fn begin(processors: usize) -> Result<Self, Error> {
        let program = Go::build()?;
        let mut child = Command::new(program)
            .env("GOMAXPROCS", processors.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Go { child, pipes: RefCell::new((input, BufReader::new(output))) }),
            _ => Err(Error::other("no pipes")),
        }
    }

    /// Builds the program; Go does so again only where something has changed.
    fn build() -> Result<std::path::PathBuf, Error> {
        // Where its own installer puts it, if it is not in the path.
        let installed = Path::new("/usr/local/go/bin/go");
        let go = if installed.exists() { installed } else { Path::new("go") };
        let program = std::env::current_exe()?.with_file_name("bench-events-go");
        let output = Command::new(go)
            .args(["build", "-o"])
            .arg(&program)
            .arg("main.go")
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/go"))
            .env("GOFLAGS", "-mod=mod")
            .output()?;
        if output.status.success() { Ok(program) } else { Err(Error::other(String::from_utf8_lossy(&output.stderr))) }
    }

    /// A contender that runs the case in Go, which takes the time itself.
    pub(crate) fn contender<'a>(&'a self, case: &'a str, capacity: usize) -> Contender<'a> {
        let round =
            move |messages: usize| self.round(case, capacity.min(messages), messages).expect("the Go program answers");
        ("go", Round::Elsewhere(Box::new(round)))
    }

    fn round(&self, case: &str, capacity: usize, messages: usize) -> Result<f64, Error> {
        let (input, output) = &mut *self.pipes.borrow_mut();
        writeln!(input, "{case} {capacity} {messages}")?;
        let mut line = String::new();
        output.read_line(&mut line)?;
        line.trim().parse().map_err(Error::other)
    }
}

impl Drop for Go {
    fn drop(&mut self) {
        // It would end by itself at the end of its input; nothing follows from how.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
