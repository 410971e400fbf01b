//! Accumulating values one by one takes linear work: the bytes that a flow allocates at n, 2n and 4n are counted.
//!
//! Bytes are counted and not time, so the test gives the same result on every machine. A copy of a value that has grown to
//! n elements allocates as many bytes, so an accumulation that copies is quadratic in this count.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use parking_lot::Mutex;
use test_support::flows::{Feed, options};
use weir_host::Value;
use weir_ir::plan::Plan;
use weir_runtime::Options;
use weir_syntax::{SourceFile, Sources, Style, render};

struct Counting;

static ALLOCATED: AtomicU64 = AtomicU64::new(0);
/// The bytes that are allocated and not yet freed.
static HELD: AtomicI64 = AtomicI64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[expect(unsafe_code, reason = "hands every request on to the system's allocator as it came")]
// SAFETY: all requests go to `System` unchanged, whose promises are the same.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as u64, Ordering::Relaxed);
        HELD.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise about `layout` is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: `place` came from `System.alloc` with this layout.
        unsafe { System.dealloc(place, layout) }
    }
}

/// Rounds of the smallest run.
const ROUNDS: i64 = 500;

/// Bytes allocated by a flow of the program for `rounds` and twice and four times as many.
fn allocated(program: &str) -> [u64; 3] {
    with_flows(program, |run| {
        run(ROUNDS);
        [1, 2, 4].map(|times| {
            let before = ALLOCATED.load(Ordering::Relaxed);
            run(ROUNDS * times);
            ALLOCATED.load(Ordering::Relaxed) - before
        })
    })
}

/// Calls `count` with a function that runs a flow of the program for a number of rounds.
fn with_flows<R>(program: &str, count: impl FnOnce(&dyn Fn(i64)) -> R) -> R {
    // One program at a time, because the counts are of the whole process.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    let feed = Feed::new();
    let mut library = weir_library::library();
    feed.put(&mut library, "test", "flows");
    let mut sources = Sources::new();
    let file = SourceFile::new("case.weir", program);
    let source = sources.add(file.clone());
    let compiled = weir_compile::compile(source, &file, &library);
    let mut said = String::new();
    for diagnostic in &compiled.diagnostics {
        writeln!(said, "{}", render(&sources, diagnostic, Style::Plain)).unwrap();
    }
    let graph = compiled.graph.unwrap_or_else(|| panic!("{said}\n{program}"));
    // Forks allocate too, and there are more of them the slower the machine is.
    let (plan, _) = Plan::parse("parallel = \"off\"");
    let running = weir_runtime::start(&graph, &library, Options { plan, ..options("event", 1) }).unwrap();
    let counted = count(&|rounds| _ = feed.run(vec![Value::Int(rounds)]).unwrap());
    running.stop();
    counted
}

/// Returns the counts as a text if four times the rounds allocate more than about four times the bytes; the growth of
/// vectors by doubling is allowed for.
fn superlinear(program: &str) -> Option<String> {
    let [once, twice, four_times] = allocated(program);
    let is_linear = four_times <= once * 6 && four_times <= twice * 3;
    let counts = format!("{once}, {twice} and {four_times} bytes for {ROUNDS} rounds and twice and four times as many");
    (!is_linear).then_some(counts)
}

/// Asserts that each of these bodies, with its name, allocates in proportion to its rounds.
#[track_caller]
fn assert_linear(declarations: &str, bodies: &[(&str, &str)]) {
    let found = bodies.iter().filter_map(|(name, body)| Some((name, superlinear(&with_body(declarations, body))?)));
    let found: Vec<String> = found.map(|(name, counts)| format!("{name}: {counts}\n")).collect();
    assert!(found.is_empty(), "\n{}", found.concat());
}

/// A program whose flow runs these lines with `n` rounds.
fn with_body(declarations: &str, body: &str) -> String {
    format!(
        "use list, map, test, text\n\n{declarations}\nfor n in test.flows(0) {{\n  let ns = list.numbers(0, n)?\n  {body}\n}}\n"
    )
}

#[test]
fn folds_that_accumulate_are_linear() {
    let folds = [
        ("a list by +", "let xs = fold xs = [] for n in ns { xs + [n] }\n  xs.length()"),
        ("a text by +", "let s = fold s = \"\" for n in ns { s + \"{n}\" }\n  s.length()"),
        ("a map by with", "let m = fold m = [:] for n in ns { m.with(n, n) }\n  m.length()"),
        (
            "a map of counts",
            "let m = fold m = [:] for n in ns { m.with(n % 100, (m[n % 100] else { 0 }) + 1) }\n  m.length()",
        ),
        ("a map by without", "let m = fold m = (map.of(list.zip(ns, ns))) for n in ns { m.without(n) }\n  m.length()"),
        ("a record's number", "let r = fold r = (R { n: 0, items: ns }) for n in ns { R { ..r, n: n } }\n  r.n"),
    ];
    assert_linear("record R { n: Int, items: List(Int) }", &folds);
}

/// The records of these programs.
const RECORDS: &str = "record R { n: Int, items: List(Int) }\nrecord T { a: List(Int), b: List(Int) }\n\
        record O { r: R }\nrecord C { of: Map(Int, Int), n: Int }\nrecord G { of: Map(Int, List(Int)) }\n";

#[test]
fn nested_updates_of_records_are_linear() {
    let folds = [
        (
            "a record's list",
            "let r = fold r = (R { n: 0, items: [] }) for n in ns { R { ..r, items: r.items + [n] } }\n  r.n",
        ),
        (
            "two lists of a record",
            "let t = fold t = (T { a: [], b: [] }) for n in ns { T { ..t, a: t.a + [n], b: t.b + [n] } }\n  t.a.length()",
        ),
        (
            "a record made anew",
            "let t = fold t = (T { a: [], b: [] }) for n in ns { T { a: t.a + [n], b: t.b + [n] } }\n  t.b.length()",
        ),
        (
            "a list of a record of a record",
            "let o = fold o = (O { r: R { n: 0, items: [] } }) for n in ns { O { r: R { ..o.r, items: o.r.items + [n] } } }\n  o.r.n",
        ),
    ];
    assert_linear(RECORDS, &folds);
}

#[test]
fn nested_updates_of_maps_and_lists_are_linear() {
    let folds = [
        (
            "lists of a map",
            "let m = fold m = [:] for n in ns { m.with(n % 10, (m[n % 10] else { [] }) + [n]) }\n  m.length()",
        ),
        (
            "one list of a map",
            "let m = fold m = [:] for n in ns { m.with(\"all\", (m[\"all\"] else { [] }) + [n]) }\n  m.length()",
        ),
        (
            "lists of maps of a map",
            "let m = fold m = [:] for n in ns { m.with(n % 2, (m[n % 2] else { [:] }).with(n % 3, ((m[n % 2] else { [:] })[n % 3] else { [] }) + [n])) }\n  m.length()",
        ),
        (
            "lists of maps of a map, by a name",
            "let m = fold m = [:] for n in ns { let part = m[n % 2] else { [:] }\n m.with(n % 2, part.with(n % 3, (part[n % 3] else { [] }) + [n])) }\n  m.length()",
        ),
        (
            "maps of a map",
            "let m = fold m = [:] for n in ns { m.with(n % 2, (m[n % 2] else { [:] }).with(n, n)) }\n  m.length()",
        ),
        (
            "records of a map",
            "let m = fold m = [:] for n in ns { let r = m[n % 5] else { R { n: 0, items: [] } }\n m.with(n % 5, R { ..r, n: r.n + 1, items: r.items + [n] }) }\n  m.length()",
        ),
        (
            "lists of a list",
            "let xs = fold xs = [[], [], []] for n in ns { xs.with(n % 3, xs[n % 3] + [n]) }\n  xs.length()",
        ),
        (
            "a map of a record",
            "let c = fold c = (C { of: [:], n: 0 }) for n in ns { C { ..c, of: c.of.with(n, (c.of[n] else { 0 }) + 1), n: c.n + 1 } }\n  c.n",
        ),
        (
            "lists of a map of a record",
            "let g = fold g = (G { of: [:] }) for n in ns { G { ..g, of: g.of.with(n % 7, (g.of[n % 7] else { [] }) + [n]) } }\n  g.of.length()",
        ),
        (
            "a tuple of lists",
            "let (a, b) = fold (a, b) = ([], []) for n in ns { (a + [n], b + [n]) }\n  a.length() + b.length()",
        ),
    ];
    assert_linear(RECORDS, &folds);
}

#[test]
fn updates_under_a_condition_are_linear() {
    let folds = [
        ("a list", "let xs = fold xs = [] for n in ns { if n % 2 == 0 { xs + [n] } else { xs } }\n  xs.length()"),
        (
            "one of two lists",
            "let (a, b) = fold (a, b) = ([], []) for n in ns { if n % 2 == 0 { (a + [n], b) } else { (a, b + [n]) } }\n  a.length() + b.length()",
        ),
        (
            "a record's list",
            "let r = fold r = (R { n: 0, items: [] }) for n in ns { if n % 2 == 0 { R { ..r, items: r.items + [n] } } else { r } }\n  r.n",
        ),
        (
            "a map, if it has no such key",
            "let m = fold m = [:] for n in ns { if m.contains(n % 50) { m } else { m.with(n % 50, n) } }\n  m.length()",
        ),
        (
            "lists of a map, in two arms",
            "let m = fold m = [:] for n in ns { match m[n % 9] { Some(xs) => m.with(n % 9, xs + [n]), None => m.with(n % 9, [n]) } }\n  m.length()",
        ),
    ];
    assert_linear("record R { n: Int, items: List(Int) }", &folds);
}

#[test]
fn loops_that_accumulate_are_linear() {
    let list = "let (_, xs) = loop (i, xs) = (0, []) { (i + 1, xs + [i]) } until i >= n at most 10000\n  xs.length()";
    assert_linear("", &[("a list as part of a loop's state", list)]);
}

#[test]
fn shared_values_that_accumulate_are_linear() {
    let bodies = [
        ("push", "for n in ns { log.push(n) }"),
        ("put", "for n in ns { seen.put(n, n) }"),
        ("put and remove", "for n in ns { seen.put(n, n) }\n  for n in ns { seen.remove(n) }"),
        ("bounded put", "for n in ns { seen.put(n, n, keep: 100) }"),
        ("bounded push", "for n in ns { log.push(n, keep: 100) }"),
    ];
    assert_linear("shared log: List(Int) = []\nshared seen: Map(Int, Int) = [:]\n", &bodies);
}

#[test]
fn shared_values_are_linear_while_a_flow_holds_a_snapshot_of_every_state() {
    let changes = [
        ("push", "log.push(\"{n}\")"),
        ("bounded push", "log.push(\"{n}\", keep: 400)"),
        ("put", "seen.put(n, n)"),
        ("put of a known key", "seen.put(n % 400, n)"),
        ("bounded put", "seen.put(n, n, keep: 400)"),
        ("put and remove", "seen.put(n, n)\n    seen.remove(n)"),
        ("numbers", "numbers.push(n)"),
        ("bounded numbers", "numbers.push(n, keep: 400)"),
    ];
    let declarations =
        "shared log: List(Text) = []\nshared numbers: List(Int) = []\nshared seen: Map(Int, Int) = [:]\n";
    // So many entries that no state is copied as a whole.
    let fill = "for n in list.numbers(1, 600)? { seen.put(0 - n, n) }";
    let body = |change: &str| {
        format!("{fill}\n  let kept = for n in ns {{\n    {change}\n    (log, numbers, seen)\n  }}\n  kept.length()")
    };
    let bodies = changes.map(|(name, change)| (name, body(change)));
    assert_linear(declarations, &bodies.each_ref().map(|(name, body)| (*name, body.as_str())));
}

#[test]
fn lists_of_a_shared_map_that_grow_in_atomic_steps_are_linear() {
    // The map holds the list while the flow adds to it: a long list is then changed in pieces.
    let bodies = [
        ("texts", "for n in ns { atomic names { names.put(1, (names.get(1) else []) + [\"{n}\"]) } }"),
        ("numbers", "for n in ns { atomic numbers { numbers.put(1, (numbers.get(1) else []) + [n]) } }"),
        ("pairs", "for n in ns { atomic pairs { pairs.put(1, (pairs.get(1) else []) + [(n, n % 2 == 0)]) } }"),
        ("one list", "for n in ns { atomic all { all.set(all + [\"{n}\"]) } }"),
        ("many lists", "for n in ns { atomic numbers { numbers.put(n, (numbers.get(n % 3) else []) + [n]) } }"),
    ];
    let declarations = "shared names: Map(Int, List(Text)) = [:]\nshared numbers: Map(Int, List(Int)) = [:]\n\
        shared pairs: Map(Int, List((Int, Bool))) = [:]\nshared all: List(Text) = []";
    assert_linear(declarations, &bodies);
}

#[test]
fn shared_values_that_grow_under_keys_are_linear() {
    // The shared value holds the old text, list or map while the new one is made.
    let bodies = [
        ("texts", "for n in ns { notes.put(n % 2, (notes.get(n % 2) else { \"\" }) + \"line {n}, \") }"),
        ("texts in steps", "for n in ns { atomic notes { notes.put(1, (notes.get(1) else \"\") + \"line {n}, \") } }"),
        ("lists", "for n in ns { carts.put(n % 2, (carts.get(n % 2) else { [] }) + [\"{n}\"]) }"),
        ("maps", "for n in ns { seen.put(n % 2, (seen.get(n % 2) else { [:] }).with(n, \"{n}\")) }"),
        (
            "texts of records",
            "for n in ns {\n    let p = pages.get(n % 2) else { P { text: \"\", n: 0 } }\n    \
             pages.put(n % 2, P { ..p, text: p.text + \"line {n}, \", n: p.n + 1 })\n  }",
        ),
        ("one text", "for n in ns { log.set(log + \"line {n}, \") }"),
        ("one text in steps", "for n in ns { atomic log { log.set(log + \"line {n}, \") } }"),
        (
            "one text that is held",
            "let kept = for n in ns {\n    log.set(log + \"line {n}, \")\n    log\n  }\n  kept.length()",
        ),
    ];
    let declarations = "record P { text: Text, n: Int }\n\nshared notes: Map(Int, Text) = [:]\n\
        shared carts: Map(Int, List(Text)) = [:]\nshared seen: Map(Int, Map(Int, Text)) = [:]\n\
        shared pages: Map(Int, P) = [:]\nshared log = \"\"";
    assert_linear(declarations, &bodies);
}

#[test]
fn functions_of_the_library_that_accumulate_are_linear() {
    let bodies = [
        ("map", "ns.map(|n| \"{n}\").length()"),
        ("filter", "ns.filter(|n| n % 2 == 0).length()"),
        ("filter_map", "ns.filter_map(|n| if n % 2 == 0 { Some([n]) } else { None }).length()"),
        ("flat_map", "ns.flat_map(|n| [n, n]).length()"),
        ("partition", "let (even, odd) = ns.partition(|n| n % 2 == 0)\n  even.length() + odd.length()"),
        ("reduce", "(ns.map(|n| \"{n}\").reduce(|all, text| all + text) else { \"\" }).length()"),
        ("sort_by", "ns.sort_by(|n| 0 - n).length()"),
        ("group_by", "ns.group_by(|n| n % 10).length()"),
        ("group_by with texts", "ns.map(|n| \"{n}\").group_by(|text| text.length()).length()"),
        ("unique_by", "ns.unique_by(|n| n / 2).length()"),
        ("chunks", "ns.chunks(3).length()"),
        ("map_values", "map.of(list.zip(ns, ns)).map_values(|n| [n]).length()"),
        ("filter of a map", "map.of(list.zip(ns, ns)).filter(|key, value| key % 2 == 0 && value > 0).length()"),
        (
            "update of counts",
            "let m = fold m = [:] for n in ns { m.update(n % 100, |count| (count else { 0 }) + 1) }\n  m.length()",
        ),
        (
            "update of lists",
            "let m = fold m = [:] for n in ns { m.update(n % 3, |items| (items else { [] }) + [n]) }\n  m.length()",
        ),
        (
            "update of texts",
            "let m = fold m = [:] for n in ns { m.update(n % 3, |all| (all else { \"\" }) + \"{n}\") }\n  m.length()",
        ),
        ("merged", "let m = fold m = [:] for n in ns { m.merged([n: n]) }\n  m.length()"),
    ];
    assert_linear("", &bodies);
}

#[test]
fn the_count_finds_an_accumulation_that_copies() {
    // Each round makes another text of a whole one.
    let body =
        "let kept = fold all = [\"\"] for n in ns { all + [\"some more characters, {all[n]}\"] }\n  kept.length()";
    let [once, _, four_times] = allocated(&with_body("", body));
    assert!(four_times > once * 10, "{once} and {four_times} bytes");
}

#[test]
fn records_and_scalars_take_little_more_memory_than_in_rust() {
    struct Case {
        name: &'static str,
        ty: &'static str,
        body: &'static str,
        /// Bytes in Rust, of structs or scalars.
        bytes: usize,
        at_most: f64,
    }
    let cases = [
        Case {
            name: "three Ints",
            ty: "P",
            body: "P { x: i, y: i % 90, z: 2 * i }",
            bytes: size_of::<[i64; 3]>(),
            at_most: 1.2,
        },
        Case {
            name: "a pair of scalars",
            ty: "(Int, Bool)",
            body: "(i, i % 2 == 0)",
            bytes: size_of::<(i64, bool)>(),
            at_most: 1.2,
        },
        Case { name: "Ints", ty: "Int", body: "i", bytes: size_of::<i64>(), at_most: 1.2 },
        Case { name: "Bools", ty: "Bool", body: "i % 3 == 0", bytes: size_of::<bool>(), at_most: 1.2 },
        // In Rust the text is a `String` with 7 bytes on the heap.
        Case {
            name: "a Text, an Int and a Float",
            ty: "R",
            body: "R { name: \"name{i % 1000}\", age: i % 90, score: 0.5 }",
            bytes: size_of::<(String, i64, f64)>() + 7,
            at_most: 3.0,
        },
    ];
    // The capacity of a list doubles; at just below a power of two it is used.
    let count = (1 << 17) - 1;
    for Case { name, ty, body, bytes, at_most } in cases {
        let program = format!(
            "use list, test\n\nrecord P {{ x: Int, y: Int, z: Int }}\nrecord R {{ name: Text, age: Int, score: Float }}\n\n\
             shared all: List({ty}) = []\n\n\
             for n in test.flows(0) {{\n  let made = for i in list.numbers(0, n)? {{ {body} }}\n  all.set(made)\n}}\n"
        );
        let held = with_flows(&program, |run| {
            run(1);
            let before = HELD.load(Ordering::Relaxed);
            run(count);
            HELD.load(Ordering::Relaxed) - before
        });
        let ratio = held as f64 / (count * bytes as i64) as f64;
        println!("{name}: {ratio:.2} times the bytes in Rust");
        assert!(ratio <= at_most, "{name}: {ratio:.2} times the bytes in Rust");
    }
}

#[test]
fn results_of_rounds_that_may_wait_are_stored_once() {
    // Each round waits for a lock, so that no region runs the loop.
    let program = with_body("shared hits = 0", "let all = for n in ns { hits.add(n) }\n  all.length()");
    let rounds = 4 * ROUNDS as u64;
    let [.., bytes] = allocated(&program);
    // The numbers of `ns` take 8 bytes each, and the results twice that while they grow.
    assert!(bytes < 28 * rounds, "{bytes} bytes for {rounds} rounds");
}
