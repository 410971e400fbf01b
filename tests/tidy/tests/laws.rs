//! The laws of the house that lints cannot say. CONTRIBUTING.md gives the reasons.

use std::fs;

use tidy::imports::{circle, circles, imports, references};
use tidy::{File, crates, files, root};

/// The floors of the house: a crate imports only from floors below its own.
const FLOORS: &[&[&str]] = &[
    &["weir-trace", "weir-events", "weir-macros", "weir-scheduler"],
    &["weir-host", "weir-syntax"],
    &["weir-ir"],
    &["weir-runtime", "weir-library", "weir-compile", "weir-draw"],
    &["weir-ide"],
    &["weir"],
];

#[test]
fn every_crate_has_a_floor_and_imports_downwards() {
    let floor = |name: &str| FLOORS.iter().position(|floor| floor.contains(&name));
    for name in crates() {
        let own = floor(&name).unwrap_or_else(|| panic!("{name} has no floor: add it to FLOORS and ARCHITECTURE.md"));
        for dependency in dependencies(&name) {
            let below = floor(&dependency).is_some_and(|floor| floor < own);
            assert!(below, "{name} (floor {}) depends on {dependency}, which is on no lower floor", own + 1);
        }
    }
}

/// The crates of the house that a crate's `[dependencies]` name; those of its tests may be from anywhere.
fn dependencies(name: &str) -> Vec<String> {
    let manifest =
        fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).expect("every crate has a manifest");
    let section = manifest.split("\n[dependencies]").nth(1).unwrap_or("").split("\n[").next().unwrap_or("");
    let known = crates();
    let named = |line: &str| match line.split_once("package = \"") {
        Some((_, rest)) => known.iter().find(|&name| rest.starts_with(&format!("{name}\""))).cloned(),
        None => known.iter().find(|&name| starts(line, name)).cloned(),
    };
    section.lines().filter_map(named).collect()
}

fn starts(line: &str, name: &str) -> bool {
    line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
}

#[test]
fn compiler_and_runtime_do_not_name_each_other() {
    for (folder, other) in
        [("weir-compile", "weir_runtime"), ("weir-runtime", "weir_compile"), ("weir-library", "weir_ir")]
    {
        for file in files(&root().join("crates").join(folder).join("src"), ".rs") {
            assert!(!file.text.contains(other), "{} names {other}", file.path);
        }
    }
}

#[test]
fn every_file_opens_with_its_caption() {
    for folder in ["crates", "benches", "examples", "tests"] {
        for file in files(&root().join(folder), ".rs") {
            if file.path.contains("/tests/refused/") {
                continue;
            }
            let first = file.text.lines().next().unwrap_or("");
            assert!(
                first.starts_with("//! ") && first.len() > 12,
                "{} does not open with a caption (`//! …`)",
                file.path
            );
        }
    }
}

#[test]
fn architecture_names_every_crate_and_none_that_is_gone() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let known = crates();
    for name in &known {
        assert!(text.contains(&format!("`{name}`")), "ARCHITECTURE.md does not name `{name}`");
    }
    for word in text.split('`').filter(|word| word.starts_with("weir-") && !word.contains([' ', '/', '\n'])) {
        let planned = text.contains(&format!("`{word}` (planned)"));
        assert!(planned || known.iter().any(|name| name == word), "ARCHITECTURE.md names `{word}`, which is not there");
    }
}

#[test]
fn no_import_circle_inside_a_crate() {
    for name in crates() {
        let source = root().join("crates").join(&name).join("src");
        let found = imports(&format!("crates/{name}/src"), &files(&source, ".rs"));
        if let Some(circle) = circle(&found) {
            panic!("{name}: modules import each other in a circle: {}", circle.join(" -> "));
        }
    }
}

/// The largest circle of files that import each other, parents and children included. It may only become smaller.
const CIRCLE_MAX: usize = 4;

#[test]
fn circles_of_parents_and_children_are_small() {
    for name in crates() {
        let folder = format!("crates/{name}/src");
        let found = circles(&references(&folder, &files(&root().join(&folder), ".rs")));
        let large: Vec<_> = found.iter().filter(|circle| circle.len() > CIRCLE_MAX).collect();
        assert!(large.is_empty(), "{name}: more than {CIRCLE_MAX} files import each other: {large:?}");
    }
}

#[test]
fn nothing_names_the_machine_that_it_was_written_on() {
    let forbidden = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];
    for ending in [".rs", ".md", ".toml", ".weir", ".js", ".json", ".sh", ".py"] {
        for file in files(&root(), ending) {
            for path in forbidden {
                assert!(!file.text.contains(path), "{} names the path {path}", file.path);
            }
        }
    }
}

#[test]
fn files_are_not_drawers() {
    let all = files(&root().join("crates"), ".rs");
    let large: Vec<&File> = all.iter().filter(|file| file.text.lines().count() > 400).collect();
    let named: Vec<&str> = large.iter().map(|file| file.path.as_str()).collect();
    assert!(large.len() * 10 <= all.len(), "more than one file in ten is over 400 lines: {named:?}");
    for file in large {
        assert!(file.text.lines().count() <= 900, "{} has over 900 lines: split it along its ideas", file.path);
    }
}
