//! Tests that need a process of their own, because what they change is that of the whole process.

use std::process::Command;

/// Set in the process of a test.
const ALONE: &str = "WEIR_TEST_ALONE";

/// Runs a test of a module (`module_path!()`) in a process of its own, behind commands for a shell. Returns false there.
///
/// # Panics
/// Panics if the test fails.
#[must_use]
pub fn is_run_alone((module, test): (&str, &str), commands: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return false;
    }
    let (_, module) = module.split_once("::").expect("a test is in a module of its crate");
    let mut alone = Command::new("sh");
    alone.args(["-c", &format!(r#"{commands}; exec "$0" "$@""#)]);
    alone.arg(std::env::current_exe().expect("a test knows its file"));
    alone.args(["--exact", &format!("{module}::{test}")]).env(ALONE, "");
    let done = alone.output().expect("there is a shell");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
    true
}
