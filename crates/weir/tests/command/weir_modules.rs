//! The functions of the library that are written in Weir: their texts, and what they compute.

use weir_compile::WeirModules;
use weir_syntax::ast::ItemKind;
use weir_syntax::{SourceFile, SourceId, Sources, Style, format, parse, render};

use crate::support::{Scratch, say};

#[test]
fn the_texts_are_formatted_and_documented_and_have_no_diagnostics() {
    let library = weir_library::library();
    let mut plain = library.clone();
    plain.modules.values_mut().for_each(|module| module.weir = weir_host::Text::default());
    for module in library.modules.values().filter(|module| !module.weir.is_empty()) {
        let name = &module.name;
        let parsed = parse(SourceId(0), &module.weir);
        assert_eq!(format(&module.weir, &parsed).as_deref(), Some(&*module.weir), "{name} is not formatted");
        for item in &parsed.tree.items {
            match &item.kind {
                ItemKind::Function(function) => {
                    assert!(!item.docs.is_empty(), "{name}.{} is not documented", function.name);
                    let is_host = module.functions.contains_key(function.name.as_str());
                    assert!(!is_host, "{name}.{} is written in Rust, too", function.name);
                    let first = function.parameters.first().map(|first| first.name.as_str());
                    assert_eq!(first, Some(&**name), "{name}.{} takes its module's type first", function.name);
                }
                ItemKind::Use(_) => {}
                other => panic!("{name} has something else than `fn`s: {other:?}"),
            }
        }
        let file = SourceFile::new(format!("{name}.weir"), &*module.weir);
        let mut sources = Sources::new();
        let source = sources.add(file.clone());
        let found = weir_compile::check(source, &file, &plain).diagnostics;
        let found: Vec<_> = found.iter().filter(|found| !found.code.is_unnecessary()).collect();
        let said: Vec<String> = found.iter().map(|found| render(&sources, found, Style::Plain)).collect();
        assert!(said.is_empty(), "{}", said.join("\n"));
    }
}

#[test]
fn every_function_is_tested() {
    let library = weir_library::library();
    let modules = WeirModules::default();
    for module in library.modules.keys() {
        for name in modules.names(module, &library) {
            let called = [format!(".{name}("), format!("{module}.{name}(")];
            assert!(called.iter().any(|called| TESTS.contains(called)), "`{module}.{name}` has no test");
        }
    }
}

#[test]
fn they_compute_what_they_say() {
    let program = Scratch::new("functions.weir", TESTS.as_bytes());
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 0, "{}{}", said.output, said.messages);
}

#[test]
fn they_are_not_replaced() {
    let text = b"use int\n\ntest \"replaced\" {\n  with int.max = |_, _| 4 { expect int.max(1, 2) == 4 }\n}\n";
    let program = Scratch::new("replaced.weir", text);
    let said = say(&["test", program.path()]);
    assert!(said.messages.contains("`int.max` is written in Weir, and can only be called"), "{}", said.messages);
}

/// A failure in a closure is in the program; one in the function itself would be at its call.
#[test]
fn a_failure_is_shown_in_the_program() {
    let text = "test \"closure\" {\n  let all = [1, 0].map(|n| 1 / n)\n  expect all.length() == 2\n}\n";
    let program = Scratch::new("closure.weir", text.as_bytes());
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 1, "{}", said.output);
    assert!(said.output.contains(&format!("{}:2:28", program.path())), "{}", said.output);
}

/// The row keeps its value, and the next statement can be made.
#[test]
fn a_failure_in_the_closure_of_a_statement_takes_it_back_and_leaves_the_fn() {
    let text = r#"record User { id: Int, visits: Int }
table users: User key id

fn checked(visits: Int) -> Result(Int) {
  if visits > 1 { fail("enough") }
  Ok(visits + 1)
}

fn visited(id: Int) -> Result(Bool) {
  let found = users.update(id, |user| User { ..user, visits: checked(user.visits)? })?
  Ok(found.is_some())
}

fn visited_all(ids: List(Int)) -> Result(Int) {
  atomic users {
    users.insert(User { id: 9, visits: 0 })?
    Ok(ids.map(|id| checked(users[id].map(|user| user.visits) else { 2 })?).sum())
  }
}

test "closures of statements" {
  users.insert(User { id: 1, visits: 0 })?
  let all = for _ in [1, 2, 3] { visited(1) else { false } }
  expect all == [true, true, false]
  expect (users[1].map(|user| user.visits) else { 0 }) == 2
  expect visited_all([1]).is_err()
  expect users[9].is_none()
}
"#;
    let program = Scratch::new("statements.weir", text.as_bytes());
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 0, "{}{}", said.output, said.messages);
}

const TESTS: &str = r#"
use duration, list, path, time

record Post { id: Int, title: Text }

fn posts() -> List(Post) {
  [Post { id: 3, title: "c" }, Post { id: 1, title: "a" }, Post { id: 3, title: "b" }]
}

fn titles(posts: List(Post)) -> Text { "{posts.map(|post| post.title)}" }

fn double(n: Int) -> Int { n * 2 }

shared calls = 0

fn counted(n: Int) -> Int {
  calls.add(1)
  n
}

test "each" {
  expect [1, 2].map(double) == [2, 4]
  expect [1, 5, 9].filter(|n| n > 3) == [5, 9]
  expect list.filter([1, 5, 9], |n| n > 3) == [5, 9]
  expect ["1", "x", "3"].filter_map(|text| text.parse_int().ok()) == [1, 3]
  expect [1, 2].flat_map(|n| [n, n * 10]) == [1, 10, 2, 20]
}

test "search" {
  expect [1, 5].any(|n| n > 3)
  expect ![1, 5].any(|n| n > 5)
  expect [1, 5].all(|n| n > 0)
  expect ![1, 5].all(|n| n > 1)
  let none: List(Int) = []
  expect none.all(|n| n > 1) && !none.any(|n| n > 1)
  expect [1, 5, 6].find(|n| n > 3) == Some(5)
  expect [1, 5, 6].find(|n| n > 6) == None
  expect [1, 5, 6].find_position(|n| n > 3) == Some(1)
  expect [1, 5, 6].find_position(|n| n > 6) == None
  expect [1, 5, 6].count(|n| n > 3) == 2
}

test "the search ends at the first hit" {
  expect [1, 2, 3, 4].any(|n| counted(n) == 2)
  expect calls.read() == 2
}

test "parts" {
  expect [1, 2, 3, 4].partition(|n| n % 2 == 0) == ([2, 4], [1, 3])
  expect [1, 2, 9, 1].take_while(|n| n < 5) == [1, 2]
  expect [1, 2, 9, 1].skip_while(|n| n < 5) == [9, 1]
  expect [1, 2].take_while(|n| n < 5) == [1, 2]
  expect [1, 2].skip_while(|n| n < 5).length() == 0
  expect [1, 2, 3, 4, 5].chunks(2) == [[1, 2], [3, 4], [5]]
  expect [1, 2].chunks(2) == [[1, 2]]
  expect [1, 2].chunks(0) == [[1], [2]]
  expect [1, 2, 3, 4].windows(3) == [[1, 2, 3], [2, 3, 4]]
  expect [1, 2].windows(3).length() == 0
  expect [1, 2].windows(-1) == [[1], [2]]
}

test "order" {
  expect titles(posts().sort_by(|post| post.id)) == "[\"a\", \"c\", \"b\"]"
  expect titles(posts().sort_by(|post| (post.id, post.title))) == "[\"a\", \"b\", \"c\"]"
  expect posts().min_by(|post| post.title) == Some(Post { id: 1, title: "a" })
  expect posts().max_by(|post| post.id) == Some(Post { id: 3, title: "c" })
  let none: List(Post) = []
  expect none.min_by(|post| post.id) == None && none.max_by(|post| post.id) == None
  expect [3, 1].keyed(|n| -n).sort_keyed() == [3, 1]
}

test "a key is computed once" {
  expect [3, 1, 2, 5, 4].sort_by(|n| counted(n)) == [1, 2, 3, 4, 5]
  expect calls.read() == 5
}

test "groups" {
  expect [1, 2, 3].reduce(|one, other| one - other) == Some(-4)
  let none: List(Int) = []
  expect none.reduce(|one, other| one + other) == None
  let groups = posts().group_by(|post| post.id)
  expect groups.keys() == [3, 1]
  expect groups.map_values(|group| group.length()) == [3: 2, 1: 1]
  expect titles(posts().unique_by(|post| post.id)) == "[\"c\", \"a\"]"
}

test "positions and counts" {
  let none: List(Int) = []
  expect none.is_empty() && ![1].is_empty()
  expect [1, 5].at(1) == Some(5) && [1, 5].at(2) == None && [1, 5].at(-1) == None
  expect ["a", "b", "a"].count_by(|word| word) == ["a": 2, "b": 1]
  expect [1, 2, 3].scan(0, |sum, n| sum + n) == [1, 3, 6]
  expect none.scan(0, |sum, n| sum + n).is_empty()
  expect [1, 2, 3].intersperse(0) == [1, 0, 2, 0, 3] && [1].intersperse(0) == [1] && none.intersperse(0).is_empty()
  expect [1, 2, 1, 3].difference([1, 4]) == [2, 3]
  expect [1, 2, 1, 3].intersection([3, 1, 4]) == [1, 1, 3]
}

test "runs and columns" {
  let none: List(Int) = []
  expect ["x", "2", "3"].find_map(|word| word.parse_int().ok()) == Some(2)
  expect ["x"].find_map(|word| word.parse_int().ok()) == None
  expect [1, 2, 9, 1].split_while(|n| n < 5) == ([1, 2], [9, 1]) && [1].split_while(|n| n < 5) == ([1], none)
  expect [1, 3, 2, 5].chunk_by(|n| n % 2) == [[1, 3], [2], [5]] && none.chunk_by(|n| n).is_empty()
  expect [1, 1, 2, 1].dedup() == [1, 2, 1] && none.dedup().is_empty()
  expect [[1, 2, 3], [4], [5, 6]].transpose() == [[1, 4, 5], [2, 6], [3]]
  expect [none].transpose().is_empty() && [none, [1]].transpose() == [[1]]
  expect [1, 2, 3].interleave([7]) == [1, 7, 2, 3] && [1].interleave([7, 8]) == [1, 7, 8]
  expect ["a", "b"].zip([1, 2]).unzip() == (["a", "b"], [1, 2])
  expect [1, 2, 3].take_last(2) == [2, 3] && [1].take_last(2) == [1] && [1].take_last(-1).is_empty()
  expect [1, 2, 3].skip_last(2) == [1] && [1].skip_last(2).is_empty() && [1].skip_last(-1) == [1]
}

test "all or none" {
  let no_options: List(Option(Int)) = []
  expect [Some(1), Some(2)].all_some() == Some([1, 2]) && [Some(1), None].all_some() == None
  expect no_options.all_some() == Some([])
  let good = ["1", "2"].map(|word| word.parse_int())
  let bad = ["1", "x", "y"].map(|word| word.parse_int())
  expect good.all_ok().ok() == Some([1, 2])
  expect bad.all_ok().failure().map(|failure| "{failure}".starts_with("\"x\"")) == Some(true)
}

test "parts of maps" {
  let none: Map(Text, Int) = [:]
  expect none.is_empty() && !["a": 1].is_empty()
  expect ["a": 1, "b": 2, "c": 3].only(["c", "x", "a"]) == ["c": 3, "a": 1]
  expect ["a": 1, "b": 2, "c": 3].except(["c", "x"]) == ["a": 1, "b": 2]
}

test "bounds of numbers" {
  let (one, two, three) = (1, 2, 3)
  expect one.min(two) == 1 && two.min(one) == 1 && one.max(two) == 2 && two.max(one) == 2
  expect 5.clamp(one, three) == 3 && 0.clamp(one, three) == 1 && two.clamp(one, three) == 2 && two.clamp(three, one) == 1
}

test "durations and times" {
  expect 1s.min(2s) == 1s && 2s.min(1s) == 1s && 1s.max(2s) == 2s && 2s.max(1s) == 2s
  expect 5s.clamp(1s, 3s) == 3s && 0s.clamp(1s, 3s) == 1s && 2s.clamp(1s, 3s) == 2s && 2s.clamp(3s, 1s) == 1s
  expect (-2s).abs() == 2s && duration.abs(2s) == 2s && 1500ms.seconds() == 1.5
  let (early, late) = (time.from_unix(1)?, time.from_unix(2)?)
  expect early.min(late) == early && time.min(late, early) == early
  expect early.max(late) == late && late.max(early) == late
}

test "paths" {
  expect path.parts("/a//./b.txt") == ["a", "b.txt"] && path.parts("").is_empty()
  expect path.name("a/b.txt") == Some("b.txt") && path.name("a/b/") == Some("b") && path.name("/") == None
  expect path.parent("a/b.txt") == "a" && path.parent("b.txt") == "" && path.parent("/a") == "/" && path.parent("/") == "/"
  expect path.extension("x/a.tar.gz") == Some("gz") && path.extension("a.b/c") == None && path.extension("") == None
  expect path.extension(".profile") == None && path.extension("a/..") == None && path.stem("..") == Some("..") && path.extension(".a.txt") == Some("txt")
  expect path.stem("b/a.tar.gz") == Some("a.tar") && path.stem(".profile") == Some(".profile") && path.stem("/") == None
  expect path.join("a/", "/b") == "a/b" && path.join("a", "b") == "a/b" && path.join("", "b") == "b" && path.join("/", "b") == "/b"
  expect path.normalized("a/./b/../c") == "a/c" && path.normalized("/../a") == "/a" && path.normalized("../../a/..") == "../.."
  expect path.normalized("a/..") == "" && path.normalized("/") == "/"
}

test "maps" {
  expect ["a": 1, "b": 2].map_values(|n| "{n}") == ["a": "1", "b": "2"]
  expect ["a": 1, "b": 2].filter(|key, value| key == "a" || value > 2) == ["a": 1]
  let counts = ["a": 1].update("a", |count| (count else { 0 }) + 1)
  expect counts.update("b", |count| (count else { 0 }) + 1) == ["a": 2, "b": 1]
}

test "options" {
  let none: Option(Int) = None
  expect Some(1).is_some() && none.is_none() && !none.is_some()
  expect Some(1).map(|n| "{n}") == Some("1") && none.map(|n| "{n}") == None
  expect Some(1).then(|n| if n > 0 { Some(n) } else { None }) == Some(1)
  expect Some(1).filter(|n| n > 1) == None && Some(1).filter(|n| n > 0) == Some(1)
  expect none.or(Some(2)) == Some(2) && Some(1).or(none) == Some(1)
  let found = Some(1).ok_or(Failure("none"))?
  let missing = none.ok_or(Failure("no number")) else as failure { return () }
  expect found == 1 && missing == 0
}

test "results" {
  let good = "12".parse_int()
  let bad = "x".parse_int()
  expect good.is_ok() && bad.is_err() && !good.is_err()
  expect good.ok() == Some(12) && bad.ok() == None
  expect (good.map(|n| n + 1) else { 0 }) == 13
  expect (good.then(|n| "{n}0".parse_int()) else { 0 }) == 120
  expect good.failure().is_none() && bad.failure().is_some()
  expect bad.or(good).ok() == Some(12) && good.or(bad).ok() == Some(12)
  let recovered = bad.recover(|_| "7".parse_int())
  expect recovered.ok() == Some(7) && good.recover(|_| bad).ok() == Some(12)
  match bad.map_failure(|failure| "{failure}".length()) {
    Ok(_) => fail("it is no number")
    Err(length) => expect_positive(length)
  }
}

fn expect_positive(length: Int) {
  if length < 1 { fail("the message is empty") }
}
"#;
