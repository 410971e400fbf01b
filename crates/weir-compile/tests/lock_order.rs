//! No program can deadlock.
//!
//! Compiles random programs with steps nested in `fn`s, branches, loops and handlers, and
//! checks every acquisition in their graphs. `WEIR_PROGRAMS` sets their number, `WEIR_SEED` the first seed.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use test_support::fixture;
use weir::{Mode, Resource};
use weir_ir::graph::{Graph, Node, NodeKind};
use weir_syntax::{SourceFile, SourceId};

const SHARED: [&str; 4] = ["apple", "cherry", "fig", "plum"];
const CONSTRAINTS: [&str; 2] = ["bank", "ledger"];

/// Bindings of the constraints.
const BINDINGS: [&str; 4] =
    ["", " on files.write, read files", " on accounts.set, read accounts.balance", " on files, read accounts"];

/// Returns the scope of a shared value: some are per session, in programs with sessions.
fn scope(name: &str, sessions: usize) -> &'static str {
    let at = SHARED.iter().position(|known| *known == name).unwrap_or(0);
    if sessions >> at & 1 == 1 { " per session" } else { "" }
}

/// A portable random number generator (Marsaglia, "Xorshift RNGs", 2003).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below.max(1) as u64) as usize
    }

    fn one_of<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.next(words.len())]
    }
}

/// Generates statements that use and hold shared values, and call the `fn`s before `fns`.
fn statements(numbers: &mut Numbers, (fns, sessions): (usize, usize), depth: usize) -> String {
    let mut text = String::new();
    for _ in 0..=numbers.next(2) {
        let shared = numbers.one_of(&SHARED);
        let nested = |numbers: &mut Numbers| statements(numbers, (fns, sessions), depth + 1);
        let form = if depth > 3 { numbers.next(5) } else { numbers.next(10) };
        _ = match form {
            0 => writeln!(text, "{shared}.set(\"a\", 1)"),
            1 => writeln!(text, "{shared}.balance(\"a\")"),
            2 if fns > 0 => writeln!(text, "f{}()", numbers.next(fns)),
            3 => writeln!(text, "files.exists(\"a\")"),
            4 => writeln!(text, "files.write(\"a\", files.read(\"b\")?)?"),
            5 | 6 => {
                let mut held = vec![format!("{shared}{}", scope(shared, sessions))];
                held.extend(
                    (0..numbers.next(2))
                        .map(|_| format!("{}{}", numbers.one_of(&["", "read "]), numbers.one_of(&CONSTRAINTS))),
                );
                writeln!(text, "atomic {} {{\n{}}}", held.join(", "), nested(numbers))
            }
            7 => {
                let (then, otherwise) = (nested(numbers), nested(numbers));
                writeln!(text, "if {shared}.balance(\"a\") > 0 {{\n{then}}} else {{\n{otherwise}}}")
            }
            8 => writeln!(text, "for i in [1, 2] {{\n{}}}", nested(numbers)),
            9 => writeln!(text, "accounts.transfer({shared}, {}, 1)", other(numbers, shared)),
            _ => writeln!(text, "{shared}.deposit(\"a\", -1)?"),
        };
    }
    text.push_str("let done = 1\n");
    text
}

fn other<'w>(numbers: &mut Numbers, than: &'w str) -> &'w str {
    let others: Vec<&str> = SHARED.iter().copied().filter(|name| *name != than).collect();
    numbers.one_of(&others)
}

fn program(numbers: &mut Numbers) -> String {
    let mut text = String::from("use http, accounts, files\n");
    SHARED.iter().for_each(|name| _ = writeln!(text, "shared {name} = accounts.new()"));
    for name in CONSTRAINTS {
        let (scope, bound) = (numbers.one_of(&["", " per session"]), numbers.one_of(&BINDINGS));
        _ = writeln!(text, "constraint {name}{scope}{bound}");
    }
    let (fns, sessions) = (numbers.next(5), numbers.next(1 << SHARED.len()));
    for at in 0..fns {
        let handler = match numbers.next(3) {
            0 => format!("on failure of accounts.deposit {{\n{}}}\n", statements(numbers, (at, sessions), 2)),
            _ => String::new(),
        };
        _ = writeln!(text, "fn f{at}() {{\n{handler}{}}}", statements(numbers, (at, sessions), 0));
    }
    let body = statements(numbers, (fns, sessions), 0);
    let route = format!("get \"/{{name}}\" (name: Text) {{\n{body}http.not_found()\n}}");
    _ = writeln!(text, "service s on http(port: 1) {{\nsession = name\n{route}\n}}");
    text
}

/// A lock: a resource, whether it is that of all flows, and the mode.
type Taken = (Resource, bool, Mode);

/// Returns a violation of the lock order in a graph. Calls take the resources in `narrowed` last.
fn fault(graph: &Graph, held: &[Taken], narrowed: &BTreeSet<Resource>) -> Option<String> {
    graph.nodes.iter().find_map(|node| {
        let held = [held, &held_at(graph, node)[..]].concat();
        let own = taken(node).into_iter().find_map(|taken| out_of_order(&taken, &held, narrowed, &node.name));
        own.or_else(|| node.bodies().iter().find_map(|body| fault(body, &held, narrowed)))
    })
}

fn taken(node: &Node) -> Vec<Taken> {
    match &node.kind {
        NodeKind::Acquire { constraints, .. } => {
            constraints.iter().map(|c| (c.resource.clone(), !c.per_session, c.mode)).collect()
        }
        _ if !node.bodies().is_empty() => Vec::new(),
        _ => {
            let flows_meet = |resource: &Resource| !matches!(resource, Resource::World(_) | Resource::State(_));
            let uses = node.uses.iter().filter(|usage| flows_meet(&usage.resource));
            uses.map(|usage| (usage.resource.clone(), true, usage.mode)).collect()
        }
    }
}

fn out_of_order(
    (resource, whole, mode): &Taken,
    held: &[Taken],
    narrowed: &BTreeSet<Resource>,
    name: &str,
) -> Option<String> {
    if *whole && narrowed.contains(resource) {
        // Such a resource is taken last, but only if the step around the call excludes its session.
        let session = held.iter().find(|(known, whole, known_mode)| known == resource && !whole && known_mode >= mode);
        return session.is_none().then(|| format!("{name} uses {resource} outside of its session"));
    }
    let same = held.iter().find(|(known, known_whole, _)| known == resource && known_whole == whole);
    if let Some((_, _, known)) = same {
        return (known < mode).then(|| format!("{name} turns a reader of {resource} into a writer"));
    }
    let later = held.iter().find(|(known, ..)| known > resource)?;
    Some(format!("{name} takes {resource} while {} is held", later.0))
}

/// Returns the locks that the steps around a node hold.
fn held_at(graph: &Graph, node: &Node) -> Vec<Taken> {
    let mut held = Vec::new();
    let mut within = node.within;
    while let Some(acquire) = within.map(|id| graph.node(id)) {
        held.extend(taken(acquire));
        within = acquire.within;
    }
    held
}

#[test]
fn resources_are_taken_in_one_order_whatever_nests() {
    let setting =
        |name: &str, otherwise: u64| std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise);
    let library = fixture::library();
    let (count, seed) = (setting("WEIR_PROGRAMS", 300), setting("WEIR_SEED", 1));
    let mut hoisted = 0;
    for case in seed..seed + count {
        let text = program(&mut Numbers(case.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1));
        let compiled = weir_compile::compile(SourceId(0), &SourceFile::new("case.weir", &*text), &library);
        let errors: Vec<_> = compiled.diagnostics.iter().filter(|found| found.is_error()).collect();
        assert!(errors.is_empty(), "seed {case}: {errors:?}\n{text}");
        hoisted += compiled.diagnostics.iter().filter(|found| found.code.id() == "W0705").count();
        let graph = compiled.graph.unwrap();
        if let Some(fault) = fault(&graph.entries[0].flows[0].body, &[], &graph.session_scoped()) {
            panic!("seed {case}: {fault}\n{text}");
        }
    }
    assert!(hoisted > 0, "the programs put the hoisting to no test");
}
