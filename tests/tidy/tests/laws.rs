//! The laws of the house that lints cannot say. CONTRIBUTING.md gives the reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use tidy::{File, crates, files, root};

/// The floors of the house: a crate imports only from floors below its own.
const FLOORS: &[&[&str]] = &[
    &["weir-trace", "weir-events", "weir-macros", "weir-scheduler"],
    &["weir-host", "weir-syntax"],
    &["weir-ir"],
    &["weir-runtime", "weir-library", "weir-compile", "weir-draw"],
    &["weir-ide", "weir-lab"],
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
        let graph = imports(&source.to_string_lossy(), &files(&source, ".rs"));
        if let Some(circle) = circle(&graph) {
            panic!("{name}: modules import each other in a circle: {}", circle.join(" -> "));
        }
    }
}

/// The top-level modules of a crate and which of them name which, through `crate::module` or a name that the crate's
/// root exports from it.
fn imports(source: &str, files: &[File]) -> BTreeMap<String, BTreeSet<String>> {
    let exports = files.iter().find(|file| file.path.ends_with("src/lib.rs")).map(exports).unwrap_or_default();
    let prefix = source.strip_prefix(&*root().to_string_lossy()).unwrap_or(source).trim_start_matches('/').to_string();
    let modules: BTreeSet<String> = files.iter().map(|file| module(&prefix, &file.path)).collect();
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let own = module(&prefix, &file.path);
        if ["lib", "main"].contains(&own.as_str()) {
            continue;
        }
        let named = crate_names(&file.text).into_iter();
        let targets =
            named.filter_map(|name| if modules.contains(&name) { Some(name) } else { exports.get(&name).cloned() });
        graph.entry(own.clone()).or_default().extend(targets.filter(|target| *target != own));
    }
    graph
}

fn module(prefix: &str, path: &str) -> String {
    let inside = path.strip_prefix(prefix).unwrap_or(path).trim_start_matches('/');
    inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs").to_string()
}

/// `pub use module::{A, B}` in a crate's root: from name to module.
fn exports(root: &File) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for statement in code(&root.text).split(';') {
        let Some((_, path)) = statement.split_once("pub use ") else { continue };
        let Some((module, names)) = path.trim().split_once("::") else { continue };
        for name in words(names) {
            exports.insert(name, module.trim_start_matches("crate::").to_string());
        }
    }
    exports
}

/// The first names behind every `crate::`, groups opened.
fn crate_names(text: &str) -> Vec<String> {
    let text = code(text);
    let mut names = Vec::new();
    for rest in text.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            None => names.extend(words(rest).into_iter().next()),
            Some(group) => names.extend(heads(group)),
        }
    }
    names
}

/// The first word of each member of a group `{a::{b, c}, d}`.
fn heads(group: &str) -> Vec<String> {
    let (mut depth, mut start, mut heads) = (0, 0, Vec::new());
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => {
                heads.extend(words(&group[start..at]).into_iter().next());
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                heads.extend(words(&group[start..at]).into_iter().next());
                start = at + 1;
            }
            _ => {}
        }
    }
    heads
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words.filter(|word| !word.is_empty()).map(str::to_string).collect()
}

/// The text without comments and without its tests.
fn code(text: &str) -> String {
    let before_tests = text.split("#[cfg(test)]").next().unwrap_or("");
    before_tests.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn circle(graph: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    let mut done = BTreeSet::new();
    graph.keys().find_map(|start| walk(graph, start, &mut Vec::new(), &mut done))
}

fn walk(
    graph: &BTreeMap<String, BTreeSet<String>>,
    at: &str,
    path: &mut Vec<String>,
    done: &mut BTreeSet<String>,
) -> Option<Vec<String>> {
    if let Some(start) = path.iter().position(|name| name == at) {
        return Some(path[start..].iter().cloned().chain([at.to_string()]).collect());
    }
    if !done.insert(at.to_string()) && !path.iter().any(|name| name == at) {
        return None;
    }
    path.push(at.to_string());
    let found = graph.get(at).into_iter().flatten().find_map(|next| walk(graph, next, path, done));
    path.pop();
    found
}

#[test]
fn the_circle_finder_finds_a_circle() {
    let graph = |edges: &[(&str, &str)]| {
        let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, to) in edges {
            graph.entry((*from).to_string()).or_default().insert((*to).to_string());
        }
        graph
    };
    assert_eq!(circle(&graph(&[("a", "b"), ("b", "c")])), None);
    assert!(circle(&graph(&[("a", "b"), ("b", "c"), ("c", "b")])).is_some());
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
