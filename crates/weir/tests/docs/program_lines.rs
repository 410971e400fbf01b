//! The lines of programs in Weir beside those of the same programs in Go, against the table in `benches/programs`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::repository;

/// Returns the files with this ending in a folder and those in it, in order.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let found = paths.into_iter().flat_map(|path| match path.is_dir() {
        true => files(&path, ending),
        false if path.extension().is_some_and(|found| found == ending) => vec![path],
        false => Vec::new(),
    });
    found.collect()
}

/// Returns the number of lines without those that are empty or a comment, and without tests, which only Weir's programs have.
fn lines(text: &str) -> usize {
    let mut in_test = false;
    let counted = text.lines().filter(|line| {
        let begins = line.starts_with("test \"");
        let is_counted = !in_test && !begins && !line.trim().is_empty() && !line.trim_start().starts_with("//");
        in_test = (in_test || (begins && !line.ends_with('}'))) && *line != "}";
        is_counted
    });
    counted.count()
}

fn lines_in(folders: &[&str], ending: &str) -> usize {
    let paths = folders.iter().flat_map(|folder| files(&repository().join(folder), ending));
    paths.map(|path| lines(&std::fs::read_to_string(path).expect("a text"))).sum()
}

/// The folder of the programs in Go.
const GO: &str = "benches/programs";

/// The rows of the table: the name of the program, and the numbers of its lines in Weir and in Go.
fn rows() -> Vec<(String, usize, usize)> {
    let page = std::fs::read_to_string(repository().join(GO).join("README.md")).expect("the page is there");
    let cells = page.lines().filter(|line| line.starts_with("| [`")).map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let name = cells[1].split('`').nth(1).expect("a name").to_owned();
        let number = |at: usize| cells[at].parse().unwrap_or_else(|_| panic!("{line}: no number of lines"));
        (name, number(3), number(4))
    });
    cells.collect()
}

#[test]
fn the_table_has_the_lines_of_both_programs_and_weir_has_at_most_as_many() {
    let rows = rows();
    assert_eq!(rows.len(), 8, "eight programs");
    let mut faults = Vec::new();
    for (name, in_weir, in_go) in rows {
        let example = format!("examples/{name}");
        let folders =
            if name == "stationery" { vec![example.as_str(), "examples/money"] } else { vec![example.as_str()] };
        let (weir, go) = (lines_in(&folders, "weir"), lines_in(&[&format!("{GO}/{name}")], "go"));
        if (in_weir, in_go) != (weir, go) {
            faults
                .push(format!("{name}: {weir} lines in Weir and {go} in Go, but the table has {in_weir} and {in_go}"));
        }
        assert!(weir <= go, "{name} has {weir} lines in Weir, and {go} in Go");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_programs_in_go_compile() {
    let vet = Command::new("go").args(["vet", "./..."]).current_dir(repository().join(GO)).output();
    let Ok(vet) = vet else { return eprintln!("skipped: `go` is not installed") };
    assert!(vet.status.success(), "{}", String::from_utf8_lossy(&vet.stderr));
    let unformatted = Command::new("gofmt").args(["-l", "."]).current_dir(repository().join(GO)).output();
    let unformatted = unformatted.expect("`gofmt` comes with `go`").stdout;
    assert_eq!(String::from_utf8_lossy(&unformatted), "", "files that are not formatted");
}

#[test]
fn tests_comments_and_empty_lines_are_not_counted() {
    assert_eq!(
        lines("// a\n\nfn f() {\n  g() // b\n}\ntest \"x\" {\n  expect f()\n}\ntest \"y\" { }\nfn g() { }\n"),
        4
    );
}
