//! Files with the results of benchmarks, in Cargo's target directory.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::BenchResult;

/// The target directory of the workspace, if `CARGO_TARGET_DIR` names no other one.
const TARGET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target");

/// Writes results as `NAME.json` into the target directory, and prints the path.
///
/// # Errors
/// Fails if the file cannot be written.
#[expect(clippy::print_stdout, reason = "a benchmark prints where its results are")]
pub fn publish(name: &str, results: &Value) -> BenchResult<()> {
    let path = file(&format!("{name}.json"))?;
    fs::write(&path, serde_json::to_string_pretty(results)?)?;
    println!("written to {}", path.display());
    Ok(())
}

/// Returns the path of a file in the target directory, which is created if it does not exist.
///
/// # Errors
/// Fails if the directory cannot be created.
pub fn file(name: &str) -> BenchResult<PathBuf> {
    let folder = target(std::env::var_os("CARGO_TARGET_DIR"));
    fs::create_dir_all(&folder)?;
    Ok(folder.canonicalize()?.join(name))
}

/// Returns Cargo's target directory: the variable if it is set and not empty, otherwise `target/` in the root of the
/// workspace.
fn target(variable: Option<OsString>) -> PathBuf {
    variable.filter(|folder| !folder.is_empty()).map_or_else(|| Path::new(TARGET).into(), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_comes_before_the_workspace() {
        assert_eq!(target(Some("elsewhere".into())), Path::new("elsewhere"));
        assert_eq!(target(Some("".into())), Path::new(TARGET));
        assert_eq!(target(None), Path::new(TARGET));
    }

    #[test]
    fn the_target_directory_of_the_workspace_is_beside_its_manifest() {
        let manifest = fs::read_to_string(Path::new(TARGET).with_file_name("Cargo.toml")).expect("the root has one");
        assert!(manifest.starts_with("[workspace]"), "{manifest}");
    }
}
