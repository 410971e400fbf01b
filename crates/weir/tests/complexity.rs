//! Accumulating values one by one takes linear work: the bytes that a flow allocates at n, 2n and 4n are counted.
//!
//! Bytes are counted and not time, so the test gives the same result on every machine. A copy of a value that has grown to
//! n elements allocates as many bytes, so an accumulation that copies is quadratic in this count.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use test_support::flows::{Feed, options};
use weir_host::Value;
use weir_syntax::{SourceFile, Sources, Style, render};

struct Counting;

static ALLOCATED: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[expect(unsafe_code, reason = "hands every request on to the system's allocator as it came")]
// SAFETY: all requests go to `System` unchanged, whose promises are the same.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise about `layout` is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: `place` came from `System.alloc` with this layout.
        unsafe { System.dealloc(place, layout) }
    }
}

/// Rounds of the smallest run.
const ROUNDS: i64 = 500;

/// Bytes allocated by a flow of the program for `rounds` and twice and four times as many.
fn allocated(program: &str) -> [u64; 3] {
    // One program at a time, because the count is of the whole process.
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
    let expr = compiled.expr.unwrap_or_else(|| panic!("{said}\n{program}"));
    let running = test_support::flows::start_expr(&expr, &library, options("event", 1));
    feed.run(vec![Value::Int(ROUNDS)]).unwrap();
    let counted = [1, 2, 4].map(|times| {
        let before = ALLOCATED.load(Ordering::Relaxed);
        feed.run(vec![Value::Int(ROUNDS * times)]).unwrap();
        ALLOCATED.load(Ordering::Relaxed) - before
    });
    running.stop();
    counted
}

/// Asserts that four times the rounds allocate at most about four times the bytes; the growth of vectors by doubling is
/// allowed for.
#[track_caller]
fn assert_linear(name: &str, program: &str) {
    let [once, twice, four_times] = allocated(program);
    assert!(
        four_times <= once * 6 && four_times <= twice * 3,
        "{name}: {once}, {twice} and {four_times} bytes for {ROUNDS} rounds and twice and four times as many\n{program}"
    );
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
    for (name, body) in folds {
        assert_linear(name, &with_body("record R { n: Int, items: List(Int) }", body));
    }
}

#[test]
fn loops_that_accumulate_are_linear() {
    let list = "let (_, xs) = loop (i, xs) = (0, []) { (i + 1, xs + [i]) } until i >= n at most 10000\n  xs.length()";
    assert_linear("a list as part of a loop's state", &with_body("", list));
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
    for (name, body) in bodies {
        let declarations = "shared log: List(Int) = []\nshared seen: Map(Int, Int) = [:]\n";
        assert_linear(name, &with_body(declarations, body));
    }
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
    for (name, change) in changes {
        // So many entries that no state is copied as a whole.
        let fill = "for n in list.numbers(1, 600)? { seen.put(0 - n, n) }";
        let change =
            format!("let kept = for n in ns {{\n    {change}\n    (log, numbers, seen)\n  }}\n  kept.length()");
        let body = format!("{fill}\n  {change}");
        assert_linear(name, &with_body(declarations, &body));
    }
}

#[test]
fn the_count_finds_an_accumulation_that_copies() {
    // Both lists are used later, so each round has to copy.
    let body = "let kept = fold all = [[0]] for n in ns { all + [(all[n] else { [] }) + [n]] }\n  kept.length()";
    let body = body.replace("(all[n] else { [] })", "all[n]");
    let [once, _, four_times] = allocated(&with_body("", &body));
    assert!(four_times > once * 10, "{once} and {four_times} bytes");
}
