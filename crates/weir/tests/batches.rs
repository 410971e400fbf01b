//! Batches of compiled programs: which calls wait for later ones although nothing is known of latencies.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::sync::{Arc, Mutex};

use test_support::flows::batches::{BatchGates, WaitingBatch};
use test_support::flows::gates::{immediate, library};
use test_support::flows::{Feed, options};
use weir_host::{Batch, Outcome, Passing, Type, Value, World};
use weir_runtime::{ENGINES, Options, RunningProgram, ScriptedPlatform, start};
use weir_syntax::{SourceFile, SourceId};

const LIMITS: Batch = Batch { at_most: 100, in_flight: 4, gathered: 0 };

/// A timeline: the posts that the cache does not know have their authors and pictures later than the others. Each card is a sum
/// that may overflow.
const TIMELINE: &str = "use cache, posts, people, media, test, sink

fn post(id: Int) -> Int {
  let known = cache.get(id)?
  if known % 20 == 0 { posts.get(known)? } else { known }
}

fn card(id: Int) -> Int {
  let post = post(id)
  people.get(post % 7)? + media.get(post)?
}

for x in test.feed(0) {
  let cards = for id in [x, 2, 3, 4] { card(id) }
  sink.keep(fold sum = 0 for card in cards { sum + card })
}
";

/// A first call, and a later one of the same function that needs the answer of another one; the first answer is computed with
/// before the later one is there, in a round of a `for`.
const ROUNDS: &str = "use people, names, test, sink

for x in test.feed(0) {
  let report = for id in [x, 2] { people.get(id)? * 3 }
  let reader = people.get(names.get(x)?)? * 3
  sink.keep(fold sum = reader for one in report { sum + one })
}
";

/// A page whose `fn` returns a failure: of a user or team that is not there, or of a sum that is too large.
const PAGE: &str = "use users, teams, test, sink

fn page(ids: List(Int)) -> Result(List(Int)) {
  let found = for id in ids {
    let user = users.get(id)?
    if user == 100 { fail(\"no user 10\") }
    if user == 120 { fail(\"no user with the number 12\") }
    teams.get(user)? + 1
  }
  Ok(found)
}

for x in test.feed(0) {
  let ids = for id in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29] { x + id }
  sink.keep(match page(ids) { Ok(found) => found.length(), Err(failure) => 0 - \"{failure}\".length() })
}
";

/// A page whose flow handles the failure of a user that is not there.
const HANDLED_PAGE: &str = "use users, teams, test, sink

fn team(id: Int) -> Result(Int) {
  let user = users.get(id)?
  if user == 100 { fail(\"no user 10\") }
  Ok(teams.get(user)? + 1)
}

for x in test.feed(0) {
  on failure of team as failure { sink.keep(0 - \"{failure}\".length()) }
  let ids = for id in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29] { x + id }
  let found = for id in ids { team(id)? }
  sink.keep(found.length())
}
";

/// A page whose keys may fail: by an index, and by a division.
const KEYED_PAGE: &str = "use users, teams, test, sink

fn page(ids: List(Int), places: List(Int)) -> Result(List(Int)) {
  let found = for at in places {
    let user = users.get(ids[at])?
    if user == 120 { fail(\"no user 12\") }
    teams.get(user / (user - 130))?
  }
  Ok(found)
}

for x in test.feed(0) {
  sink.keep(match page([10, 11, 12, 13], [0, 1, x, 3]) {
    Ok(found) => found.length()
    Err(failure) => 0 - \"{failure}\".length()
  })
}
";

/// A sum in a flow, with a `fail` before each of its calls.
const SUM: &str = "use users, teams, test, sink

for x in test.feed(0) {
  let sum = fold sum = 0 for id in [1, 2, x] {
    let user = if id == 5 { fail(\"no user {id}\") } else { users.get(id * 2)? }
    let team = if user == 140 { fail(\"no team {user}\") } else { user + 1 }
    sum + teams.get(team)?
  }
  sink.keep(sum)
}
";

/// A compiled program that calls gated functions.
struct Compiled {
    gates: BatchGates,
    feed: Feed,
    /// The values that the flows have passed to `sink.keep`.
    kept: Arc<Mutex<Vec<Value>>>,
    _running: RunningProgram,
}

impl Compiled {
    fn start(text: &str, paths: &[&'static str], engine: &str) -> Compiled {
        let (gates, feed) = (BatchGates::new(), Feed::new());
        let kept = Arc::new(Mutex::new(Vec::new()));
        let keeper = Arc::clone(&kept);
        let keep = immediate("sink.keep", &[("x", Type::Int, Passing::Value)], move |call| {
            keeper.lock().unwrap().push(call.value(0));
            Outcome::Value(call.value(0))
        });
        let gated = paths.iter().map(|path| gates.batched(path, World::Reads, LIMITS));
        let mut library = library(gated.chain([keep]));
        feed.put(&mut library, "test", "feed");
        let compiled = weir_compile::compile(SourceId(0), &SourceFile::new("test.weir", text), &library);
        let messages: Vec<_> = compiled.diagnostics.iter().map(|found| found.message.clone()).collect();
        let graph = compiled.graph.unwrap_or_else(|| panic!("{messages:?}"));
        // Time stands still for the program, so that no slice is over because the machine is busy.
        let options = Options { platform: Arc::new(ScriptedPlatform::new(0)), ..options(engine, 2) };
        let running = start(&graph, &library, options).unwrap();
        Compiled { gates, feed, kept, _running: running }
    }

    /// Returns the integers that the flows have kept.
    fn kept(&self) -> Vec<i64> {
        let number = |value: &Value| if let Value::Int(number) = value { *number } else { panic!("{value:?}") };
        self.kept.lock().unwrap().iter().map(number).collect()
    }

    /// Waits for as many batches as are expected, in the order of the functions' names.
    fn next(&self, expected: &[(&str, &[i64])], how: &str) -> Vec<WaitingBatch> {
        let mut batches: Vec<_> = expected.iter().map(|_| self.gates.next()).collect();
        batches.sort_by_key(|batch| batch.path);
        for (batch, (path, arguments)) in batches.iter().zip(expected) {
            let mut sent = batch.arguments.clone();
            sent.sort_unstable();
            assert_eq!((batch.path, &sent[..]), (*path, *arguments), "{how}");
        }
        batches
    }
}

#[test]
fn the_authors_and_pictures_of_a_timeline_are_one_query_each() {
    for row in ENGINES {
        let paths = ["cache.get", "posts.get", "people.get", "media.get"];
        let compiled = Compiled::start(TIMELINE, &paths, row.name);
        let flow = compiled.feed.begin(vec![Value::Int(1)]);
        compiled.next(&[("cache.get", &[1, 2, 3, 4])], row.name).into_iter().for_each(WaitingBatch::answer);
        let posts = compiled.next(&[("posts.get", &[20, 40])], row.name);
        assert!(compiled.gates.is_quiet(), "{}: the posts that the cache knows wait", row.name);
        posts.into_iter().for_each(WaitingBatch::answer);
        let last = [("media.get", &[10, 30, 200, 400][..]), ("people.get", &[1, 2, 3, 4])];
        compiled.next(&last, row.name).into_iter().for_each(WaitingBatch::answer);
        assert!(flow.blocking_recv().unwrap().is_ok(), "{}", row.name);
    }
}

/// Runs the page of the 30 users from this one on under each engine: its users are the first query, and the teams of those that are
/// there the second one. Compares what the flow keeps.
fn page_in_two_queries(text: &str, first: i64, missing: &[i64], kept: i64) {
    let users: Vec<i64> = (first..first + 30).collect();
    let found = users.iter().filter(|user| !missing.contains(*user));
    let teams: Vec<i64> = found.map(|user| user * 10).collect();
    for row in ENGINES {
        let compiled = Compiled::start(text, &["users.get", "teams.get"], row.name);
        let flow = compiled.feed.begin(vec![Value::Int(first)]);
        compiled.next(&[("users.get", &users)], row.name).into_iter().for_each(WaitingBatch::answer);
        compiled.next(&[("teams.get", &teams)], row.name).into_iter().for_each(WaitingBatch::answer);
        assert!(flow.blocking_recv().unwrap().is_ok(), "{}", row.name);
        assert_eq!(compiled.kept(), [kept], "{}", row.name);
    }
}

/// Two queries instead of 60.
#[test]
fn a_loop_with_failures_in_a_fn_makes_one_query_for_each_of_its_calls() {
    page_in_two_queries(PAGE, 101, &[], 30);
}

/// Rounds behind the one that fails have asked already, but not for what is behind failures of their own.
#[test]
fn the_first_failure_of_a_loop_in_a_fn_wins() {
    page_in_two_queries(PAGE, 9, &[10, 12], -10);
}

/// The failure leaves the loop before its handler ends the flow.
#[test]
fn a_loop_whose_failures_the_flow_handles_makes_one_query_for_each_of_its_calls() {
    page_in_two_queries(HANDLED_PAGE, 101, &[], 30);
    page_in_two_queries(HANDLED_PAGE, 9, &[10], -10);
}

/// Runs a flow of a program that asks for these users in one query, and for these teams in a second one. Compares what the flow keeps,
/// or the message of its failure.
fn in_two_queries(text: &str, input: i64, (users, teams): (&[i64], &[i64]), expected: Result<i64, &str>) {
    for row in ENGINES {
        let compiled = Compiled::start(text, &["users.get", "teams.get"], row.name);
        let flow = compiled.feed.begin(vec![Value::Int(input)]);
        compiled.next(&[("users.get", users)], row.name).into_iter().for_each(WaitingBatch::answer);
        compiled.next(&[("teams.get", teams)], row.name).into_iter().for_each(WaitingBatch::answer);
        let answer = flow.blocking_recv().unwrap().map_err(|failure| failure.message.to_string());
        let kept = answer.map(|_| compiled.kept());
        assert_eq!(kept, expected.map(|kept| vec![kept]).map_err(str::to_owned), "{}", row.name);
    }
}

/// A round whose key fails asks for nothing, and its failure counts only if the text comes to it.
#[test]
fn keys_that_may_fail_are_one_query() {
    in_two_queries(KEYED_PAGE, 1, (&[10, 11, 13], &[-5, -3]), Err("130 divided by zero"));
    in_two_queries(KEYED_PAGE, 2, (&[10, 11, 12, 13], &[-5, -3]), Ok(-10));
    in_two_queries(KEYED_PAGE, 9, (&[10, 11, 13], &[-5, -3]), Err("index 9 of a list of 4"));
}

#[test]
fn calls_behind_a_fail_are_one_query() {
    in_two_queries(SUM, 3, (&[2, 4, 6], &[21, 41, 61]), Ok(1230));
    in_two_queries(SUM, 5, (&[2, 4], &[21, 41]), Err("no user 5"));
    in_two_queries(SUM, 7, (&[2, 4, 14], &[21, 41]), Err("no team 140"));
}

/// Nothing behind a `return` is asked for, as in a route.
#[test]
fn a_loop_with_a_return_in_a_fn_asks_for_one_element_after_the_other() {
    let text = PAGE.replace("fail(\"no user 10\")", "return Err(Failure(\"no user 10\"))");
    let compiled = Compiled::start(&text, &["users.get", "teams.get"], "event");
    let flow = compiled.feed.begin(vec![Value::Int(10)]);
    compiled.next(&[("users.get", &[10])], "event").into_iter().for_each(WaitingBatch::answer);
    assert!(compiled.gates.is_quiet(), "nothing else is asked for");
    assert!(flow.blocking_recv().unwrap().is_ok());
    assert_eq!(compiled.kept(), [-10]);
}

#[test]
fn computation_behind_a_call_does_not_keep_it_from_waiting() {
    for row in ENGINES {
        let compiled = Compiled::start(ROUNDS, &["people.get", "names.get"], row.name);
        let flow = compiled.feed.begin(vec![Value::Int(1)]);
        let names = compiled.next(&[("names.get", &[1])], row.name);
        assert!(compiled.gates.is_quiet(), "{}: the people wait", row.name);
        names.into_iter().for_each(WaitingBatch::answer);
        compiled.next(&[("people.get", &[1, 2, 10])], row.name).into_iter().for_each(WaitingBatch::answer);
        assert!(flow.blocking_recv().unwrap().is_ok(), "{}", row.name);
    }
}
