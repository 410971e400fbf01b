//! Import graph of the modules of a crate, at every depth.
//!
//! 1. Each file is a module; its code names others by paths that begin with `crate::`, `super::`, `self::` or the name of a
//!    child.
//! 2. A path is followed as far as it leads to modules, also through a re-export of a child's name
//!    (`use child::Name`, which makes `super::Name` lead to `child`).
//! 3. [`references`] has an edge for each path that leads to another file. A parent and its child that name each other are
//!    a circle in it. A re-export (`pub use`) is no edge: it names its target for others, whose paths are followed there.
//! 4. [`imports`] leaves out what a module and those inside of it take from each other: an edge is between the two modules
//!    at which the paths of the files part, which both lie in the same module.

use std::collections::{BTreeMap, BTreeSet};

use crate::File;

/// Import graph: for each module the modules that it imports, named by their paths from the root of the crate.
pub type Imports = BTreeMap<String, BTreeSet<String>>;

type Path = Vec<String>;

/// The imports of a crate whose sources these are. `source` is the folder that they lie in, as their paths have it.
#[must_use]
pub fn imports(source: &str, files: &[File]) -> Imports {
    let modules = Modules::of(source, files);
    let mut imports = Imports::new();
    for (own, target) in modules.edges() {
        let shared = own.iter().zip(&target).take_while(|(one, other)| one == other).count();
        if shared < own.len() && shared < target.len() {
            imports.entry(own[..=shared].join("::")).or_default().insert(target[..=shared].join("::"));
        }
    }
    imports
}

/// The references between the files of a crate, parents and children included.
#[must_use]
pub fn references(source: &str, files: &[File]) -> Imports {
    let mut references = Imports::new();
    for (own, target) in Modules::of(source, files).edges() {
        if own != target {
            references.entry(own.join("::")).or_default().insert(target.join("::"));
        }
    }
    references
}

/// The modules of a crate.
struct Modules {
    /// The code of each.
    texts: BTreeMap<Path, String>,
    /// For each module the names that it re-exports from its children, and their modules.
    taken: BTreeMap<Path, BTreeMap<String, Path>>,
}

impl Modules {
    fn of(source: &str, files: &[File]) -> Modules {
        let texts: BTreeMap<Path, String> =
            files.iter().map(|file| (module(source, &file.path), code(&file.text))).collect();
        let taken = texts.iter().map(|(path, text)| (path.clone(), taken(path, text, &texts))).collect();
        Modules { texts, taken }
    }

    /// Each path that a module names, as the module and the module that the path leads to.
    fn edges(&self) -> Vec<(Path, Path)> {
        let edges = self.texts.iter().flat_map(|(own, text)| {
            let children = self.texts.keys().filter(|path| path.len() == own.len() + 1 && path.starts_with(own));
            let children = children.filter_map(|child| child.last()).map(String::as_str);
            let paths = paths(
                &without_exports(text),
                &["crate", "super", "self"].into_iter().chain(children).collect::<Vec<_>>(),
            );
            paths.into_iter().filter_map(|named| Some((own.clone(), self.follow(own, &named)?)))
        });
        edges.collect()
    }

    /// The module that a path in the module `own` leads to.
    fn follow(&self, own: &[String], named: &[String]) -> Option<Path> {
        let (first, rest) = named.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Path::new(),
            "super" => own[..own.len().checked_sub(1)?].to_vec(),
            "self" => own.to_vec(),
            child => joined(own, child),
        };
        for segment in rest {
            if segment == "super" {
                at.pop();
                continue;
            }
            let inner = joined(&at, segment);
            if self.texts.contains_key(&inner) {
                at = inner;
                continue;
            }
            return Some(self.taken.get(&at).and_then(|names| names.get(segment)).cloned().unwrap_or(at));
        }
        Some(at)
    }
}

fn joined(path: &[String], segment: &str) -> Path {
    path.iter().cloned().chain([segment.to_owned()]).collect()
}

fn module(source: &str, path: &str) -> Path {
    let inside = path.strip_prefix(source).unwrap_or(path).trim_end_matches(".rs");
    let segments = inside.split('/').filter(|segment| !["", "lib", "main", "mod"].contains(segment));
    segments.map(str::to_owned).collect()
}

/// `use child::{A, B}` in a module: from name to child.
fn taken(path: &[String], text: &str, modules: &BTreeMap<Path, String>) -> BTreeMap<String, Path> {
    let mut names = BTreeMap::new();
    for statement in text.split(';') {
        let Some((_, used)) = statement.split_once("use ") else { continue };
        let used = used.trim().trim_start_matches("self::");
        let Some((child, rest)) = used.split_once("::") else { continue };
        let child = joined(path, child);
        if modules.contains_key(&child) {
            names.extend(words(rest).map(|name| (name, child.clone())));
        }
    }
    names
}

/// The text without its statements `pub use …;` and `pub(…) use …;`.
fn without_exports(text: &str) -> String {
    let mut export = false;
    let inside = |line: &&str| {
        let start = line.trim_start();
        export |= start.starts_with("pub use ") || start.starts_with("pub(") && start.contains(") use ");
        let kept = !export;
        export &= !line.trim_end().ends_with(';');
        kept
    };
    text.lines().filter(inside).collect::<Vec<_>>().join("\n")
}

/// All paths in a text that begin with one of these words, groups opened.
fn paths(text: &str, starts: &[&str]) -> Vec<Path> {
    let mut found = Vec::new();
    for start in starts {
        for (at, _) in text.match_indices(&format!("{start}::")) {
            // `super::super::` has been read from its first word on.
            let before = text[..at].chars().next_back();
            if !before.is_some_and(|letter| letter.is_alphanumeric() || ['_', ':', '$'].contains(&letter)) {
                open(&text[at..], &mut Path::new(), &mut found);
            }
        }
    }
    found
}

/// Reads one path, or one member of a group, that stands at the beginning of the text; returns what follows it.
fn open<'t>(text: &'t str, before: &mut Path, found: &mut Vec<Path>) -> &'t str {
    let depth = before.len();
    let mut rest = text.trim_start();
    loop {
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
        before.push(rest[..end].to_owned());
        rest = &rest[end..];
        let Some(behind) = rest.strip_prefix("::") else { break };
        rest = behind;
        if let Some(group) = rest.strip_prefix('{') {
            rest = open_group(group, before, found);
            before.truncate(depth);
            return rest;
        }
    }
    found.push(before.clone());
    before.truncate(depth);
    rest
}

fn open_group<'t>(group: &'t str, before: &mut Path, found: &mut Vec<Path>) -> &'t str {
    let mut rest = group.trim_start();
    while !rest.is_empty() && !rest.starts_with('}') {
        rest = open(rest, before, found);
        // Up to the next member: a comma, or `as` with a name.
        rest = rest.find([',', '}']).map_or("", |at| &rest[at..]).trim_start_matches(',').trim_start();
    }
    rest.strip_prefix('}').unwrap_or("")
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words.filter(|word| !word.is_empty()).map(str::to_owned)
}

/// The text without comments, tests and visibilities; in a module that it holds, `super` is the file itself.
fn code(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut code = String::new();
    let mut inner_end: Option<&str> = None;
    for (at, &line) in lines.iter().enumerate() {
        let test = line.starts_with("#[cfg(") && line.contains("test");
        if test && lines.get(at + 1).is_some_and(|next| next.starts_with("mod ")) {
            break;
        }
        let indentation = &line[..line.len() - line.trim_start().len()];
        if inner_end.is_none() && line.ends_with('{') && words(line).any(|word| word == "mod") {
            inner_end = Some(indentation);
        } else if inner_end == Some(indentation) && line.trim() == "}" {
            inner_end = None;
        }
        let line = line.replace("(in crate::", "(in ").replace("(in super::", "(in ");
        code += &if inner_end.is_some() { line.replace("super::", "self::") } else { line };
        code.push('\n');
    }
    code
}

/// A circle among the imports, the first module once more at its end.
#[must_use]
pub fn circle(imports: &Imports) -> Option<Vec<String>> {
    let mut done = BTreeSet::new();
    imports.keys().find_map(|start| walk(imports, start, &mut Vec::new(), &mut done))
}

fn walk(imports: &Imports, at: &str, path: &mut Vec<String>, done: &mut BTreeSet<String>) -> Option<Vec<String>> {
    if let Some(start) = path.iter().position(|name| name == at) {
        return Some(path[start..].iter().cloned().chain([at.to_owned()]).collect());
    }
    if !done.insert(at.to_owned()) {
        return None;
    }
    path.push(at.to_owned());
    let found = imports.get(at).into_iter().flatten().find_map(|next| walk(imports, next, path, done));
    path.pop();
    found
}

/// The sets of modules that reach each other, the largest first; a module alone is left out.
#[must_use]
pub fn circles(references: &Imports) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<String>> =
        references.keys().map(|start| (start, reached(references, start))).collect();
    let mut circles: Vec<BTreeSet<String>> = Vec::new();
    for (start, targets) in &reached {
        let circle: BTreeSet<String> = targets
            .iter()
            .filter(|target| reached.get(target).is_some_and(|back| back.contains(*start)))
            .cloned()
            .collect();
        if circle.len() > 1 && !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// The modules that a module imports, directly or through others.
fn reached(references: &Imports, start: &str) -> BTreeSet<String> {
    let (mut reached, mut left) = (BTreeSet::new(), vec![start]);
    while let Some(at) = left.pop() {
        for next in references.get(at).into_iter().flatten() {
            if reached.insert(next.clone()) {
                left.push(next);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Imports {
        let file = |&(path, text): &(&str, &str)| File { path: format!("x/src/{path}"), text: text.to_owned() };
        imports("x/src", &files.iter().map(file).collect::<Vec<_>>())
    }

    #[test]
    fn modules_that_import_each_other_are_found_at_any_depth() {
        let found = of(&[
            ("lib.rs", "mod a;"),
            ("a.rs", "mod b; mod c;"),
            ("a/b.rs", "use super::c::{self, C};"),
            ("a/c.rs", "fn f() { crate::a::b::g() }"),
        ]);
        assert_eq!(circle(&found).expect("there is one"), ["a::b", "a::c", "a::b"]);
    }

    #[test]
    fn a_name_that_a_module_takes_from_one_of_its_own_leads_there() {
        let found = of(&[
            ("lib.rs", "pub use one::{One, Other};"),
            ("one.rs", "use crate::{Unknown, two::Two};"),
            ("two/mod.rs", "mod deep;"),
            ("two/deep.rs", "use std::fmt; use crate::One;"),
        ]);
        assert_eq!(circle(&found).expect("there is one"), ["one", "two", "one"]);
    }

    #[test]
    fn what_a_module_shares_with_its_own_is_no_circle_nor_is_a_chain() {
        let found = of(&[
            ("lib.rs", "mod a; pub struct Root;"),
            ("a.rs", "mod b; mod c; use b::B; pub struct A;"),
            ("a/b.rs", "use super::{A, c::C as Renamed}; // super::never\nuse crate::Root;"),
            ("a/c.rs", "pub struct C;\n#[cfg(test)]\nmod tests { use crate::a::b::B; }"),
        ]);
        assert_eq!(found, Imports::from([("a::b".to_owned(), BTreeSet::from(["a::c".to_owned()]))]));
        assert_eq!(circle(&found), None);
    }

    #[test]
    fn a_parent_and_its_child_that_name_each_other_are_a_circle_of_references() {
        let files = [
            ("lib.rs", "mod a; pub use a::A;"),
            ("a.rs", "mod b; mod c; use b::B; pub struct A;"),
            ("a/b.rs", "use super::{A, c::C};"),
            ("a/c.rs", "pub struct C; fn f() -> self::C {}"),
        ];
        let file = |&(path, text): &(&str, &str)| File { path: format!("x/src/{path}"), text: text.to_owned() };
        let found = references("x/src", &files.iter().map(file).collect::<Vec<_>>());
        assert_eq!(circles(&found), [BTreeSet::from(["a".to_owned(), "a::b".to_owned()])]);
    }

    #[test]
    fn super_in_a_module_within_the_file_is_the_file() {
        let inner = "mod inner {\n    library! { pub x: super::f }\n}\npub(in crate::a) fn f() { super::g() }\n\
                     #[cfg(all(test, unix))]\nmod tests { use super::*; }";
        assert_eq!(code(inner), "mod inner {\n    library! { pub x: self::f }\n}\npub(in a) fn f() { super::g() }\n");
    }

    #[test]
    fn re_exports_are_no_references() {
        let text = "use a::A;\npub(crate) use b::{\n    B, C,\n};\nfn f() { g() }\npub use d::D;\nuse e::E;";
        assert_eq!(without_exports(text), "use a::A;\nfn f() { g() }\nuse e::E;");
    }
}
