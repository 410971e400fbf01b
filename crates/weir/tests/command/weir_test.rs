//! `weir test` on tests that take long, print, or show values.

mod failures;
mod routes;
mod waits;

use crate::support::{Scratch, say};

#[test]
fn a_test_that_does_not_end_fails_at_its_time_limit() {
    let endless = "use time\n\ntest \"waiting\" { time.sleep(9m) }\n\ntest \"endless\" {\n  let n = loop n = 0 { if n > 9 { 0 } else { n + 1 } } until n < 0 at most 1_000_000_000\n  \
                   expect n == 0\n}\n\ntest \"short\" { expect 1 + 1 == 2 }\n";
    let program = Scratch::new("endless.weir", endless.as_bytes());
    let said = say(&["test", program.path(), "--time-limit", "1s"]);
    assert_eq!((said.code, said.messages.as_str()), (1, ""), "{}", said.output);
    assert!(said.output.contains("the test takes longer than its limit of 1s"), "{}", said.output);
    assert!(said.output.contains("1 passed, 2 failed"), "{}", said.output);
    let refused = say(&["test", program.path(), "--time-limit", "0"]);
    assert!(refused.code == 2 && refused.messages.contains("a whole number of seconds"), "{}", refused.messages);
}

#[test]
fn a_failed_test_names_the_line_of_what_failed_and_shows_where_values_differ() {
    let tests = "use text\n\nfn number(word: Text) -> Result(Int) { Ok(text.parse_int(word)?) }\n\n\
                 test \"call\" {\n  let one = number(\"1\")?\n  let two = number(\"two\")?\n  expect one == two\n}\n\n\
                 test \"values\" {\n  let texts = for n in [1, 2, 3, 4, 5, 6, 7, 8, 9] { \"a rather long text {n}\" }\n  \
                 expect texts.length() == 9\n  expect texts == []\n}\n";
    let program = Scratch::new("places.weir", tests.as_bytes());
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 1, "{}", said.messages);
    assert!(said.output.contains(&format!("at {}:7:13", program.path())), "{}", said.output);
    let passed = format!("text.parse_int at {}:3:43, in `number`", program.path());
    assert!(said.output.contains(&passed), "{}", said.output);
    assert!(said.output.contains(&format!("at {}:14:10", program.path())), "{}", said.output);
    assert!(said.output.contains("they differ from character 2 on"), "{}", said.output);
}

#[test]
fn a_failed_test_shows_values_in_lists_and_maps_with_their_names() {
    let tests = r#"record Post { id: Int, title: Text }
enum State { Open, Closed(at: Int) }
record Page { posts: List(Post) }

test "records" { expect [Post { id: 1, title: "a" }] == [] }
test "map" { expect ["x": Post { id: 1, title: "a" }] == [:] }
test "variants" { expect [State.Open, State.Closed(at: 3)] == [] }
test "nested" { expect [["x": [(1, Some(2))]]] == [] }
test "field" { expect Page { posts: [Post { id: 1, title: "a" }] } == Page { posts: [] } }
"#;
    let program = Scratch::new("shown.weir", tests.as_bytes());
    let said = say(&["test", program.path()]);
    let shown: Vec<&str> = said.output.lines().filter_map(|line| line.trim().strip_prefix("left: ")).collect();
    let wanted = [
        r#"[Post { id: 1, title: "a" }]"#,
        r#"["x": Post { id: 1, title: "a" }]"#,
        "[Open, Closed(at: 3)]",
        r#"[["x": [(1, Some(2))]]]"#,
        r#"Page { posts: [Post { id: 1, title: "a" }] }"#,
    ];
    assert_eq!(shown, wanted, "{}", said.output);
    assert!(said.output.contains("right: [:]") && said.output.contains("right: []"), "{}", said.output);
}

/// Walking through the value at each of its uses would take minutes.
#[test]
fn values_of_great_depth_are_tested_without_walking_through_them() {
    let text = "use list\n\nenum Chain { End, Link(Chain) }\n\ntest \"deep\" {\n  \
                let chain = fold chain = Chain.End for _ in list.numbers(0, 30_000)? { Chain.Link(chain) }\n  \
                let held = loop held = (chain, 0) { (held.0, held.1 + 1) } until held.1 == 30_000 at most 1_000_000\n  \
                expect held.1 == 30_000\n}\n";
    let program = Scratch::new("deep.weir", text.as_bytes());
    let said = say(&["test", program.path(), "--time-limit", "60"]);
    assert_eq!(said.code, 0, "{}{}", said.output, said.messages);
}

/// The output of a test belongs to its failure; a test that passes is silent.
#[test]
fn what_a_failing_test_prints_is_shown() {
    let text = "use stdio\n\ntest \"fails\" {\n  stdio.print(\"one\")?\n  stdio.print_error(\"two\")?\n  expect 1 == 2\n}\n\n\
                test \"passes\" { stdio.print(\"three\")? }\n";
    let program = Scratch::new("prints.weir", text.as_bytes());
    let said = say(&["test", program.path()]);
    assert!(said.output.contains("       printed:\n         one\n         two\n"), "{}", said.output);
    assert!(!said.output.contains("three") && said.messages.is_empty(), "{}{}", said.output, said.messages);
}

/// Nothing compares the bytes of secrets: two that are made of the same bytes differ in lists, as keys and in records.
#[test]
fn equal_secrets_are_not_equal_for_a_program() {
    let text = "use crypto\n\nrecord Held { key: crypto.Secret, number: Int }\n\ntest \"apart\" {\n  \
                let one = crypto.secret(\"the same key for both of them\".to_bytes())?\n  \
                let two = crypto.secret(\"the same key for both of them\".to_bytes())?\n  \
                expect ![one].contains(two)\n  expect [one: 1, two: 2].length() == 2\n  expect [one: 1][two] == None\n  \
                expect Held { key: one, number: 1 } != Held { key: two, number: 1 }\n}\n";
    let program = Scratch::new("apart.weir", text.as_bytes());
    let said = say(&["test", program.path()]);
    assert!(said.output.contains("1 passed"), "{}{}", said.output, said.messages);
    let compared = Scratch::new("compared.weir", text.replace("![one].contains(two)", "one != two").as_bytes());
    let said = say(&["check", compared.path()]);
    assert!(said.messages.contains("values of the type `crypto.Secret` cannot be compared"), "{}", said.messages);
}
