//! `weir test` on tests that take long, or make values of great depth.

use crate::support::{Scratch, say};

#[test]
fn a_test_that_does_not_end_fails_at_its_time_limit() {
    let endless = "test \"endless\" {\n  let n = loop n = 0 { if n > 9 { 0 } else { n + 1 } } until n < 0 at most 1_000_000_000\n  \
                   expect n == 0\n}\n\ntest \"short\" { expect 1 + 1 == 2 }\n";
    let program = Scratch::new("endless.weir", endless.as_bytes());
    let said = say(&["test", program.path(), "--time-limit", "1"]);
    assert_eq!(said.code, 1, "{}", said.output);
    assert!(said.output.contains("the test takes longer than its limit of 1s"), "{}", said.output);
    assert!(said.output.contains("1 passed, 1 failed"), "{}", said.output);
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

/// A handler of the file answers for services: in a test it would hide what fails.
#[test]
fn handlers_of_the_file_do_not_apply_to_tests() {
    let text = "use http, text\n\non failure of text.parse_int(word) { http.bad_request(word) }\n\n\
                service s on http(port: 1) {\n  get \"/{n}\" (n: Text) { http.text(\"{n.parse_int()?}\") }\n}\n\n\
                fn double(n: Text) -> Int { n.parse_int()? * 2 }\n\ntest \"double\" { expect double(\"x\") == 3 }\n";
    let program = Scratch::new("hidden.weir", text.as_bytes());
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 1, "{}", said.output);
    assert!(said.output.contains("\"x\" is not a whole number"), "{}", said.output);
}
