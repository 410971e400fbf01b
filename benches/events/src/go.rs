//! Go's channels, in the same cases: a small Go program in `go/`, run where `go` is installed.

use crate::report::Report;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// What the Go program measured; nothing where there is no `go`.
pub(crate) struct Go {
    figures: Value,
}

impl Go {
    pub(crate) fn run(report: &Report) -> Self {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/go");
        // Where its own installer puts it, if it is not in the path.
        let installed = Path::new("/usr/local/go/bin/go");
        let program = if installed.exists() { installed } else { Path::new("go") };
        let output = Command::new(program)
            .args(["run", "main.go", &report.messages().to_string()])
            .current_dir(folder)
            .env("GOFLAGS", "-mod=mod")
            .output();
        match output {
            Ok(output) if output.status.success() => {
                Go { figures: serde_json::from_slice(&output.stdout).unwrap_or_default() }
            }
            Ok(output) => {
                report.note(&format!("(Go's channels failed: {})", String::from_utf8_lossy(&output.stderr)));
                Go { figures: Value::Null }
            }
            Err(error) => {
                report.note(&format!("(Go's channels are left out: {error})"));
                Go { figures: Value::Null }
            }
        }
    }

    /// Nothing measured.
    pub(crate) fn none() -> Self {
        Go { figures: Value::Null }
    }

    pub(crate) fn figure(&self, case: &str) -> Option<f64> {
        self.figures.get(case)?.as_f64()
    }
}
